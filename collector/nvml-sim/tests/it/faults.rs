use crate::sim::*;

fn scenario(timeline: &str) -> String {
    format!(
        "{HEAD}gpus:\n- {{uuid: GPU-1, model: h100-80}}\n- {{uuid: GPU-2, model: h100-80}}\ntimeline:\n{timeline}"
    )
}

fn power(sim: &Sim, device: usize) -> u32 {
    sim.number("nvmlDeviceGetPowerUsage", device).err().unwrap_or(SUCCESS)
}

#[test]
fn a_lost_gpu_answers_nothing_and_the_others_go_on() {
    sim(&scenario("- {at: 1s, lose: {gpu: 0}}\n- {at: 2s, recover: {gpu: 0}}\n"), |sim| {
        sim.init();
        let (lost, other) = (sim.gpu(0), sim.gpu(1));
        sim.set_ms(1_000);
        assert_eq!((power(sim, lost), power(sim, other)), (GPU_IS_LOST, SUCCESS));
        let mut out = [0_usize];
        assert_eq!(sim.call("nvmlDeviceGetHandleByIndex_v2", [0, address(&mut out)]), GPU_IS_LOST);
        let mut count = [0_u32];
        sim.ok("nvmlDeviceGetCount_v2", [address(&mut count)]);
        assert_eq!(count, [2]);
        sim.set_ms(2_000);
        assert_eq!(power(sim, lost), SUCCESS);
    });
}

#[test]
fn a_gpu_that_wants_a_reset_and_revoked_access_have_their_codes() {
    let text =
        "- {at: 1s, require_reset: {gpu: 0}}\n- {at: 1s, revoke: {gpu: 1}}\n- {at: 2s, restore: {gpu: 1}}\n";
    sim(&scenario(text), |sim| {
        sim.init();
        let gpus = [sim.gpu(0), sim.gpu(1)];
        sim.set_ms(1_000);
        assert_eq!(gpus.map(|gpu| power(sim, gpu)), [16, UNKNOWN]);
        sim.set_ms(2_000);
        assert_eq!(power(sim, gpus[1]), SUCCESS);
    });
}

#[test]
fn the_nth_call_fails_as_often_as_said() {
    let text = "- {at: 1s, fail: {call: nvmlDeviceGetPowerUsage, gpu: 1, nth: 2, times: 1, returns: 999}}\n";
    sim(&scenario(text), |sim| {
        sim.init();
        let gpus = [sim.gpu(0), sim.gpu(1)];
        sim.set_ms(1_000);
        let codes = [0, 1, 0, 1, 1].map(|gpu| power(sim, gpus[gpu]));
        assert_eq!(codes, [0, 0, 0, UNKNOWN, 0]);
    });
}

#[test]
fn a_device_that_may_not_be_opened_is_counted_all_the_same() {
    let text = scenario("").replace(
        "{uuid: GPU-2, model: h100-80}",
        "{uuid: GPU-2, model: h100-80, unreadable: {nvmlDeviceGetHandleByIndex_v2: NO_PERMISSION}}",
    );
    sim(&text, |sim| {
        sim.init();
        let mut out = [0_usize];
        let open = |gpu, out: &mut [usize]| sim.call("nvmlDeviceGetHandleByIndex_v2", [gpu, address(out)]);
        assert_eq!((open(0, &mut out), open(1, &mut out)), (SUCCESS, NO_PERMISSION));
        assert_eq!(open(2, &mut out), INVALID_ARGUMENT);
    });
}

#[test]
fn a_delay_moves_the_clock_and_the_answer_shows_the_state_after_it() {
    let text = "- {at: 1s, delay: {call: nvmlDeviceGetPowerUsage, gpu: 0, times: 1, by: 5s}}\n- {at: 4s, lose: {gpu: 0}}\n";
    sim(&scenario(text), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        sim.set_ms(1_000);
        assert_eq!(power(sim, gpu), GPU_IS_LOST);
        assert_eq!(sim.now_ms(), 6_000);
    });
}

#[test]
fn a_list_may_change_between_its_two_calls() {
    let text = "- {at: 0s, delay: {call: nvmlDeviceGetComputeRunningProcesses_v3, nth: 2, times: 1, by: 2s}}\n\
                - {at: 0s, start: {pid: 7, on: [{gpu: 0}]}}\n- {at: 1s, start: {pid: 8, on: [{gpu: 0}]}}\n";
    sim(&scenario(text), |sim| {
        sim.init();
        let (mut count, mut rows) = ([0_u32], [0_u64; 3]);
        let mut list = |rows: usize| {
            let code =
                sim.call("nvmlDeviceGetComputeRunningProcesses_v3", [sim.gpu(0), address(&mut count), rows]);
            (code, count[0])
        };
        assert_eq!(list(0), (INSUFFICIENT_SIZE, 1));
        assert_eq!(list(address(&mut rows)), (INSUFFICIENT_SIZE, 2));
    });
}

#[test]
fn a_new_driver_wants_a_new_initialisation() {
    let text = "- {at: 10s, reload_driver: {version: 590.44.01, down: 5s}}\n";
    sim(&scenario(text), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let mut energy = [0_u64];
        let mut read = |at_ms| {
            sim.set_ms(at_ms);
            let code = sim.call("nvmlDeviceGetTotalEnergyConsumption", [gpu, address(&mut energy)]);
            (code, energy[0])
        };
        let (_, before) = read(9_000);
        assert_eq!(read(12_000).0, DRIVER_NOT_LOADED);
        sim.ok("nvmlShutdown", []);
        assert_eq!(sim.call("nvmlInit_v2", []), DRIVER_NOT_LOADED);
        sim.set_ms(9_000);
        sim.init();
        assert_eq!(read(15_000).0, LIB_RM_VERSION_MISMATCH);
        sim.ok("nvmlShutdown", []);
        sim.init();
        let (code, after) = read(15_000);
        assert_eq!(code, SUCCESS);
        assert!(after < before, "the counter began anew: {after} after {before}");
        assert_eq!(sim.text("nvmlSystemGetDriverVersion", []), Ok("590.44.01".to_owned()));
    });
}

#[test]
fn the_same_driver_loaded_again_wants_it_too() {
    sim(&scenario("- {at: 10s, reload_driver: {}}\n"), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        sim.set_ms(11_000);
        assert_eq!(power(sim, gpu), UNINITIALIZED);
        sim.ok("nvmlShutdown", []);
        sim.init();
        assert_eq!(power(sim, gpu), SUCCESS);
    });
}

#[test]
fn what_is_counted_goes_on_over_a_new_initialisation() {
    let text = "- {at: 0s, fail: {call: nvmlDeviceGetPowerUsage, nth: 2, times: 1, returns: GPU_IS_LOST}}\n";
    sim(&scenario(text), |sim| {
        sim.init();
        assert_eq!(power(sim, sim.gpu(0)), SUCCESS);
        sim.ok("nvmlShutdown", []);
        sim.init();
        let gpu = sim.gpu(0);
        assert_eq!((power(sim, gpu), power(sim, gpu)), (GPU_IS_LOST, SUCCESS));
    });
}

#[test]
fn a_missing_function_says_so() {
    let text = scenario("").replacen("gpus:", "missing_functions: [nvmlDeviceGetPowerUsage]\ngpus:", 1);
    sim(&text, |sim| {
        sim.init();
        assert_eq!(power(sim, sim.gpu(0)), FUNCTION_NOT_FOUND);
    });
}
