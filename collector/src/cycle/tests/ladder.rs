//! The ladder: probed once, kept, probed anew when an error changes.

use super::world::{S, Script, job};
use super::{Rig, label};
use crate::ladder::{Ladder, Rung, Want};
use gpuledger_nvml::{Absent, MigMode};

fn script() -> Script {
    Script { gpm: Ok(true), jobs: vec![job(7, 0, 1_000, 500_000)], ..Script::default() }
}

fn letters(ladder: &Ladder) -> String {
    [Want::DeviceSm, Want::InstanceSm, Want::ProcessSm]
        .iter()
        .filter_map(|want| ladder.rung(*want).letter())
        .collect()
}

#[test]
fn each_kind_of_device_stands_where_it_should() {
    let failing = |calls: &[&'static str]| calls.iter().map(|call| (*call, Absent::NotSupported)).collect();
    let on = MigMode::On { turns_off: false };
    for (script, expected) in [
        (script(), "A0C"),
        (Script { is_accounting: Ok(true), ..script() }, "A0B"),
        (Script { gpm: Ok(false), ..script() }, "D0C"),
        (Script { gpm: Ok(false), errors: failing(&["utilization_samples"]), ..script() }, "E0C"),
        (Script { errors: failing(&["process_utilization"]), ..script() }, "A0G"),
        (Script { mig: on, ..script() }, "AAG"),
        (Script { mig: on, gpm: Ok(false), ..script() }, "0F0"),
    ] {
        let mut rig = Rig::new(script);
        let ladder = rig.at(0).view.unwrap().ladder.unwrap();
        assert_eq!(letters(&ladder), expected);
    }
}

#[test]
fn it_is_probed_once() {
    let mut rig = Rig::new(script());
    rig.run(0, 60);
    assert_eq!(rig.world.calls("has_gpm"), 1);
}

#[test]
fn an_error_that_comes_and_goes_has_it_probed_each_time() {
    let mut rig = Rig::new(script());
    rig.run(0, 5);
    rig.world.edit(|script| {
        script.errors.insert("gpm_mean", Absent::Unknown);
    });
    rig.run(6, 9);
    assert_eq!(rig.world.calls("has_gpm"), 2);
    rig.world.edit(|script| script.errors.clear());
    let report = rig.run(10, 14);
    assert_eq!(rig.world.calls("has_gpm"), 3);
    assert_eq!(report.view.unwrap().ladder.unwrap().rung(Want::DeviceSm), Rung::Gpm);
}

#[test]
fn counters_that_need_a_privilege_give_way_to_samples() {
    let mut rig = Rig::new(Script { errors: [("gpm_mean", Absent::NoPermission)].into(), ..script() });
    rig.run(0, 24);
    assert_eq!(label(&rig.device(10).quality, "sm_active_us"), "driver_sampled_device");
    assert_eq!(rig.device(10).sm_active_us.unwrap().get(), 5_000_000);
}

#[test]
fn a_reason_that_may_pass_is_no_reason_to_guess() {
    let errors = [("process_utilization", Absent::Unknown)].into();
    let mut rig = Rig::new(Script { errors, ..script() });
    rig.run(0, 24);
    let process = rig.process(10, 7);
    assert_eq!(process.sm_active_us, None);
    assert_eq!(label(&process.quality, "sm_active_us"), "unavailable(unknown)");
    let probes = rig.world.calls("has_gpm");
    assert_eq!(probes, 4, "at first, when it failed in a cycle, and with the slow readings at 10 and 20");
    rig.world.edit(|script| script.errors.clear());
    rig.run(25, 44);
    assert_eq!(label(&rig.process(30, 7).quality, "sm_active_us"), "driver_sampled");
}

#[test]
fn accounting_that_is_turned_on_is_used_within_minutes() {
    let mut rig = Rig::new(script());
    rig.run(0, 5);
    rig.world.edit(|script| script.is_accounting = Ok(true));
    let report = rig.run(6, 310);
    assert_eq!(report.view.unwrap().ladder.unwrap().rung(Want::ProcessSm), Rung::Accounting);
}

#[test]
fn turning_mig_on_is_another_ladder() {
    let mut rig = Rig::new(script());
    rig.run(0, 5);
    rig.world.edit(|script| script.mig = MigMode::On { turns_off: false });
    let report = rig.at(6 * S);
    assert_eq!(letters(&report.view.unwrap().ladder.unwrap()), "AAG");
}

#[test]
fn refusals_say_why_and_what_would_help() {
    let mut rig = Rig::new(Script { gpm: Ok(false), ..script() });
    let ladder = rig.at(0).view.unwrap().ladder.unwrap();
    let refusals: Vec<String> = ladder
        .standings()
        .flat_map(|(want, standing)| {
            standing
                .refused
                .iter()
                .map(move |refusal| format!("{want}: {} {}", refusal.rung.call(want), refusal.why))
        })
        .collect();
    assert_eq!(
        refusals,
        [
            "GPU SM-active time: nvmlGpmSampleGet not_supported",
            "process SM-active time: nvmlDeviceGetAccountingStats_v2 accounting_off",
        ]
    );
}

fn refusals(script: Script) -> Vec<String> {
    let mut rig = Rig::new(script);
    let ladder = rig.at(S).view.unwrap().ladder.unwrap();
    let refused = |(want, standing): (Want, &crate::ladder::Standing)| {
        let all = standing.refused.iter().map(move |refusal| format!("{want}: {}", refusal.why));
        all.collect::<Vec<_>>()
    };
    ladder.standings().flat_map(refused).collect()
}

#[test]
fn a_driver_without_counters_is_told_before_accounting_that_is_off() {
    let old = Script { errors: [("accounting_counters", Absent::NoFunction)].into(), ..script() };
    assert_eq!(refusals(old), ["process SM-active time: no_function"]);
    assert_eq!(refusals(script()), ["process SM-active time: accounting_off"]);
}

#[test]
fn a_list_without_memory_is_no_source_of_it() {
    let mut silent = script();
    silent.jobs = vec![job(7, 0, 1_000, 500_000), job(8, 0, 1_000, 0)];
    silent.jobs.iter_mut().for_each(|job| job.memory = None);
    assert_eq!(refusals(silent.clone())[1..], ["process memory: not_reported"]);
    silent.jobs[1].memory = Some(1);
    assert_eq!(refusals(silent).len(), 1, "one process is enough to tell by");
    let unified = Script { jobs: Vec::new(), errors: [("memory", Absent::NotSupported)].into(), ..script() };
    assert_eq!(refusals(unified)[1..], ["GPU memory: not_supported", "process memory: not_reported"]);
    assert_eq!(refusals(Script { jobs: Vec::new(), ..script() }).len(), 1, "idle: it may be");
}
