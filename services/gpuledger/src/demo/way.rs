//! The way from the nodes to the ledger: Kafka where there is one, else the demo's own API.

use super::random::hex;
use anyhow::Result;
use gpuledger_messaging::{
    ConsumerSettings, KafkaSettings, Replication, Topic, ensure_topics, manifest, watermarks,
};
use gpuledger_storage::{Db, offsets};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Starts the broker of a checkout, or says where it is.
const SCRIPT: &str = "deploy/local/kafka.sh";
/// How long a batch gathers what comes: fewer and larger transactions.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// What the ledger reads.
const READ: [Topic; 4] = [Topic::Facts, Topic::Telemetry, Topic::Work, Topic::Signals];

/// How events travel.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// Over topics of the demo's own.
    Kafka(Box<KafkaSettings>),
    /// `POST /v1/events` of the demo's own API.
    Http,
}

/// A way, and in words which and why.
pub(crate) struct Found {
    /// The way.
    pub(crate) way: Way,
    /// A line for the reader.
    pub(crate) words: String,
}

/// Finds it.
///
/// # Errors
/// None: where no Kafka answers it is the API.
pub(crate) async fn find() -> Result<Found> {
    let named = std::env::var("KAFKA_BOOTSTRAP").ok().filter(|bootstrap| !bootstrap.is_empty());
    let bootstrap = match named {
        Some(bootstrap) => Ok((bootstrap, "as KAFKA_BOOTSTRAP says")),
        None => match script() {
            Some(script) => tokio::task::spawn_blocking(move || started(&script))
                .await?
                .map(|bootstrap| (bootstrap, "which `make down` stops")),
            None => Err(format!("no KAFKA_BOOTSTRAP, no {SCRIPT}")),
        },
    };
    let (bootstrap, whose) = match bootstrap {
        Ok(found) => found,
        Err(why) => return Ok(by_http(&why)),
    };
    let prefix = format!("demo-{}-", hex(4)?);
    let kafka = KafkaSettings { topic_prefix: prefix, ..KafkaSettings::plaintext(&bootstrap) };
    Ok(match ensure_topics(&kafka, &manifest(&kafka), Replication::SINGLE).await {
        Ok(()) => Found {
            words: format!("events go over Kafka at {bootstrap}, {whose}; topics {}…", kafka.topic_prefix),
            way: Way::Kafka(Box::new(kafka)),
        },
        Err(error) => by_http(&format!("{bootstrap}, {whose}: {error}")),
    })
}

fn by_http(why: &str) -> Found {
    Found { way: Way::Http, words: format!("events go by HTTP to the demo's own API: {why}") }
}

/// The script that starts a broker, in the working folder or above it.
fn script() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(SCRIPT)).find(|path| path.is_file())
}

/// Starts the broker and tells its address; else the last thing the script said.
fn started(script: &Path) -> Result<String, String> {
    let output = Command::new(script).arg("start").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", script.display()))?;
    let last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
    };
    if output.status.success() { Ok(last(&output.stdout)) } else { Err(last(&output.stderr)) }
}

/// The ledger's group: as much the demo's own as the topics, since members of one name fence each other.
fn group(kafka: &KafkaSettings) -> String {
    format!("{}ledger", kafka.topic_prefix)
}

impl Way {
    /// What the ledger consumes.
    pub(crate) fn consumed(&self) -> Option<(KafkaSettings, ConsumerSettings)> {
        let Self::Kafka(kafka) = self else { return None };
        let topics = READ.map(|topic| kafka.topic(topic)).to_vec();
        let mut settings = ConsumerSettings::new(group(kafka), "demo", topics);
        settings.batch.wait = BATCH_WAIT;
        Some((KafkaSettings::clone(kafka), settings))
    }

    /// What the ledger has not read of what was sent. By HTTP nobody knows before the ledger rests.
    ///
    /// # Errors
    /// The brokers, or the database.
    pub(crate) async fn unread(&self, db: &Db) -> Result<Vec<String>> {
        let Self::Kafka(kafka) = self else { return Ok(Vec::new()) };
        let topics = READ.map(|topic| kafka.topic(topic));
        let sent = watermarks(kafka, &topics).await?;
        let mut tx = db.snapshot().await?;
        let mut read = BTreeMap::new();
        for topic in &topics {
            for row in offsets::load(&mut tx, &group(kafka), topic).await? {
                read.insert((row.topic, row.partition), row.next_offset);
            }
        }
        let next = |topic: &str, partition| read.get(&(topic.to_owned(), partition)).copied().unwrap_or(0);
        let behind = sent.iter().filter_map(|(at, marks)| {
            let next = next(&at.topic, at.partition);
            (next < marks.high).then(|| format!("{at}: {next} of {}", marks.high))
        });
        Ok(behind.collect())
    }
}
