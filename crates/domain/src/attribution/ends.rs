//! Ends of holds: release, decommission, snapshot, lease, or the horizon.

use super::allocations::Allocation;
use super::devices::Devices;
use super::life::Life;
use super::units::{Place, Unit};
use crate::finding::{Finding, Findings, Kind};
use crate::time::Instant;

/// Sets the end of every unit, and says what should be looked at.
pub(super) fn settle(
    allocations: &mut [Allocation<'_>],
    devices: &Devices<'_>,
    life: &Life<'_>,
    as_of: Instant,
    findings: &mut Findings,
) {
    for allocation in allocations {
        let ends: Vec<(Instant, bool)> =
            allocation.units.iter().map(|unit| end_of(allocation, unit, devices, life, as_of)).collect();
        for (unit, (end, open)) in allocation.units.iter_mut().zip(ends) {
            (unit.end, unit.open) = (end, open);
        }
        note_unconfirmed(allocation, devices, life, findings);
        note_late_transfers(allocation, findings);
        note_gone_at_once(allocation, findings);
    }
    // A node without capacity was taken out, not lost.
    let has_capacity = |node| devices.iter().any(|(_, device)| device.is_there(node, as_of));
    for (node, last) in life.lost_nodes().filter(|(node, _)| has_capacity(node)) {
        findings.add(Finding {
            kind: Kind::LostNode,
            subject: node.to_string(),
            since: last,
            until: None,
            detail: format!("node {node} was last heard of at {last}"),
        });
    }
}

/// When the hold of a unit ends, and whether only the horizon ends it.
fn end_of(
    allocation: &Allocation<'_>,
    unit: &Unit,
    devices: &Devices<'_>,
    life: &Life<'_>,
    as_of: Instant,
) -> (Instant, bool) {
    if allocation.ends_before_start {
        return (allocation.start, false);
    }
    let (end, open) = match allocation.released {
        Some(release) => (release.at, false),
        None => end_without_release(allocation, unit, devices, life, as_of),
    };
    match decommissioned(allocation, unit, devices) {
        Some(gone) if gone <= end => (gone, false),
        _ => (end, open),
    }
}

fn decommissioned(allocation: &Allocation<'_>, unit: &Unit, devices: &Devices<'_>) -> Option<Instant> {
    let Place::Slices { gpu, .. } = &unit.place else { return None };
    devices.get(gpu)?.decommissioned.iter().copied().find(|at| *at >= allocation.start)
}

fn end_without_release(
    allocation: &Allocation<'_>,
    unit: &Unit,
    devices: &Devices<'_>,
    life: &Life<'_>,
    as_of: Instant,
) -> (Instant, bool) {
    let node_at = |at| match &unit.place {
        Place::Slices { gpu, .. } => devices.node_of(gpu, at),
        Place::Waiting | Place::Unplaced => None,
    };
    let lacked = allocation.lacked_by.iter().any(|snapshot| match snapshot.nodes {
        None => true,
        Some(nodes) => node_at(snapshot.at).is_some_and(|node| nodes.contains(node)),
    });
    if lacked {
        return (allocation.last_named(), false);
    }
    let Some(node) = node_at(as_of) else { return (as_of, true) };
    match (life.last_proof(node), life.silence_us(node)) {
        (Some(proof), Some(silence)) if silence > life.settings().lease_us => {
            (proof.max(allocation.start), false)
        }
        _ => (as_of, true),
    }
}

fn note_unconfirmed(
    allocation: &Allocation<'_>,
    devices: &Devices<'_>,
    life: &Life<'_>,
    findings: &mut Findings,
) {
    for unit in allocation.units.iter().filter(|unit| unit.open) {
        let Place::Slices { gpu, .. } = &unit.place else { continue };
        let Some(node) = devices.node_of(gpu, unit.end) else { continue };
        let silent =
            life.silence_us(node).is_some_and(|silence| silence > life.settings().observation_gap_us);
        if let Some(proof) = life.last_proof(node).filter(|_| silent) {
            findings.add(Finding {
                kind: Kind::Unconfirmed,
                subject: allocation.id.to_string(),
                since: proof,
                until: None,
                detail: format!(
                    "allocation {} runs on {node}, which was last heard of at {proof}",
                    allocation.id
                ),
            });
        }
    }
}

/// A snapshot lacks it and nothing but its grant ever named it: it ended where it started.
fn note_gone_at_once(allocation: &Allocation<'_>, findings: &mut Findings) {
    let lacking = allocation.released.is_none() && !allocation.lacked_by.is_empty();
    let at_once = |unit: &Unit| !unit.open && unit.end <= allocation.start;
    if lacking && !allocation.ends_before_start && allocation.units.iter().all(at_once) {
        findings.add(Finding {
            kind: Kind::ZeroLength,
            subject: allocation.id.to_string(),
            since: allocation.start,
            until: None,
            detail: format!("allocation {} was granted, and no later snapshot names it", allocation.id),
        });
    }
}

/// A transfer at or after the end moves nothing.
fn note_late_transfers(allocation: &Allocation<'_>, findings: &mut Findings) {
    let open = allocation.units.iter().any(|unit| unit.open);
    let Some(end) = allocation.units.iter().map(|unit| unit.end).max().filter(|_| !open) else { return };
    for owner in allocation.transfers.iter().filter(|owner| owner.since >= end) {
        findings.add(Finding {
            kind: Kind::TransferAfterEnd,
            subject: allocation.id.to_string(),
            since: owner.since,
            until: None,
            detail: format!(
                "allocation {} went to {} at {}, but had ended at {end}",
                allocation.id, owner.tenant, owner.since
            ),
        });
    }
}
