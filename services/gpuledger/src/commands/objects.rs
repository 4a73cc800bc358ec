//! Schema and business objects.

use super::writer;
use crate::clock::now;
use crate::outcome::{Outcome, Usage};
use crate::settings::Settings;
use anyhow::{Context, Result};
use gpuledger_billing::catalogue::Catalogue;
use gpuledger_domain::time::Instant;
use gpuledger_storage::objects::{NewObject, ObjectVersion, apply as store, latest};
use gpuledger_storage::{Db, Role, audit, closes, connect};
use gpuledger_telemetry::terminal::{say, say_err};
use gpuledger_wire::objects::{Object, parse_documents};
use std::path::PathBuf;

/// Brings the schema up to date.
pub(crate) async fn migrate(settings: &Settings) -> Result<Outcome> {
    let db = connect(settings.database_url()?, Role::Owner).await?;
    gpuledger_storage::migrate(&db).await?;
    Ok(Outcome::Done)
}

/// Applies objects: all of all files, or none where one has a fault.
pub(crate) async fn apply(settings: &Settings, files: &[PathBuf]) -> Result<Outcome> {
    let mut objects = Vec::new();
    let mut faults = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| format!("{name} cannot be read"));
        match parse_documents(&text.map_err(|error| Usage(format!("{error:#}")))?, &name) {
            Ok(found) => objects.extend(found),
            Err(found) => faults.extend(found.iter().map(ToString::to_string)),
        }
    }
    if !faults.is_empty() {
        faults.iter().for_each(|fault| say_err(fault));
        return Err(Usage(format!("{} faults, nothing was applied", faults.len())).into());
    }
    let said = store_all(&writer(settings).await?, &objects, now()?).await?;
    said.iter().for_each(|line| say(line));
    Ok(Outcome::Done)
}

/// Stores objects, all or none, and says of each which version it is now.
///
/// # Errors
/// Prices that fit equally well (V-12), as [`Usage`]; the database.
pub(crate) async fn store_all(db: &Db, objects: &[Object], at: Instant) -> Result<Vec<String>> {
    let mut tx = db.begin().await?;
    // A close knows which objects it was made by: none is applied while one is under way.
    closes::hold_open(&mut tx).await?;
    let mut said = Vec::new();
    for object in objects {
        let version = apply_one(&mut tx, object, at.as_micros()).await?;
        let name = format!("{} {}", object.kind(), object.id());
        match version {
            Some(version) => said.push(format!("{name}: version {version}")),
            None => said.push(format!("{name}: unchanged")),
        }
    }
    // With everything stored, prices that fit equally well show (V-12); then nothing stays.
    let conflicts = Catalogue::load(&mut tx).await.map_err(|error| Usage(error.to_string()))?.conflicts();
    if !conflicts.is_empty() {
        return Err(Usage(format!("nothing was applied: {}", conflicts.join("; "))).into());
    }
    tx.commit().await?;
    // Names of products and what pools make of time stand in the read models: they are settled anew.
    let settles = |object: &Object| matches!(object, Object::Sku(_) | Object::Pool(_));
    if objects.iter().any(settles) {
        gpuledger_ledger::horizon::derive_anew(db).await?;
    } else if objects.iter().any(|object| matches!(object, Object::Residue(_))) {
        gpuledger_ledger::horizon::judge_anew(db).await?;
    }
    Ok(said)
}

async fn apply_one(tx: &mut gpuledger_storage::Tx, object: &Object, at_us: i64) -> Result<Option<i32>> {
    let new =
        NewObject { kind: object.kind().to_owned(), id: object.id(), body: object.to_json()?.to_string() };
    let version = store(tx, &new, at_us, "cli").await?;
    if version.is_some() {
        let body = serde_json::json!({"kind": new.kind, "id": new.id, "version": version, "object": object.to_json()?});
        let record = audit::PendingRecord {
            fact_seq: None,
            kind: "object.applied".to_owned(),
            body: gpuledger_wire::canonical_json(&body),
            recorded_at_us: at_us,
        };
        audit::append(tx, &[record]).await?;
    }
    Ok(version)
}

/// Prints objects as they stand.
pub(crate) async fn get(settings: &Settings, kind: &str, id: Option<&str>, output: &str) -> Result<Outcome> {
    let db = writer(settings).await?;
    let mut tx = db.snapshot().await?;
    let wanted = |object: &ObjectVersion| {
        object.kind.eq_ignore_ascii_case(kind) && id.is_none_or(|id| object.id == id)
    };
    let found: Vec<ObjectVersion> = latest(&mut tx).await?.into_iter().filter(wanted).collect();
    if found.is_empty() {
        say_err(&format!("gpuledger: no {kind} {}", id.unwrap_or("at all")));
        return Ok(Outcome::No);
    }
    for object in found {
        let value: serde_json::Value = serde_json::from_str(&object.body)?;
        match output {
            "json" => say(&value.to_string()),
            _ => say(&format!("---\n{}", serde_saphyr::to_string(&value)?.trim_end())),
        }
    }
    Ok(Outcome::Done)
}
