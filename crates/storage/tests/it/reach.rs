//! Until when facts matter on a GPU, and spans that go on with the horizon.

use crate::database::Database;
use crate::read_models::span;
use anyhow::Result;
use gpuledger_storage::reach::{self, OPEN, ReachRow};
use gpuledger_storage::spans::{
    self, SpanFilter, SpanRow, insert_spans, load_spans, remove_spans, standing_spans,
};
use gpuledger_storage::state;

fn row(gpu: &str, subject: &str, until_us: i64) -> ReachRow {
    ReachRow {
        gpu: gpu.to_owned(),
        subject: subject.to_owned(),
        source: "/s".to_owned(),
        until_us,
        first_us: 3,
        pools: vec!["a \"pool\", with \\ and {}".to_owned()],
    }
}

#[tokio::test]
async fn what_ended_before_a_floor_is_not_found_and_what_is_open_always_is() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let rows = [
        row("g", "alloc:a", 10),
        row("g", "alloc:b", OPEN),
        row("h", "alloc:b", OPEN),
        row("", "alloc:c", 10),
    ];
    reach::replace(&mut tx, &[], &rows).await?;
    let mut all = reach::since(&mut tx, &[("g".to_owned(), 10), ("h".to_owned(), 10)]).await?;
    all.sort();
    assert_eq!(all, ["alloc:a", "alloc:b"]);
    assert_eq!(reach::since(&mut tx, &[("g".to_owned(), 11)]).await?, ["alloc:b"]);
    assert_eq!(reach::open_of(&mut tx, &["/s".to_owned()]).await?, ["alloc:b"]);
    let named = [("alloc:a", (2, 20)), ("alloc:b", (7, 20)), ("alloc:nobody", (9, 11))];
    reach::list(&mut tx, &named.map(|(subject, times)| (subject.to_owned(), times)).into()).await?;
    assert_eq!(reach::since(&mut tx, &[("g".to_owned(), 20)]).await?.len(), 2);
    let mut members = reach::members(&mut tx, &rows[0].pools, 15).await?;
    members.sort();
    let pair = |subject: &str, gpu: &str| (subject.to_owned(), gpu.to_owned());
    assert_eq!(members, [pair("alloc:a", "g"), pair("alloc:b", "g"), pair("alloc:b", "h")]);
    let subjects = ["alloc:a", "alloc:b", "alloc:nobody", "alloc:unknown"].map(str::to_owned);
    let firsts: Vec<i64> = reach::firsts(&mut tx, &subjects).await?.into_values().collect();
    assert_eq!(firsts, [2, 3, 9]);
    let again = ReachRow { first_us: 8, ..row("g", "alloc:nobody", 12) };
    reach::replace(
        &mut tx,
        &["alloc:b".to_owned(), "alloc:nobody".to_owned()],
        &[row("g", "alloc:b", 5), again],
    )
    .await?;
    let firsts: Vec<i64> = reach::firsts(&mut tx, &subjects).await?.into_values().collect();
    assert_eq!(firsts, [2, 3, 8], "who was named before stays named since then");
    assert_eq!(reach::since(&mut tx, &[("h".to_owned(), 0)]).await?, [""; 0]);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_span_that_goes_on_ends_at_the_horizon_when_it_is_read() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let open = SpanRow { start_us: 10, end_us: spans::OPEN, ..span("acme", "a-1") };
    let done = SpanRow { start_us: 5, end_us: 10, ..span("acme", "a-1") };
    insert_spans(&mut tx, &[open.clone(), done.clone()]).await?;
    state::advance_horizon(&mut tx, 100, "1").await?;
    let all =
        SpanFilter { from_us: i64::MIN, to_us: i64::MAX, tenant: None, project: None, allocation: None };
    let read = load_spans(&mut tx, &all).await?;
    assert_eq!(read, [done.clone(), SpanRow { end_us: 100, ..open.clone() }]);
    assert_eq!(load_spans(&mut tx, &SpanFilter { from_us: 100, ..all }).await?, []);
    assert_eq!(load_spans(&mut tx, &SpanFilter { from_us: 99, ..all }).await?.len(), 1);
    let gpu = open.gpu.clone().unwrap_or_default();
    let standing = standing_spans(&mut tx, &[(gpu.clone(), 10)]).await?;
    assert_eq!(standing.iter().map(|stands| stands.span.clone()).collect::<Vec<_>>(), [open]);
    remove_spans(&mut tx, &[standing[0].ctid.clone()]).await?;
    let left = standing_spans(&mut tx, &[(gpu, 0)]).await?;
    assert_eq!(left.into_iter().map(|stands| stands.span).collect::<Vec<_>>(), [done]);
    drop(tx);
    database.drop().await
}
