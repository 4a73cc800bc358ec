//! The Kafka sink against a real broker.

use crate::child::{Task, impatient, spool};
use crate::folder;
use crate::truth::{Arrived, STEP_US, name, window};
use gpuledger_collector::publish::{Drained, Publisher};
use gpuledger_collector::sink::KafkaSink;
use gpuledger_domain::time::Instant;
use gpuledger_messaging::{
    Consumer, ConsumerSettings, KafkaSettings, Message, OffsetsFuture, Partition, Replication, TopicSpec,
    ensure_topics, manifest,
};
use gpuledger_wire::bodies::{Gap, NodeDecommissioned};
use gpuledger_wire::time::Time;
use gpuledger_wire::{EventData, TOPIC_FACTS, TOPIC_TELEMETRY, decode_binary};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(90);

/// Address of the shared broker, started where it does not run; `None`, loudly, where it cannot be.
fn bootstrap() -> Option<String> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let given = || std::env::var("KAFKA_BOOTSTRAP").ok().filter(|bootstrap| !bootstrap.is_empty());
    FOUND.get_or_init(|| given().or_else(start)).clone()
}

fn start() -> Option<String> {
    let java = Command::new("java").arg("-version").stderr(Stdio::null()).status();
    if !java.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no KAFKA_BOOTSTRAP and no Java to run a broker with");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/local/kafka.sh");
    let output = Command::new("bash").arg(&script).arg("start").stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{} start: {}", script.display(), output.status);
    Some(String::from_utf8(output.stdout).unwrap().lines().last().expect("an address").to_owned())
}

/// Settings with a prefix nobody else has, and topics that take records of so many bytes.
async fn kafka(bootstrap: &str, max_message_bytes: i32) -> KafkaSettings {
    let mut kafka = KafkaSettings::plaintext(bootstrap);
    kafka.topic_prefix = format!("t{}.", uuid::Uuid::now_v7().simple());
    let ours = |spec: &TopicSpec| spec.name.ends_with(TOPIC_TELEMETRY) || spec.name.ends_with(TOPIC_FACTS);
    let small = |spec: TopicSpec| TopicSpec { partitions: 2, max_message_bytes, ..spec };
    let topics: Vec<TopicSpec> = manifest(&kafka).into_iter().filter(ours).map(small).collect();
    ensure_topics(&kafka, &topics, Replication::SINGLE).await.unwrap();
    kafka
}

fn from_the_start(_: Vec<Partition>) -> OffsetsFuture {
    Box::pin(async { Ok(BTreeMap::new()) })
}

/// Reads both topics until nothing has come for two seconds.
async fn consume(kafka: &KafkaSettings) -> Vec<Message> {
    let topics = [TOPIC_TELEMETRY, TOPIC_FACTS].map(|topic| format!("{}{topic}", kafka.topic_prefix));
    let settings = ConsumerSettings::new(format!("{}test", kafka.topic_prefix), "one", topics.to_vec());
    let mut consumer = Consumer::start(kafka, settings, from_the_start).unwrap();
    let mut messages = tokio::time::timeout(PATIENCE, consumer.next()).await.unwrap().unwrap().messages;
    while let Ok(batch) = tokio::time::timeout(Duration::from_secs(2), consumer.next()).await {
        messages.extend(batch.unwrap().messages);
    }
    consumer.close(PATIENCE).await.unwrap();
    messages
}

fn arrived(messages: &[Message]) -> Arrived {
    let mut arrived = Arrived::default();
    for message in messages {
        arrived.take(decode_binary(&message.headers, message.payload.as_deref().unwrap()).unwrap());
    }
    arrived
}

async fn drain(spool: &gpuledger_collector::spool::Spool, kafka: &KafkaSettings) -> Drained {
    let stop = CancellationToken::new();
    stop.cancel();
    Publisher::new(spool.clone(), KafkaSink::new(kafka.clone()).unwrap(), impatient()).run(stop).await
}

#[tokio::test]
async fn windows_go_to_telemetry_by_node_and_facts_by_gpu() {
    let Some(broker) = bootstrap() else { return };
    let kafka = kafka(&broker, 1 << 20).await;
    let folder = folder();
    let spool = spool(&folder.path().join("spool"), 16 << 20);
    for n in 0..40 {
        spool.append_window(window(n)).unwrap();
    }
    let fact = EventData::from(NodeDecommissioned::Gpu(name("GPU-7")));
    spool.append_fact(Instant::from_micros(40 * STEP_US), fact).unwrap();
    assert_eq!(drain(&spool, &kafka).await, Drained { left: 0 });

    let messages = consume(&kafka).await;
    let arrived = arrived(&messages);
    arrived.assert_exactly_once(&(0..40).collect());
    assert_eq!((arrived.count(), arrived.facts(), arrived.repeated), (41, 1, 0));
    let (telemetry, facts): (Vec<&Message>, Vec<&Message>) =
        messages.iter().partition(|message| message.partition.topic.ends_with(TOPIC_TELEMETRY));
    assert_eq!(facts[0].key.as_deref(), Some(b"GPU-7".as_slice()));
    let offsets: Vec<i64> = telemetry.iter().map(|message| message.offset).collect();
    assert_eq!(offsets, (0..40).collect::<Vec<_>>(), "one partition, in order");
    let in_order = (0..40).zip(&telemetry).all(|(n, message)| {
        let event = decode_binary(&message.headers, message.payload.as_deref().unwrap()).unwrap();
        event.time == Instant::from_micros((n + 1) * STEP_US) && message.key.as_deref() == Some(b"n1")
    });
    assert!(in_order);
}

#[tokio::test]
async fn a_window_the_topic_is_too_small_for_is_set_aside_and_its_time_is_told() {
    let Some(broker) = bootstrap() else { return };
    let kafka = kafka(&broker, 20_000).await;
    let folder = folder();
    let spool = spool(&folder.path().join("spool"), 16 << 20);
    for n in 0..6 {
        let mut one = window(n);
        if n == 3 {
            // What does not compress: random reasons of gaps of no length.
            let random = std::iter::repeat_with(|| uuid::Uuid::new_v4().to_string()).take(1_000);
            let at = Time(one.window.start());
            one.gaps = random.map(|word| Gap { start: at, end: at, reason: name(&word) }).collect();
        }
        spool.append_window(one).unwrap();
    }
    assert_eq!(drain(&spool, &kafka).await, Drained { left: 0 });
    assert_eq!(spool.status().refused, 1);
    let arrived = arrived(&consume(&kafka).await);
    arrived.assert_exactly_once(&(0..6).collect());
    assert_eq!(arrived.gaps(), BTreeMap::from([("refused".to_owned(), 1)]));
}

#[tokio::test]
async fn kills_around_the_broker_lose_nothing_and_count_nothing_twice() {
    let Some(broker) = bootstrap() else { return };
    let kafka = kafka(&broker, 1 << 20).await;
    let folder = folder();
    let sink = format!("kafka {broker} {}", kafka.topic_prefix);
    let (mut next, mut offered, mut kills) = (0, BTreeSet::new(), 0);
    let steps =
        ["publish::before-send", "publish::after-send", "publish::before-acknowledge", "spool::state-named"];
    for (run, step) in steps.into_iter().cycle().take(12).chain(["none"]).enumerate() {
        let task = Task { folder: folder.path().join("spool"), sink: sink.clone(), from: next, count: 14 };
        let failpoint = format!("{step}={}*off->return(abort)", run / steps.len());
        let ended = tokio::task::spawn_blocking(move || task.run(&failpoint, None)).await.unwrap();
        let last = ended.offered.unwrap_or(next - 1);
        offered.extend(next..=last);
        next = last + 2;
        kills += usize::from(ended.killed());
    }
    assert!(kills >= 10, "{kills}");
    let arrived = arrived(&consume(&kafka).await);
    arrived.assert_exactly_once(&offered);
    assert!(arrived.repeated > 0);
}
