//! Violations as they are recorded and audited: once when one is found, and once more where late facts show that it was none.

use super::Case;
use crate::error::LedgerError;
use gpuledger_domain::residue::{Judged, Mode, Verdict};
use gpuledger_domain::time::Instant;
use gpuledger_storage::Tx;
use gpuledger_storage::audit::{PendingRecord, append};
use gpuledger_storage::violations::{self, ViolationRow};
use gpuledger_wire::canonical_json;
use serde_json::json;
use std::collections::BTreeMap;

type Key = (String, String, i32);

/// Compares what was found with what is recorded, and writes what differs.
pub(super) async fn violations(tx: &mut Tx, cases: &[Case], now: Instant) -> Result<(), LedgerError> {
    // Where nothing is looked for, nothing is cleared either.
    let looked = || cases.iter().filter(|case| case.rules.mode != Mode::Off);
    let asked: Vec<(String, i64)> =
        looked().map(|case| (case.history.gpu.to_string(), case.from.as_micros())).collect();
    let mut stood: BTreeMap<Key, ViolationRow> =
        violations::since(tx, &asked).await?.into_iter().map(|row| (key(&row), row)).collect();
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    for case in looked() {
        for judged in case.history.judge(&case.rules, case.from) {
            let Some(row) = found(case, &judged, now) else { continue };
            match stood.remove(&key(&row)) {
                // An earlier grant of the same allocation counts now, or a scrub of a part came: the same violation.
                Some(before) if before.cleared_at_us.is_none() => {
                    let is_moved = (before.start_us, &before.detail) != (row.start_us, &row.detail);
                    let moved = ViolationRow { start_us: row.start_us, detail: row.detail, ..before };
                    rows.extend(Some(moved).filter(|_| is_moved));
                }
                _ => {
                    records.push(audit(&row, &owner(&judged), "raised", now));
                    rows.push(row);
                }
            }
        }
    }
    for row in stood.into_values().filter(|row| row.cleared_at_us.is_none()) {
        let row = ViolationRow { cleared_at_us: Some(now.as_micros()), ..row };
        records.push(audit(&row, "", "cleared", now));
        rows.push(row);
    }
    violations::put(tx, &rows).await?;
    if !records.is_empty() {
        append(tx, &records).await?;
    }
    Ok(())
}

fn key(row: &ViolationRow) -> Key {
    (row.gpu.clone(), row.allocation.clone(), row.unit)
}

fn owner(judged: &Judged<'_>) -> String {
    judged.hold.owner(judged.hold.start).map(ToString::to_string).unwrap_or_default()
}

fn found(case: &Case, judged: &Judged<'_>, now: Instant) -> Option<ViolationRow> {
    let slices = judged.slices_with(|verdict| matches!(verdict, Verdict::Violation(_)));
    let unit = i32::try_from(judged.hold.unit).ok()?;
    (!slices.is_empty()).then(|| ViolationRow {
        gpu: case.history.gpu.to_string(),
        allocation: judged.hold.allocation.to_string(),
        unit,
        start_us: judged.hold.start.as_micros(),
        detail: format!("memory slices {slices}"),
        seen_at_us: now.as_micros(),
        due_at_us: now.plus(case.rules.limits.settle_us).as_micros(),
        alarmed_at_us: None,
        cleared_at_us: None,
    })
}

/// The record names no other tenant than the one that was granted: whose residue it was follows from the leaves before.
fn audit(row: &ViolationRow, tenant: &str, state: &str, now: Instant) -> PendingRecord {
    let mut body = json!({
        "finding": "residue_violation", "state": state, "allocation": row.allocation, "gpu": row.gpu,
        "unit": row.unit.to_string(), "slices": row.detail, "since": Instant::from_micros(row.start_us).to_string(),
    });
    if let Some(members) = body.as_object_mut().filter(|_| !tenant.is_empty()) {
        members.insert("tenant".to_owned(), json!(tenant));
    }
    PendingRecord {
        fact_seq: None,
        kind: "finding".to_owned(),
        body: canonical_json(&body),
        recorded_at_us: now.as_micros(),
    }
}
