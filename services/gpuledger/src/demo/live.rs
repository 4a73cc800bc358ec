//! The day, lived: collectors on simulated nodes, the allocator, and the ledger, all at once, until everything that was said is in the ledger.

use super::address::Address;
use super::day::events::ALLOCATOR;
use super::day::fleet::NODES;
use super::day::{MIDNIGHT, OVER};
use super::day_clock::DayClock;
use super::nodes::Nodes;
use super::screen::{Screen, Step};
use super::way::Way;
use crate::commands::publish::record_of;
use anyhow::{Context, Result, ensure};
use gpuledger_domain::time::{HOUR_US, Instant, MINUTE_US};
use gpuledger_ledger::inbox;
use gpuledger_ledger::serve::{LedgerSettings, serve};
use gpuledger_messaging::{MessagingError, Producer, ProducerSettings};
use gpuledger_storage::telemetry::{count_staged, gaps};
use gpuledger_storage::{Db, facts, parked};
use gpuledger_telemetry::health::Health;
use gpuledger_telemetry::metrics::Metrics;
use gpuledger_telemetry::shutdown::Shutdown;
use gpuledger_wire::{Event, encode_structured};
use std::collections::VecDeque;
use std::time::Duration;

/// How often the demo looks how far everybody has come.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long the ledger may take to read what was sent, once everything is sent.
const PATIENCE: Duration = Duration::from_secs(180);
/// How long services may take to end.
const DEADLINE: Duration = Duration::from_secs(25);
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

/// What came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// Telemetry windows.
    pub(crate) windows: i64,
    /// Facts that were accepted.
    pub(crate) facts: i64,
}

impl Day<'_> {
    /// Lives it: the allocator says each of `events` when its time has come.
    ///
    /// # Errors
    /// A collector that ends badly, a service, the brokers, the database, or something that never arrives.
    pub(crate) async fn live(&self, mut nodes: Nodes, events: Vec<Event>) -> Result<Came> {
        let step = self.screen.step("the day begins");
        let shutdown = Shutdown::default();
        self.start_ledger(&shutdown)?;
        let allocator = Allocator::new(self)?;
        let mut to_say = VecDeque::from(events);
        while nodes.run_on()? {
            allocator.say(&mut to_say, self.clock.now()).await?;
            step.tell(self.how_far().await?);
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.clock.move_to(OVER);
        allocator.say(&mut to_say, OVER).await?;
        allocator.close().await?;
        self.until_read(&step, &shutdown).await?;
        let came = self.came().await?;
        step.done(&format!(
            "lived through the day: {} telemetry windows and {} facts are in the ledger, none is missing",
            came.windows, came.facts
        ));
        Ok(came)
    }

    fn start_ledger(&self, shutdown: &Shutdown) -> Result<()> {
        let ledger = LedgerSettings {
            db: self.db.clone(),
            kafka: self.way.consumed(),
            clock: self.clock.shared(),
            health: Health::default(),
            metrics: Metrics::new(env!("CARGO_PKG_VERSION"))?,
        };
        Ok(serve(ledger, shutdown)?)
    }

    async fn how_far(&self) -> Result<String> {
        let windows = count_staged(&mut *self.db.snapshot().await?).await?;
        Ok(format!("{}  {windows} telemetry windows in the ledger", day_bar(self.clock.slowest())))
    }

    /// Waits until the ledger has read everything, and lets it rest.
    async fn until_read(&self, step: &Step, shutdown: &Shutdown) -> Result<()> {
        let reading = async {
            while !shutdown.token().is_cancelled() && !self.way.is_read(self.db).await? {
                step.tell(self.how_far().await?);
                tokio::time::sleep(LOOK_EVERY).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, reading).await.context("the ledger does not read on")??;
        ensure!(!shutdown.token().is_cancelled(), "the ledger ended before the day was over");
        shutdown.begin();
        shutdown.wait(DEADLINE).await?;
        // Nobody else takes from the inbox now: what is left is all there is.
        while inbox::drain(self.db, self.clock.now()).await?.is_some() {}
        Ok(())
    }

    /// Counts what came, and looks for what did not.
    async fn came(&self) -> Result<Came> {
        let mut tx = self.db.snapshot().await?;
        let missing = gaps(&mut tx).await?;
        ensure!(missing.is_empty(), "telemetry is missing: {missing:?}");
        let parked = parked::count_open(&mut tx).await?;
        ensure!(parked.is_empty(), "events were not accepted: {parked:?}");
        let windows = count_staged(&mut tx).await?;
        Ok(Came { windows, facts: facts::digest_all(&mut tx).await?.count })
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
