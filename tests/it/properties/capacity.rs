//! When each GPU has capacity, found once more and apart from both methods.

use gpuledger_domain::fact::{Fact, FactBody, GrantUnit};
use gpuledger_domain::ids::{GpuId, NodeId};
use gpuledger_domain::time::{Instant, Window};
use std::collections::{BTreeMap, BTreeSet};

/// Times with capacity per GPU that an inventory names, in order, with its compute and memory slices.
pub(super) fn windows(facts: &[Fact], as_of: Instant) -> BTreeMap<GpuId, (Vec<Window>, i128, i128)> {
    let acting: Vec<&Fact> = facts.iter().filter(|fact| fact.at <= as_of).collect();
    let mut found = BTreeMap::new();
    for fact in &acting {
        let FactBody::Inventory(inventory) = &fact.body else { continue };
        for gpu in &inventory.gpus {
            let slices = (i128::from(gpu.compute_slices), i128::from(gpu.memory_slices));
            found.entry(gpu.gpu.clone()).or_insert_with(|| {
                let windows = of(&gpu.gpu, &acting, as_of);
                (windows, slices.0, slices.1)
            });
        }
    }
    found
}

fn of(gpu: &GpuId, acting: &[&Fact], as_of: Instant) -> Vec<Window> {
    let begun = acting.iter().filter(|f| names(&f.body, gpu)).map(|f| f.at).min().unwrap_or(as_of);
    let mut sights: Vec<(Instant, &Fact, &NodeId)> = Vec::new();
    for fact in acting {
        if let FactBody::Inventory(inventory) = &fact.body
            && inventory.gpus.iter().any(|listed| listed.gpu == *gpu)
        {
            sights.push((fact.at, fact, &inventory.node));
        }
    }
    sights.sort_by_key(|(at, fact, _)| (*at, &fact.source, &fact.id));
    let node_at = |at: Instant| {
        let last = sights.iter().rev().find(|(seen, ..)| *seen <= at);
        last.or(sights.first()).map(|(_, _, node)| *node)
    };
    let closes: BTreeSet<Instant> = acting
        .iter()
        .filter(|fact| match &fact.body {
            FactBody::GpuDecommissioned(closed) => closed == gpu,
            FactBody::NodeDecommissioned(node) => node_at(fact.at) == Some(node),
            _ => false,
        })
        .map(|fact| fact.at)
        .collect();
    let mut windows = Vec::new();
    let mut open = Some(begun);
    for close in closes.into_iter().filter(|close| *close >= begun) {
        windows.extend(open.and_then(|start| Window::new(start, close)));
        open = sights.iter().map(|(at, ..)| *at).find(|at| *at > close);
    }
    windows.extend(open.and_then(|start| Window::new(start, as_of)));
    windows
}

fn names(body: &FactBody, gpu: &GpuId) -> bool {
    match body {
        FactBody::Inventory(inventory) => inventory.gpus.iter().any(|listed| listed.gpu == *gpu),
        FactBody::UnitState(state) => state.gpu == *gpu,
        FactBody::GpuDecommissioned(named) => named == gpu,
        FactBody::ScrubStarted { gpu: named, .. } | FactBody::ScrubFinished { gpu: named, .. } => {
            named == gpu
        }
        FactBody::Placed(placed) => placed.units.iter().any(|unit| unit.gpu == *gpu),
        FactBody::Granted(grant) => {
            grant.units.iter().any(|unit| matches!(unit, GrantUnit::Placed(placed) if placed.gpu == *gpu))
        }
        _ => false,
    }
}
