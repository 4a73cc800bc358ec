//! Older drivers and libraries that lack functions.

use crate::sim::{GPU, node, on};
use gpuledger_nvml::{Absent, Driver, Scope};

#[test]
fn drivers_before_510_tell_nothing_apart_in_their_memory() {
    let process = "- {at: 0s, start: {pid: 100, on: [{gpu: 0, memory: 2GiB}]}}";
    let test = "drivers::drivers_before_510_tell_nothing_apart_in_their_memory";
    on(test, &node("470.42.01", "a100-80", process), |sim| {
        let memory = sim.gpu().memory(Scope::Device).expect("memory");
        assert_eq!(memory.reserved, None);
        assert!(memory.used > 2 << 30, "what the driver keeps is within `used`");
        assert_eq!(memory.used + memory.free, memory.total);
    });
}

#[test]
fn a_missing_function_is_a_reason_like_any_other() {
    let scenario = format!(
        "name: test\nmissing_functions: [nvmlDeviceGetPowerUsage, nvmlDeviceGetProcessUtilization, nvmlGpmQueryDeviceSupport, nvmlDeviceGetMigMode,\n\
         \x20 nvmlDeviceGetSupportedEventTypes]\ngpus: [{{uuid: {GPU}, model: h100-80}}]\n"
    );
    on("drivers::a_missing_function_is_a_reason_like_any_other", &scenario, |sim| {
        let nvml = sim.nvml();
        let gpu = nvml.gpu(0).expect("a GPU");
        assert_eq!(gpu.power_mw(), Err(Absent::NoFunction));
        assert_eq!(gpu.process_utilization(0), Err(Absent::NoFunction));
        assert_eq!(gpu.has_gpm(), Err(Absent::NoFunction));
        assert_eq!(gpu.mig_mode(), Ok(gpuledger_nvml::MigMode::Unsupported));
        assert_eq!(nvml.next_event(std::time::Duration::ZERO), Ok(None));
        assert!(gpu.energy_mj().is_ok());
    });
}

#[test]
fn one_revoked_device_leaves_the_others() {
    let scenario = format!(
        "name: test\ngpus: [{{uuid: {GPU}, model: h100-80}}, {{uuid: GPU-2, model: h100-80}}]\ntimeline:\n- {{at: 10s, revoke: {{gpu: 0}}}}\n\
         - {{at: 20s, lose: {{gpu: 1}}}}\n- {{at: 30s, restore: {{gpu: 0}}}}\n"
    );
    on("drivers::one_revoked_device_leaves_the_others", &scenario, |sim| {
        let nvml = sim.nvml();
        let (first, second) = (nvml.gpu(0).expect("a GPU"), nvml.gpu(1).expect("a GPU"));
        sim.at_ms(15_000);
        assert_eq!(first.energy_mj(), Err(Absent::Unknown));
        assert!(second.energy_mj().is_ok());
        sim.at_ms(35_000);
        assert!(first.energy_mj().is_ok());
        assert_eq!(second.energy_mj(), Err(Absent::Lost));
        assert_eq!(second.processes(), Err(Absent::Lost));
        assert_eq!(nvml.gpu_count(), Ok(2));
    });
}
