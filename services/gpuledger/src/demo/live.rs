//! The day, lived: collectors on simulated nodes, the allocator, and the ledger, all at once, until everything that was said is in the ledger.

use super::address::Address;
use super::day::events::ALLOCATOR;
use super::day::fleet::NODES;
use super::day::{MIDNIGHT, OVER};
use super::day_clock::DayClock;
use super::intake::Intake;
use super::nodes::Nodes;
use super::screen::Screen;
use super::way::Way;
use crate::commands::publish::record_of;
use anyhow::{Result, ensure};
use gpuledger_domain::time::{HOUR_US, Instant, MINUTE_US};
use gpuledger_ledger::batch::Tally;
use gpuledger_messaging::{MessagingError, Producer, ProducerSettings};
use gpuledger_storage::telemetry::gaps;
use gpuledger_storage::{Db, parked};
use gpuledger_wire::{Event, encode_structured};
use std::collections::VecDeque;
use std::time::Duration;

/// How often the demo looks how far everybody has come.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long the producer may take to let go.
const CLOSE_DEADLINE: Duration = Duration::from_secs(30);
/// Columns of the day's bar.
const BAR: i64 = 24;

/// Everybody who takes part.
pub(crate) struct Day<'a> {
    /// Where it shows.
    pub(crate) screen: Screen,
    /// The ledger's database.
    pub(crate) db: &'a Db,
    /// The API.
    pub(crate) address: &'a Address,
    /// The time of the day.
    pub(crate) clock: &'a DayClock,
    /// How events travel.
    pub(crate) way: &'a Way,
}

impl Day<'_> {
    /// Lives it: the allocator says each of `events` when its time has come.
    ///
    /// # Errors
    /// A collector that ends badly, the brokers, the database, or something that never arrives.
    pub(crate) async fn live(&self, mut nodes: Nodes, events: Vec<Event>) -> Result<()> {
        let step = self.screen.step("the day begins");
        let intake = Intake::start(self.db, self.way, self.clock.shared());
        let allocator = Allocator::new(self)?;
        let mut to_say = VecDeque::from(events);
        while nodes.run_on()? {
            allocator.say(&mut to_say, self.clock.now()).await?;
            step.tell(self.how_far(&intake));
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.clock.move_to(OVER);
        allocator.say(&mut to_say, OVER).await?;
        allocator.close().await?;
        let tally =
            intake.end(|tally| step.tell(format!("{} windows are in the ledger", tally.windows))).await?;
        self.check(tally).await?;
        step.done(&format!(
            "lived through the day: {} windows of telemetry, {} facts; none is missing",
            tally.windows, tally.accepted
        ));
        Ok(())
    }

    fn how_far(&self, intake: &Intake) -> String {
        format!("{}  {} windows are in the ledger", day_bar(self.clock.slowest()), intake.tally().windows)
    }

    /// Looks for what did not come, and for what came and was not accepted.
    async fn check(&self, tally: Tally) -> Result<()> {
        let mut tx = self.db.snapshot().await?;
        let missing = gaps(&mut tx).await?;
        ensure!(missing.is_empty(), "telemetry is missing: {missing:?}");
        let parked = parked::count_open(&mut tx).await?;
        ensure!(parked.is_empty() && tally.parked == 0, "events were not accepted: {parked:?}");
        Ok(())
    }
}

/// The reference allocator's mouth.
enum Allocator<'a> {
    Kafka(Producer, &'a Way),
    Http(&'a Address, String),
}

impl<'a> Allocator<'a> {
    fn new(day: &Day<'a>) -> Result<Self> {
        Ok(match day.way {
            Way::Kafka(kafka) => Self::Kafka(Producer::new(kafka, &ProducerSettings::default())?, day.way),
            Way::Http => {
                let nodes = NODES.map(|node| node.name.to_owned()).to_vec();
                Self::Http(day.address, day.address.allocator_token(ALLOCATOR, nodes)?)
            }
        })
    }

    /// Says what has happened by now.
    async fn say(&self, events: &mut VecDeque<Event>, now: Instant) -> Result<()> {
        let due = events.partition_point(|event| event.time <= now);
        let due: Vec<Event> = events.drain(..due).collect();
        if due.is_empty() {
            return Ok(());
        }
        match self {
            Self::Kafka(producer, Way::Kafka(kafka)) => {
                let records = due.iter().map(|event| Ok::<_, MessagingError>(record_of(kafka, event)));
                producer.publish(records, 0, |_| ()).await.map_err(|stopped| stopped.cause)?;
            }
            Self::Kafka(..) => {}
            Self::Http(address, token) => {
                let lines: Vec<Vec<u8>> = due.iter().map(encode_structured).collect();
                address.post(token, [b"[".as_slice(), &lines.join(&b','), b"]"].concat()).await?;
            }
        }
        Ok(())
    }

    async fn close(self) -> Result<()> {
        match self {
            Self::Kafka(producer, _) => Ok(producer.close(CLOSE_DEADLINE).await?),
            Self::Http(..) => Ok(()),
        }
    }
}

/// How far the day is: a bar and the time.
fn day_bar(at: Instant) -> String {
    let done_us = at.since(MIDNIGHT).clamp(0, 24 * HOUR_US);
    let filled = done_us * BAR / (24 * HOUR_US);
    let (hours, minutes) = (done_us / HOUR_US, done_us % HOUR_US / MINUTE_US);
    let columns = |number: i64| usize::try_from(number).unwrap_or_default();
    format!(
        "{}{} {hours:02}:{minutes:02} on the nodes",
        "█".repeat(columns(filled)),
        "░".repeat(columns(BAR - filled))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_as_the_day() {
        assert_eq!(day_bar(MIDNIGHT), format!("{} 00:00 on the nodes", "░".repeat(24)));
        let noon = day_bar(MIDNIGHT.plus(12 * HOUR_US + 61_000_000));
        assert_eq!(noon, format!("{}{} 12:01 on the nodes", "█".repeat(12), "░".repeat(12)));
        assert!(day_bar(OVER).starts_with(&"█".repeat(24)));
    }
}
