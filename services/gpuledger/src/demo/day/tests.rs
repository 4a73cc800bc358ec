use super::allocator::{Hold, Plan, Unit, place};
use super::fleet::{Gpu, NODES, Use};
use super::requests::{REQUESTS, Release};
use super::scenario::scenario;
use super::work::processes;
use super::*;
use gpuledger_domain::share::Share;
use gpuledger_wire::{Event, decode_structured, encode_structured};
use std::collections::BTreeSet;

fn plan() -> Plan {
    place(&REQUESTS).unwrap()
}

fn hold<'p>(plan: &'p Plan, id: &str) -> &'p Hold {
    plan.holds.iter().find(|hold| hold.request.id == id).unwrap()
}

fn text(hold: &Hold) -> String {
    hold.window.to_string()
}

#[test]
fn the_day_is_the_last_of_october() {
    assert_eq!(window().to_string(), "[2026-10-31T00:00:00Z, 2026-11-01T00:00:00Z)");
    assert_eq!(OVER.to_string(), "2026-11-01T01:05:00Z");
    assert!(REQUESTS.is_sorted_by_key(|request| request.at), "requests come in order of time");
    let ids: BTreeSet<&str> = REQUESTS.iter().map(|request| request.id).collect();
    assert_eq!(ids.len(), REQUESTS.len());
}

/// Two units that may not be held at once.
fn clash(one: Unit, other: Unit) -> bool {
    one.gpu == other.gpu
        && match (one.part, other.part) {
            (Some(one), Some(other)) => one.overlaps(other),
            _ => one.share.is_none() || other.share.is_none(),
        }
}

#[test]
fn nothing_is_given_twice() {
    let plan = plan();
    assert_eq!(plan.holds.len(), REQUESTS.len());
    for (index, one) in plan.holds.iter().enumerate() {
        for other in &plan.holds[index + 1..] {
            if one.window.intersect(other.window).is_some() {
                let meet = one.units.iter().any(|a| other.units.iter().any(|b| clash(*a, *b)));
                assert!(!meet, "{} and {}", one.request.id, other.request.id);
            }
        }
        let shares = |at: Instant, gpu: Gpu| -> Share {
            let live = plan.holds.iter().filter(|hold| hold.window.contains(at));
            live.flat_map(|hold| &hold.units)
                .filter(|unit| unit.gpu == gpu)
                .filter_map(|unit| unit.share)
                .sum()
        };
        for unit in &one.units {
            assert!(shares(one.window.start(), unit.gpu) <= Share::from_integer(1), "{}", one.request.id);
        }
    }
}

#[test]
fn nothing_is_given_where_it_is_not() {
    let plan = plan();
    let (drained, maintenance) = maintenance();
    for hold in &plan.holds {
        for unit in &hold.units {
            let is_drained = unit.gpu == drained && hold.window.intersect(maintenance).is_some();
            assert!(!is_drained, "{} is on a GPU that the operator has", hold.request.id);
            let Some(part) = unit.part else { continue };
            // The parts of the GPU as they stand when the hold begins.
            let (_, used) = Gpu::all().find(|(gpu, _)| *gpu == unit.gpu).unwrap();
            let Use::Cut(parts) = used else { panic!("{} is not cut", unit.gpu) };
            let mut there: BTreeSet<_> = parts.iter().copied().collect();
            for cut in plan.cuts.iter().filter(|cut| cut.gpu == unit.gpu && cut.at < hold.window.start()) {
                for removed in &cut.removed {
                    assert!(there.remove(removed), "{cut:?}");
                }
                there.insert(cut.made);
            }
            assert!(there.contains(&part), "{} is not on an instance", hold.request.id);
        }
    }
    for cut in &plan.cuts {
        for hold in plan.holds.iter().filter(|hold| hold.window.contains(cut.at)) {
            let is_cut = hold
                .units
                .iter()
                .any(|unit| unit.gpu == cut.gpu && unit.part.is_some_and(|part| cut.removed.contains(&part)));
            assert!(!is_cut, "{} was held when it was cut away", hold.request.id);
        }
    }
}

#[test]
fn the_day_has_its_stories() {
    let plan = plan();
    let sweep = hold(&plan, "acme-sweep");
    assert!(sweep.is_preempted, "spot is taken back");
    assert_eq!(text(sweep), "[2026-10-31T12:30:00Z, 2026-10-31T15:00:00Z)");
    assert_eq!(plan.holds.iter().filter(|hold| hold.is_preempted).count(), 1);
    assert_eq!(plan.cuts.len(), 1, "one GPU is cut anew: {:?}", plan.cuts);
    let lab = hold(&plan, "cora-lab");
    assert_eq!(text(lab), "[2026-10-31T16:01:00Z, 2026-10-31T20:01:00Z)", "cutting takes a minute");
    let (gpu, lost) = lost();
    let train = hold(&plan, "acme-train");
    assert!(train.units.iter().any(|unit| unit.gpu == gpu) && train.window.intersect(lost) == Some(lost));
    let late: Vec<&Hold> = plan.holds.iter().filter(|hold| hold.request.release == Release::Late).collect();
    assert_eq!(late.len(), 1);
    let taken_over = plan.holds.iter().any(|hold| {
        hold.window.start() >= late[0].window.end()
            && hold.units.iter().any(|unit| late[0].units.iter().any(|other| clash(*unit, *other)))
    });
    assert!(!taken_over, "nobody gets what still seems to be held");
}

#[test]
fn the_events_are_the_same_every_time_and_read_back_without_unknown_members() {
    let lines = |events: Vec<Event>| events.iter().map(encode_structured).collect::<Vec<_>>();
    let day = lines(events::on_time(&plan()).unwrap());
    assert_eq!(day, lines(events::on_time(&plan()).unwrap()));
    let late = lines(events::late(&plan()).unwrap());
    // Grants, releases but for the late one, and two states.
    assert_eq!((day.len(), late.len()), (19 + 18 + 2, 1));
    let mut last = Instant::MIN;
    for line in &day {
        let event = decode_structured(line).unwrap();
        assert_eq!(event.unknown_members(), Vec::<String>::new());
        assert!(event.time >= last, "in order of time");
        last = event.time;
    }
}

#[test]
fn processes_run_within_their_holds_and_never_on_a_lost_gpu() {
    let plan = plan();
    let (gpu, lost) = lost();
    let mut numbers = BTreeSet::new();
    for node in &NODES {
        for process in processes(&plan, node.name) {
            assert!(numbers.insert((node.name, process.pid)));
            let owner = plan.holds.iter().find(|hold| {
                work::Owner::of(hold) == process.owner
                    && hold.window.intersect(process.window) == Some(process.window)
            });
            assert!(owner.is_some_and(|hold| hold.units.contains(&process.unit)), "{process:?}");
            assert!(process.unit.gpu != gpu || process.window.intersect(lost).is_none(), "{process:?}");
            assert!(process.busy.is_sorted_by_key(|(at, _)| *at), "{process:?}");
            assert_eq!(process.busy[0].0, process.window.start());
        }
    }
    // Every hold but the two that are never used has one process a unit; the lost GPU's is started again.
    let units: usize = plan.holds.iter().map(|hold| hold.units.len()).sum();
    assert_eq!(numbers.len(), units - 2 + 1);
}

#[test]
fn the_scenarios_have_a_line_for_each_gpu_and_each_thing_that_happens() {
    let (lost_on, other) = (scenario(&plan(), &NODES[0]), scenario(&plan(), &NODES[1]));
    for line in [
        "start: 2026-10-31T00:00:00Z",
        r#"  - {"accounting":true,"mig":"off","model":"h100-80","uuid":"GPU-b1000000-0000-4000-8000-000000000000"}"#,
        r#"  - {at: 32400s, "xid":{"gpu":1,"number":79}}"#,
        r#"  - {at: 32400s, "lose":{"gpu":1}}"#,
        r#"  - {at: 33600s, "recover":{"gpu":1}}"#,
    ] {
        assert!(lost_on.lines().any(|one| one == line), "{line}\n{lost_on}");
    }
    let cut = r#"  - {at: 57600s, "destroy_instance":{"gi":1,"gpu":5}}"#;
    assert!(other.lines().any(|one| one == cut), "{other}");
    let at = |line: &str| line.split_once("{at: ")?.1.split_once('s')?.0.parse::<u32>().ok();
    for text in [lost_on, other] {
        assert!(text.lines().filter_map(at).is_sorted());
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert!(count("\"start\"") > 10 && count("\"start\":{") == count("\"stop\":{"));
    }
}
