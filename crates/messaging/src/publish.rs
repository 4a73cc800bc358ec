//! Publishing a long sequence of records, resumable from a count.

use std::collections::VecDeque;

use rdkafka::producer::DeliveryFuture;

use crate::error::MessagingError;
use crate::producer::{Producer, Record, settle};

/// Why a publication stopped, and from where to go on.
#[derive(Debug, thiserror::Error)]
#[error("stopped after {acknowledged} acknowledged records: {cause}")]
pub struct PublishStopped<E> {
    /// Records of the sequence that are certainly stored, counted from its first, skipped ones included. Publishing
    /// again with `skip` at this number repeats some records and loses none.
    pub acknowledged: u64,
    /// What stopped it.
    pub cause: E,
}

impl Producer {
    /// Sends a sequence of records in order, many on their way at once, and calls `progress` with the number
    /// acknowledged so far (a prefix of the sequence). `skip` records at the front are read but not sent. The result
    /// is the number acknowledged, skipped ones included.
    ///
    /// # Errors
    /// [`PublishStopped`] at the first record that could not be read or was not acknowledged.
    pub async fn publish<I, E>(
        &self,
        records: I,
        skip: u64,
        mut progress: impl FnMut(u64),
    ) -> Result<u64, PublishStopped<E>>
    where
        I: IntoIterator<Item = Result<Record, E>>,
        E: From<MessagingError>,
    {
        let mut flight = VecDeque::with_capacity(self.window());
        let mut acknowledged = skip;
        let mut index = 0;
        for record in records {
            let record = match record {
                Ok(record) => record,
                Err(cause) => {
                    // What went out before the bad record still counts.
                    let landed = self.land(&mut flight, 0, &mut acknowledged, &mut progress).await;
                    let cause = landed.err().map_or(cause, E::from);
                    return Err(PublishStopped { acknowledged, cause });
                }
            };
            index += 1;
            if index <= skip {
                continue;
            }
            let room = self.window() - 1;
            let sent = match self.land(&mut flight, room, &mut acknowledged, &mut progress).await {
                Ok(()) => self.enqueue(&record).await,
                Err(cause) => Err(cause),
            };
            match sent {
                Ok(report) => flight.push_back((record.topic, report)),
                Err(cause) => return Err(PublishStopped { acknowledged, cause: cause.into() }),
            }
        }
        match self.land(&mut flight, 0, &mut acknowledged, &mut progress).await {
            Ok(()) => Ok(acknowledged),
            Err(cause) => Err(PublishStopped { acknowledged, cause: cause.into() }),
        }
    }

    /// Waits, oldest first, until at most `leave` records are on their way.
    async fn land(
        &self,
        flight: &mut VecDeque<(String, DeliveryFuture)>,
        leave: usize,
        acknowledged: &mut u64,
        progress: &mut impl FnMut(u64),
    ) -> Result<(), MessagingError> {
        while flight.len() > leave {
            if let Some((topic, report)) = flight.pop_front() {
                settle(report, &topic).await?;
                *acknowledged += 1;
                progress(*acknowledged);
            }
        }
        Ok(())
    }
}
