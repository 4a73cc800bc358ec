//! How far the partitions of the consumed topics are read, by the server clock (V-2).

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// How far one partition is read.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct PartitionRead {
    /// Topic, with its prefix.
    pub topic: String,
    /// Partition.
    pub partition: i32,
    /// Everything that stood in it at this instant is applied; none: that is not known yet.
    pub until_us: Option<i64>,
}

/// All partitions that are known, by topic and number.
///
/// # Errors
/// Driver errors.
pub async fn all(connection: &mut PgConnection) -> Result<Vec<PartitionRead>, StorageError> {
    sqlx::query_as(
        r#"SELECT topic, partition, until_us FROM partition_read ORDER BY topic COLLATE "C", partition"#,
    )
    .fetch_all(connection)
    .await
    .doing("reading the progress of partitions")
}

/// Notes these partitions, and forgets all others: they are all there are. An instant never goes back.
///
/// # Errors
/// Driver errors.
pub async fn note(tx: &mut PgConnection, read: &[PartitionRead]) -> Result<(), StorageError> {
    let topics: Vec<&str> = read.iter().map(|one| one.topic.as_str()).collect();
    let partitions: Vec<i32> = read.iter().map(|one| one.partition).collect();
    let untils: Vec<Option<i64>> = read.iter().map(|one| one.until_us).collect();
    sqlx::query(
        "DELETE FROM partition_read
         WHERE (topic, partition) NOT IN (SELECT * FROM UNNEST($1::TEXT[], $2::INT4[]))",
    )
    .bind(&topics)
    .bind(&partitions)
    .execute(&mut *tx)
    .await
    .doing("forgetting partitions that are gone")?;
    sqlx::query(
        "INSERT INTO partition_read AS known (topic, partition, until_us)
         SELECT * FROM UNNEST($1::TEXT[], $2::INT4[], $3::INT8[])
         ON CONFLICT (topic, partition) DO UPDATE SET until_us = GREATEST(known.until_us, EXCLUDED.until_us)",
    )
    .bind(&topics)
    .bind(&partitions)
    .bind(&untils)
    .execute(tx)
    .await
    .doing("noting the progress of partitions")?;
    Ok(())
}
