//! Proof of life by telemetry: runs of window ends, and which of them change a silence.

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::alive::{self, RUN_US, runs};
use std::collections::BTreeMap;

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const GAP: i64 = 15 * MINUTE;

#[tokio::test]
async fn proof_of_life_is_order_free() -> Result<()> {
    let ends = [("n1", 5), ("n1", MINUTE - 1), ("n1", 7), ("n1", 2 * MINUTE), ("n1", DAY + 1), ("n2", 3)];
    let backwards: Vec<(&str, i64)> = ends.iter().rev().copied().collect();
    for order in [ends.to_vec(), backwards] {
        let database = Database::new().await?;
        let mut tx = database.writer.begin().await?;
        for _ in 0..2 {
            for end in &order {
                alive::merge(&mut tx, &runs([*end])).await?;
            }
        }
        let of_n1 = alive::load(&mut tx, &["n1".to_owned()]).await?;
        assert_eq!(
            of_n1.iter().map(|alive| alive.at_us).collect::<Vec<_>>(),
            [5, MINUTE - 1, 2 * MINUTE, DAY + 1]
        );
        assert_eq!(alive::load_all(&mut tx).await?.len(), 5);
        let last = alive::last_heard(&mut tx).await?;
        assert_eq!(last, BTreeMap::from([("n1".to_owned(), DAY + 1), ("n2".to_owned(), 3)]));
        drop(tx);
        database.drop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_was_heard_since_has_the_last_before_it_whenever_that_was() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let ends = [3, 5 * DAY, 5 * DAY + HOUR, 5 * DAY + 2 * HOUR, 9 * DAY];
    alive::merge(&mut tx, &runs(ends.map(|us| ("n", us)))).await?;
    let node = ["n".to_owned()];
    for (from, first) in [
        (2, 0),
        (3, 0),
        (4, 0),
        (5 * DAY, 0),
        (5 * DAY + 1, 1),
        (5 * DAY + HOUR + 1, 2),
        (8 * DAY, 3),
        (9 * DAY, 3),
        (10 * DAY, 4),
    ] {
        let told = alive::load_since(&mut tx, &node, from).await?;
        assert_eq!(told.iter().map(|alive| alive.at_us).collect::<Vec<_>>(), ends[first..], "from {from}");
    }
    drop(tx);
    database.drop().await
}

/// From when on a run of ends changes a silence of a node heard before over these.
async fn changes(heard: &[(i64, i64)], run: (i64, i64), horizon: i64) -> Result<Option<i64>> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let run_of = |(first_us, last_us): (i64, i64)| alive::Run { node: "n".to_owned(), first_us, last_us };
    alive::merge(&mut tx, &heard.iter().map(|run| run_of(*run)).collect::<Vec<_>>()).await?;
    let changed = alive::silences_changed(&mut tx, &[run_of(run)], GAP, horizon).await?;
    drop(tx);
    database.drop().await?;
    Ok(changed.get("n").copied())
}

#[tokio::test]
async fn only_what_begins_ends_or_divides_a_silence_changes_it_a_15() -> Result<()> {
    let hour = (HOUR, 2 * HOUR);
    let at = |us: i64| (us, us);
    let cases = [
        ("the first sign of a node", vec![], at(HOUR), HOUR, Some(i64::MIN)),
        ("the next window", vec![hour], at(2 * HOUR + 10), 2 * HOUR + 20, None),
        ("exactly the gap is no silence", vec![hour], at(2 * HOUR + GAP), 2 * HOUR + GAP, None),
        ("a silence ends", vec![hour], at(2 * HOUR + GAP + 1), 2 * HOUR + GAP + 1, Some(2 * HOUR)),
        ("the horizon is silent already", vec![hour], at(2 * HOUR + 10), 2 * HOUR + GAP + 1, Some(2 * HOUR)),
        ("within a run", vec![hour], at(HOUR + 7), 9 * HOUR, None),
        ("a repeated run", vec![hour], hour, 9 * HOUR, None),
        (
            "between runs that no silence parts",
            vec![hour, at(2 * HOUR + GAP)],
            at(2 * HOUR + 3 * RUN_US),
            9 * HOUR,
            None,
        ),
        (
            "between runs that a silence parts",
            vec![hour, at(2 * HOUR + GAP + 1)],
            at(2 * HOUR + 3 * RUN_US),
            9 * HOUR,
            Some(2 * HOUR),
        ),
        ("before all others", vec![hour], at(HOUR - RUN_US), 2 * HOUR, Some(i64::MIN)),
        ("over midnight", vec![at(DAY - 5)], at(DAY + 5), DAY + 6, None),
        ("far beyond the horizon", vec![hour], at(9 * HOUR), 2 * HOUR, Some(2 * HOUR)),
    ];
    for (name, heard, run, horizon, wanted) in cases {
        assert_eq!(changes(&heard, run, horizon).await?, wanted, "{name}");
    }
    Ok(())
}
