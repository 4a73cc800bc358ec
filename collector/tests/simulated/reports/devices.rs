//! Devices, drivers and access that come and go.

use super::measured;
use crate::node::{Node, scenarios};
use crate::view::label;
use gpuledger_wire::bodies::State;
use std::fs;

#[test]
fn what_a_driver_no_longer_says_expires_and_health_turns_red() {
    let outing = Node::of("stale-driver").until(70).shown().measure();
    let shown = outing.shown.as_ref().unwrap();
    assert!(shown.ready.starts_with("HTTP/1.1 503"), "{}", shown.ready);
    assert_eq!(shown.metric("gpuledger_gpu_readable", &[]), Some(0), "{}", shown.metrics);
    assert_eq!(shown.samples("gpuledger_gpu_memory_bytes").count(), 0, "old figures are not shown");
    let outing = measured(Node::of("stale-driver").shown());
    for second in [35, 55, 75] {
        let row = outing.unit(second, 0, None);
        assert_eq!((row.sm_active_us, row.memory_byte_us, row.energy_mj), (None, None, None));
        assert_eq!(label(&row.quality, "memory_byte_us"), "unavailable(timed_out)");
    }
    assert_eq!(outing.unit(115, 0, None).covered_us.get(), 10_000_000);
    assert!(outing.shown.as_ref().unwrap().ready.starts_with("HTTP/1.1 200"));
    assert_eq!(outing.output.states().count(), 0, "that it does not answer is no fault of the GPU");
}

#[test]
fn a_gpu_that_was_lost_comes_back_and_both_are_said_once() {
    let outing = measured(Node::of("lost-gpu"));
    outing.assert_undisturbed();
    let hardware = Some("hardware".to_owned());
    assert_eq!(outing.states(0), [(30, State::Fault, hardware.clone()), (90, State::Ok, None)]);
    let broken = outing.states(2);
    assert_eq!((broken[0].0, broken[0].1, &broken[0].2), (50, State::Fault, &hardware));
    assert_eq!((broken.last().unwrap().0, broken.last().unwrap().1), (120, State::Ok));
    assert_eq!(broken.len(), 2);
}

#[test]
fn a_lost_gpu_is_in_fault_from_that_instant_and_the_others_are_read_on() {
    let outing = measured(Node::of("lost-gpu"));
    for second in [45, 65, 85] {
        let lost = outing.unit(second, 0, None);
        assert_eq!((lost.covered_us.get(), lost.sm_active_us, lost.memory_byte_us), (0, None, None));
        assert_eq!(label(&lost.quality, "sm_active_us"), "unavailable(lost)");
        assert!(outing.gaps(second).iter().any(|reason| *reason == format!("lost({})", outing.uuid(0))));
        let sound = outing.unit(second, 1, None);
        assert_eq!((sound.covered_us.get(), sound.sm_active_us.unwrap().get()), (10_000_000, 7_000_000));
    }
    assert_eq!(outing.states(1), []);
    assert_eq!(outing.inventory(65, 0).state.as_ref().unwrap().as_str(), "fault");
    assert_eq!(outing.inventory(125, 0).state.as_ref().unwrap().as_str(), "ok");
}

/// Access that stays away for longer than a minute.
fn long_revoked() -> Node {
    let text = fs::read_to_string(scenarios().join("revoked.yaml")).unwrap();
    let longer = text.replace("{at: 1m30s, restore", "{at: 1m55s, restore");
    assert_ne!(longer, text);
    Node::new(&longer)
}

#[test]
fn lost_access_is_an_alarm_and_no_fault_so_that_allocations_go_on() {
    let outing = long_revoked().until(60).shown().measure();
    let shown = outing.shown.as_ref().unwrap();
    assert!(shown.ready.starts_with("HTTP/1.1 503"), "{}", shown.ready);
    assert!(outing.log.contains("its allocations run on"), "{}", outing.log);
    let outing = measured(Node::of("revoked"));
    assert_eq!(outing.output.states().count(), 0);
    assert_eq!(outing.layout(75, 1), [(0, 4)], "its instances are still those that were last seen");
}

#[test]
fn access_that_does_not_come_back_wants_a_new_process_and_the_gap_is_told() {
    let outing = measured(long_revoked());
    assert_eq!(outing.ended[0].code, 3, "{}", outing.log);
    let after_us = outing.ended[0].at_us - 30_000_000;
    assert!((60_000_000..=63_000_000).contains(&after_us), "after a minute: {after_us} us");
    assert_eq!(outing.ended.last().unwrap().code, 0);
    for second in [45, 65, 85] {
        assert!(
            outing.gaps(second).contains(&format!("unknown({})", outing.uuid(0)).as_str()),
            "{:?}",
            outing.gaps(second)
        );
    }
    assert_eq!(outing.unit(135, 0, None).covered_us.get(), 10_000_000, "the new one reads again");
}

#[test]
fn a_driver_that_was_replaced_is_loaded_anew_with_a_gap() {
    let outing = measured(Node::of("driver-upgrade").shown());
    let shown = outing.shown.as_ref().unwrap();
    assert!(shown.metric("gpuledger_collector_driver_reloads_total", &[]).unwrap() >= 1, "{}", shown.metrics);
    assert!(shown.metrics.contains("580.105.08"), "the new driver is named");
    assert!(!outing.gaps(35).is_empty() || !outing.gaps(45).is_empty());
    for row in outing.output.windows().flat_map(|window| &window.units) {
        assert!(
            row.energy_mj.is_none_or(|energy| energy.get() < 15_000_000),
            "a counter that began anew is no jump"
        );
    }
    assert_eq!(outing.unit(75, 0, None).sm_active_us.unwrap().get(), 7_000_000);
    assert_eq!(outing.layout(75, 1), [(0, 4)]);
}

#[test]
fn a_library_that_no_longer_fits_its_driver_wants_a_new_process() {
    let text = fs::read_to_string(scenarios().join("driver-upgrade.yaml")).unwrap();
    let at_once = text.replace("down: 12s", "down: 0s");
    assert_ne!(at_once, text);
    let outing = measured(Node::new(&at_once));
    assert_eq!(outing.ended.iter().map(|end| end.code).collect::<Vec<_>>(), [3, 0], "{}", outing.log);
    assert_eq!(outing.unit(75, 0, None).sm_active_us.unwrap().get(), 7_000_000);
}

#[test]
fn a_stall_of_one_gpu_is_no_stall_of_the_others() {
    // Two calls that hang, one of them for so long that a period of all others would be lost, in the time of the node itself.
    let outing =
        Node::new(STALLED).really(7, "call_deadline_ms = 1600\nsample_period_ms = 400\nwindow_seconds = 1");
    outing.assert_undisturbed();
    let of = |gpu: usize| -> (i64, usize) {
        let rows = outing
            .output
            .windows()
            .flat_map(|window| &window.units)
            .filter(|row| row.gpu.as_str() == outing.uuid(gpu) && row.placement.is_none());
        let covered: Vec<i64> = rows.map(|row| row.covered_us.get()).collect();
        (covered.iter().sum(), covered.len())
    };
    let ((stalled, _), (well, windows)) = (of(0), of(1));
    assert!(windows >= 5, "{windows} windows");
    assert!(well >= 3_000_000, "the other GPU was read most of the time: {well} us");
    assert!(stalled + 1_000_000 <= well, "the first one was not: {stalled} of {well} us");
    let reasons: Vec<&str> =
        outing.output.windows().flat_map(|window| &window.gaps).map(|gap| gap.reason.as_str()).collect();
    assert!(
        reasons.iter().any(|reason| reason.starts_with("timed_out(") && reason.contains(outing.uuid(0))),
        "{reasons:?}"
    );
    // A crowded machine may hold up the whole process; the stall itself must not be laid on the other GPU.
    let blamed = |reason: &&str| reason.starts_with("timed_out(") && reason.contains(outing.uuid(1));
    let gaps: Vec<_> =
        outing.output.windows().map(|window| (window.start, window.end, &window.gaps)).collect();
    assert!(!reasons.iter().any(blamed), "{gaps:?}\n{}", outing.log);
}

/// As `stalled-dense-mig`, in seconds that a test can wait for.
const STALLED: &str = "
name: stalled
gpus:
- {uuid: GPU-2607ade2-f15e-4fc6-91b3-5c69f7584c00, model: h200, mig: on}
- {uuid: GPU-2607ade2-f15e-4fc6-91b3-5c69f7584c01, model: h200}
timeline:
- {at: 0s, create_instance: {gpu: 0, profile: 1g.18gb}}
- {at: 0s, create_instance: {gpu: 0, profile: 1g.18gb}}
- {at: 2s, delay: {call: nvmlDeviceGetMemoryInfo_v2, gpu: 0, times: 1, by: 2500ms}}
";
