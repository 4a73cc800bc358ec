//! Pauses, slow calls, and UTC being set.

use super::world::{S, Script, job};
use super::{Rig, label};

fn script() -> Script {
    Script { gpm: Ok(true), jobs: vec![job(7, 0, 10_000, 500_000)], ..Script::default() }
}

fn reasons(rig: &Rig, second: u64) -> Vec<String> {
    rig.part(second).gaps.iter().map(|gap| gap.reason.to_string()).collect()
}

#[test]
fn a_pause_of_more_than_three_periods_is_a_gap() {
    let mut rig = Rig::new(script());
    rig.run(0, 12);
    rig.run(18, 40);
    let device = rig.device(10);
    assert_eq!(device.sm_active_us.unwrap().get(), 2_000_000, "[10, 12) and [18, 20)");
    assert_eq!(device.memory_byte_us.unwrap().get(), 1_000 * 6_000_000, "held to 14");
    assert_eq!(reasons(&rig, 10), ["paused(GPU-1)"]);
}

#[test]
fn a_pause_of_three_periods_is_none() {
    let mut rig = Rig::new(script());
    rig.run(0, 12);
    rig.run(15, 40);
    assert_eq!(rig.device(10).sm_active_us.unwrap().get(), 5_000_000);
    assert_eq!(rig.part(10).gaps, []);
}

#[test]
fn a_call_that_takes_long_is_named_as_the_cause() {
    let mut rig = Rig::new(script());
    rig.run(0, 11);
    rig.world.edit(|script| {
        script.delays.insert("processes", 5 * S);
    });
    rig.at(12 * S);
    rig.run(18, 40);
    assert_eq!(reasons(&rig, 10), ["timed_out(GPU-1)"]);
}

#[test]
fn utc_set_forward_is_a_gap_and_no_time() {
    let mut rig = Rig::new(script());
    rig.run(0, 14);
    rig.world.step_utc(120_000_000);
    rig.run(15, 44);
    rig.flush();
    let gap = &rig.part(130).gaps[0];
    assert_eq!(gap.reason.as_str(), "clock_jump(GPU-1)");
    assert_eq!(gap.end.get().since(gap.start.get()), 120_000_000);
    // The interval in which it happened is nobody's.
    assert_eq!(rig.sum().units[&None].sm_us, 500_000 * (14 + 29));
}

#[test]
fn utc_set_back_tells_no_instant_twice() {
    let mut rig = Rig::new(script());
    rig.run(0, 24);
    rig.world.step_utc(-12_000_000);
    rig.run(25, 60);
    rig.flush();
    let starts: Vec<i64> = rig.parts.iter().map(|part| part.window.start().as_micros()).collect();
    assert!(starts.is_sorted_by(|a, b| a < b), "{starts:?}");
    // Up to second 30 by the old clock is told, which the new one reaches at 42.
    assert_eq!(rig.device(30).covered_us.get(), 10_000_000);
}

#[test]
fn samples_of_the_driver_follow_utc_when_it_is_set() {
    let mut rig = Rig::new(Script { gpm: Ok(false), ..script() });
    rig.run(0, 24);
    rig.world.step_utc(60_000_000);
    rig.run(25, 60);
    let device = rig.device(100);
    assert_eq!((device.sm_active_us.unwrap().get(), device.covered_us.get()), (5_000_000, 10_000_000));
    assert_eq!(label(&rig.process(100, 7).quality, "sm_active_us"), "driver_sampled");
}

#[test]
fn a_delayed_call_invents_nothing() {
    let mut rig =
        Rig::new(Script { jobs: vec![job(7, 0, 16, 1_000_000)], gpm: Ok(true), ..Script::default() });
    rig.run(0, 12);
    for (second, call) in [(13, "processes"), (16, "gpm_mean"), (19, "memory"), (22, "mig_mode")] {
        rig.world.edit(|script| {
            script.delays.insert(call, 2_300_000);
        });
        rig.at(second * S);
    }
    rig.run(25, 50);
    rig.flush();
    let sum = rig.sum();
    assert!(sum.units[&None].sm_us <= 16_000_000, "{sum:?}");
    assert!(sum.units[&None].byte_us <= 1_000 * 17_000_000, "{sum:?}");
}
