//! Facts found by subject, kind and time, without their bodies.

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::facts::{Indexed, Inserted, NewFact, NewInventory, insert_facts};
use gpuledger_storage::index::{self, Entry, kind};

fn fact(id: &str, kind: char, at_us: i64) -> NewFact {
    NewFact {
        source: "/s".to_owned(),
        id: id.to_owned(),
        kind: "t".to_owned(),
        at_us,
        received_at_us: 0,
        rule_set: "1".to_owned(),
        digest: [1; 32],
        body: id.as_bytes().to_vec(),
        subjects: vec!["gpu:g".to_owned(), "source-grants:/s".to_owned()],
        indexed: Indexed { kind, at_us, inventory: None },
    }
}

fn found(mut entries: Vec<Entry>) -> Vec<(i64, i64)> {
    entries.sort_by_key(|entry| entry.fact_seq);
    entries.iter().map(|entry| (entry.at_us, entry.fact_seq)).collect()
}

fn at(at_us: i64) -> Vec<(String, i64)> {
    vec![("gpu:g".to_owned(), at_us)]
}

#[tokio::test]
async fn facts_are_found_from_an_instant_on_and_beside_it() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let facts = [
        fact("a", kind::INVENTORY, 10),
        fact("b", kind::INVENTORY, 20),
        fact("c", kind::INVENTORY, 20),
        fact("d", kind::STATE, 15),
        fact("e", kind::INVENTORY, 30),
    ];
    let seqs: Vec<i64> = insert_facts(&mut tx, &facts)
        .await?
        .into_iter()
        .map(|became| match became {
            Inserted::New { seq } | Inserted::Exists { seq, .. } => seq,
        })
        .collect();
    let [a, b, c, d, e] = seqs[..] else { panic!("{seqs:?}") };
    assert_eq!(found(index::since(&mut tx, "is", &at(20)).await?), [(20, b), (20, c), (30, e)]);
    assert_eq!(found(index::since(&mut tx, "s", &at(i64::MIN)).await?), [(15, d)]);
    assert_eq!(found(index::latest(&mut tx, "i", &at(29)).await?), [(20, b), (20, c)], "all of one instant");
    assert_eq!(
        found(index::latest(&mut tx, "is", &at(15)).await?),
        [(10, a), (15, d)],
        "each kind by itself"
    );
    assert_eq!(found(index::latest(&mut tx, "i", &at(9)).await?), []);
    assert_eq!(found(index::next(&mut tx, "i", &at(10)).await?), [(20, b), (20, c)]);
    assert_eq!(found(index::latest_before(&mut tx, "gpu:g", 30, 1).await?), [(20, b), (20, c)]);
    let within: Vec<i64> = index::within(&mut tx, 15, 20).await?.iter().map(|fact| fact.seq).collect();
    assert_eq!(within, [b, c, d]);
    let unstored = index::since(&mut tx, "i", &[("source-grants:/s".to_owned(), 0)]).await?;
    assert_eq!(unstored, [], "it is there to be locked only");
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn an_inventory_tells_what_it_says_and_where_gpus_are() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let inventory = |id: &str, node: &str, content| NewFact {
        indexed: Indexed {
            kind: kind::INVENTORY,
            at_us: 1,
            inventory: Some(NewInventory {
                content: [content; 32],
                node: node.to_owned(),
                gpus: vec!["g".to_owned()],
            }),
        },
        ..fact(id, kind::INVENTORY, 1)
    };
    let new =
        insert_facts(&mut tx, &[inventory("a", "n1", 1), inventory("b", "n2", 2), inventory("c", "n1", 1)])
            .await?;
    let seqs: Vec<i64> = new
        .iter()
        .map(|became| match became {
            Inserted::New { seq } | Inserted::Exists { seq, .. } => *seq,
        })
        .collect();
    let heads = index::inventory_heads(&mut tx, &seqs).await?;
    let contents: Vec<Option<u8>> =
        heads.iter().map(|head| head.content.as_ref().map(|bytes| bytes[0])).collect();
    assert_eq!(contents, [Some(1), Some(2), Some(1)]);
    let pair = |gpu: &str, node: &str| (gpu.to_owned(), node.to_owned());
    let mut homes = index::homes(&mut tx, &["g".to_owned()]).await?;
    homes.sort();
    assert_eq!(homes, [pair("g", "n1"), pair("g", "n2")]);
    assert_eq!(index::gpus_on(&mut tx, &["n2".to_owned()]).await?, [pair("g", "n2")]);
    assert_eq!(index::gpus_after(&mut tx, "", 5).await?, ["g"]);
    assert_eq!(index::gpus_after(&mut tx, "g", 5).await?, [""; 0]);
    drop(tx);
    database.drop().await
}
