//! Readings of a whole device.

use crate::sim::{GPU, NOTHING, Sim, h100, node, on};
use gpuledger_nvml::{Absent, Driver, MigMode, Scope};

#[test]
fn versions_and_identity_are_those_of_the_node() {
    on("readings::versions_and_identity_are_those_of_the_node", &h100(NOTHING), |sim| {
        let nvml = sim.nvml();
        let versions = nvml.versions().expect("versions");
        assert_eq!((versions.driver.as_str(), versions.cuda), ("580.105.08", 13_000));
        assert_eq!(nvml.gpu_count(), Ok(1));
        let identity = nvml.gpu(0).expect("a GPU").identity().expect("an identity");
        assert_eq!(identity.uuid, GPU);
        assert_eq!(identity.name, "NVIDIA H100 80GB HBM3");
        assert_eq!((identity.index, identity.minor, identity.compute_capability), (0, Some(0), Some((9, 0))));
        assert_eq!(identity.pci_bus_id.len(), "00000000:3B:00.0".len(), "{}", identity.pci_bus_id);
        assert!(nvml.gpu(1).is_err());
    });
}

#[test]
fn memory_has_four_parts_that_make_the_whole() {
    let process = "- {at: 0s, start: {pid: 100, on: [{gpu: 0, memory: 2GiB}]}}";
    on("readings::memory_has_four_parts_that_make_the_whole", &h100(process), |sim| {
        let memory = sim.gpu().memory(Scope::Device).expect("memory");
        assert_eq!(memory.total, 81_559 << 20);
        assert_eq!(memory.used, 2 << 30);
        assert_eq!(memory.reserved.expect("told apart") + memory.used + memory.free, memory.total);
    });
}

#[test]
fn a_board_without_memory_of_its_own_has_no_reading() {
    let board = format!(
        "name: test\ngpus: [{{uuid: {GPU}, model: gb10, unreadable: {{nvmlDeviceGetMemoryInfo_v2: NOT_SUPPORTED, nvmlDeviceGetMemoryInfo: NOT_SUPPORTED}}}}]\n"
    );
    on("readings::a_board_without_memory_of_its_own_has_no_reading", &board, |sim| {
        assert_eq!(sim.gpu().memory(Scope::Device), Err(Absent::NotSupported));
    });
}

#[test]
fn the_board_has_its_sensors() {
    let burst = "- {at: 0s, start: {pid: 100, on: [{gpu: 0, sm: 100%}]}}";
    on("readings::the_board_has_its_sensors", &h100(burst), |sim| {
        let gpu = sim.gpu();
        let first = gpu.energy_mj().expect("energy");
        sim.at_ms(10_000);
        assert!(gpu.energy_mj().expect("energy") > first);
        assert!(gpu.power_mw().expect("power") > 70_000);
        assert!((10..120).contains(&gpu.temperature_c().expect("temperature")));
        assert_eq!(gpu.clocks_mhz().map(|(_, memory)| memory), Ok(2_619));
    });
}

#[test]
fn errors_and_what_the_driver_wants_done_are_read() {
    let timeline =
        "- {at: 10s, double_bit: {gpu: 0, count: 3}}\n- {at: 20s, set_gpu: {gpu: 0, recovery_action: 1}}";
    on("readings::errors_and_what_the_driver_wants_done_are_read", &h100(timeline), |sim| {
        let gpu = sim.gpu();
        assert_eq!((gpu.uncorrectable_errors(), gpu.recovery_action()), (Ok(0), Ok(0)));
        sim.at_ms(15_000);
        assert_eq!(gpu.uncorrectable_errors(), Ok(3));
        sim.at_ms(25_000);
        assert_eq!(gpu.recovery_action(), Ok(1));
    });
}

#[test]
fn a_field_an_older_driver_lacks_is_absent() {
    on("readings::a_field_an_older_driver_lacks_is_absent", &node("535.129.03", "h100-80", NOTHING), |sim| {
        assert!(sim.gpu().recovery_action().is_err());
    });
}

#[test]
fn the_mode_has_three_states_and_what_waits_for_a_reset() {
    let nodes = format!(
        "name: test\ngpus:\n- {{uuid: {GPU}, model: t4}}\n- {{uuid: GPU-2, model: a100-80}}\n- {{uuid: GPU-3, model: a100-80, mig: pending_on}}\n\
         - {{uuid: GPU-4, model: a100-80, mig: on}}\n- {{uuid: GPU-5, model: a100-80, mig: pending_off}}\n"
    );
    on("readings::the_mode_has_three_states_and_what_waits_for_a_reset", &nodes, |sim| {
        let nvml = sim.nvml();
        let mode = |index| nvml.gpu(index).expect("a GPU").mig_mode();
        assert_eq!(mode(0), Ok(MigMode::Unsupported));
        assert_eq!(mode(1), Ok(MigMode::Off { turns_on: false }));
        assert_eq!(mode(2), Ok(MigMode::Off { turns_on: true }));
        assert_eq!(mode(3), Ok(MigMode::On { turns_off: false }));
        assert_eq!(mode(4), Ok(MigMode::On { turns_off: true }));
    });
}

#[test]
fn the_reason_of_a_refused_call_is_kept() {
    let refused =
        [("GPU_IS_LOST", Absent::Lost), ("INVALID_STATE", Absent::Code(29)), ("UNKNOWN", Absent::Unknown)];
    let timeline: String = refused
        .iter()
        .zip(1..)
        .map(|((code, _), second)| {
            format!(
                "- {{at: {second}s, fail: {{call: nvmlDeviceGetPowerUsage, for: 1s, returns: {code}}}}}\n"
            )
        })
        .collect();
    on("readings::the_reason_of_a_refused_call_is_kept", &h100(&timeline), |sim| {
        let gpu = sim.gpu();
        for ((_, absent), second) in refused.into_iter().zip(1..) {
            sim.at_ms(second * 1_000 + 500);
            assert_eq!(gpu.power_mw(), Err(absent));
        }
        sim.at_ms(10_000);
        assert!(gpu.power_mw().is_ok());
        assert!(Sim::calls().contains("nvmlDeviceGetPowerUsage"));
    });
}
