//! What a GPU consists of.

use super::measured;
use crate::node::Node;
use crate::view::label;
use gpuledger_wire::bodies::TelemetryWindow;

#[test]
fn a_new_cut_is_followed_without_a_restart_and_the_inventory_shows_the_live_layout_only() {
    let outing = measured(Node::of("mig-resliced"));
    outing.assert_undisturbed();
    assert_eq!(outing.layout(15, 0), [(0, 1), (1, 1), (4, 4)]);
    assert_eq!(outing.layout(22, 0), [(0, 2), (4, 4)]);
    assert!(!outing.inventory(35, 1).mig, "the change waits for a reset");
    assert_eq!(outing.layout(35, 1), []);
    assert_eq!(outing.layout(43, 1), [(0, 8)]);
    assert_eq!(outing.layout(65, 1), []);
    assert!(!outing.inventory(65, 1).mig);
    assert!(outing.unit(35, 0, Some((0, 2))).memory_byte_us.is_some(), "the new one is read");
    let neighbour = outing.unit(25, 0, Some((4, 4)));
    assert_eq!(neighbour.covered_us.get(), 10_000_000, "a neighbour has no gap");
}

#[test]
fn instances_that_cannot_be_read_are_unavailable_and_their_coverage_is_short() {
    let outing = measured(Node::of("sixteen-instances"));
    let instances =
        |window: &TelemetryWindow| window.units.iter().filter(|row| row.placement.is_some()).count();
    for second in [5, 35, 75] {
        assert_eq!(instances(outing.window(second)), 16, "all of them have a row at second {second}");
    }
    let blind = |window: &TelemetryWindow| {
        let rows = window.units.iter().filter(|row| row.placement.is_some());
        rows.filter(|row| row.covered_us.get() < 10_000_000).count()
    };
    assert_eq!(blind(outing.window(5)), 0);
    assert_eq!(blind(outing.window(35)), 3);
    assert_eq!(blind(outing.window(75)), 0);
    for row in outing.window(35).units.iter().filter(|row| row.covered_us.get() < 10_000_000) {
        assert_eq!((row.sm_active_us, row.memory_byte_us), (None, None), "not zero");
        assert_eq!(label(&row.quality, "sm_active_us"), "unavailable(unknown)");
        assert_eq!(label(&row.quality, "memory_byte_us"), "unavailable(unknown)");
    }
}

#[test]
fn holes_in_the_list_of_instances_hide_none_behind_them() {
    let outing = measured(Node::of("sparse-mig"));
    assert_eq!(outing.layout(15, 0), [(1, 1), (2, 1), (4, 2)]);
    assert_eq!(outing.layout(35, 0), [(1, 1), (4, 2)]);
    assert!(outing.unit(45, 0, Some((4, 2))).memory_byte_us.is_some());
}

#[test]
fn an_instance_made_for_a_pod_is_found_by_gpu_profile_and_placement() {
    let outing = measured(Node::of("dynamic-mig"));
    let gpu = outing.uuid(0);
    assert_eq!(
        outing.placed(),
        [
            format!("5d1e759f-271c-41df-81a3-5fb7034487d8 {gpu} 1g.10gb 3:1"),
            format!("2ab6ed03-e91f-42e6-814e-817176816292 {gpu} 3g.40gb 4:4"),
            format!("b78f41f1-286e-4c5f-8cb0-c931934ebe2f {gpu} 1g.10gb 3:1"),
        ]
    );
}

#[test]
fn the_value_of_an_instance_is_relative_to_the_instance() {
    let outing = measured(Node::of("mig-mixed"));
    let large = outing.unit(25, 1, Some((4, 4)));
    let device = outing.unit(25, 1, None);
    let (instance, whole) = (large.sm_active_us.unwrap().get(), device.sm_active_us.unwrap().get());
    assert!(whole < instance, "60 of 132 multiprocessors: {instance} of the instance, {whole} of the GPU");
    // Two compute instances in it: nothing tells their processes apart.
    assert_eq!(outing.process(25, 5003).sm_active_us, None);
    assert_eq!(label(&outing.process(25, 5003).quality, "sm_active_us"), "unavailable(not_supported)");
    let single = outing.process(25, 5005);
    assert_eq!(label(&single.quality, "sm_active_us"), "derived_share(sole_process)");
    assert_eq!(single.sm_active_us.unwrap().get(), 4_500_000);
}

#[test]
fn an_instance_that_nobody_seems_to_hold_is_there_with_its_memory() {
    let outing = measured(Node::of("hidden-holder"));
    assert_eq!(outing.layout(75, 0), [(0, 2)]);
    let held = outing.unit(65, 0, Some((0, 2)));
    assert_eq!(held.memory_bytes_max.unwrap().get(), 300 << 20);
    assert_eq!(outing.window(65).processes.len(), 0);
    assert_eq!(outing.layout(90, 0), []);
}

#[test]
fn mig_unsupported_off_on_and_pending_are_four_states() {
    let outing = measured(Node::of("mig-three-states"));
    let shown = |gpu: usize| {
        let entry = outing.inventory(30, gpu);
        (entry.compute_slices.get(), entry.mig, entry.instances.len())
    };
    assert_eq!(
        [shown(0), shown(1), shown(2), shown(3)],
        [(1, false, 0), (7, false, 0), (7, true, 1), (7, false, 0)]
    );
    for (pid, busy_us) in [(3201, 2_000_000), (3202, 4_000_000), (3204, 8_000_000)] {
        let row = outing.process(35, pid);
        assert_eq!(
            label(&row.quality, "sm_active_us"),
            "driver_sampled",
            "with MIG off processes are told apart"
        );
        assert_eq!(row.sm_active_us.unwrap().get(), busy_us);
    }
    assert_eq!(outing.process(35, 3203).sm_active_us, None);
}

#[test]
fn what_cannot_be_measured_of_an_instance_is_not_zero() {
    let outing = measured(Node::of("capture-a100-80-mig"));
    let busy = outing.unit(35, 0, Some((2, 2)));
    assert_eq!(busy.sm_active_us, None);
    assert_eq!(label(&busy.quality, "sm_active_us"), "allocation_only");
    assert_eq!(busy.memory_bytes_max.unwrap().get(), 12 << 30);
    assert_eq!(outing.unit(35, 0, None).sm_active_us, None);
}

#[test]
fn an_instance_made_again_under_its_ids_inherits_nothing() {
    let outing = measured(Node::of("gi-recreated"));
    let again = outing.unit_rows(45, 0, Some((0, 4)));
    assert_eq!(again.len(), 2, "two lives in one window");
    let covered: i64 = again.iter().map(|row| row.covered_us.get()).sum();
    assert!(covered <= 9_700_000, "three tenths of a second without it: {covered}");
    // The first life was at 80 %, the second is at 20 % from its third tenth on.
    assert!(again[1].sm_active_us.unwrap().get() * 10 <= again[1].covered_us.get() * 2);
    let other = outing.unit(45, 0, Some((4, 4)));
    assert_eq!(other.covered_us.get(), 10_000_000);
}

#[test]
fn without_privilege_the_gpu_does_not_tell_and_the_handles_of_its_instances_do() {
    let outing = measured(Node::of("unprivileged"));
    let device = outing.unit(35, 0, None);
    assert_eq!(label(&device.quality, "memory_byte_us"), "unavailable(no_permission)");
    assert_eq!(device.memory_byte_us, None);
    assert_eq!(outing.inventory(35, 0).instances.len(), 2, "their UUIDs and profiles are known");
    // Of two instances there is one way only in which they can lie: so their places are known too.
    let instance = outing.unit(35, 0, Some((4, 4)));
    assert_eq!(instance.memory_byte_us.unwrap().get(), (5 << 30) * 10_000_000);
    assert_eq!(outing.process(35, 3801).covered_us.get(), 10_000_000);
    assert_eq!(outing.unit(35, 1, None).covered_us.get(), 10_000_000, "a whole GPU needs none");
}
