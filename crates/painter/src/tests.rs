//! What the painter finds in small situations worked out by hand. One second is the unit of time and of totals.

mod pools;

use crate::{Rules, paint, unplaced};
use gpuledger_domain::fact::*;
use gpuledger_domain::geometry::{Geometry, ModelGeometry, Profile};
use gpuledger_domain::ids::{AllocationId, GpuId, NodeId, ScrubId, SkuId, Source, TenantId};
use gpuledger_domain::measured::Rollup;
use gpuledger_domain::pool::Pools;
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{Instant, SECOND_US};
use std::collections::BTreeMap;

const A30: &str = "NVIDIA A30";
const MINUTE: i64 = 60;

fn at(second: i64) -> Instant {
    Instant::from_micros(second * SECOND_US)
}

fn fact(id: &str, source: &str, second: i64, body: FactBody) -> Fact {
    Fact { source: Source::new(source), id: id.to_owned(), at: at(second), body }
}

fn geometry() -> Geometry {
    let profile = |name: &str, slices, starts: &[u8]| Profile {
        name: name.to_owned(),
        compute_slices: slices,
        memory_slices: slices,
        starts: starts.to_vec(),
    };
    let profiles = vec![profile("1g.6gb", 1, &[0, 1, 2, 3]), profile("2g.12gb", 2, &[0, 2])];
    Geometry {
        models: vec![ModelGeometry {
            models: vec![A30.to_owned()],
            compute_slices: 4,
            memory_slices: 4,
            profiles,
        }],
    }
}

fn rules<'a>(geometry: &'a Geometry, pools: &'a Pools, measured: &'a [Rollup]) -> Rules<'a> {
    Rules { geometry, settings: Settings::default(), pools, measured }
}

fn place(start: u8, size: u8) -> Placement {
    Placement { start, size }
}

/// An A30 on `node`, cut into two halves.
fn inventory(node: &str, second: i64) -> Fact {
    let half = |start| Instance {
        uuid: format!("MIG-{start}"),
        profile: "2g.12gb".to_owned(),
        compute_slices: Some(2),
        placement: Some(place(start, 2)),
    };
    let gpu = InventoryGpu {
        gpu: GpuId::new("GPU-1"),
        model: A30.to_owned(),
        compute_slices: 4,
        memory_slices: 4,
        mig: true,
        instances: vec![half(0), half(2)],
    };
    let body = Inventory { node: NodeId::new(node), boot_id: "b1".to_owned(), gpus: vec![gpu] };
    fact(
        &format!("inventory-{second}"),
        &format!("/nodes/{node}/collector"),
        second,
        FactBody::Inventory(body),
    )
}

fn grant(allocation: &str, second: i64, units: Vec<GrantUnit>, mode: Mode) -> Fact {
    let body = Grant {
        allocation: AllocationId::new(allocation),
        tenant: TenantId::new("acme"),
        project: None,
        units,
        mode,
        class: Class::OnDemand,
        pool: None,
        commitment: None,
        runtime: Runtime::default(),
        labels: BTreeMap::new(),
    };
    fact(allocation, "/allocators/s", second, FactBody::Granted(body))
}

fn unit(mig: Option<Placement>, share: Option<Share>) -> GrantUnit {
    let mig = mig.map(|p| MigUnit { uuid: None, profile: Some("2g.12gb".to_owned()), placement: Some(p) });
    GrantUnit::Placed(PlacedUnit { gpu: GpuId::new("GPU-1"), mig, share })
}

fn state(second: i64, placement: Option<Placement>, state: State) -> Fact {
    let body = UnitState { gpu: GpuId::new("GPU-1"), placement, state };
    fact(&format!("state-{second}"), "/nodes/n1/health", second, FactBody::UnitState(body))
}

fn scrub(id: &str, second: i64, placement: Placement) -> Fact {
    let (scrub, gpu) = (ScrubId::new(id), GpuId::new("GPU-1"));
    fact(id, "/nodes/n1/scrubber", second, FactBody::ScrubStarted { scrub, gpu, placement: Some(placement) })
}

/// Compute and memory slice-seconds of each account as of `second`.
fn seconds(facts: &[Fact], second: i64) -> Vec<(&'static str, i128, i128)> {
    let mut sums: BTreeMap<Account, (i128, i128)> = BTreeMap::new();
    for ((_, _, account, ..), (compute, memory)) in
        paint(facts, &rules(&geometry(), &Pools::new(), &[]), at(second)).totals()
    {
        let sum = sums.entry(account).or_default();
        *sum = (sum.0 + compute, sum.1 + memory);
    }
    let unit = i128::from(SECOND_US);
    sums.into_iter().map(|(account, sum)| (account.as_str(), sum.0 / unit, sum.1 / unit)).collect()
}

#[test]
fn a_broken_unit_takes_its_compute_slices_once() {
    let held = grant("a", 0, vec![unit(Some(place(0, 2)), None)], Mode::Exclusive);
    let facts = [inventory("n1", 0), held, state(0, Some(place(0, 2)), State::Maintenance)];
    assert_eq!(seconds(&facts, 10), [("idle", 20, 20), ("maintenance", 20, 20)]);
}

#[test]
fn two_scrubs_of_one_placement_take_it_once() {
    let facts = [inventory("n1", 0), scrub("s-1", 0, place(2, 2)), scrub("s-2", 0, place(2, 2))];
    assert_eq!(seconds(&facts, 10), [("idle", 20, 20), ("scrub", 20, 20)]);
}

#[test]
fn a_scrub_of_no_instance_takes_memory_slices_only() {
    let facts = [inventory("n1", 0), scrub("s-1", 0, place(3, 1))];
    // The half at 2 is not whole any more; a 1g at 2 is the best that fits, one compute slice is stranded.
    assert_eq!(seconds(&facts, 10), [("idle", 30, 30), ("stranded", 10, 0), ("scrub", 0, 10)]);
}

#[test]
fn a_whole_gpu_and_an_instance_that_has_all_of_it_are_not_the_same_unit() {
    let all = MigUnit { uuid: None, profile: Some("4g.24gb".to_owned()), placement: Some(place(0, 4)) };
    let mig = PlacedUnit { gpu: GpuId::new("GPU-1"), mig: Some(all), share: None };
    let facts = [
        inventory("n1", 0),
        grant("a", 0, vec![unit(None, Some(Share::new(1, 4)))], Mode::Shared),
        grant("b", 0, vec![GrantUnit::Placed(mig)], Mode::Shared),
    ];
    assert_eq!(seconds(&facts, 20), [("tenant", 20, 20), ("idle", 60, 60)]);
}

#[test]
fn a_snapshot_of_another_node_ends_nothing() {
    let snapshot = FactBody::Snapshot { nodes: Some(vec![NodeId::new("n2")]), allocations: Vec::new() };
    let facts = [
        inventory("n1", 0),
        grant("a", 0, vec![unit(None, None)], Mode::Exclusive),
        fact("snapshot", "/allocators/s", 10, snapshot),
        inventory("n2", 20),
    ];
    assert_eq!(seconds(&facts, 30), [("tenant", 120, 120)]);
}

#[test]
fn silence_of_exactly_the_gap_is_observed_and_a_second_more_is_not() {
    let facts = [inventory("n1", 0)];
    assert_eq!(seconds(&facts, 15 * MINUTE), [("idle", 3600, 3600)]);
    assert_eq!(seconds(&facts, 15 * MINUTE + 1), [("unobserved", 3604, 3604)]);
}

#[test]
fn a_hold_ends_at_the_last_proof_once_the_lease_is_over() {
    let facts = [inventory("n1", 0), grant("a", 10, vec![unit(None, None)], Mode::Exclusive)];
    assert_eq!(seconds(&facts, 10 + 60 * MINUTE), [("tenant", 14_400, 14_400), ("idle", 40, 40)]);
    let over = seconds(&facts, 11 + 60 * MINUTE);
    assert_eq!(over, [("idle", 40, 40), ("unobserved", 14_404, 14_404)]);
}

#[test]
fn a_transfer_to_the_owner_itself_cuts_no_share() {
    let sevenths = || GrantUnit::Unplaced { sku: SkuId::new("a30"), count: 1, share: Some(Share::new(1, 7)) };
    let transfer = FactBody::Transferred {
        allocation: AllocationId::new("a"),
        tenant: TenantId::new("acme"),
        project: None,
    };
    let plain = vec![grant("a", 0, vec![sevenths()], Mode::Shared)];
    let mut moved = plain.clone();
    moved.push(Fact { at: Instant::from_micros(1), ..fact("t", "/allocators/s", 0, transfer) });
    let billed = |facts: &[Fact]| unplaced(facts, &rules(&geometry(), &Pools::new(), &[]), at(70));
    assert_eq!(billed(&moved), billed(&plain));
    let owner = (AllocationId::new("a"), TenantId::new("acme"), None);
    assert_eq!(billed(&plain)[&owner].billed_us, 10 * i128::from(SECOND_US));
}
