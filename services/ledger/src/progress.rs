//! How far the partitions are read, by the server clock: what a close asks before it takes a period for over (V-2).
//!
//! An offset says nothing of time, and the newest event of a partition says nothing where none comes any more. So the end of each partition is
//! asked at an instant; once the stored offset has reached it, everything that stood in the partition at that instant is applied.

use crate::error::LedgerError;
use gpuledger_domain::time::Instant;
use gpuledger_messaging::{KafkaSettings, Partition, Watermarks, watermarks};
use gpuledger_storage::progress::{self, PartitionRead};
use gpuledger_storage::{Db, offsets};
use std::collections::BTreeMap;

/// The ends of partitions that the stored offsets have not reached yet, each with when it was asked.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    asked: BTreeMap<Partition, (Instant, i64)>,
}

impl Progress {
    /// Asks where the partitions of `topics` end at `now`, and notes until when each is read by the group.
    ///
    /// # Errors
    /// The cluster cannot be asked; the database.
    pub(crate) async fn note(
        &mut self,
        db: &Db,
        (kafka, topics): (&KafkaSettings, &[String]),
        group: &str,
        now: Instant,
    ) -> Result<(), LedgerError> {
        let marks = watermarks(kafka, topics).await?;
        let mut tx = db.begin().await?;
        let mut stored: BTreeMap<(String, i32), i64> = BTreeMap::new();
        for row in offsets::load_all(&mut tx).await?.into_iter().filter(|row| row.group_name == group) {
            stored.insert((row.topic, row.partition), row.next_offset);
        }
        progress::note(&mut tx, &self.reached(&marks, &stored, now)).await?;
        Ok(tx.commit().await?)
    }

    /// Takes in where partitions end at `now`, and says until when each is read; none: not even as far as its end was when it was first asked.
    fn reached(
        &mut self,
        marks: &BTreeMap<Partition, Watermarks>,
        stored: &BTreeMap<(String, i32), i64>,
        now: Instant,
    ) -> Vec<PartitionRead> {
        self.asked.retain(|partition, _| marks.contains_key(partition));
        let mut read = Vec::new();
        for (partition, marks) in marks {
            let key = (partition.topic.to_string(), partition.partition);
            // An empty partition has nothing to read, whatever was in it before.
            let end = if marks.low == marks.high { 0 } else { marks.high };
            let (asked_at, asked_end) = *self.asked.entry(partition.clone()).or_insert((now, end));
            let is_reached = stored.get(&key).copied().unwrap_or(0) >= asked_end;
            if is_reached {
                self.asked.remove(partition);
            }
            let until_us = is_reached.then_some(asked_at.as_micros());
            read.push(PartitionRead { topic: key.0, partition: key.1, until_us });
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v2_a_partition_is_read_until_the_instant_whose_end_its_offset_has_reached() {
        let partition = Partition { topic: "t".into(), partition: 3 };
        let mut progress = Progress::default();
        // clock | low | high | stored offset | read until
        for (clock, low, high, stored, until) in [
            (1, 0, 100, Some(60), None),
            (2, 0, 150, Some(99), None),
            // The end as it was at 1 is reached; what has come since is not known to be.
            (3, 0, 200, Some(100), Some(1)),
            (4, 0, 250, Some(260), Some(4)),
            (5, 250, 250, None, Some(5)),
        ] {
            let marks = BTreeMap::from([(partition.clone(), Watermarks { low, high })]);
            let stored = stored.map(|offset| (("t".to_owned(), 3), offset)).into_iter().collect();
            let read = progress.reached(&marks, &stored, Instant::from_micros(clock));
            assert_eq!(
                read,
                [PartitionRead { topic: "t".to_owned(), partition: 3, until_us: until }],
                "{clock}"
            );
        }
    }
}
