//! Acceptance: an identity is taken once, whoever brings it and when (I-1, I-6).

use crate::database::Database;
use anyhow::Result;
use gpuledger_storage::facts::{
    Indexed, Inserted, NewFact, digest_all, identities, insert_facts, load_all, load_by_subjects, load_page,
    subjects,
};
use gpuledger_storage::index::kind;

fn fact(id: &str, content: u8) -> NewFact {
    NewFact {
        source: "/allocators/s".to_owned(),
        id: id.to_owned(),
        kind: "gpuledger.allocation.released.v1".to_owned(),
        at_us: 5,
        received_at_us: 6,
        rule_set: "1".to_owned(),
        digest: [content; 32],
        body: format!("{{\"id\":\"{id}\",\"content\":{content}}}").into_bytes(),
        subjects: vec![format!("alloc:{id}"), "gpu:g".to_owned(), "gpu:g".to_owned()],
        indexed: Indexed { kind: kind::RELEASE, at_us: 5, inventory: None },
    }
}

#[tokio::test]
async fn of_equal_identities_the_first_stands() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let outcome = insert_facts(&mut tx, &[fact("b", 1), fact("a", 1), fact("b", 2), fact("b", 1)]).await?;
    tx.commit().await?;
    let [Inserted::New { seq: b }, Inserted::New { seq: a }, third, fourth] = outcome[..] else {
        panic!("{outcome:?}");
    };
    assert!(b < a, "order of arrival is order of acceptance");
    let stands = Inserted::Exists { digest: [1; 32], seq: b };
    assert_eq!((third, fourth), (stands, stands));

    let mut tx = database.writer.begin().await?;
    let outcome = insert_facts(&mut tx, &[fact("b", 3), fact("c", 1)]).await?;
    assert_eq!(outcome[0], stands);
    assert!(matches!(outcome[1], Inserted::New { seq } if seq > a));
    let names = [fact("a", 0), fact("zz", 0)].map(|f| (f.source, f.id));
    let found = identities(&mut tx, &names).await?;
    assert_eq!(found.into_values().collect::<Vec<_>>(), [([1; 32], a)]);
    let all: Vec<String> = load_all(&mut tx).await?.into_iter().map(|f| f.id).collect();
    assert_eq!(all, ["b", "a", "c"]);
    assert_eq!(load_page(&mut tx, b, 1).await?[0].seq, a);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn a_fact_comes_with_its_subjects_and_its_audit_record() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    insert_facts(&mut tx, &[fact("a", 1), fact("b", 1), fact("a", 2)]).await?;
    let about = load_by_subjects(&mut tx, &["gpu:g".to_owned(), "alloc:a".to_owned()]).await?;
    assert_eq!(about.iter().map(|f| f.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(about[0].body, fact("a", 1).body);
    assert_eq!(subjects(&mut tx, "alloc:").await?, ["alloc:a", "alloc:b"]);
    let pending: Vec<(i64, String, Vec<u8>, i64)> =
        sqlx::query_as("SELECT fact_seq, kind, body, recorded_at_us FROM audit_pending ORDER BY seq")
            .fetch_all(&mut *tx)
            .await?;
    let wanted: Vec<_> =
        about.iter().map(|f| (f.seq, fact("", 0).kind, f.body.clone(), f.received_at_us)).collect();
    assert_eq!(pending, wanted);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn two_consumers_with_one_identity() -> Result<()> {
    let database = Database::new().await?;
    for (first_commits, round) in [(true, "r1"), (false, "r2")] {
        let (x, y) = (format!("{round}-x"), format!("{round}-y"));
        let mut first = database.writer.begin().await?;
        insert_facts(&mut first, &[fact(&x, 1), fact(&y, 1)]).await?;
        let writer = database.writer.clone();
        let theirs = [fact(&y, 2), fact(&x, 1)];
        let second = tokio::spawn(async move {
            let mut tx = writer.begin().await?;
            let outcome = insert_facts(&mut tx, &theirs).await?;
            tx.commit().await?;
            Ok::<_, gpuledger_storage::StorageError>(outcome)
        });
        database.until_waiting(1).await?;
        if first_commits {
            first.commit().await?;
            let outcome = second.await??;
            let digests: Vec<_> = outcome
                .iter()
                .filter_map(|o| match o {
                    Inserted::Exists { digest, .. } => Some(digest[0]),
                    Inserted::New { .. } => None,
                })
                .collect();
            assert_eq!(digests, [1, 1], "a conflict and a repetition, both known: {outcome:?}");
        } else {
            first.rollback().await?;
            let outcome = second.await??;
            assert!(outcome.iter().all(|o| matches!(o, Inserted::New { .. })), "{outcome:?}");
        }
    }
    let mut tx = database.writer.begin().await?;
    assert_eq!(load_all(&mut tx).await?.len(), 4);
    let unmatched: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM identity AS i FULL JOIN fact AS f ON f.seq = i.fact_seq AND f.digest = i.digest
         WHERE i.id IS NULL OR f.id IS NULL OR i.id <> f.id",
    )
    .fetch_one(&mut *tx)
    .await?;
    assert_eq!(unmatched, 0);
    drop(tx);
    database.drop().await
}

#[tokio::test]
async fn the_digest_of_all_facts_forgets_their_order() -> Result<()> {
    let mut digests = Vec::new();
    for order in [["a", "B", "c"], ["c", "a", "B"]] {
        let database = Database::new().await?;
        let mut tx = database.writer.begin().await?;
        let facts: Vec<NewFact> = order.iter().map(|id| fact(id, 1)).collect();
        insert_facts(&mut tx, &facts).await?;
        let all = digest_all(&mut tx).await?;
        assert_eq!(all.count, 3);
        assert_eq!(Some(all.last_seq), load_all(&mut tx).await?.last().map(|f| f.seq));
        digests.push(all.digest);
        insert_facts(&mut tx, &[fact("d", 1)]).await?;
        assert_ne!(digest_all(&mut tx).await?.digest, all.digest);
        drop(tx);
        database.drop().await?;
    }
    assert_eq!(digests[0], digests[1]);
    Ok(())
}

#[tokio::test]
async fn a_name_too_long_is_refused_by_name() -> Result<()> {
    let database = Database::new().await?;
    let mut tx = database.writer.begin().await?;
    let error = insert_facts(&mut tx, &[fact(&"x".repeat(1025), 1)]).await.unwrap_err();
    assert_eq!(error.constraint(), Some("identity_id_check"));
    drop(tx);
    let mut tx = database.writer.begin().await?;
    insert_facts(&mut tx, &[fact(&"é".repeat(512), 1)]).await?;
    drop(tx);
    database.drop().await
}
