//! The calls the collector makes. One implementation stands on the C library; tests of the sampler have another.

use crate::absent::Reading;
use crate::values::{
    AccountingCounters, AccountingStats, DeviceEvent, GpmMean, Identity, Memory, MigInstance, MigMode, Ppm,
    ProcessRow, Scope, UtilizationRow, UtilizationSample, Versions,
};
use std::time::Duration;

/// Monotonic time in microseconds.
pub trait Clock {
    /// Now.
    fn monotonic_us(&self) -> u64;
}

/// An initialised library.
pub trait Driver: Send + Sync {
    /// Versions of the driver and the library.
    ///
    /// # Errors
    /// As NVML says.
    fn versions(&self) -> Reading<Versions>;

    /// Number of devices, those included that may not be opened.
    ///
    /// # Errors
    /// As NVML says.
    fn gpu_count(&self) -> Reading<u32>;

    /// The device at a place of the list.
    ///
    /// # Errors
    /// As NVML says: lost, no permission, unknown.
    fn gpu(&self, index: u32) -> Reading<Box<dyn Gpu>>;

    /// Waits for the next event of any device, at most for the timeout. None: nothing happened.
    ///
    /// # Errors
    /// As NVML says; not supported where no device can report any.
    fn next_event(&self, timeout: Duration) -> Reading<Option<DeviceEvent>>;
}

/// An opened device. Readings of one device are taken by one thread.
pub trait Gpu: Send {
    /// Which device it is.
    ///
    /// # Errors
    /// As NVML says.
    fn identity(&self) -> Reading<Identity>;

    /// Its MIG mode. A model without MIG is [`MigMode::Unsupported`], not an error.
    ///
    /// # Errors
    /// As NVML says.
    fn mig_mode(&self) -> Reading<MigMode>;

    /// Its live MIG devices, in order of (GPU instance, compute instance). Walks all places: a hole is not the end.
    ///
    /// # Errors
    /// As NVML says; one instance that vanishes meanwhile is left out.
    fn instances(&mut self) -> Reading<Vec<MigInstance>>;

    /// Memory of the device or of one GPU instance.
    ///
    /// # Errors
    /// As NVML says; no permission for the device from inside a MIG-only container.
    fn memory(&self, scope: Scope) -> Reading<Memory>;

    /// All processes of the device, each (pid, GPU instance, compute instance) once, over the compute, graphics and MPS lists. Where the
    /// privilege for the list of a device with MIG on is lacking, those of its MIG devices.
    ///
    /// # Errors
    /// As NVML says; implausible where the list cannot be believed.
    fn processes(&self) -> Reading<Vec<ProcessRow>>;

    /// Rows of the process utilisation ring later than an instant of the driver's clock; 0 is the whole ring. Idle is empty, not an error.
    ///
    /// # Errors
    /// As NVML says; not supported with MIG on.
    fn process_utilization(&self, since_us: u64) -> Reading<Vec<UtilizationRow>>;

    /// Samples of the device's utilisation ring later than an instant of the driver's clock, oldest first. Idle is empty.
    ///
    /// # Errors
    /// As NVML says; not supported with MIG on.
    fn utilization_samples(&self, since_us: u64) -> Reading<Vec<UtilizationSample>>;

    /// The utilisation gauge: the last window of a sixth of a second to a second.
    ///
    /// # Errors
    /// As NVML says; not supported with MIG on.
    fn utilization_gauge(&self) -> Reading<Ppm>;

    /// Whether the device has performance counters (GPM).
    ///
    /// # Errors
    /// As NVML says.
    fn has_gpm(&self) -> Reading<bool>;

    /// Takes a GPM sample of a scope and gives the mean since the one before it. None: it is the first, or the one before it was of another
    /// generation. The sample is kept and is the start of the next interval, so that there is no hole.
    ///
    /// # Errors
    /// As NVML says; implausible where the metric echoed is not the one asked for. After an error the next sample is a first one, but after
    /// [`crate::Absent::NotYet`]: less than 100 ms passed since the last sample, which stays.
    fn gpm_mean(&mut self, scope: Scope, generation: u64, clock: &dyn Clock) -> Reading<Option<GpmMean>>;

    /// Whether accounting is on.
    ///
    /// # Errors
    /// As NVML says.
    fn is_accounting_on(&self) -> Reading<bool>;

    /// Processes that accounting knows, ended ones included.
    ///
    /// # Errors
    /// As NVML says.
    fn accounting_pids(&self) -> Reading<Vec<u32>>;

    /// Lifetime figures of a process.
    ///
    /// # Errors
    /// As NVML says.
    fn accounting_stats(&self, pid: u32) -> Reading<AccountingStats>;

    /// Counters of a process.
    ///
    /// # Errors
    /// As NVML says; no function before release 610.
    fn accounting_counters(&self, pid: u32) -> Reading<AccountingCounters>;

    /// Energy in millijoules since the driver was loaded.
    ///
    /// # Errors
    /// As NVML says.
    fn energy_mj(&self) -> Reading<u64>;

    /// Power in milliwatts: instant or over a second, as the generation has it.
    ///
    /// # Errors
    /// As NVML says.
    fn power_mw(&self) -> Reading<u32>;

    /// Temperature in degrees Celsius.
    ///
    /// # Errors
    /// As NVML says.
    fn temperature_c(&self) -> Reading<u32>;

    /// Clock rates in MHz: multiprocessors, memory.
    ///
    /// # Errors
    /// As NVML says.
    fn clocks_mhz(&self) -> Reading<(u32, u32)>;

    /// Uncorrectable memory errors since the driver was loaded.
    ///
    /// # Errors
    /// As NVML says; not supported without ECC.
    fn uncorrectable_errors(&self) -> Reading<u64>;

    /// What the driver wants done (field 230): 0 nothing, 1 reset, 2 reboot, 3 drain, 4 drain and reset; newer drivers add numbers.
    ///
    /// # Errors
    /// As NVML says.
    fn recovery_action(&self) -> Reading<u32>;
}
