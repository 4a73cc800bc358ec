//! Posting: the journals of finished hours, a revision where something changed.

use crate::RULE_SET;
use crate::error::LedgerError;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::fact::Settings;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::journal::{Entry, Journal, journals, postable_until};
use gpuledger_domain::time::Instant;
use gpuledger_storage::Tx;
use gpuledger_storage::journals::{
    EntryRow, JournalHeader, JournalRevision, post as post_revisions, standing_journals,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Journals of one statement, so that the first posting of a long history needs no memory for all of it.
const POSTED_AT_ONCE: usize = 20_000;

/// Posts what differs from what stands, for the hours from each GPU's floor on that can be posted at this horizon.
pub(crate) async fn post(
    tx: &mut Tx,
    ledger: &Attribution,
    floors: &BTreeMap<GpuId, Instant>,
    settings: Settings,
    horizon: Instant,
) -> Result<(), LedgerError> {
    let until = postable_until(horizon, settings);
    let asked: Vec<(String, i64)> = floors
        .iter()
        .filter(|(_, floor)| **floor < until)
        .map(|(gpu, floor)| (gpu.to_string(), floor.as_micros()))
        .collect();
    let headers = standing_journals(tx, &asked, until.as_micros()).await?;
    let mut standing: BTreeMap<(String, i64), JournalHeader> =
        headers.into_iter().map(|header| ((header.gpu.clone(), header.hour_us), header)).collect();
    let mut revisions = Vec::new();
    for (gpu, timeline) in ledger.gpus.iter().filter(|(gpu, _)| floors.contains_key(gpu)) {
        for journal in journals(gpu, timeline, until) {
            let before = standing.remove(&(gpu.to_string(), journal.hour.as_micros()));
            revisions.extend(revision(&journal, before.as_ref(), horizon));
            if revisions.len() >= POSTED_AT_ONCE {
                post_revisions(tx, &revisions).await?;
                revisions.clear();
            }
        }
    }
    // An hour that had a journal and has no capacity any more (a decommissioning came late) is negated and posted empty.
    revisions.extend(
        standing.values().filter(|header| header.capacity_us > 0).map(|header| emptied(header, horizon)),
    );
    post_revisions(tx, &revisions).await?;
    Ok(())
}

/// The next revision of a journal, or none where it stands as it is.
fn revision(journal: &Journal, before: Option<&JournalHeader>, horizon: Instant) -> Option<JournalRevision> {
    let entries: Vec<EntryRow> = journal.entries.iter().map(row).collect();
    let digest = digest(journal, &entries);
    if before.is_some_and(|header| header.digest == digest) {
        return None;
    }
    Some(JournalRevision {
        gpu: journal.gpu.to_string(),
        hour_us: journal.hour.as_micros(),
        revision: before.map_or(1, |header| header.revision + 1),
        compute_slices: i16::from(journal.compute_slices),
        memory_slices: i16::from(journal.memory_slices),
        capacity: journal.capacity.iter().map(|w| (w.start().as_micros(), w.end().as_micros())).collect(),
        digest,
        horizon_us: horizon.as_micros(),
        rule_set: RULE_SET.to_owned(),
        entries,
    })
}

fn emptied(header: &JournalHeader, horizon: Instant) -> JournalRevision {
    JournalRevision {
        gpu: header.gpu.clone(),
        hour_us: header.hour_us,
        revision: header.revision + 1,
        compute_slices: header.compute_slices,
        memory_slices: header.memory_slices,
        capacity: Vec::new(),
        digest: Sha256::digest([]).into(),
        horizon_us: horizon.as_micros(),
        rule_set: RULE_SET.to_owned(),
        entries: Vec::new(),
    }
}

fn row(entry: &Entry) -> EntryRow {
    let owner = entry.owner.as_ref();
    EntryRow {
        start_us: entry.window.start().as_micros(),
        end_us: entry.window.end().as_micros(),
        account: entry.account.as_str().to_owned(),
        tenant: owner.map(|o| o.tenant.to_string()),
        project: owner.and_then(|o| o.project.as_ref().map(ToString::to_string)),
        allocation: owner.map(|o| o.allocation.to_string()),
        unit: owner.map(|o| i32::try_from(o.unit).unwrap_or(i32::MAX)),
        memory_mask: i32::try_from(entry.memory_mask).unwrap_or(i32::MAX),
        compute_slices: i16::from(entry.compute_slices),
        part_us: entry.part_us,
    }
}

/// Equal digests mean equal journals: every text is preceded by its length.
fn digest(journal: &Journal, entries: &[EntryRow]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let text = |hash: &mut Sha256, value: Option<&str>| {
        let length = value.map_or(u64::MAX, |v| u64::try_from(v.len()).unwrap_or(u64::MAX));
        hash.update(length.to_be_bytes());
        hash.update(value.unwrap_or_default());
    };
    hash.update([journal.compute_slices, journal.memory_slices]);
    for window in &journal.capacity {
        hash.update(window.start().as_micros().to_be_bytes());
        hash.update(window.end().as_micros().to_be_bytes());
    }
    for entry in entries {
        for number in [
            entry.start_us,
            entry.end_us,
            i64::from(entry.memory_mask),
            i64::from(entry.compute_slices),
            entry.part_us,
        ] {
            hash.update(number.to_be_bytes());
        }
        hash.update(i64::from(entry.unit.unwrap_or(-1)).to_be_bytes());
        text(&mut hash, Some(&entry.account));
        for value in [&entry.tenant, &entry.project, &entry.allocation] {
            text(&mut hash, value.as_deref());
        }
    }
    hash.finalize().into()
}
