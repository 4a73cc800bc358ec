use super::*;
use crate::cycle::SamplerSettings;
use crate::cycle::tests::world::{Script, World, slot};
use gpuledger_nvml::MigMode;
use gpuledger_wire::geometry::geometry;

const SHORT: Duration = Duration::from_millis(50);

/// From now on the first call of each cycle fails.
fn fails(world: &World, why: Absent) {
    world.edit(|script| {
        script.errors.insert("mig_mode", why);
    });
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// The lane of a GPU with one MIG instance.
fn lane() -> (World, DeviceLane) {
    let mig = MigMode::On { turns_off: false };
    let world = World::new(Script::default());
    world.edit(|script| (script.mig, script.slots) = (mig, vec![slot(1, 0, 0, 0, 1_000)]));
    let sampler = Sampler::new(SamplerSettings::default(), Arc::new(geometry()));
    let (processes, clock) = (Arc::new(world.clone()), Arc::new(world.clone()));
    let lane = DeviceLane::start(0, Box::new(world.gpu()), sampler, processes, clock).unwrap();
    (world, lane)
}

/// The report of the cycle under way. A late one is not waited for, so it is asked for again and again.
fn heard(lane: &mut DeviceLane) -> CycleReport {
    let until = soon();
    while Instant::now() < until {
        if let Looked::Cycle(report) = lane.answer(until, SHORT) {
            return *report;
        }
        std::thread::yield_now();
    }
    panic!("the lane does not come back")
}

fn generation(report: &CycleReport) -> u64 {
    report.view.as_ref().unwrap().instances[0].generation
}

#[test]
fn a_cycle_that_hangs_is_late_once_and_what_changed_meanwhile_comes_with_the_next_order() {
    let (world, mut lane) = lane();
    lane.order_cycle();
    assert_eq!(generation(&heard(&mut lane)), 1);
    let hang = world.hang();
    lane.order_cycle();
    assert!(matches!(lane.answer(Instant::now() + SHORT, SHORT), Looked::Late));
    let before = Instant::now();
    assert!(matches!(lane.answer(soon(), SHORT), Looked::Nothing));
    assert!(before.elapsed() < Duration::from_secs(5), "it is not waited for again");
    for _ in 0..1_000 {
        lane.mig_changed(Some(1));
        lane.order_cycle();
    }
    assert_eq!(lane.changed.len(), 1);
    drop(hang);
    assert_eq!(generation(&heard(&mut lane)), 1, "the order was older than the change");
    lane.order_cycle();
    assert_eq!(generation(&heard(&mut lane)), 2);
}

#[test]
fn a_lane_that_is_slow_and_within_its_deadline_is_not_late() {
    let (world, mut lane) = lane();
    let hang = world.hang();
    lane.order_cycle();
    assert!(matches!(lane.answer(Instant::now() + SHORT, Duration::from_secs(60)), Looked::Nothing));
    drop(hang);
    heard(&mut lane);
}

#[test]
fn a_cycle_by_an_old_handle_is_no_trouble_of_the_new_one() {
    let (world, mut lane) = lane();
    fails(&world, Absent::Uninitialized);
    let hang = world.hang();
    lane.order_cycle();
    lane.suspend();
    lane.replace(Box::new(world.gpu()));
    drop(hang);
    assert_eq!(heard(&mut lane).trouble, Some(Absent::Uninitialized));
    assert_eq!(lane.trouble(), None);
    lane.order_cycle();
    heard(&mut lane);
    assert_eq!(lane.trouble(), Some(Absent::Uninitialized), "now it is");
    assert!(lane.wants_handle());
}

#[test]
fn a_good_cycle_ends_a_trouble() {
    let (world, mut lane) = lane();
    fails(&world, Absent::Unknown);
    lane.order_cycle();
    heard(&mut lane);
    assert!(lane.wants_handle());
    world.edit(|script| script.errors.clear());
    lane.order_cycle();
    heard(&mut lane);
    assert!(!lane.wants_handle(), "the handle is good: a new one would begin every source anew");
}

#[test]
fn windows_are_closed_once_the_last_cycle_was_heard() {
    let (world, mut lane) = lane();
    let hang = world.hang();
    lane.order_cycle();
    assert!(lane.flush(soon()).is_none(), "it is looking");
    drop(hang);
    heard(&mut lane);
    assert_eq!(lane.flush(soon()).unwrap().len(), 1);
}
