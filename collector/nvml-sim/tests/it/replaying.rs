use crate::sim::*;
use gpuledger_nvml_sim::abi::{ReplayError, replay};

fn scenario() -> String {
    format!(
        "{HEAD}gpus:\n- {{uuid: GPU-1, model: h100-80, mig: on}}\n- {{uuid: GPU-2, model: h100-80, accounting: true}}\ntimeline:\n\
         - {{at: 0s, create_instance: {{gpu: 0, profile: 3g.40gb}}}}\n\
         - {{at: 0s, start: {{pid: 7, on: [{{gpu: 0, gi: 1, sm: 40%}}, {{gpu: 1, sm: 40%}}]}}}}\n"
    )
}

/// A call of each shape of arguments.
fn calls(sim: &Sim) {
    sim.init();
    let (cut, gpu) = (sim.gpu(0), sim.gpu(1));
    let mut room = [0_u64; 600];
    sim.by_text("nvmlDeviceGetHandleByUUID", "GPU-2").unwrap();
    sim.text("nvmlDeviceGetName", [sim.mig(cut, 0)]).unwrap();
    let mut count = [0_u32];
    sim.call("nvmlDeviceGetComputeRunningProcesses_v3", [gpu, address(&mut count), 0]);
    sim.ok("nvmlDeviceGetComputeRunningProcesses_v3", [gpu, address(&mut count), address(&mut room)]);
    room[0] = 0x0200_0028;
    sim.ok("nvmlDeviceGetMemoryInfo_v2", [gpu, address(&mut room)]);
    count[0] = 100;
    sim.ok("nvmlDeviceGetProcessUtilization", [gpu, address(&mut room), address(&mut count), 5]);
    let rows = u64::try_from(address(&mut room[10..])).unwrap();
    (room[0], room[1], room[2]) = (0x0100_0018 | 100 << 32, 0x0001_0000_0002, rows);
    sim.ok("nvmlDeviceGetProcessesUtilizationInfo", [gpu, address(&mut room)]);
    (room[0], room[1], room[2]) = (0x0100_0018, 100, rows);
    sim.ok("nvmlDeviceGetRunningProcessDetailList", [gpu, address(&mut room)]);
    (room[0], room[5]) = (83, 230);
    sim.ok("nvmlDeviceGetFieldValues", [gpu, 2, address(&mut room)]);
    let samples = [0, 1].map(|_| sim.handle("nvmlGpmSampleAlloc", []));
    for sample in samples {
        sim.ok("nvmlGpmMigSampleGet", [cut, 1, sample]);
    }
    let [first, second] = samples.map(|sample| u64::try_from(sample).unwrap());
    (room[0], room[1], room[2], room[3]) = (1 | 1 << 32, first, second, 2);
    sim.ok("nvmlGpmMetricsGet", [address(&mut room)]);
    let set = sim.handle("nvmlEventSetCreate", []);
    sim.ok("nvmlDeviceRegisterEvents", [gpu, 8, set]);
    assert_eq!(sim.call("nvmlEventSetWait_v2", [set, address(&mut room), 0]), TIMEOUT);
    sim.ok("nvmlShutdown", []);
}

#[test]
fn a_replay_makes_the_same_calls_again() {
    sim(&scenario(), |sim| {
        sim.set_ms(20_000);
        calls(sim);
        let path = sim.folder().join("record");
        let first = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = first.lines().collect();
        assert_eq!(lines.first(), Some(&"nvmlInit_v2"));
        assert_eq!(lines.last(), Some(&"nvmlShutdown"));
        assert!(lines[4].starts_with("nvmlDeviceGetMigDeviceHandleByIndex #4e56"), "{}", lines[4]);
        // The replay is recorded, too.
        let replayed = replay(&path, &library_path(), 3).unwrap();
        let all = std::fs::read_to_string(&path).unwrap();
        assert_eq!(all, first.repeat(4));
        assert_eq!((usize::try_from(replayed.calls).unwrap(), replayed.passes), (lines.len() - 2, 3));
        assert!(replayed.to_string().starts_with("calls="));
    });
}

#[test]
fn what_is_no_record_is_told_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record");
    let fault = |text: &str| {
        std::fs::write(&path, text).unwrap();
        replay(&path, &library_path(), 1).unwrap_err()
    };
    let error = fault("nvmlInit_v2\nnvmlDeviceGetIndex #1 what\n");
    assert!(matches!(&error, ReplayError::Line { line: 2, word, .. } if word == "what"), "{error}");
    assert!(matches!(fault("nvmlNothing #1\n"), ReplayError::Library { .. }));
    assert!(matches!(fault("nvmlDeviceGetIndex #1 - - - - - -\n"), ReplayError::Line { line: 1, .. }));
}
