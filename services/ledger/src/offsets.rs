//! Stored offsets beside the broker, before the first record is read: a restored database goes on where it was, or says why it cannot.

use crate::error::LedgerError;
use crate::parking::Decider;
use gpuledger_messaging::{
    KafkaSettings, OffsetCheck, Partition, StoredOffset, TopicIdentity, check_offsets,
};
use gpuledger_storage::Db;
use gpuledger_storage::audit::{PendingRecord, append};
use gpuledger_storage::offsets::{OffsetRow, forget, load_all};
use gpuledger_wire::canonical_json;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a broker that has just restarted may take to find its end.
const BROKER_PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_secs(1);

/// What is stored, compared.
#[derive(Debug)]
pub struct Checked {
    /// Offsets of the group, in order of topic and partition.
    pub offsets: Vec<OffsetCheck>,
    /// Offsets of other groups or topics, which this process does not read: were the names changed?
    pub of_others: Vec<OffsetRow>,
}

impl Checked {
    /// Those that do not fit.
    pub fn faults(&self) -> impl Iterator<Item = &OffsetCheck> {
        self.offsets.iter().filter(|check| check.fault.is_some())
    }
}

/// Compares the group's stored offsets of the topics (full names) with the cluster. An offset past the end is looked at again for a while,
/// and so is a cluster that does not answer.
///
/// # Errors
/// The database, or a cluster that cannot be asked.
pub async fn check(
    db: &Db,
    kafka: &KafkaSettings,
    group: &str,
    topics: &[String],
) -> Result<Checked, LedgerError> {
    let until = Instant::now() + BROKER_PATIENCE;
    loop {
        let rows = load_all(&mut *db.snapshot().await?).await?;
        let is_read = |row: &OffsetRow| row.group_name == group && topics.contains(&row.topic);
        let (own, of_others): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_read);
        let asked = check_offsets(kafka, own.into_iter().map(stored).collect::<BTreeMap<_, _>>()).await;
        let offsets = match asked {
            // A cluster that has just started elects leaders.
            Err(error) if error.is_out_of_reach() && Instant::now() < until => {
                sleep(PAUSE).await;
                continue;
            }
            asked => asked?,
        };
        let checked = Checked { offsets, of_others };
        let is_passing = checked.faults().count() > 0 && checked.faults().all(OffsetCheck::is_passing);
        if !is_passing || Instant::now() >= until {
            return Ok(checked);
        }
        sleep(PAUSE).await;
    }
}

fn stored(row: OffsetRow) -> (Partition, StoredOffset) {
    let identity = TopicIdentity { cluster_id: row.cluster_id.into(), topic_id: row.topic_id.into() };
    let partition = Partition { topic: row.topic.into(), partition: row.partition };
    (partition, StoredOffset { identity, next_offset: row.next_offset })
}

/// Forgets the offsets that do not fit, so that their partitions are read from the oldest record kept, with an audit record in the same
/// transaction. Identities and sequences are in the database: what was read before counts once (I-1, I-2). Records that were deleted unread stay
/// lost; the audit record says which.
///
/// # Errors
/// The database; an offset that somebody moved meanwhile.
pub async fn rewind(
    db: &Db,
    group: &str,
    checked: &Checked,
    decider: &Decider<'_>,
) -> Result<(), LedgerError> {
    let mut tx = db.begin().await?;
    let mut records = Vec::new();
    for check in checked.faults() {
        forget(&mut tx, &row_of(group, check)).await?;
        records.push(PendingRecord {
            fact_seq: None,
            kind: "offsets.rewound".to_owned(),
            body: canonical_json(&audit_body(group, check, decider)),
            recorded_at_us: decider.now.as_micros(),
        });
    }
    append(&mut tx, &records).await?;
    tx.commit().await?;
    Ok(())
}

fn row_of(group: &str, check: &OffsetCheck) -> OffsetRow {
    OffsetRow {
        group_name: group.to_owned(),
        topic: check.partition.topic.to_string(),
        partition: check.partition.partition,
        cluster_id: check.stored.identity.cluster_id.to_string(),
        topic_id: check.stored.identity.topic_id.to_string(),
        next_offset: check.stored.next_offset,
    }
}

fn audit_body(group: &str, check: &OffsetCheck, decider: &Decider<'_>) -> Value {
    let live = check.live.as_ref().map(|(identity, marks)| {
        json!({"cluster": &*identity.cluster_id, "topic": &*identity.topic_id, "low": marks.low.to_string(),
               "high": marks.high.to_string()})
    });
    json!({
        "group": group,
        "topic": &*check.partition.topic,
        "partition": check.partition.partition.to_string(),
        "stored": {"cluster": &*check.stored.identity.cluster_id, "topic": &*check.stored.identity.topic_id,
                   "offset": check.stored.next_offset.to_string()},
        "live": live,
        "fault": check.fault.as_ref().map(ToString::to_string),
        "reason": decider.reason,
        "principal": decider.principal,
        "decided_at": decider.now.to_string(),
    })
}
