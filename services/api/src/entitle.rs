//! Who may say what (I-5): a node speaks for itself, an allocator for its nodes, a gateway for its pools, platform and admin for what
//! none of these owns.
//!
//! What the event names is checked here. Where it names only a GPU, its node is known to the facts alone: the claim on nodes goes
//! along to the ledger ([`speaker`]), which checks it there.

use crate::token::{ANY, Claims, Role};
use gpuledger_storage::inbox::Speaker;
use gpuledger_wire::{Event, EventData};

/// Who is written beside the events of these claims.
pub(crate) fn speaker(claims: &Claims) -> Speaker {
    let bound =
        matches!(claims.role, Role::Node | Role::Allocator) && !claims.nodes.iter().any(|node| node == ANY);
    Speaker { principal: claims.subject.clone(), nodes: bound.then(|| claims.nodes.clone()) }
}

/// Why these claims do not allow this event; none: they do.
pub(crate) fn refusal(claims: &Claims, event: &Event) -> Option<String> {
    wrong_source(claims, &event.source).or_else(|| match claims.role {
        Role::Admin => None,
        Role::Node => of_node(claims, &event.data),
        Role::Allocator => of_allocator(claims, &event.data),
        Role::Gateway => of_gateway(claims, &event.data),
        Role::Platform => of_platform(&event.data),
        Role::Tenant | Role::Finance | Role::Auditor => Some(not_for(claims.role, &event.data)),
    })
}

/// The source lies under the token's prefix, cut at path segments. Only an admin's token needs none.
fn wrong_source(claims: &Claims, source: &str) -> Option<String> {
    let Some(prefix) = &claims.source else {
        return (claims.role != Role::Admin)
            .then(|| format!("the token names no source, so it cannot speak as {source}"));
    };
    let prefix = prefix.trim_end_matches('/');
    let rest = source.strip_prefix(prefix);
    let covered = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    (!covered).then(|| format!("source {source} is not under {prefix}, which the token is for"))
}

fn of_node(claims: &Claims, data: &EventData) -> Option<String> {
    match data {
        EventData::NodeInventory(inventory) => wrong_node(claims, &inventory.node),
        EventData::TelemetryWindow(window) => wrong_node(claims, &window.node),
        EventData::UnitState(_)
        | EventData::ScrubStarted(_)
        | EventData::ScrubFinished(_)
        | EventData::AllocationPlaced(_) => no_node(claims),
        _ => Some(not_for(claims.role, data)),
    }
}

fn of_allocator(claims: &Claims, data: &EventData) -> Option<String> {
    match data {
        EventData::AllocationSnapshot(snapshot) => match &snapshot.scope {
            Some(scope) => {
                scope.nodes.iter().find_map(|node| wrong_node(claims, node)).or_else(|| no_node(claims))
            }
            None => no_node(claims),
        },
        EventData::AllocationGranted(_)
        | EventData::AllocationPlaced(_)
        | EventData::AllocationState(_)
        | EventData::AllocationTransferred(_)
        | EventData::AllocationReleased(_)
        | EventData::UnitState(_)
        | EventData::ScrubStarted(_)
        | EventData::ScrubFinished(_)
        | EventData::SignalAcknowledged(_) => no_node(claims),
        _ => Some(not_for(claims.role, data)),
    }
}

fn of_gateway(claims: &Claims, data: &EventData) -> Option<String> {
    match data {
        EventData::WorkReported(work) => (!covers(&claims.pools, &work.pool))
            .then(|| format!("pool {} is none of the token's pools", work.pool.as_str())),
        // Reported usage names no pool: that it is a gateway's source must do.
        EventData::UsageReported(_) => None,
        _ => Some(not_for(claims.role, data)),
    }
}

fn of_platform(data: &EventData) -> Option<String> {
    match data {
        EventData::NodeDecommissioned(_)
        | EventData::QuarantineReleased(_)
        | EventData::UsageReported(_)
        | EventData::ChargeRecorded(_)
        | EventData::DisputeResolved(_) => None,
        _ => Some(not_for(Role::Platform, data)),
    }
}

fn wrong_node(claims: &Claims, node: &str) -> Option<String> {
    (!covers(&claims.nodes, node)).then(|| format!("node {node} is none of the token's nodes"))
}

fn no_node(claims: &Claims) -> Option<String> {
    claims.nodes.is_empty().then(|| "the token names no node".to_owned())
}

fn covers(claim: &[String], name: &str) -> bool {
    claim.iter().any(|one| one == name || one == ANY)
}

fn not_for(role: Role, data: &EventData) -> String {
    format!("{} is not for role {role}", data.type_name())
}

#[cfg(test)]
mod tests;
