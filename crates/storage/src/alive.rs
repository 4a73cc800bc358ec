//! Proof of life by telemetry: per node and UTC day the runs of window ends that follow each other within a minute.

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// Microseconds in a day: a row.
const DAY_US: i64 = 86_400_000_000;
/// Ends not further apart are one run. Collectors cut windows at UTC minutes, so a node that lives has an end at least this often; an
/// observation gap is far longer.
pub const RUN_US: i64 = 60_000_000;
/// Of a long run one instant is told for so long a time: less than any observation gap.
const TOLD_EVERY_US: i64 = 300_000_000;

/// An instant at which a node is known to have been alive: within a run of ends of telemetry windows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AliveInstant {
    /// Node.
    pub node: String,
    /// When.
    pub at_us: i64,
}

/// Window ends of a node that follow each other within a minute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::FromRow)]
pub struct Run {
    /// Node.
    pub node: String,
    /// Earliest end.
    pub first_us: i64,
    /// Latest end.
    pub last_us: i64,
}

/// Window ends by node, as runs within UTC days.
pub fn runs<'n>(ends: impl IntoIterator<Item = (&'n str, i64)>) -> Vec<Run> {
    let mut ends: Vec<(&str, i64)> = ends.into_iter().collect();
    ends.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for (node, end_us) in ends {
        match runs.last_mut() {
            Some(run)
                if run.node == node
                    && end_us - run.last_us <= RUN_US
                    && day_of(end_us) == day_of(run.last_us) =>
            {
                run.last_us = end_us;
            }
            _ => runs.push(Run { node: node.to_owned(), first_us: end_us, last_us: end_us }),
        }
    }
    runs
}

fn day_of(at_us: i64) -> i64 {
    at_us.div_euclid(DAY_US) * DAY_US
}

/// Adds runs of ends. The order in which they come, and repetitions, change nothing.
///
/// # Errors
/// [`StorageError::Contention`]: try again.
pub async fn merge(tx: &mut PgConnection, runs: &[Run]) -> Result<(), StorageError> {
    sqlx::query(
        "INSERT INTO node_heard AS stored (node, day_us, heard)
         SELECT node, day_us, range_agg(int8range(first_us, last_us + $5))
         FROM UNNEST($1::TEXT[], $2::INT8[], $3::INT8[], $4::INT8[]) AS given (node, day_us, first_us, last_us)
         GROUP BY node, day_us ORDER BY node COLLATE \"C\", day_us
         ON CONFLICT (node, day_us) DO UPDATE SET heard = stored.heard + EXCLUDED.heard",
    )
    .bind(runs.iter().map(|run| run.node.as_str()).collect::<Vec<_>>())
    .bind(runs.iter().map(|run| day_of(run.first_us)).collect::<Vec<_>>())
    .bind(runs.iter().map(|run| run.first_us).collect::<Vec<_>>())
    .bind(runs.iter().map(|run| run.last_us).collect::<Vec<_>>())
    .bind(RUN_US)
    .execute(tx)
    .await
    .doing("recording proof of life")?;
    Ok(())
}

/// Nodes of which one of these runs, not yet merged, ends, begins or divides a silence longer than `gap_us` at `horizon_us`, each with the
/// instant from which what stands on their GPUs may change: the last end before. A run that joins ends heard before to within the gap on
/// both sides changes nothing, and neither does one behind which nothing was heard while the horizon is not beyond the gap either.
///
/// # Errors
/// Driver errors.
pub async fn silences_changed(
    connection: &mut PgConnection,
    runs: &[Run],
    gap_us: i64,
    horizon_us: i64,
) -> Result<BTreeMap<String, i64>, StorageError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT node, min(COALESCE(before.at_us, $7)) FROM UNNEST($1::TEXT[], $2::INT8[], $3::INT8[]) AS given (node, first_us, last_us)
         LEFT JOIN LATERAL (
            SELECT max(LEAST(upper(run) - $6, first_us)) AS at_us FROM node_heard AS h, UNNEST(h.heard) AS run
            WHERE h.node = given.node AND h.day_us BETWEEN first_us - $4 - 86400000000 AND first_us AND lower(run) <= first_us
         ) AS before ON TRUE
         LEFT JOIN LATERAL (
            SELECT min(GREATEST(lower(run), last_us)) AS at_us FROM node_heard AS h, UNNEST(h.heard) AS run
            WHERE h.node = given.node AND h.day_us BETWEEN last_us - 86400000000 AND last_us + $4 AND upper(run) - $6 >= last_us
         ) AS after ON TRUE
         WHERE NOT COALESCE(COALESCE(after.at_us, GREATEST($5, first_us)) - before.at_us <= $4, FALSE)
           AND NOT EXISTS (
            SELECT FROM node_heard AS h, UNNEST(h.heard) AS run
            WHERE h.node = given.node AND h.day_us BETWEEN first_us - 86400000000 AND first_us AND lower(run) <= first_us
              AND upper(run) - $6 >= last_us)
         GROUP BY node",
    )
    .bind(runs.iter().map(|run| run.node.as_str()).collect::<Vec<_>>())
    .bind(runs.iter().map(|run| run.first_us).collect::<Vec<_>>())
    .bind(runs.iter().map(|run| run.last_us).collect::<Vec<_>>())
    .bind(gap_us)
    .bind(horizon_us)
    .bind(RUN_US)
    // Never heard within the gap: since when it was silent is not known here.
    .bind(i64::MIN)
    .fetch_all(connection)
    .await
    .doing("comparing proof of life")?;
    Ok(rows.into_iter().collect())
}

/// Instants at which one of `nodes` was heard, by node and time: the earliest and the latest of each run of window ends, and between them one
/// every five minutes. What lies between those tells nothing more.
///
/// # Errors
/// Driver errors.
pub async fn load(
    connection: &mut PgConnection,
    nodes: &[String],
) -> Result<Vec<AliveInstant>, StorageError> {
    Ok(told(&select(connection, Some(nodes), i64::MIN).await?, i64::MIN))
}

/// As [`load`], of every node.
///
/// # Errors
/// Driver errors.
pub async fn load_all(connection: &mut PgConnection) -> Result<Vec<AliveInstant>, StorageError> {
    Ok(told(&select(connection, None, i64::MIN).await?, i64::MIN))
}

/// As [`load`], from `from_us` on, and of each node the latest instant before it.
///
/// # Errors
/// Driver errors.
pub async fn load_since(
    connection: &mut PgConnection,
    nodes: &[String],
    from_us: i64,
) -> Result<Vec<AliveInstant>, StorageError> {
    Ok(told(&select(connection, Some(nodes), from_us).await?, from_us))
}

/// Runs by node and time: those that end at `from_us` or later, and of each node the last one before.
async fn select(
    connection: &mut PgConnection,
    nodes: Option<&[String]>,
    from_us: i64,
) -> Result<Vec<Run>, StorageError> {
    sqlx::query_as(
        "SELECT h.node, lower(run) AS first_us, upper(run) - $3 AS last_us
         FROM (SELECT node, max(day_us) FILTER (WHERE day_us < $2) AS day_before FROM node_heard
               WHERE $1::TEXT[] IS NULL OR node = ANY($1) GROUP BY node) AS known
         JOIN node_heard AS h ON h.node = known.node AND h.day_us >= COALESCE(day_before, $2), UNNEST(h.heard) AS run
         ORDER BY 1, 2",
    )
    .bind(nodes)
    // The day of `from_us` holds runs before it; those of the last day before that one are there in case it holds none.
    .bind(if from_us == i64::MIN { from_us } else { day_of(from_us) })
    .bind(RUN_US)
    .fetch_all(connection)
    .await
    .doing("reading proof of life")
}

/// The instants that tell of runs, from `from_us` on, and of each node the latest before.
fn told(runs: &[Run], from_us: i64) -> Vec<AliveInstant> {
    let mut told: Vec<AliveInstant> = Vec::new();
    for run in runs {
        let mut next = Some(run.first_us);
        while let Some(at_us) = next {
            if told.last().is_some_and(|before| before.node == run.node && at_us < from_us) {
                told.pop();
            }
            told.push(AliveInstant { node: run.node.clone(), at_us });
            let step = at_us - at_us.rem_euclid(TOLD_EVERY_US) + TOLD_EVERY_US;
            next = (at_us < run.last_us).then(|| step.min(run.last_us));
        }
    }
    told
}

/// The latest window end of each node heard by telemetry, by node.
///
/// # Errors
/// Driver errors.
pub async fn last_heard(connection: &mut PgConnection) -> Result<BTreeMap<String, i64>, StorageError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT DISTINCT ON (node) node, upper(heard) - $1 FROM node_heard ORDER BY node, day_us DESC",
    )
    .bind(RUN_US)
    .fetch_all(connection)
    .await
    .doing("reading proof of life")?;
    Ok(rows.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(node: &str, first_us: i64, last_us: i64) -> Run {
        Run { node: node.to_owned(), first_us, last_us }
    }

    #[test]
    fn ends_within_a_minute_are_one_run_and_days_are_apart() {
        let ends = [("n", RUN_US + 1), ("n", 1), ("m", 5), ("n", 2 * RUN_US + 2), ("n", -1)];
        let wanted = [
            run("m", 5, 5),
            run("n", -1, -1),
            run("n", 1, RUN_US + 1),
            run("n", 2 * RUN_US + 2, 2 * RUN_US + 2),
        ];
        assert_eq!(runs(ends), wanted);
    }

    #[test]
    fn a_long_run_is_told_by_its_ends_and_every_five_minutes() {
        let long = [run("n", -7, 2 * TOLD_EVERY_US + 3), run("n", 9 * TOLD_EVERY_US, 9 * TOLD_EVERY_US)];
        let at = |from_us| told(&long, from_us).into_iter().map(|told| told.at_us).collect::<Vec<_>>();
        let all = [-7, 0, TOLD_EVERY_US, 2 * TOLD_EVERY_US, 2 * TOLD_EVERY_US + 3, 9 * TOLD_EVERY_US];
        assert_eq!(at(i64::MIN), all);
        assert_eq!(at(2 * TOLD_EVERY_US), all[2..]);
        assert_eq!(at(2 * TOLD_EVERY_US + 1), all[3..]);
        assert_eq!(at(i64::MAX), all[5..]);
    }
}
