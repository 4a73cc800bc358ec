//! What must have come before a period can be closed (V-2): all partitions read, all nodes heard of or silent for long enough.

use crate::books::Database;
use crate::closing::told;
use anyhow::Result;
use gpuledger_storage::progress::{self, PartitionRead};

const TEN_HOURS: (&str, &str, &str, &str, &str) =
    ("a-1", "acme", "l40s", "2026-10-01T00:00:00Z", "2026-10-01T10:00:00Z");

async fn read(books: &Database, until: &[Option<&str>]) -> Result<()> {
    let mut tx = books.db.begin().await?;
    let mut rows = Vec::new();
    for (partition, until) in until.iter().enumerate() {
        let until_us = until.map(|text| crate::books::at(text).map(|at| at.as_micros())).transpose()?;
        rows.push(PartitionRead {
            topic: "facts".to_owned(),
            partition: i32::try_from(partition)?,
            until_us,
        });
    }
    progress::note(&mut tx, &rows).await?;
    Ok(tx.commit().await?)
}

#[tokio::test]
async fn v2_a_period_waits_for_every_partition_to_be_read_past_its_end() -> Result<()> {
    let books = Database::new("").await?;
    books.replay(&[TEN_HOURS], "2026-11-01T00:10:00Z").await?;
    let close = || books.close("2026-10", Some("acme"), "2026-11-01T00:10:00Z");
    read(&books, &[Some("2026-11-01T00:00:00Z"), Some("2026-10-31T23:59:59.999999Z"), None]).await?;
    let early = told(&close().await?);
    let named = "facts/1 is read until 2026-10-31T23:59:59.999999Z, facts/2 is not read to its end yet";
    assert!(early[0].contains(named) && !early[0].contains("facts/0"), "{early:?}");
    // An instant never goes back, and a partition that is gone is forgotten.
    read(&books, &[Some("2026-10-01T00:00:00Z"), Some("2026-11-01T00:00:00Z")]).await?;
    assert_eq!(told(&close().await?), ["acme 28.56 new"]);
    books.drop().await
}

fn inventory(id: &str, time: &str) -> String {
    format!(
        r#"{id} node.inventory {time} {{"node":"n1","boot_id":"b","gpus":[{{"uuid":"GPU-aaaaaaaa-0000-0000-0000-000000000001","index":0,"model":"NVIDIA L40S","memory_bytes":48000000000,"compute_slices":1,"memory_slices":1,"mig":false,"state":"ok","instances":[]}}]}}"#
    )
}

#[tokio::test]
async fn v2_a_period_waits_for_nodes_that_may_still_speak_of_it() -> Result<()> {
    let books = Database::new("").await?;
    books.replay(&[TEN_HOURS], "2026-11-01T00:00:00Z").await?;
    books.say(&[&inventory("i-1", "2026-10-31T23:50:00Z")], "2026-11-01T00:05:00Z").await?;
    let close = |now: &'static str| books.close("2026-10", Some("acme"), now);
    let early = told(&close("2026-11-01T00:05:00Z").await?);
    assert!(
        early[0].contains("n1 was last heard of at 2026-10-31T23:50:00Z"),
        "15 minutes are no gap: {early:?}"
    );
    books.say(&[], "2026-11-01T00:05:00.000001Z").await?;
    assert_eq!(told(&close("2026-11-01T00:05:01Z").await?), ["acme 28.56 new"], "longer is one");
    books.drop().await?;
    let books = Database::new("").await?;
    let heard = [inventory("i-1", "2026-10-31T23:50:00Z"), inventory("i-2", "2026-11-01T00:00:00Z")];
    books.replay(&[TEN_HOURS], "2026-11-01T00:00:00Z").await?;
    books.say(&heard.each_ref().map(String::as_str), "2026-11-01T00:00:00Z").await?;
    let report = books.close("2026-10", Some("acme"), "2026-11-01T00:00:00Z").await?;
    assert_eq!(told(&report), ["acme 28.56 new"], "heard of at the end");
    books.drop().await
}
