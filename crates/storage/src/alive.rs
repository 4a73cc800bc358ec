//! Proof of life by telemetry: per node and UTC minute the earliest and the latest window end.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// Microseconds in an hour: a row.
const HOUR_US: i64 = 3_600_000_000;
/// Microseconds in a minute: a slot of a row.
const MINUTE_US: i64 = 60_000_000;
/// Slots of a row.
const SLOTS: usize = 60;

/// An instant at which a node is known to have been alive: the end of a telemetry window.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct AliveInstant {
    /// Node.
    pub node: String,
    /// When.
    pub at_us: i64,
}

type Slots = [Option<(i64, i64)>; SLOTS];

/// Adds window ends (node, instant). The order in which they come, and repetitions, change nothing.
///
/// # Errors
/// [`StorageError::Contention`]: try again.
pub async fn merge(tx: &mut PgConnection, ends: &[(String, i64)]) -> Result<(), StorageError> {
    let rows = by_hour(ends);
    sqlx::query(
        r#"INSERT INTO node_alive AS stored (node, hour_us, first_us, last_us)
           SELECT node, hour_us, first_us::INT8[], last_us::INT8[]
           FROM UNNEST($1::TEXT[], $2::INT8[], $3::TEXT[], $4::TEXT[]) AS given (node, hour_us, first_us, last_us)
           ORDER BY node COLLATE "C", hour_us
           ON CONFLICT (node, hour_us) DO UPDATE SET
             first_us = ARRAY(SELECT LEAST(a, b) FROM UNNEST(stored.first_us, EXCLUDED.first_us) WITH ORDINALITY AS s (a, b, n) ORDER BY n),
             last_us = ARRAY(SELECT GREATEST(a, b) FROM UNNEST(stored.last_us, EXCLUDED.last_us) WITH ORDINALITY AS s (a, b, n) ORDER BY n)"#,
    )
    .bind(rows.keys().map(|(node, _)| *node).collect::<Vec<_>>())
    .bind(rows.keys().map(|(_, hour_us)| *hour_us).collect::<Vec<_>>())
    .bind(rows.values().map(|slots| literal(slots.iter().map(|s| s.map(|(first, _)| first)))).collect::<Vec<_>>())
    .bind(rows.values().map(|slots| literal(slots.iter().map(|s| s.map(|(_, last)| last)))).collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("recording proof of life")?;
    Ok(())
}

fn by_hour(ends: &[(String, i64)]) -> BTreeMap<(&str, i64), Slots> {
    let mut rows: BTreeMap<(&str, i64), Slots> = BTreeMap::new();
    for (node, end_us) in ends {
        let within = end_us.rem_euclid(HOUR_US);
        let slots = rows.entry((node.as_str(), end_us - within)).or_insert([None; SLOTS]);
        let slot = usize::try_from(within / MINUTE_US).ok().and_then(|minute| slots.get_mut(minute));
        if let Some(slot) = slot {
            let (first, last) = slot.unwrap_or((*end_us, *end_us));
            *slot = Some((first.min(*end_us), last.max(*end_us)));
        }
    }
    rows
}

/// An array as Postgres writes it.
fn literal(values: impl Iterator<Item = Option<i64>>) -> String {
    let values: Vec<String> =
        values.map(|value| value.map_or_else(|| "NULL".to_owned(), |us| us.to_string())).collect();
    format!("{{{}}}", values.join(","))
}

/// The earliest and the latest window end of each minute in which one of `nodes` was heard, by node and time. What lies
/// between them within a minute tells nothing more: an observation gap is longer than a minute.
///
/// # Errors
/// Driver errors.
pub async fn load(
    connection: &mut PgConnection,
    nodes: &[String],
) -> Result<Vec<AliveInstant>, StorageError> {
    select(connection, Some(nodes)).await
}

/// As [`load`], of every node.
///
/// # Errors
/// Driver errors.
pub async fn load_all(connection: &mut PgConnection) -> Result<Vec<AliveInstant>, StorageError> {
    select(connection, None).await
}

async fn select(
    connection: &mut PgConnection,
    nodes: Option<&[String]>,
) -> Result<Vec<AliveInstant>, StorageError> {
    sqlx::query_as(
        r#"SELECT DISTINCT node COLLATE "C" AS node, at_us
           FROM node_alive, UNNEST(first_us || last_us) AS at_us
           WHERE at_us IS NOT NULL AND ($1::TEXT[] IS NULL OR node = ANY($1))
           ORDER BY 1, 2"#,
    )
    .bind(nodes)
    .fetch_all(connection)
    .await
    .doing("reading proof of life")
}

/// The latest window end of each node heard by telemetry, by node.
///
/// # Errors
/// Driver errors.
pub async fn last_heard(connection: &mut PgConnection) -> Result<BTreeMap<String, i64>, StorageError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT DISTINCT ON (node) node, (SELECT max(us) FROM UNNEST(last_us) AS us)
         FROM node_alive ORDER BY node, hour_us DESC",
    )
    .fetch_all(connection)
    .await
    .doing("reading proof of life")?;
    Ok(rows.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::{HOUR_US, MINUTE_US, by_hour};

    #[test]
    fn instants_fall_into_their_minute_before_the_epoch_too() {
        let ends =
            [("n1".to_owned(), MINUTE_US + 7), ("n1".to_owned(), MINUTE_US + 5), ("n1".to_owned(), -1)];
        let rows = by_hour(&ends);
        assert_eq!(rows[&("n1", 0)][1], Some((MINUTE_US + 5, MINUTE_US + 7)));
        assert_eq!(rows[&("n1", 0)].iter().flatten().count(), 1);
        assert_eq!(rows[&("n1", -HOUR_US)][59], Some((-1, -1)));
    }
}
