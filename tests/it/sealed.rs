//! Personal fields from the event to the erasure (L-3): they stand nowhere in the database but sealed, they are read where the key stands, and what is erased is erased in facts,
//! parked events and pending records at once, while ledger, identities and leaves go on.

use crate::bounded::database::Database;
use anyhow::{Context as _, Result, ensure};
use gpuledger_audit::AuditError;
use gpuledger_audit::erase::{Erasure, erase};
use gpuledger_audit::sequencer::Sequencer;
use gpuledger_books::Books;
use gpuledger_domain::time::Instant;
use gpuledger_ledger::batch::{Tally, apply};
use gpuledger_ledger::incoming::Incoming;
use gpuledger_ledger::parking::{Decider, explain, retry};
use gpuledger_ledger::{LedgerError, horizon};
use gpuledger_storage::parked::{self, Choice};
use gpuledger_storage::{Db, Role, Scope, audit_log, connect, facts, subject_keys};
use gpuledger_trail::keys::{KeyError, Seal, Secret};
use gpuledger_trail::leaf::Leaf;
use gpuledger_trail::opening::{Opening, openings};
use gpuledger_trail::personal::Marked;
use gpuledger_trail::private::Subject;
use gpuledger_trail::sealed::{Gone, Terms, configure, open, open_labels};
use gpuledger_wire::decode_structured;
use gpuledger_wire::time::parse_time;
use serde_json::{Value, json};
use std::time::Duration;

/// Everybody, and where: as a user, operator, approver, in a marked label, in what is no JSON.
const NAMES: [&str; 5] = ["alice-zq", "bob-zq", "carol-zq", "dora-zq", "mallory-zq"];
const DAY_US: i64 = 24 * 3_600_000_000;

fn now() -> Result<Instant> {
    Ok(parse_time("2026-10-02T00:00:00Z")?)
}

fn event(kind: &str, id: &str, time: &str, data: Value) -> Vec<u8> {
    json!({"specversion": "1.0", "id": id, "source": "/allocators/a", "type": format!("gpuledger.{kind}.v1"),
           "time": format!("2026-10-01T{time}Z"), "data": data})
    .to_string()
    .into_bytes()
}

fn inventory() -> Vec<u8> {
    let gpu = json!({"uuid": "GPU-1", "index": 0, "model": "NVIDIA H100 80GB HBM3", "memory_bytes": 85_520_809_984_u64,
                     "compute_slices": 7, "memory_slices": 8, "mig": false, "state": "ok", "instances": []});
    event("node.inventory", "i", "00:00:00", json!({"node": "n1", "boot_id": "b", "gpus": [gpu]}))
}

fn grant(id: &str, owner: &str) -> Vec<u8> {
    let data = json!({"allocation": id, "tenant": "acme", "units": [{"gpu": "GPU-1"}], "mode": "exclusive", "class": "on_demand",
                      "labels": {"user": "alice-zq", "owner": owner, "team": "red"}});
    event("allocation.granted", id, "01:00:00", data)
}

fn scrub(id: &str, result: &str) -> Vec<u8> {
    let data = json!({"scrub": id, "gpu": "GPU-1", "started_at": "2026-10-01T02:00:00Z", "result": result, "class": "clear", "steps": [],
                      "tool": {"name": "t", "version": "1", "digest": "sha256:0"}, "platform": {"driver": "580"},
                      "coverage": {"bytes_total": 8, "bytes_covered": 8, "bytes_reserved": 0},
                      "verification": {"method": "full", "bytes_read": 8, "mismatches": 0},
                      "operator": "bob-zq", "approver": "carol-zq"});
    event("scrub.finished", id, "02:10:00", data)
}

/// A good fact without anybody, two with, a second content of one, a bad one, and what is no JSON.
fn events() -> Vec<Vec<u8>> {
    vec![
        inventory(),
        grant("a", "dora-zq"),
        scrub("s", "passed"),
        scrub("s", "failed"),
        scrub("t", "shiny"),
        b"user=mallory-zq, which is no JSON".to_vec(),
    ]
}

async fn take(db: &Db, events: Vec<Vec<u8>>) -> Result<Tally, LedgerError> {
    let incoming: Vec<Incoming> =
        events.into_iter().map(|raw| Incoming::trusted(raw, "f:1".to_owned())).collect();
    let mut tx = db.begin().await?;
    let now = now().unwrap_or(Instant::MAX);
    let applied = apply(&mut tx, &incoming, now).await?;
    tx.commit().await?;
    Ok(applied.tally)
}

/// Whom of everybody the database names.
async fn named(database: &mut Database) -> Result<Vec<&'static str>> {
    let dump = database.dump().await?;
    ensure!(dump.contains("acme"), "the dump has what is not personal");
    let is_there =
        |name: &&str| dump.contains(*name) || dump.contains(&gpuledger_trail::hex(name.as_bytes()));
    Ok(NAMES.into_iter().filter(is_there).collect())
}

/// Bodies of facts as a reader gets them.
async fn read(db: &Db, seal: &Seal) -> Result<Vec<Vec<u8>>> {
    let mut tx = db.snapshot().await?;
    let mut stored = facts::load_all(&mut tx).await?;
    open(&mut tx, seal, stored.iter_mut().map(|fact| &mut fact.body).collect(), Gone::Said).await?;
    Ok(stored.into_iter().map(|fact| fact.body).collect())
}

/// Who held what, by the facts.
async fn held(db: &Db) -> Result<String> {
    let books = Books::load(&mut *db.snapshot().await?).await?;
    Ok(format!("{:?}", books.attribute(now()?).spans))
}

async fn labels(db: &Db, scope: Option<Scope<'_>>, seal: &Seal) -> Result<Value> {
    let mut tx = match scope {
        Some(scope) => db.snapshot_of(scope).await?,
        None => db.snapshot().await?,
    };
    let rows = gpuledger_storage::spans::allocations_of(&mut tx, &["a".to_owned()]).await?;
    let mut labels = serde_json::from_str(&rows.first().context("the allocation")?.labels)?;
    open_labels(&mut tx, seal, std::iter::once(&mut labels)).await?;
    Ok(json!(labels))
}

/// Openings of the leaf of an event, each of which must open it.
async fn opened(db: &Db, seal: &Seal, id: &str) -> Result<Vec<Opening>> {
    let mut tx = db.snapshot().await?;
    let index = audit_log::index_of_event(&mut tx, "/allocators/a", id).await?.context("its leaf")?;
    let row = audit_log::leaf(&mut tx, index).await?.context("the leaf")?;
    let mut records = audit_log::bodies(&mut tx, &[row.pending_seq.context("its record")?]).await?;
    open(&mut tx, seal, records.values_mut().map(|(_, body)| body).collect(), Gone::Kept).await?;
    let (kind, body) = records.values().next().context("the record")?;
    let leaf = Leaf::parse(&row.leaf).context("one of ours")?;
    let subjects = subject_keys::by_numbers(&mut tx, &row.subjects).await?;
    let found = openings(&leaf, &row.subjects, &subjects, seal, Some((kind, body)))?;
    ensure!(found.iter().all(|opening| opening.opens(leaf.content())), "{found:?}");
    Ok(found)
}

async fn erased(db: &Db, seal: &Seal, name: &str, days_later: i64) -> Result<bool> {
    let subject = Subject::parse(name).context("a subject")?;
    let now = now()?.plus(days_later * DAY_US);
    let erasure =
        Erasure { subject: &subject, basis: "GDPR Art. 17", principal: "cli", retention_days: Some(30), now };
    match erase(db, seal.clone(), &erasure).await {
        Ok(_) => Ok(true),
        Err(AuditError::NotErased(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn sealing() -> Result<Seal> {
    Ok(Seal::new(Some(Secret::random()?)))
}

fn terms(seal: &Seal) -> Terms {
    Terms { seal: seal.clone(), marked: Marked::Names(["owner".to_owned()].into()) }
}

#[tokio::test]
async fn personal_fields_are_stored_sealed_read_where_the_key_stands_and_erased_everywhere_l_3() -> Result<()>
{
    let mut database = Database::new().await?;
    let seal = sealing()?;
    let db = database.writer.clone();
    configure(&db, terms(&seal));
    let tally = take(&db, events()).await?;
    assert_eq!((tally.accepted, tally.parked), (3, 3));
    horizon::advance(&db, now()?).await?;
    assert_eq!(named(&mut database).await?, [""; 0]);
    let dump = database.dump().await?;
    for raw in [grant("a", "dora-zq"), scrub("s", "passed")] {
        let digest = gpuledger_trail::hex(&decode_structured(&raw)?.content_digest());
        assert!(!dump.contains(&digest), "names can be tried on a plain digest");
    }
    let plain: Vec<Vec<u8>> = events()[..3]
        .iter()
        .map(|raw| decode_structured(raw).map(|event| event.canonical_bytes()).unwrap_or_default())
        .collect();
    assert_eq!(read(&db, &seal).await?, plain, "byte by byte");
    let shown = json!({"owner": "dora-zq", "team": "red", "user": "alice-zq"});
    assert_eq!(labels(&db, None, &seal).await?, shown);
    let tally = take(&db, events()).await?;
    assert_eq!(
        (tally.accepted, tally.repeated, tally.parked),
        (0, 3, 0),
        "repetitions, parked ones too (I-1)"
    );

    // Records wait for their leaf first, then the law wants them kept, and then nothing is left to read.
    assert!(!erased(&db, &seal, "person:bob-zq", 31).await?, "its leaf could not be composed");
    Sequencer::new(db.clone(), seal.clone()).drain(now()?).await?;
    let values = |found: Vec<Opening>| found.into_iter().filter_map(|o| o.value).collect::<Vec<_>>();
    assert_eq!(values(opened(&db, &seal, "s").await?), [json!("carol-zq"), json!("bob-zq")]);
    assert_eq!(values(opened(&db, &seal, "a").await?), [shown, json!("acme")]);
    let before = held(&db).await?;
    assert!(before.contains("acme"), "{before}");
    for name in ["person:bob-zq", "person:dora-zq"] {
        assert!(!erased(&db, &seal, name, 29).await?, "{name} is kept");
        assert!(erased(&db, &seal, name, 31).await?, "{name} is not kept any more");
        assert!(!erased(&db, &seal, name, 31).await?, "{name} was erased before");
    }
    assert_eq!(held(&db).await?, before, "the ledger is the same without them");
    let text: String = read(&db, &seal).await?.iter().map(|body| String::from_utf8_lossy(body)).collect();
    assert!(text.contains(r#""operator":"erased""#) && text.contains(r#""approver":"carol-zq""#), "{text}");
    assert!(text.contains(r#""owner":"erased""#) && text.contains(r#""user":"alice-zq""#), "{text}");
    assert_eq!(
        labels(&db, None, &seal).await?,
        json!({"owner": "erased", "team": "red", "user": "alice-zq"})
    );
    assert_eq!(values(opened(&db, &seal, "s").await?), [json!("carol-zq")]);
    assert_eq!(values(opened(&db, &seal, "a").await?), [json!("acme")], "of the labels no value is told");

    parked_events_of_the_erased(&db).await?;
    let tally = take(&db, events()).await?;
    assert_eq!((tally.accepted, tally.repeated, tally.parked), (0, 3, 0), "repetitions still (I-1)");
    assert_eq!(named(&mut database).await?, [""; 0]);
    Sequencer::new(db.clone(), seal.clone()).drain(now()?).await?;
    database.drop().await
}

/// The conflict and the bad scrub say no more who it was, and cannot be retried; what is no JSON is the site's.
async fn parked_events_of_the_erased(db: &Db) -> Result<()> {
    let mut texts = Vec::new();
    let numbers = parked::numbers(&mut *db.snapshot().await?, &Choice::default()).await?;
    for number in numbers {
        let found = explain(db, number).await?.context("a parked event")?;
        texts.push(match &found.event {
            Some(event) => event.to_string(),
            None => String::from_utf8_lossy(&found.row.body).into_owned(),
        });
    }
    // A brace comes behind letters.
    texts.sort();
    assert_eq!(texts.remove(0), "user=mallory-zq, which is no JSON");
    assert_eq!(texts.len(), 2);
    for text in texts {
        assert!(text.contains(r#""operator":"erased""#) && text.contains("carol-zq"), "{text}");
    }
    let decider = Decider { principal: "cli", reason: "test", now: now()? };
    let (retried, tally) = retry(db, &Choice::default(), &decider).await?;
    assert_eq!((retried, tally.parked), (1, 1), "what is no JSON is parked again");
    assert_eq!(parked::numbers(&mut *db.snapshot().await?, &Choice::default()).await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn without_its_key_a_process_stores_nothing_personal_and_the_api_has_no_key_of_a_person_l_3()
-> Result<()> {
    let mut database = Database::new().await?;
    let seal = sealing()?;
    configure(&database.writer, terms(&seal));
    take(&database.writer, vec![inventory(), grant("a", "dora-zq")]).await?;
    horizon::advance(&database.writer, now()?).await?;
    let keyless = connect(&database.url, Role::Writer).await?;
    let refused = take(&keyless, vec![scrub("s", "passed")]).await;
    assert!(matches!(refused, Err(LedgerError::Keys(KeyError::Sealed))), "{refused:?}");
    let facts = read(&database.writer, &seal).await?;
    assert_eq!(facts.len(), 2);
    let release = event("allocation.released", "r", "03:00:00", json!({"allocation": "a"}));
    assert_eq!(take(&keyless, vec![release]).await?.accepted, 1, "nobody is in it");
    keyless.close().await;
    let api = connect(&database.url, Role::Api).await?;
    let hidden = json!({"owner": "sealed", "team": "red", "user": "sealed"});
    assert_eq!(labels(&api, Some(Scope::Tenant("acme")), &seal).await?, hidden);
    let all = json!({"owner": "dora-zq", "team": "red", "user": "alice-zq"});
    assert_eq!(labels(&api, Some(Scope::All), &seal).await?, all, "who reads all tenants");
    let numbers: Vec<i64> = (1..10).collect();
    assert!(subject_keys::by_numbers(&mut *api.snapshot().await?, &numbers).await?.is_empty());
    let mut tenant = api.snapshot_of(Scope::Tenant("acme")).await?;
    assert!(subject_keys::by_numbers(&mut tenant, &numbers).await?.is_empty(), "no key of a person");
    assert!(subject_keys::state(&mut tenant).await.is_err(), "nor that of digests");
    drop(tenant);
    api.close().await;
    assert_eq!(named(&mut database).await?, [""; 0]);
    database.drop().await
}

#[tokio::test]
async fn what_was_accepted_before_it_was_sealed_is_read_and_repeated_l_3() -> Result<()> {
    let database = Database::new().await?;
    let event = decode_structured(&scrub("s", "passed"))?;
    let stored = event.stored();
    let mut tx = database.writer.begin().await?;
    let fact = facts::NewFact {
        source: event.source.clone(),
        id: event.id.clone(),
        kind: event.type_name().to_owned(),
        at_us: event.time.as_micros(),
        received_at_us: now()?.as_micros(),
        rule_set: "1".to_owned(),
        digest: stored.digest,
        body: stored.bytes.clone(),
        subjects: event.subjects(),
        indexed: facts::Indexed::default(),
    };
    facts::insert_facts(&mut tx, &[fact]).await?;
    tx.commit().await?;
    assert_eq!(read(&database.writer, &Seal::default()).await?, [stored.bytes]);
    let tally = take(&database.writer, vec![scrub("s", "passed"), scrub("s", "failed")]).await?;
    assert_eq!((tally.accepted, tally.repeated, tally.parked), (0, 1, 1));
    Sequencer::new(database.writer.clone(), Seal::default()).drain(now()?).await?;
    assert_eq!(opened(&database.writer, &Seal::default(), "s").await?.len(), 2);
    database.drop().await
}

#[tokio::test]
async fn nobody_is_erased_while_something_is_sealed_under_his_key_l_3() -> Result<()> {
    let database = Database::new().await?;
    let seal = sealing()?;
    let db = database.writer.clone();
    configure(&db, terms(&seal));
    take(&db, vec![scrub("s", "passed")]).await?;
    Sequencer::new(db.clone(), seal.clone()).drain(now()?).await?;
    let mut open = db.begin().await?;
    apply(&mut open, &[Incoming::trusted(scrub("u", "passed"), "f:1".to_owned())], now()?).await?;
    let erasing = erased(&db, &seal, "person:bob-zq", 31);
    tokio::pin!(erasing);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut erasing).await;
    assert!(early.is_err(), "a transaction that has his key is still open");
    open.commit().await?;
    assert!(!erasing.await?, "what it wrote has no leaf yet");
    Sequencer::new(db.clone(), seal.clone()).drain(now()?).await?;
    assert!(erased(&db, &seal, "person:bob-zq", 31).await?);
    database.drop().await
}
