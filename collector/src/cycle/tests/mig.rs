//! MIG: instances, generations, torn cycles.

use super::world::{S, Script, job, slot};
use super::{Rig, label};
use crate::integrate::Discard;
use crate::window::UnitKey;
use gpuledger_nvml::{Absent, MigMode};

const ON: MigMode = MigMode::On { turns_off: false };

fn script() -> Script {
    let mut one = job(7, 0, 1_000, 500_000);
    one.instance = Some((1, 0));
    Script {
        mig: ON,
        gpm: Ok(true),
        slots: vec![slot(1, 0, 0, 0, 1_000)],
        jobs: vec![one],
        ..Script::default()
    }
}

fn at(rig: &Rig, second: u64, start: u8) -> &gpuledger_wire::bodies::UnitReading {
    let is =
        |unit: &&gpuledger_wire::bodies::UnitReading| unit.placement.is_some_and(|p| p.start.get() == start);
    rig.part(second).units.iter().find(is).unwrap()
}

#[test]
fn an_instance_has_its_own_mean_and_its_sole_process_has_all_of_it() {
    let mut rig = Rig::new(script());
    rig.run(0, 24);
    let unit = at(&rig, 10, 0);
    assert_eq!((unit.sm_active_us.unwrap().get(), unit.covered_us.get()), (5_000_000, 10_000_000));
    assert_eq!(unit.energy_mj, None, "energy is of the device, once");
    assert_eq!(label(&unit.quality, "energy_mj"), "");
    let process = rig.process(10, 7);
    assert_eq!(process.sm_active_us.unwrap().get(), 5_000_000);
    assert_eq!(process.placement.unwrap().size.get(), 4);
    assert_eq!(label(&process.quality, "sm_active_us"), "derived_share(sole_process)");
}

#[test]
fn two_processes_in_one_instance_cannot_be_told_apart() {
    let mut other = job(8, 0, 1_000, 100_000);
    other.instance = Some((1, 0));
    let mut rig = Rig::new(script());
    rig.world.edit(|script| script.jobs.push(other));
    rig.run(0, 24);
    for pid in [7, 8] {
        let process = rig.process(10, pid);
        assert_eq!(process.sm_active_us, None);
        assert_eq!(label(&process.quality, "sm_active_us"), "unavailable(not_supported)");
        assert_eq!(process.memory_byte_us.unwrap().get(), 1_000 * 10_000_000);
    }
    assert_eq!(at(&rig, 10, 0).sm_active_us.unwrap().get(), 6_000_000);
}

#[test]
fn before_hopper_an_instance_is_allocated_and_not_measured() {
    let mut rig = Rig::new(Script { gpm: Ok(false), ..script() });
    rig.run(0, 24);
    let unit = at(&rig, 10, 0);
    assert_eq!((unit.sm_active_us, unit.covered_us.get()), (None, 10_000_000));
    assert_eq!(label(&unit.quality, "sm_active_us"), "allocation_only");
    assert_eq!(label(&rig.process(10, 7).quality, "sm_active_us"), "unavailable(not_supported)");
    assert_eq!(label(&rig.device(10).quality, "sm_active_us"), "unavailable(not_supported)");
}

#[test]
fn compute_instances_of_one_gpu_instance_share_its_row() {
    let mut rig = Rig::new(script());
    let mut other = job(8, 0, 1_000, 250_000);
    other.instance = Some((1, 1));
    rig.world.edit(|script| {
        script.slots.push(slot(1, 1, 0, 0, 1_000));
        script.jobs.push(other);
    });
    let report = rig.run(0, 24);
    assert_eq!(report.inventory.unwrap().instances.len(), 2);
    assert_eq!(rig.part(10).units.len(), 2, "the GPU and one GPU instance");
    assert_eq!(at(&rig, 10, 0).memory_byte_us.unwrap().get(), 2_000 * 10_000_000);
}

#[test]
fn one_process_in_two_compute_instances_is_one_process_there() {
    let mut rig = Rig::new(script());
    let mut again = job(7, 0, 1_000, 0);
    again.instance = Some((1, 1));
    rig.world.edit(|script| {
        script.slots.push(slot(1, 1, 0, 0, 1_000));
        script.jobs.push(again);
    });
    let report = rig.run(0, 24);
    assert_eq!(report.view.unwrap().processes.unwrap().len(), 2, "a row for each compute instance");
    assert_eq!(rig.part(10).processes.len(), 1);
    assert_eq!(rig.process(10, 7).memory_byte_us.unwrap().get(), 2_000 * 10_000_000);
}

#[test]
fn an_instance_made_anew_under_the_same_ids_is_seeded_anew() {
    let mut rig = Rig::new(script());
    rig.world.edit(|script| script.slots = vec![slot(1, 0, 0, 0, 15), slot(1, 0, 0, 17, 1_000)]);
    let report = rig.run(0, 40);
    let generations: Vec<u64> = report.view.unwrap().instances.iter().map(|i| i.generation).collect();
    assert_eq!(generations, [2]);
    let rows: Vec<i64> =
        rig.part(10).units.iter().filter(|u| u.placement.is_some()).map(|u| u.covered_us.get()).collect();
    assert_eq!(rows, [4_000_000, 3_000_000], "[10, 14) of the first, [17, 20) of the second");
}

#[test]
fn a_mig_event_makes_a_new_generation_though_nothing_looks_different() {
    let mut rig = Rig::new(script());
    rig.run(0, 14);
    rig.sampler.mig_changed(Some(1));
    let report = rig.run(15, 30);
    assert_eq!(report.view.unwrap().instances[0].generation, 2);
    rig.flush();
    let covered: i64 =
        rig.part(10).units.iter().filter(|u| u.placement.is_some()).map(|u| u.covered_us.get()).sum();
    assert_eq!(covered, 9_000_000, "one interval is nobody's");
}

#[test]
fn a_call_that_does_not_find_an_instance_makes_a_new_generation() {
    let mut rig = Rig::new(script());
    rig.run(0, 14);
    rig.world.edit(|script| {
        script.errors.insert("gpm_mean", Absent::NotFound);
    });
    rig.at(15 * S);
    rig.world.edit(|script| script.errors.clear());
    let report = rig.run(16, 17);
    assert_eq!(report.view.unwrap().instances[0].generation, 2);
}

#[test]
fn a_layout_that_changes_within_a_cycle_tears_it() {
    let mut rig = Rig::new(script());
    rig.world.edit(|script| {
        script.slots.push(slot(2, 0, 4, 0, 15));
        let mut other = job(8, 0, 15, 0);
        other.instance = Some((2, 0));
        script.jobs.push(other);
    });
    rig.run(0, 13);
    rig.world.edit(|script| script.torn_to = Some(15 * S));
    let report = rig.at(14 * S);
    assert!(report.torn);
    assert_eq!(report.discarded, [Discard::Torn, Discard::Torn]);
    assert_eq!(report.view.as_ref().unwrap().processes, None);
    let means: Vec<UnitKey> = report.view.unwrap().sm_active.into_keys().collect();
    let stays = UnitKey::Instance { id: 1, generation: 1 };
    assert_eq!(means, [UnitKey::Device, stays], "the instance that held still is measured");
    rig.world.edit(|script| script.torn_to = None);
    let report = rig.run(15, 40);
    assert!(!report.torn);
    assert!(rig.part(10).gaps.iter().any(|gap| gap.reason.as_str() == "torn(GPU-1)"));
    assert_eq!(at(&rig, 10, 0).sm_active_us.unwrap().get(), 5_000_000);
}

#[test]
fn an_instance_whose_place_cannot_be_read_is_left_out_and_said() {
    let mut rig = Rig::new(script());
    rig.world.edit(|script| script.slots[0].device.placement = Err(Absent::NoPermission));
    let report = rig.run(0, 24);
    assert_eq!(report.inventory.unwrap().instances[0].placement, None);
    let part = rig.part(10);
    assert_eq!((part.units.len(), part.processes.len()), (1, 0));
    assert_eq!(label(&part.units[0].quality, "instances"), "unavailable(no_permission)");
}

#[test]
fn a_row_of_an_instance_that_is_not_there_is_nobodys() {
    let mut rig = Rig::new(script());
    rig.world.edit(|script| script.jobs[0].instance = Some((9, 0)));
    assert_eq!(rig.at(0).discarded, [Discard::NoInstance]);
}

#[test]
fn a_parent_that_may_not_be_read_does_not_hide_its_instances() {
    let mut rig = Rig::new(script());
    rig.run(0, 2);
    rig.world.edit(|script| {
        script.errors.insert("instances", Absent::NoPermission);
    });
    let report = rig.run(3, 24);
    assert_eq!(report.view.unwrap().processes, None);
    assert_eq!(rig.device(10).energy_mj.unwrap().get(), 10_000, "the device itself goes on");
}

#[test]
fn the_inventory_follows_the_layout() {
    let mut rig = Rig::new(script());
    let changes: Vec<bool> = (0..4).map(|second| rig.at(second * S).inventory_changed).collect();
    assert_eq!(changes, [true, false, false, false]);
    rig.world.edit(|script| script.slots.push(slot(2, 0, 4, 4, 1_000)));
    let report = rig.at(4 * S);
    assert!(report.inventory_changed);
    let gpu = report.inventory.unwrap();
    assert_eq!((gpu.compute_slices.get(), gpu.memory_slices.get(), gpu.mig), (7, 8, true));
    assert_eq!(gpu.instances.len(), 2);
    assert_eq!(gpu.memory_bytes.unwrap().get(), 80_000);
}
