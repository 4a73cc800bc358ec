//! Next offsets of consumed partitions, moved in the transaction of their effects (I-3).

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Where a consumer group stands in a partition.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct OffsetRow {
    /// Consumer group.
    pub group_name: String,
    /// Topic.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Id of the Kafka cluster.
    pub cluster_id: String,
    /// Id of the topic: a re-created topic has another.
    pub topic_id: String,
    /// Offset of the next record to apply.
    pub next_offset: i64,
}

/// A partition of a group, with the ids without which an offset means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Consumer group.
    pub group: &'a str,
    /// Topic.
    pub topic: &'a str,
    /// Partition.
    pub partition: i32,
    /// Id of the Kafka cluster, as the broker says it now.
    pub cluster_id: &'a str,
    /// Id of the topic, as the broker says it now.
    pub topic_id: &'a str,
}

/// All stored offsets of a group's topic, by partition.
///
/// # Errors
/// Driver errors.
pub async fn load(
    connection: &mut PgConnection,
    group: &str,
    topic: &str,
) -> Result<Vec<OffsetRow>, StorageError> {
    sqlx::query_as(
        "SELECT group_name, topic, partition, cluster_id, topic_id, next_offset
         FROM consumer_offset WHERE group_name = $1 AND topic = $2 ORDER BY partition",
    )
    .bind(group)
    .bind(topic)
    .fetch_all(connection)
    .await
    .doing("reading offsets")
}

/// All stored offsets, by group, topic and partition.
///
/// # Errors
/// Driver errors.
pub async fn load_all(connection: &mut PgConnection) -> Result<Vec<OffsetRow>, StorageError> {
    sqlx::query_as(
        r#"SELECT group_name, topic, partition, cluster_id, topic_id, next_offset FROM consumer_offset
           ORDER BY group_name COLLATE "C", topic COLLATE "C", partition"#,
    )
    .fetch_all(connection)
    .await
    .doing("reading offsets")
}

/// Forgets the stored offset of a partition, so that it is read from the oldest record kept. A batch under way finds its fence gone.
///
/// # Errors
/// [`StorageError::Fenced`] where something else is stored by now; driver errors.
pub async fn forget(tx: &mut PgConnection, row: &OffsetRow) -> Result<(), StorageError> {
    let done = sqlx::query(
        "DELETE FROM consumer_offset WHERE group_name = $1 AND topic = $2 AND partition = $3 AND next_offset = $4",
    )
    .bind(&row.group_name)
    .bind(&row.topic)
    .bind(row.partition)
    .bind(row.next_offset)
    .execute(tx)
    .await
    .doing("forgetting an offset")?;
    if done.rows_affected() == 1 {
        return Ok(());
    }
    Err(StorageError::Fenced {
        group: row.group_name.clone(),
        topic: row.topic.clone(),
        partition: row.partition,
        expected: Some(row.next_offset),
    })
}

/// Moves the offset of a batch from `expected` (none: nothing is stored yet) to `next`, in the batch's transaction. Two consumers that both
/// believe to own the partition meet here: the second one waits for the first to commit and then finds another offset.
///
/// # Errors
/// [`StorageError::Fenced`] where something else is stored by now: the batch must be rolled back.
pub async fn advance(
    tx: &mut PgConnection,
    place: &Place<'_>,
    expected: Option<i64>,
    next: i64,
) -> Result<(), StorageError> {
    let statement = match expected {
        Some(_) => {
            "UPDATE consumer_offset SET next_offset = $6
             WHERE group_name = $1 AND topic = $2 AND partition = $3 AND cluster_id = $4 AND topic_id = $5 AND next_offset = $7"
        }
        None => {
            "INSERT INTO consumer_offset (group_name, topic, partition, cluster_id, topic_id, next_offset)
             SELECT $1, $2, $3, $4, $5, $6 WHERE $7::INT8 IS NULL ON CONFLICT DO NOTHING"
        }
    };
    let moved = sqlx::query(statement)
        .bind(place.group)
        .bind(place.topic)
        .bind(place.partition)
        .bind(place.cluster_id)
        .bind(place.topic_id)
        .bind(next)
        .bind(expected)
        .execute(tx)
        .await
        .doing("moving an offset")?;
    if moved.rows_affected() == 1 {
        return Ok(());
    }
    Err(StorageError::Fenced {
        group: place.group.to_owned(),
        topic: place.topic.to_owned(),
        partition: place.partition,
        expected,
    })
}
