//! Means by performance counters.

use crate::sim::{NOTHING, Sim, h100, mig, node, on};
use gpuledger_nvml::{Absent, GpmMean, Gpu, Ppm, Reading, Scope};

const HALF: &str = "- {at: 0s, start: {pid: 10, on: [{gpu: 0, sm: 40%}]}}";

fn device(sim: &Sim, gpu: &mut dyn Gpu, ms: u64) -> Reading<Option<GpmMean>> {
    sim.at_ms(ms);
    gpu.gpm_mean(Scope::Device, 1, sim)
}

fn share(mean: Reading<Option<GpmMean>>) -> Ppm {
    mean.expect("a reading").expect("a mean").sm_active
}

#[test]
fn a_mean_needs_two_samples_and_the_second_begins_the_next() {
    let timeline = format!("{HALF}\n- {{at: 2s, change: {{pid: 10, gpu: 0, sm: 80%}}}}");
    on("gpm::a_mean_needs_two_samples_and_the_second_begins_the_next", &h100(&timeline), |sim| {
        let mut gpu = sim.gpu();
        assert_eq!(gpu.has_gpm(), Ok(true));
        assert_eq!(device(sim, &mut *gpu, 1_000), Ok(None));
        let first = device(sim, &mut *gpu, 2_000).expect("a reading").expect("a mean");
        let second = device(sim, &mut *gpu, 4_000).expect("a reading").expect("a mean");
        assert_eq!((first.sm_active, second.sm_active), (Ppm(400_000), Ppm(800_000)));
        assert_eq!((first.to_us - first.from_us, second.to_us - second.from_us), (1_000_000, 2_000_000));
        assert_eq!(first.to_us, second.from_us);
    });
}

#[test]
fn samples_too_near_each_other_wait_and_keep_the_first() {
    on("gpm::samples_too_near_each_other_wait_and_keep_the_first", &h100(HALF), |sim| {
        let mut gpu = sim.gpu();
        assert_eq!(device(sim, &mut *gpu, 1_000), Ok(None));
        assert_eq!(device(sim, &mut *gpu, 1_050), Err(Absent::NotYet));
        assert_eq!(share(device(sim, &mut *gpu, 1_100)), Ppm(400_000));
    });
}

#[test]
fn an_instance_made_anew_under_its_id_begins_anew() {
    let timeline = "
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 4, gi: 2}}
- {at: 0s, start: {pid: 10, on: [{gpu: 0, gi: 1, sm: 100%}]}}
- {at: 0s, start: {pid: 11, on: [{gpu: 0, gi: 2, sm: 30%}]}}
- {at: 2s, stop: {pid: 10}}
- {at: 2s, destroy_instance: {gpu: 0, gi: 1}}
- {at: 2s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}";
    on(
        "gpm::an_instance_made_anew_under_its_id_begins_anew",
        &mig("580.105.08", "h100-80", timeline),
        |sim| {
            let mut gpu = sim.gpu();
            let mut mean = |ms, id, generation| {
                sim.at_ms(ms);
                gpu.gpm_mean(Scope::GpuInstance(id), generation, sim)
            };
            assert_eq!(mean(0, 1, 1), Ok(None));
            assert_eq!(mean(0, 2, 1), Ok(None));
            assert_eq!(share(mean(1_000, 1, 1)), Ppm::ALL);
            assert_eq!(share(mean(1_000, 2, 1)), Ppm(300_000));
            assert_eq!(mean(3_000, 1, 2), Ok(None));
            assert_eq!(share(mean(3_000, 2, 1)), Ppm(300_000));
            assert_eq!(share(mean(4_000, 1, 2)), Ppm(0));
        },
    );
}

#[test]
fn the_answer_to_another_question_is_not_believed_and_begins_anew() {
    let timeline = format!("{HALF}\n- {{at: 1500ms, wrong_echo: {{gpu: 0, metric: 3, for: 1s}}}}");
    on("gpm::the_answer_to_another_question_is_not_believed_and_begins_anew", &h100(&timeline), |sim| {
        let mut gpu = sim.gpu();
        assert_eq!(device(sim, &mut *gpu, 1_000), Ok(None));
        assert_eq!(device(sim, &mut *gpu, 2_000), Err(Absent::Implausible));
        assert_eq!(device(sim, &mut *gpu, 3_000), Ok(None));
        assert_eq!(share(device(sim, &mut *gpu, 4_000)), Ppm(400_000));
    });
}

#[test]
fn a_failed_sample_begins_anew() {
    let timeline = format!(
        "{HALF}\n- {{at: 1500ms, fail: {{call: nvmlGpmSampleGet, for: 1s, returns: NO_PERMISSION}}}}"
    );
    on("gpm::a_failed_sample_begins_anew", &h100(&timeline), |sim| {
        let mut gpu = sim.gpu();
        assert_eq!(device(sim, &mut *gpu, 1_000), Ok(None));
        assert_eq!(device(sim, &mut *gpu, 2_000), Err(Absent::NoPermission));
        assert_eq!(device(sim, &mut *gpu, 3_000), Ok(None));
    });
}

#[test]
fn models_and_drivers_without_counters_say_so() {
    let test = "gpm::models_and_drivers_without_counters_say_so";
    on(test, &node("580.105.08", "a100-80", NOTHING), |sim| {
        let mut gpu = sim.gpu();
        assert_eq!(gpu.has_gpm(), Ok(false));
        assert!(gpu.gpm_mean(Scope::Device, 1, sim).is_err());
    });
}

#[test]
fn two_samples_are_all_that_a_scope_takes() {
    on("gpm::two_samples_are_all_that_a_scope_takes", &h100(HALF), |sim| {
        let mut gpu = sim.gpu();
        for second in 1..20 {
            device(sim, &mut *gpu, second * 1_000).expect("a reading");
        }
        drop(gpu);
        let calls = Sim::calls();
        let times = |name: &str| calls.lines().filter(|line| line.contains(name)).count();
        assert_eq!((times("nvmlGpmSampleAlloc"), times("nvmlGpmSampleFree")), (2, 2));
    });
}
