use crate::sim::*;
use gpuledger_nvml_sim::abi::fit;
use gpuledger_nvml_sim::scenario::read;

fn scenario(driver: &str) -> String {
    format!(
        "{HEAD}driver: {{version: {driver}}}\ngpus: [{{uuid: GPU-1, model: h100-80, accounting: true}}]\ntimeline:\n\
         - {{at: 0s, start: {{pid: 7, on: [{{gpu: 0, memory: 1GiB, sm: 50%}}]}}}}\n\
         - {{at: 0s, start: {{pid: 8, on: [{{gpu: 0, memory: 2GiB}}]}}}}\n"
    )
}

#[test]
fn nothing_answers_before_the_first_user_and_after_the_last() {
    sim(&scenario("580.105.08"), |sim| {
        let mut count = [0_u32];
        assert_eq!(sim.call("nvmlDeviceGetCount_v2", [address(&mut count)]), UNINITIALIZED);
        assert_eq!(sim.call("nvmlShutdown", []), UNINITIALIZED);
        sim.init();
        sim.ok("nvmlInitWithFlags", [0]);
        sim.ok("nvmlShutdown", []);
        sim.ok("nvmlDeviceGetCount_v2", [address(&mut count)]);
        assert_eq!(count, [1]);
        sim.ok("nvmlShutdown", []);
        assert_eq!(sim.call("nvmlDeviceGetCount_v2", [address(&mut count)]), UNINITIALIZED);
    });
}

#[test]
fn versions_are_those_of_the_scenario() {
    sim(&scenario("580.105.08"), |sim| {
        sim.init();
        assert_eq!(sim.text("nvmlSystemGetDriverVersion", []), Ok("580.105.08".to_owned()));
        assert_eq!(sim.text("nvmlSystemGetNVMLVersion", []), Ok("13.580.105.08".to_owned()));
        let mut short = [0_u8; 4];
        assert_eq!(sim.call("nvmlSystemGetDriverVersion", [address(&mut short), 4]), INSUFFICIENT_SIZE);
        assert_eq!(short, [0; 4]);
        let mut cuda = [0_i32];
        sim.ok("nvmlSystemGetCudaDriverVersion_v2", [address(&mut cuda)]);
        assert_eq!(cuda, [13000]);
    });
}

#[test]
fn an_old_driver_has_only_the_old_functions() {
    sim(&scenario("470.199.02"), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let (mut count, mut rows) = ([8_u32], [0_u64; 24]);
        let mut list = |name: &str| {
            count[0] = 8;
            sim.call(name, [gpu, address(&mut count), address(&mut rows)])
        };
        assert_eq!(list("nvmlDeviceGetComputeRunningProcesses_v3"), FUNCTION_NOT_FOUND);
        assert_eq!(list("nvmlDeviceGetComputeRunningProcesses_v2"), SUCCESS);
        assert_eq!(list("nvmlDeviceGetComputeRunningProcesses"), SUCCESS);
        assert_eq!((count, rows[2] & 0xffff_ffff), ([2], 8), "16 bytes a row");
        let mut memory = [0x0200_0028_u64, 0, 0, 0, 0];
        assert_eq!(sim.call("nvmlDeviceGetMemoryInfo_v2", [gpu, address(&mut memory)]), FUNCTION_NOT_FOUND);
        assert_eq!(
            sim.call("nvmlGpmQueryDeviceSupport", [gpu, address(&mut [1_u32, 0])]),
            FUNCTION_NOT_FOUND
        );
    });
}

#[test]
fn accounting_counters_come_with_driver_610() {
    sim(&scenario("590.44.01"), |sim| {
        sim.init();
        let mut stats = [7_u64; 8];
        assert_eq!(
            sim.call("nvmlDeviceGetAccountingStats_v2", [sim.gpu(0), address(&mut stats)]),
            FUNCTION_NOT_FOUND
        );
    });
}

#[test]
fn accounting_counters_grow_by_a_sample_a_second() {
    sim(&scenario("610.10"), |sim| {
        sim.init();
        sim.set_ms(10_500);
        // pid and is_running, two percentages, memory, samples, sums of use and of memory, time, start.
        let mut stats = [7_u64; 8];
        sim.ok("nvmlDeviceGetAccountingStats_v2", [sim.gpu(0), address(&mut stats)]);
        let [pid_running, percents, memory, samples, sum, _, time, start] = stats;
        assert_eq!((pid_running, percents & 0xffff_ffff, memory), (7 | 1 << 32, 50, 1 << 30));
        assert_eq!((samples & 0xffff_ffff, sum, time), (10, 50_000, 0));
        assert_eq!(start, 1_790_812_800_000_000);
        let mut nobody = [9_u64; 8];
        assert_eq!(
            sim.call("nvmlDeviceGetAccountingStats_v2", [sim.gpu(0), address(&mut nobody)]),
            NOT_FOUND
        );
    });
}

#[test]
fn a_wrong_version_word_is_refused() {
    sim(&scenario("580.105.08"), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        for name in [
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetRunningProcessDetailList",
            "nvmlDeviceGetProcessesUtilizationInfo",
            "nvmlDeviceGetTemperatureV",
            "nvmlGpmQueryDeviceSupport",
        ] {
            let mut room = [0x0700_0001_u64; 8];
            assert_eq!(sim.call(name, [gpu, address(&mut room)]), VERSION_MISMATCH, "{name}");
        }
    });
}

#[test]
fn early_drivers_of_510_know_no_other_version_of_memory() {
    sim(&scenario("510.39.01"), |sim| {
        sim.init();
        let mut memory = [0x0100_0028_u64; 5];
        let call = |memory: &mut [u64]| sim.call("nvmlDeviceGetMemoryInfo_v2", [sim.gpu(0), address(memory)]);
        assert_eq!(call(&mut memory), FUNCTION_NOT_FOUND);
        memory[0] = 0x0200_0028;
        assert_eq!(call(&mut memory), SUCCESS);
    });
}

#[test]
fn some_drivers_write_longer_records_than_they_say() {
    sim(&scenario("535.43.02"), |sim| {
        sim.init();
        let (mut count, mut rows) = ([3_u32], [0xaaaa_u64; 9]);
        sim.ok(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            [sim.gpu(0), address(&mut count), address(&mut rows)],
        );
        assert_eq!(count, [2]);
        assert_eq!((rows[0] & 0xffff_ffff, rows[4] & 0xffff_ffff), (7, 8), "32 bytes a row");
        assert_eq!(rows[8], 0xaaaa);
    });
}

#[test]
fn long_records_never_leave_the_room_of_the_client() {
    sim(&scenario("535.43.02"), |sim| {
        sim.init();
        let (mut count, mut rows) = ([2_u32], [0xaaaa_u64; 8]);
        sim.ok(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            [sim.gpu(0), address(&mut count), address(&mut rows)],
        );
        assert_eq!((count, rows[6], rows[7]), ([2], 0xaaaa, 0xaaaa), "48 bytes of room");
    });
}

#[test]
fn one_driver_writes_the_first_record_through_the_third_version() {
    let text =
        scenario("555.10").replace("{version: 555.10}", "{version: '555.10', process_record_bytes: 16}");
    sim(&text, |sim| {
        sim.init();
        let (mut count, mut rows) = ([2_u32], [0_u64; 6]);
        sim.ok(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            [sim.gpu(0), address(&mut count), address(&mut rows)],
        );
        assert_eq!([rows[0], rows[2]].map(|pid| pid & 0xffff_ffff), [7, 8]);
    });
}

#[test]
fn return_codes_have_the_texts_of_the_library() {
    sim(&scenario("580.105.08"), |sim| {
        for (code, text) in [(0, "Success"), (6, "Not Found"), (15, "GPU is lost"), (12345, "Unknown Error")]
        {
            assert_eq!(sim.error_text(code), text);
        }
    });
}

#[test]
fn a_fitted_library_lacks_what_its_driver_lacks() {
    let text =
        scenario("535.54.03").replacen("gpus:", "missing_functions: [nvmlDeviceGetFanSpeed]\ngpus:", 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("libnvidia-ml.so.1");
    let taken = fit(&library_path(), &read(&text, "s.yaml").unwrap(), &path).unwrap();
    // SAFETY: the library is ours; its initialisers do nothing.
    let library = unsafe { libloading::Library::new(&path) }.unwrap();
    let has = |name: &str| {
        // SAFETY: the symbol is looked for and never used.
        unsafe { library.get::<usize>(name.as_bytes()) }.is_ok()
    };
    assert!(has("nvmlDeviceGetComputeRunningProcesses_v3") && has("nvmlDeviceGetConfComputeMemSizeInfo"));
    for name in [
        "nvmlDeviceGetRunningProcessDetailList",
        "nvmlDeviceGetProcessesUtilizationInfo",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetAccountingStats_v2",
        "nvmlDeviceGetFanSpeed",
    ] {
        assert!(!has(name), "{name}");
    }
    assert_eq!(taken, 5);
}
