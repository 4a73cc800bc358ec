//! Which driver brought which function, and what older ones do instead.
//!
//! A symbol cannot be taken away while the library is loaded, so a function that the scenario's driver does not have answers
//! `FUNCTION_NOT_FOUND`. Clients that look whether a symbol is there need a library fitted to the driver: see [`super::fit`].

/// Release of a driver: 535.98.1 is (535, 98).
pub(super) type Release = (u32, u32);

/// The release in a driver's version; what is no number counts as 0.
pub(super) fn release(version: &str) -> Release {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Functions that came later than the first driver with MIG. Releases that no source names are set to the first header that has the function.
const SINCE: [(&str, Release); 20] = [
    ("nvmlDeviceGetComputeRunningProcesses_v2", (460, 0)),
    ("nvmlDeviceGetGraphicsRunningProcesses_v2", (460, 0)),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v2", (460, 0)),
    ("nvmlDeviceGetGpuInstanceProfileInfoV", (510, 0)),
    ("nvmlGpuInstanceGetComputeInstanceProfileInfoV", (510, 0)),
    ("nvmlDeviceGetComputeRunningProcesses_v3", (510, 39)),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", (510, 39)),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", (510, 39)),
    ("nvmlDeviceGetMemoryInfo_v2", (510, 39)),
    ("nvmlGpmQueryDeviceSupport", (520, 0)),
    ("nvmlGpmSampleAlloc", (520, 0)),
    ("nvmlGpmSampleFree", (520, 0)),
    ("nvmlGpmSampleGet", (520, 0)),
    ("nvmlGpmMigSampleGet", (520, 0)),
    ("nvmlGpmMetricsGet", (520, 0)),
    ("nvmlDeviceGetConfComputeMemSizeInfo", (535, 43)),
    ("nvmlDeviceGetRunningProcessDetailList", (535, 98)),
    ("nvmlDeviceGetProcessesUtilizationInfo", (550, 0)),
    ("nvmlDeviceGetTemperatureV", (560, 0)),
    ("nvmlDeviceGetAccountingStats_v2", (610, 0)),
];

/// Whether a driver of this release has the function.
pub(super) fn has(function: &str, driver: Release) -> bool {
    SINCE.iter().all(|(name, since)| *name != function || driver >= *since)
}

/// Functions that a driver of this release does not have.
pub(super) fn missing<'a>(driver: Release) -> impl Iterator<Item = &'a str> {
    SINCE.iter().filter(move |(_, since)| driver < *since).map(|(name, _)| *name)
}

/// Whether GPM may be asked of a MIG device's own handle (header 13.3) and not only of its parent.
pub(super) fn samples_gpm_of_mig_devices(driver: Release) -> bool {
    driver >= (610, 0)
}

/// Whether field 230, the recovery action, is answered.
pub(super) fn has_recovery_action(driver: Release) -> bool {
    driver >= (560, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_gives_its_release() {
        assert_eq!(release("535.43.02"), (535, 43));
        assert_eq!(release("610.11"), (610, 11));
        assert_eq!(release("odd"), (0, 0));
    }

    #[test]
    fn old_drivers_lack_what_came_later() {
        assert!(!has("nvmlDeviceGetMemoryInfo_v2", release("470.42.01")));
        assert!(has("nvmlDeviceGetMemoryInfo_v2", release("510.39.01")));
        assert!(!has("nvmlDeviceGetAccountingStats_v2", release("590.44")));
        assert!(has("nvmlDeviceGetUUID", release("418.0")));
    }
}
