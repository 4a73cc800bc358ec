//! The load of the benches: a fleet's windows and facts into Kafka, the same rows into a plain table, and what must stand in the end.
//!
//!     load backlog --bootstrap ADDR --prefix P --rows N --facts F --start TIME --truth FILE [--seed N] [--nodes N]
//!     load live    --bootstrap ADDR --prefix P --rate ROWS_PER_SECOND --seconds N --start TIME --truth FILE [--facts F]
//!     load facts   --bootstrap ADDR --prefix P --facts F --nodes N --start TIME --seconds N
//!     load audit-fill    --url DATABASE_URL --leaves N
//!     load audit-insert  --url DATABASE_URL --leaves N
//!     load audit-latency --url DATABASE_URL --samples N
//!     load copy    --url DATABASE_URL --rows N --start TIME [--seed N] [--nodes N]
//!
//! Results go to standard output, one `key=value` a line.

mod audit;
mod copied;
mod facts;
mod fleet;
mod protobuf;
mod truth;
mod windows;

use anyhow::{Context as _, Result, bail};
use facts::Facts;
use fleet::{Fleet, ROWS, WINDOW_US};
use gpuledger_domain::time::{Instant, SECOND_US};
use gpuledger_messaging::{
    KafkaSettings, MessagingError, Producer, ProducerSettings, Record, Replication, Topic, ensure_topics,
    manifest,
};
use gpuledger_wire::time::parse_time;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use windows::Windows;

/// Steps of a backlog: an hour of ten-second windows.
const STEPS: u64 = 360;
const CLOSE: Duration = Duration::from_secs(60);

struct Words(BTreeMap<String, String>);

impl Words {
    fn text(&self, name: &str) -> Result<&str> {
        self.0.get(name).map(String::as_str).with_context(|| format!("--{name} is missing"))
    }

    fn number(&self, name: &str, default: Option<u64>) -> Result<u64> {
        match (self.0.get(name), default) {
            (Some(text), _) => text.parse().with_context(|| format!("--{name} {text}")),
            (None, Some(default)) => Ok(default),
            (None, None) => bail!("--{name} is missing"),
        }
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    fn start(&self) -> Result<Instant> {
        let text = self.text("start")?;
        parse_time(text).with_context(|| format!("--start {text}"))
    }

    /// The fleet of a backlog: as many nodes as have so many rows in an hour.
    fn fleet(&self) -> Result<Fleet> {
        let rows = self.number("rows", None)?;
        let nodes = self.number("nodes", Some(rows.div_ceil(ROWS * STEPS)))?;
        let steps = rows.div_ceil(nodes * ROWS);
        Ok(Fleet { seed: self.number("seed", Some(7))?, nodes, steps, start: self.start()? })
    }

    fn kafka(&self) -> Result<KafkaSettings> {
        let topic_prefix = self.text("prefix")?.to_owned();
        Ok(KafkaSettings { topic_prefix, ..KafkaSettings::plaintext(self.text("bootstrap")?) })
    }
}

fn say(name: &str, value: impl std::fmt::Display) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{name}={value}")?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut given = std::env::args().skip(1);
    let command = given.next().context("backlog, live, facts or copy?")?;
    let mut words = BTreeMap::new();
    while let Some(name) = given.next() {
        let name =
            name.strip_prefix("--").with_context(|| format!("{name}: expected --NAME VALUE"))?.to_owned();
        words.insert(name, given.next().context("a name has a value")?);
    }
    let words = Words(words);
    match command.as_str() {
        "backlog" => backlog(&words).await,
        "live" => live(&words).await,
        "facts" => facts_alone(&words).await,
        "copy" => {
            let copied = copied::copy(words.text("url")?, words.fleet()?).await?;
            say("rows", copied.rows)?;
            say("took_ms", copied.took_ms)?;
            say("starved_ms", copied.starved_ms)
        }
        "audit-fill" => audit::fill(words.text("url")?, words.number("leaves", None)?).await,
        "audit-insert" => {
            let (took, bytes) = audit::insert(words.text("url")?, words.number("leaves", None)?).await?;
            say("took_us", took.as_micros())?;
            say("mean_bytes", bytes)
        }
        "audit-latency" => {
            let (proof, row) =
                audit::latency(words.text("url")?, words.number("samples", Some(2_000))?).await?;
            say("proof_p99_us", proof.as_micros())?;
            say("row_p99_us", row.as_micros())
        }
        other => bail!("{other}: expected backlog, live, facts or copy"),
    }
}

async fn producer(kafka: &KafkaSettings) -> Result<Producer> {
    ensure_topics(kafka, &manifest(kafka), Replication::SINGLE).await?;
    let settings = ProducerSettings { in_flight: 2_000, ..ProducerSettings::default() };
    Ok(Producer::new(kafka, &settings)?)
}

async fn send(producer: &Producer, records: Vec<Record>) -> Result<()> {
    let records = records.into_iter().map(Ok::<_, MessagingError>);
    producer.publish(records, 0, |_| {}).await?;
    Ok(())
}

fn write_truth(fleet: &Fleet, windows: &Windows<'_>, path: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    windows.truth.write(|node, gpu| fleet.gpu_uuid(node, gpu), &mut out)?;
    out.flush()?;
    Ok(())
}

async fn backlog(words: &Words) -> Result<()> {
    let fleet = words.fleet()?;
    let (nodes, steps) = (fleet.nodes, fleet.steps);
    let kafka = words.kafka()?;
    let producer = producer(&kafka).await?;
    let facts =
        Facts { fleet: &fleet, topic: kafka.topic(Topic::Facts), count: words.number("facts", None)? };
    let mut facts_to_come = facts.records().peekable();
    let mut windows = Windows::new(&fleet, kafka.topic(Topic::Telemetry));
    let (mut sent_facts, mut bytes) = (0_u64, 0_u64);
    for step in 0..=steps {
        let until = fleet.start.plus(i64::try_from(step)? * WINDOW_US);
        let mut records = windows.step(step, |_| true);
        while let Some((_, fact)) = facts_to_come.next_if(|(at, _)| *at < until || step == steps) {
            sent_facts += 1;
            records.push(fact);
        }
        bytes += records.iter().map(|record| u64::try_from(record.payload.len()).unwrap_or(0)).sum::<u64>();
        send(&producer, records).await?;
    }
    producer.close(CLOSE).await?;
    write_truth(&fleet, &windows, &words.path("truth")?)?;
    say("nodes", nodes)?;
    say("windows", nodes * steps)?;
    say("rows", nodes * steps * ROWS)?;
    say("records", windows.records)?;
    say("doubled", windows.doubled)?;
    say("facts", sent_facts)?;
    say("payload_bytes", bytes)?;
    say("end", fleet.end())
}

/// A tenth of the nodes each second, as fast as time goes. Says for each second when its records were handed over.
#[expect(
    clippy::disallowed_methods,
    reason = "a load of real time goes by the machine's clock, and lag is measured from it"
)]
async fn live(words: &Words) -> Result<()> {
    let (rate, seconds) = (words.number("rate", None)?, words.number("seconds", None)?);
    let phases = u64::try_from(WINDOW_US / SECOND_US)?;
    let nodes = (rate * phases).div_ceil(ROWS);
    let fleet = Fleet {
        seed: words.number("seed", Some(7))?,
        nodes,
        steps: seconds.div_ceil(phases),
        start: words.start()?,
    };
    let kafka = words.kafka()?;
    let producer = producer(&kafka).await?;
    let facts =
        Facts { fleet: &fleet, topic: kafka.topic(Topic::Facts), count: words.number("facts", Some(0))? };
    send(&producer, facts.records().map(|(_, record)| record).collect()).await?;
    let mut windows = Windows::new(&fleet, kafka.topic(Topic::Telemetry));
    say("nodes", nodes)?;
    let begin = tokio::time::Instant::now();
    for second in 0..seconds {
        // Made ahead of its time, so that the making is no part of the lag.
        let records = windows.step(second / phases, |node| node % phases == second % phases);
        tokio::time::sleep_until(begin + Duration::from_secs(second)).await;
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
        send(&producer, records).await?;
        say("handed", format_args!("{at},{}", windows.records))?;
    }
    send(&producer, windows.step(fleet.steps, |_| false)).await?;
    producer.close(CLOSE).await?;
    write_truth(&fleet, &windows, &words.path("truth")?)?;
    say("records", windows.records)?;
    say("doubled", windows.doubled)
}

async fn facts_alone(words: &Words) -> Result<()> {
    let steps = words.number("seconds", None)? * u64::try_from(SECOND_US)? / WINDOW_US.unsigned_abs();
    let fleet = Fleet {
        seed: words.number("seed", Some(8))?,
        nodes: words.number("nodes", None)?,
        steps,
        start: words.start()?,
    };
    let kafka = words.kafka()?;
    let producer = producer(&kafka).await?;
    let facts =
        Facts { fleet: &fleet, topic: kafka.topic(Topic::Facts), count: words.number("facts", None)? };
    let mut sent = 0;
    let records = facts.records().map(|(_, record)| Ok::<_, MessagingError>(record));
    producer.publish(records, 0, |count| sent = count).await?;
    producer.close(CLOSE).await?;
    say("facts", sent)
}
