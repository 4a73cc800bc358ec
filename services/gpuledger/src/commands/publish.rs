//! NDJSON events to Kafka, resumable from a count.

use super::events::open;
use crate::outcome::{OutOfReach, Outcome, Usage};
use crate::progress::Progress;
use crate::settings::Settings;
use anyhow::Result;
use gpuledger_messaging::{
    KafkaSettings, MessagingError, Producer, ProducerSettings, Record, ensure_topics, manifest,
};
use gpuledger_telemetry::terminal::say_err;
use gpuledger_wire::{Event, decode_structured, encode_binary};
use std::io::BufRead;
use std::path::PathBuf;
use std::time::Duration;

/// How long the producer may take to let go at the end.
const CLOSE_DEADLINE: Duration = Duration::from_secs(30);

/// Publishes files, one after the other. An event that cannot be read stops at its line: a producer sends nothing unchecked.
pub(crate) async fn run(settings: &Settings, files: &[PathBuf], skip: u64) -> Result<Outcome> {
    let kafka = kafka(settings)?;
    ensure_topics(&kafka, &manifest(&kafka), settings.kafka_replication).await.map_err(out_of_reach)?;
    let producer = Producer::new(&kafka, &ProducerSettings::default())?;
    let mut inputs = Vec::new();
    for file in files {
        inputs.push(open(file)?);
    }
    let records = inputs.into_iter().flat_map(|input| {
        let name = input.name;
        let kafka = &kafka;
        input
            .reader
            .split(b'\n')
            .enumerate()
            .filter_map(move |(index, line)| record(kafka, &name, index + 1, line))
    });
    let mut progress = Progress::new("publishing");
    let sent = producer.publish(records, skip, |count| progress.set(count)).await;
    progress.done();
    producer.close(CLOSE_DEADLINE).await.map_err(out_of_reach)?;
    match sent {
        Ok(count) => {
            say_err(&format!("{count} events acknowledged"));
            Ok(Outcome::Done)
        }
        Err(stopped) => {
            say_err(&format!(
                "{} events are acknowledged; go on with --skip {}",
                stopped.acknowledged, stopped.acknowledged
            ));
            Err(stopped.cause)
        }
    }
}

/// Where the brokers are.
pub(crate) fn kafka(settings: &Settings) -> Result<KafkaSettings> {
    let missing = || Usage("no Kafka: set KAFKA_BOOTSTRAP or `kafka_bootstrap` in gpuledger.toml".into());
    Ok(settings.kafka().ok_or_else(missing)?)
}

fn record(
    kafka: &KafkaSettings,
    name: &str,
    line: usize,
    raw: std::io::Result<Vec<u8>>,
) -> Option<Result<Record, anyhow::Error>> {
    let raw = match raw {
        Ok(raw) => raw,
        Err(error) => return Some(Err(anyhow::anyhow!("{name}:{line}: {error}"))),
    };
    let raw = raw.strip_suffix(b"\r").unwrap_or(&raw);
    if raw.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    Some(match decode_structured(raw) {
        Ok(event) => Ok(record_of(kafka, &event)),
        Err(error) => Err(Usage(format!("{name}:{line}: {}", error.fault)).into()),
    })
}

/// An event as it is written to its topic.
pub(crate) fn record_of(kafka: &KafkaSettings, event: &Event) -> Record {
    let (headers, payload) = encode_binary(event);
    let topic = format!("{}{}", kafka.topic_prefix, event.topic());
    Record { topic, key: event.partition_key().into_bytes(), headers, payload }
}

fn out_of_reach(error: MessagingError) -> anyhow::Error {
    OutOfReach(error.to_string()).into()
}
