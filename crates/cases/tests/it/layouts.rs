//! All legal MIG layouts of a GPU with eight memory slices, times all next layouts: whatever scrub was left out between the two is found on exactly the slices it
//! would have covered, and nothing else is.

use gpuledger_domain::fact::{Placement, ReadBack, ScrubEvidence, ScrubResult};
use gpuledger_domain::ids::{AllocationId, GpuId, NodeId, ScrubId, TenantId};
use gpuledger_domain::residue::{History, Hold, Rules, Scrub, Slices};
use gpuledger_domain::time::Instant;
use std::collections::BTreeSet;
use std::io::Write as _;

/// The part whose layouts are tried.
const MODEL: &str = "NVIDIA H100 80GB HBM3";

/// Sets of placements that fit beside each other: by memory slices, and by compute slices in all.
fn layouts() -> Vec<Vec<Placement>> {
    let geometry = gpuledger_wire::geometry::geometry();
    let model = geometry.of(MODEL).expect("a model of the table");
    let places: BTreeSet<(Placement, u8)> = model.placements().collect();
    let places: Vec<(Placement, u8)> = places.into_iter().collect();
    let mut layouts = BTreeSet::new();
    extend(&places, 0, model.compute_slices, &mut Vec::new(), &mut layouts);
    layouts.into_iter().collect()
}

fn extend(
    places: &[(Placement, u8)],
    taken: u32,
    compute: u8,
    layout: &mut Vec<Placement>,
    layouts: &mut BTreeSet<Vec<Placement>>,
) {
    if !layout.is_empty() {
        layouts.insert(layout.clone());
    }
    for (index, (place, needs)) in places.iter().enumerate() {
        let mask = mask(*place);
        if mask & taken == 0 && *needs <= compute {
            layout.push(*place);
            extend(&places[index + 1..], taken | mask, compute - needs, layout, layouts);
            layout.pop();
        }
    }
}

fn mask(place: Placement) -> u32 {
    (place.start..place.start + place.size).fold(0, |mask, slice| mask | 1 << slice)
}

fn at(second: i64) -> Instant {
    Instant::from_micros(second * 1_000_000)
}

fn hold(name: String, tenant: String, place: Placement, start: i64, end: i64) -> Hold {
    Hold {
        start: at(start),
        allocation: AllocationId::new(&name),
        unit: 0,
        gpu: GpuId::new("GPU-1"),
        placement: Some(place),
        shared: false,
        end: at(end),
        open: false,
        owners: vec![(at(start), TenantId::new(&tenant))],
    }
}

fn scrub(name: String, place: Placement) -> Scrub {
    Scrub {
        finished_at: at(12),
        started_at: at(11),
        scrub: ScrubId::new(&name),
        slices: Slices::of(Some(place), 8),
        evidence: ScrubEvidence {
            result: ScrubResult::Passed,
            read_back: ReadBack::Full,
            bytes_read: 1,
            mismatches: 0,
            bytes_total: 1,
            bytes_covered: 1,
            bytes_reserved: 0,
        },
    }
}

/// Every unit of `first` is held by a tenant of its own until second 10, and every unit of `next` by another from second 20; the unit `n` of the first layout is
/// scrubbed where bit `n` of `scrubbed` says so.
fn history(first: &[Placement], next: &[Placement], scrubbed: u64) -> History {
    let before = first.iter().enumerate().map(|(n, p)| hold(format!("a-{n}"), format!("t-{n}"), *p, 0, 10));
    let after = next.iter().enumerate().map(|(n, p)| hold(format!("b-{n}"), format!("u-{n}"), *p, 20, 30));
    let scrubs = first.iter().enumerate().filter(|(n, _)| scrubbed >> n & 1 == 1);
    History {
        gpu: GpuId::new("GPU-1"),
        node: NodeId::new("n1"),
        model: MODEL.to_owned(),
        memory_slices: 8,
        first: at(0),
        known_from: Instant::MIN,
        holds: before.chain(after).collect(),
        scrubs: scrubs.map(|(n, place)| scrub(format!("s-{n}"), *place)).collect(),
        begun: Vec::new(),
        unknowns: Vec::new(),
        lifted: Vec::new(),
    }
}

#[test]
fn each_scrub_left_out_between_any_two_layouts_is_found_and_none_is_invented_r_1_r_2() {
    let layouts = layouts();
    assert!(layouts.len() > 100, "{} layouts", layouts.len());
    let (mut dice, mut missing, mut clean) = (0x9e37_79b9_u64, 0_u64, 0_u64);
    for first in &layouts {
        for next in &layouts {
            // xorshift: which scrubs are there.
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let left_out = first.iter().enumerate().filter(|(n, _)| dice >> n & 1 == 0);
            let dirty = left_out.fold(0, |all, (_, place)| all | mask(*place));
            let history = history(first, next, dice);
            for judged in history.judge(&Rules::default(), at(20)) {
                let place = judged.hold.placement.expect("a placement");
                let wanted: Slices = (0..8).filter(|slice| (dirty & mask(place)) >> slice & 1 == 1).collect();
                assert_eq!(judged.violated(), wanted, "{first:?} then {next:?}, {:?}", history.scrubs);
                missing += u64::from(!wanted.is_empty());
                clean += u64::from(wanted.is_empty());
            }
        }
    }
    let all = layouts.len();
    let told =
        writeln!(std::io::stderr(), "layouts={all} pairs={} missing={missing} clean={clean}", all * all);
    told.expect("standard error");
    assert!(missing > 1_000 && clean > 1_000, "{missing} missing, {clean} clean");
}
