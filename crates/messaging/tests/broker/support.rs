//! A broker, topics of one's own, and a stand-in for the database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::Duration;

use gpuledger_messaging::{
    Batch, Consumer, ConsumerSettings, KafkaSettings, OffsetsFuture, Partition, Producer, ProducerSettings,
    Record, Replication, Span, StoredOffset, TopicSpec, ensure_topics,
};

/// Longest a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) fn local_stack() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/local")
}

/// Address of the shared broker, started where it does not run; `None`, loudly, where it cannot be.
pub(crate) fn bootstrap() -> Option<String> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    static LOGS: Once = Once::new();
    LOGS.call_once(|| {
        if let Ok(filter) = std::env::var("RUST_LOG") {
            tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().init();
        }
    });
    FOUND
        .get_or_init(|| {
            std::env::var("KAFKA_BOOTSTRAP")
                .ok()
                .filter(|b| !b.is_empty())
                .or_else(|| start(&local_stack(), &["start"]))
        })
        .clone()
}

/// Runs the local stack's script that lies in `folder`; the last line it prints is the address. Fails the test where
/// Java is there and the broker does not start; `None` where neither is there.
pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Option<String> {
    let java = Command::new("java").arg("-version").stderr(Stdio::null()).status();
    if !java.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no KAFKA_BOOTSTRAP and no Java to run a broker with");
        return None;
    }
    let script = folder.join("kafka.sh");
    let output = Command::new("bash").arg(&script).args(arguments).stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{} {arguments:?}: {}", script.display(), output.status);
    Some(String::from_utf8(output.stdout).unwrap().lines().last().expect("an address").to_owned())
}

/// Settings with a prefix nobody else has.
pub(crate) fn settings(bootstrap: &str) -> KafkaSettings {
    let mut kafka = KafkaSettings::plaintext(bootstrap);
    kafka.topic_prefix = format!("t{}.", uuid::Uuid::now_v7().simple());
    kafka
}

pub(crate) fn spec(kafka: &KafkaSettings, name: &str, partitions: i32) -> TopicSpec {
    let name = format!("{}{name}", kafka.topic_prefix);
    TopicSpec { name, partitions, retention_ms: 86_400_000, max_message_bytes: 1_048_576 }
}

/// Makes one topic and gives its full name.
pub(crate) async fn topic(kafka: &KafkaSettings, name: &str, partitions: i32) -> String {
    let spec = spec(kafka, name, partitions);
    ensure_topics(kafka, std::slice::from_ref(&spec), Replication::SINGLE).await.unwrap();
    spec.name
}

/// Record `n` of a sequence: one of 97 keys, the number as value.
pub(crate) fn record(topic: &str, n: u64) -> Record {
    Record {
        topic: topic.to_owned(),
        key: format!("key-{}", n % 97).into_bytes(),
        headers: vec![("ce_id".to_owned(), n.to_string().into_bytes())],
        payload: n.to_string().into_bytes(),
    }
}

pub(crate) fn records(
    topic: &str,
    count: u64,
) -> impl Iterator<Item = Result<Record, gpuledger_messaging::MessagingError>> {
    let topic = topic.to_owned();
    (0..count).map(move |n| Ok(record(&topic, n)))
}

pub(crate) async fn produce(kafka: &KafkaSettings, topic: &str, count: u64) {
    let producer = Producer::new(kafka, &ProducerSettings::default()).unwrap();
    let sent = producer.publish(records(topic, count), 0, |_| ()).await.unwrap();
    assert_eq!(sent, count);
    producer.close(PATIENCE).await.unwrap();
}

/// Stands in for Postgres: effects and offsets change together or not at all.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Tables>>);

#[derive(Default)]
struct Tables {
    offsets: BTreeMap<Partition, StoredOffset>,
    /// How often each record took effect.
    applied: BTreeMap<u64, u32>,
    /// Last record of each key, to see that keys keep their order.
    last: BTreeMap<Vec<u8>, u64>,
    disorder: Vec<(Vec<u8>, u64, u64)>,
}

/// The fence did not hold.
#[derive(Debug)]
pub(crate) struct Fenced(#[expect(dead_code, reason = "shown by Debug when a test fails")] Span);

impl Store {
    pub(crate) fn source(&self) -> impl Fn(Vec<Partition>) -> OffsetsFuture + Send + Sync + 'static {
        let store = self.clone();
        move |partitions| {
            let tables = store.0.lock().unwrap();
            let found =
                partitions.iter().filter_map(|p| Some((p.clone(), tables.offsets.get(p)?.clone()))).collect();
            Box::pin(async move { Ok(found) })
        }
    }

    /// One transaction.
    pub(crate) fn apply(&self, batch: &Batch) -> Result<(), Fenced> {
        let mut tables = self.0.lock().unwrap();
        for span in &batch.spans {
            let stored = tables.offsets.get(&span.partition).map(|stored| stored.next_offset);
            if stored != span.expected {
                return Err(Fenced(span.clone()));
            }
        }
        for span in &batch.spans {
            let stored = StoredOffset { identity: span.identity.clone(), next_offset: span.next };
            tables.offsets.insert(span.partition.clone(), stored);
        }
        for message in &batch.messages {
            let text = std::str::from_utf8(message.payload.as_deref().unwrap()).unwrap();
            let n: u64 = text.parse().unwrap();
            assert_eq!(message.headers, [("ce_id".to_owned(), text.as_bytes().to_vec())]);
            *tables.applied.entry(n).or_default() += 1;
            let key = message.key.clone().unwrap();
            if let Some(before) = tables.last.insert(key.clone(), n).filter(|before| *before >= n) {
                tables.disorder.push((key, before, n));
            }
        }
        Ok(())
    }

    pub(crate) fn count(&self) -> u64 {
        u64::try_from(self.0.lock().unwrap().applied.len()).unwrap()
    }

    /// What is stored.
    pub(crate) fn offsets(&self) -> BTreeMap<Partition, StoredOffset> {
        self.0.lock().unwrap().offsets.clone()
    }

    /// Changes the stored offsets as an operator, a restore or a fault would.
    pub(crate) fn tamper(&self, change: impl Fn(&mut StoredOffset)) {
        self.0.lock().unwrap().offsets.values_mut().for_each(change);
    }

    /// Fails unless each of `count` records took effect exactly once, keys in order.
    pub(crate) fn assert_exactly_once(&self, count: u64) {
        let tables = self.0.lock().unwrap();
        let doubled: Vec<_> = tables.applied.iter().filter(|(_, times)| **times != 1).collect();
        assert!(doubled.is_empty(), "took effect more than once: {doubled:?}");
        let missing: Vec<u64> = (0..count).filter(|n| !tables.applied.contains_key(n)).collect();
        assert!(missing.is_empty(), "{} records are lost: {missing:?}", missing.len());
        assert!(tables.disorder.is_empty(), "out of order: {:?}", tables.disorder);
    }

    /// Waits until `count` records have taken effect.
    pub(crate) async fn wait_for(&self, count: u64) {
        let reached = async {
            while self.count() < count {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let late = tokio::time::timeout(PATIENCE, reached).await.is_err();
        assert!(!late, "only {} of {count} records took effect in {PATIENCE:?}", self.count());
    }
}

/// Settings of a quick member.
pub(crate) fn member(kafka: &KafkaSettings, instance: &str, topic: &str) -> ConsumerSettings {
    let group = format!("{}ledger", kafka.topic_prefix);
    let mut settings = ConsumerSettings::new(group, instance, vec![topic.to_owned()]);
    settings.session_timeout = Duration::from_secs(6);
    settings.offsets_timeout = Duration::from_secs(20);
    settings.batch.messages = 100;
    settings.batch.wait = Duration::from_millis(20);
    settings
}

pub(crate) fn start_member(kafka: &KafkaSettings, settings: ConsumerSettings, store: &Store) -> Consumer {
    Consumer::start(kafka, settings, store.source()).unwrap()
}

/// Applies batches until told to stop; rewinds where the fence does not hold. Returns the consumer.
pub(crate) async fn work(
    mut consumer: Consumer,
    store: Store,
    pace: Duration,
    stop: tokio_util::sync::CancellationToken,
) -> Result<Consumer, gpuledger_messaging::MessagingError> {
    loop {
        let batch = tokio::select! {
            () = stop.cancelled() => return Ok(consumer),
            batch = consumer.next() => batch?,
        };
        tokio::time::sleep(pace).await;
        match store.apply(&batch) {
            Ok(()) => drop(batch),
            Err(_) => consumer.rewind(batch),
        }
    }
}
