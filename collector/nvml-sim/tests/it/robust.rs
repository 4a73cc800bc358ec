use crate::sim::*;
use std::collections::BTreeSet;
use std::path::Path;

fn scenario() -> String {
    format!(
        "{HEAD}gpus:\n- {{uuid: GPU-1, model: h100-80, mig: on, accounting: true}}\n- {{uuid: GPU-2, model: h100-80, accounting: true}}\n\
         timeline:\n- {{at: 0s, create_instance: {{gpu: 0, profile: 3g.40gb}}}}\n\
         - {{at: 0s, start: {{pid: 7, on: [{{gpu: 0, gi: 1, sm: 40%}}, {{gpu: 1, sm: 40%}}]}}}}\n"
    )
}

/// Names of the functions that the sources declare.
fn exports() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/abi");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).unwrap());
    texts.flat_map(|text| names(&text).into_iter().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn names(text: &str) -> Vec<&str> {
    let starts = text.match_indices("fn nvml").map(|(at, _)| &text[at + 3..]);
    starts.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name).collect()
}

const MINIMUM: &str = "nvmlInit_v2 nvmlInitWithFlags nvmlShutdown nvmlErrorString nvmlSystemGetDriverVersion nvmlSystemGetNVMLVersion \
    nvmlSystemGetCudaDriverVersion nvmlSystemGetCudaDriverVersion_v2 nvmlSystemGetProcessName nvmlDeviceGetCount_v2 \
    nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByUUID nvmlDeviceGetHandleByPciBusId_v2 nvmlDeviceGetIndex nvmlDeviceGetName \
    nvmlDeviceGetUUID nvmlDeviceGetSerial nvmlDeviceGetMinorNumber nvmlDeviceGetPciInfo_v3 nvmlDeviceGetArchitecture \
    nvmlDeviceGetCudaComputeCapability nvmlDeviceGetBrand nvmlDeviceGetPersistenceMode nvmlDeviceGetComputeMode \
    nvmlDeviceGetVirtualizationMode nvmlDeviceGetMigMode nvmlDeviceGetMaxMigDeviceCount nvmlDeviceGetMigDeviceHandleByIndex \
    nvmlDeviceIsMigDeviceHandle nvmlDeviceGetDeviceHandleFromMigDeviceHandle nvmlDeviceGetGpuInstanceId nvmlDeviceGetComputeInstanceId \
    nvmlDeviceGetAttributes_v2 nvmlDeviceGetGpuInstanceProfileInfo nvmlDeviceGetGpuInstanceProfileInfoV \
    nvmlDeviceGetGpuInstancePossiblePlacements_v2 nvmlDeviceGetGpuInstances nvmlDeviceGetGpuInstanceById nvmlGpuInstanceGetInfo \
    nvmlGpuInstanceGetComputeInstances nvmlGpuInstanceGetComputeInstanceById nvmlComputeInstanceGetInfo_v2 \
    nvmlDeviceGetGpuInstanceRemainingCapacity nvmlDeviceGetComputeRunningProcesses nvmlDeviceGetComputeRunningProcesses_v2 \
    nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetGraphicsRunningProcesses nvmlDeviceGetGraphicsRunningProcesses_v2 \
    nvmlDeviceGetGraphicsRunningProcesses_v3 nvmlDeviceGetMPSComputeRunningProcesses nvmlDeviceGetMPSComputeRunningProcesses_v2 \
    nvmlDeviceGetMPSComputeRunningProcesses_v3 nvmlDeviceGetRunningProcessDetailList nvmlDeviceGetProcessUtilization \
    nvmlDeviceGetProcessesUtilizationInfo nvmlDeviceGetAccountingMode nvmlDeviceSetAccountingMode nvmlDeviceGetAccountingPids \
    nvmlDeviceGetAccountingBufferSize nvmlDeviceGetAccountingStats nvmlDeviceClearAccountingPids nvmlDeviceGetAccountingStats_v2 \
    nvmlDeviceGetMemoryInfo nvmlDeviceGetMemoryInfo_v2 nvmlDeviceGetBAR1MemoryInfo nvmlDeviceGetUtilizationRates nvmlDeviceGetSamples \
    nvmlDeviceGetFieldValues nvmlDeviceGetTotalEnergyConsumption nvmlDeviceGetPowerUsage nvmlDeviceGetEnforcedPowerLimit \
    nvmlDeviceGetPowerManagementLimit nvmlDeviceGetTemperature nvmlDeviceGetTemperatureV nvmlDeviceGetClockInfo \
    nvmlDeviceGetMaxClockInfo nvmlDeviceGetEncoderUtilization nvmlDeviceGetDecoderUtilization nvmlDeviceGetEccMode \
    nvmlDeviceGetTotalEccErrors nvmlDeviceGetMemoryErrorCounter nvmlDeviceGetRemappedRows nvmlGpmQueryDeviceSupport nvmlGpmSampleAlloc \
    nvmlGpmSampleFree nvmlGpmSampleGet nvmlGpmMigSampleGet nvmlGpmMetricsGet nvmlGpmQueryIfStreamingEnabled nvmlGpmSetStreamingEnabled \
    nvmlEventSetCreate nvmlEventSetFree nvmlEventSetWait_v2 nvmlEventSetWait nvmlDeviceRegisterEvents nvmlDeviceGetSupportedEventTypes \
    nvmlDeviceGetFanSpeed nvmlDeviceGetPerformanceState nvmlDeviceGetDriverModel_v2 nvmlDeviceGetDisplayActive";

#[test]
fn everything_clients_need_is_exported() {
    let exports = exports();
    let missing: Vec<&str> = MINIMUM.split_whitespace().filter(|name| !exports.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // With the first and without the second, nvitop takes process records for 32 bytes long.
    for name in ["nvmlDeviceGetConfComputeMemSizeInfo", "nvmlDeviceGetRunningProcessDetailList"] {
        assert!(exports.contains(name), "{name}");
    }
}

#[test]
fn wrong_handles_and_null_pointers_are_codes_and_never_a_crash() {
    sim(&scenario(), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let handles = [
            0,
            1,
            usize::MAX,
            gpu + (1 << 32) * 77,
            gpu,
            sim.gpu(1),
            sim.mig(gpu, 0),
            sim.handle("nvmlDeviceGetGpuInstanceById", [gpu, 1]),
            sim.handle("nvmlEventSetCreate", []),
            sim.handle("nvmlGpmSampleAlloc", []),
        ];
        for name in exports().iter().filter(|name| takes_a_handle_first(name)) {
            for handle in handles {
                let code = sim.call(name, [handle]);
                assert!(code < UNKNOWN, "{name} of {handle:x}: {code}");
            }
            for handle in &handles[..4] {
                assert_ne!(sim.call(name, [*handle]), SUCCESS, "{name} of {handle:x}");
            }
        }
        assert_eq!(sim.number("nvmlDeviceGetIndex", gpu), Ok(0), "it still works");
    });
}

/// Not those that end the library, and those whose first argument is a pointer.
fn takes_a_handle_first(name: &str) -> bool {
    let is_of_handle = name.starts_with("nvmlDevice")
        || name.starts_with("nvmlGpuInstance")
        || name.starts_with("nvmlComputeInstance");
    is_of_handle && !name.starts_with("nvmlDeviceGetHandleBy") && name != "nvmlDeviceGetCount_v2"
}

#[test]
fn null_pointers_first_are_codes_too() {
    sim(&scenario(), |sim| {
        sim.init();
        for name in exports().iter().filter(|name| !takes_a_handle_first(name)) {
            if ["nvmlShutdown", "nvmlErrorString", "nvmlInit_v2", "nvmlInitWithFlags"]
                .contains(&name.as_str())
            {
                continue;
            }
            let code = sim.call(name, [0]);
            assert!(code != SUCCESS && code != UNKNOWN, "{name}: {code}");
        }
    });
}
