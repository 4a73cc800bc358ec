//! Findings and measured hours as a tenant may read them, and what findings rest on.

use crate::database::Database;
use crate::read_models::span;
use anyhow::Result;
use gpuledger_storage::facts::{Indexed, NewFact, insert_facts};
use gpuledger_storage::findings::{FindingQuery, FindingRow, as_of, load, replace};
use gpuledger_storage::hours::{self, Filter, HourKey, PackedHour, Used};
use gpuledger_storage::skew::{AHEAD_US, Ahead, ahead};
use gpuledger_storage::spans::{SpanRow, replace_spans};
use gpuledger_storage::unread::{self, Unread};
use gpuledger_storage::{PgConnection, Scope};

const HOUR: i64 = 3_600_000_000;
const ALL: FindingQuery<'static> =
    FindingQuery { tenant: None, kind: None, subject: None, open: false, after: None, limit: 10 };

fn row(kind: &str, subject: &str, until_us: Option<i64>) -> FindingRow {
    let detail = format!("{kind} of {subject}");
    FindingRow { kind: kind.to_owned(), subject: subject.to_owned(), since_us: 5, until_us, detail }
}

async fn names(connection: &mut PgConnection, query: &FindingQuery<'_>) -> Result<Vec<String>> {
    let rows = load(connection, query).await?;
    Ok(rows.into_iter().map(|row| format!("{} {}", row.kind, row.subject)).collect())
}

#[tokio::test]
async fn a_tenant_reads_what_it_is_told_and_nothing_else() -> Result<()> {
    let database = Database::new().await?;
    let rows =
        [row("contested", "a-1", Some(9)), row("gap", "n1", None), row("idle_allocation", "b-1", None)];
    let told = [
        ("acme".to_owned(), FindingRow { detail: "told".to_owned(), ..rows[0].clone() }),
        ("beta".to_owned(), rows[2].clone()),
    ];
    let mut tx = database.writer.begin().await?;
    assert_eq!(as_of(&mut tx).await?, None);
    replace(&mut tx, &[row("gap", "old", None)], &[], 6).await?;
    replace(&mut tx, &rows, &told, 7).await?;
    tx.commit().await?;

    let mut tx = database.api.snapshot_of(Scope::Tenant("acme")).await?;
    assert_eq!(as_of(&mut tx).await?, Some(7));
    assert_eq!(load(&mut tx, &FindingQuery { tenant: Some("acme"), ..ALL }).await?, [told[0].1.clone()]);
    // A query that forgets the tenant, and one that names another, find nothing under row security.
    assert_eq!(load(&mut tx, &ALL).await?, []);
    assert_eq!(load(&mut tx, &FindingQuery { tenant: Some("beta"), ..ALL }).await?, []);
    drop(tx);

    let mut tx = database.api.snapshot_of(Scope::All).await?;
    assert_eq!(load(&mut tx, &ALL).await?, rows);
    let beta = FindingQuery { tenant: Some("beta"), ..ALL };
    assert_eq!(names(&mut tx, &beta).await?, ["idle_allocation b-1"]);
    assert_eq!(names(&mut tx, &FindingQuery { open: true, ..ALL }).await?, ["gap n1", "idle_allocation b-1"]);
    assert_eq!(names(&mut tx, &FindingQuery { kind: Some("gap"), ..ALL }).await?, ["gap n1"]);
    assert_eq!(names(&mut tx, &FindingQuery { subject: Some("a-1"), ..ALL }).await?, ["contested a-1"]);
    let next = FindingQuery { after: Some(("contested", "a-1")), limit: 1, ..ALL };
    assert_eq!(names(&mut tx, &next).await?, ["gap n1"]);
    drop(tx);
    database.drop().await
}

fn packed(hour: i64, gpu: &str) -> PackedHour {
    let mut used = Used::default();
    used.covered_us.add(0, 60_000_000);
    let key = HourKey {
        hour_us: hour * HOUR,
        node: "n1".to_owned(),
        gpu: gpu.to_owned(),
        placement: None,
        owner: String::new(),
    };
    PackedHour { key, used: None, unit: Some(used) }
}

#[tokio::test]
async fn a_tenant_reads_the_hours_of_a_gpu_in_which_it_held_it() -> Result<()> {
    let database = Database::new().await?;
    let held = |tenant: &str, allocation: &str, gpu: &str, from: i64, to: i64| SpanRow {
        gpu: Some(gpu.to_owned()),
        start_us: from,
        end_us: to,
        ..span(tenant, allocation)
    };
    let mut tx = database.writer.begin().await?;
    let spans = [
        held("acme", "a-1", "GPU-1", 1, HOUR),
        held("beta", "b-1", "GPU-1", HOUR, 3 * HOUR),
        held("acme", "a-2", "GPU-2", 2 * HOUR - 1, i64::MAX),
    ];
    replace_spans(&mut tx, &[], &[], &spans).await?;
    for hour in 0..4 {
        let rows = ["GPU-1", "GPU-2", "GPU-3"].map(|gpu| packed(hour, gpu));
        hours::replace_nodes(&mut tx, hour * HOUR, &["n1"], &rows, false).await?;
    }
    assert_eq!(hours::bounds(&mut tx).await?, Some((0, 3 * HOUR)));
    tx.commit().await?;
    let every = Filter { gpus: None, from_us: i64::MIN, to_us: i64::MAX };
    for (scope, expected) in [
        (Scope::Tenant("acme"), vec!["0 GPU-1", "1 GPU-2", "2 GPU-2", "3 GPU-2"]),
        (Scope::Tenant("beta"), vec!["1 GPU-1", "2 GPU-1"]),
        (Scope::Tenant("nobody"), vec![]),
    ] {
        let mut tx = database.api.snapshot_of(scope).await?;
        let seen = hours::load(&mut tx, &every).await?;
        let seen: Vec<String> =
            seen.iter().map(|r| format!("{} {}", r.key.hour_us / HOUR, r.key.gpu)).collect();
        assert_eq!(seen, expected, "{scope:?}");
        drop(tx);
    }
    database.drop().await
}

#[tokio::test]
async fn times_without_readings_are_one_where_they_touch_in_whatever_order_they_come() -> Result<()> {
    let database = Database::new().await?;
    let one = |reason: &str, start_us, end_us| Unread {
        node: "n1".to_owned(),
        reason: reason.to_owned(),
        start_us,
        end_us,
    };
    let day = 24 * HOUR;
    let times = [
        one("torn", 10, 20),
        one("torn", 30, 40),
        one("lost", 20, 30),
        one("torn", 20, 25),
        one("torn", 10, 20),
        one("torn", day - 5, day),
        one("torn", day, day + 5),
    ];
    let mut tx = database.writer.begin().await?;
    unread::merge(&mut tx, &[]).await?;
    unread::merge(&mut tx, &times[..3]).await?;
    for time in &times[3..] {
        unread::merge(&mut tx, std::slice::from_ref(time)).await?;
    }
    let joined =
        [one("lost", 20, 30), one("torn", 10, 25), one("torn", 30, 40), one("torn", day - 5, day + 5)];
    assert_eq!(unread::load(&mut tx, i64::MAX).await?, joined);
    assert_eq!(unread::load(&mut tx, 30).await?, joined[..2]);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_clock_is_ahead_from_a_microsecond_above_the_bound_until_the_next_fact_that_is_not() -> Result<()> {
    let database = Database::new().await?;
    let fact = |source: &str, id: &str, at_us, received_at_us| NewFact {
        source: source.to_owned(),
        id: id.to_owned(),
        kind: "gpuledger.node.inventory.v1".to_owned(),
        at_us,
        received_at_us,
        rule_set: "1".to_owned(),
        digest: [0; 32],
        body: b"{}".to_vec(),
        subjects: vec![],
        indexed: Indexed::default(),
    };
    let mut tx = database.writer.begin().await?;
    let facts = [
        fact("/nodes/right/c", "1", 100 + AHEAD_US, 100),
        fact("/nodes/late/c", "1", 100, 10 * AHEAD_US),
        fact("/nodes/ahead/c", "1", 101 + AHEAD_US, 100),
        fact("/nodes/ahead/c", "2", 200 + 2 * AHEAD_US, 200),
        fact("/nodes/back/c", "1", 101 + AHEAD_US, 100),
        fact("/nodes/back/c", "2", 300 + AHEAD_US, 300),
    ];
    insert_facts(&mut tx, &facts).await?;
    let found = |source: &str, until_us, most_us| Ahead {
        source: source.to_owned(),
        since_us: 101 + AHEAD_US,
        until_us,
        most_us,
    };
    let all = [
        found("/nodes/ahead/c", None, 2 * AHEAD_US),
        found("/nodes/back/c", Some(300 + AHEAD_US), AHEAD_US + 1),
    ];
    assert_eq!(ahead(&mut tx, i64::MAX).await?, all);
    assert_eq!(ahead(&mut tx, 100 + AHEAD_US).await?, []);
    drop(tx);
    database.drop().await
}
