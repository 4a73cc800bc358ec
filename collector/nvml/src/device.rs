//! An opened device.

use crate::absent::{Absent, Reading};
use crate::api::{Clock, Gpu};
use crate::calls::Handle;
use crate::gpm::{self, Gpm};
use crate::library::Library;
use crate::mig::{self, MigHandle, Profiles};
use crate::values::{
    AccountingCounters, AccountingStats, GpmMean, Identity, Memory, MigInstance, MigMode, Ppm, ProcessRow,
    Scope, UtilizationRow, UtilizationSample,
};
use crate::{accounting, identity, memory, process, sensors, utilization};
use nvml_wrapper_sys::bindings as sys;
use std::sync::Arc;

/// A device of [`crate::Nvml`]. It keeps the library loaded; once that was shut down it answers `uninitialized` only.
pub(crate) struct Device {
    library: Arc<Library>,
    handle: Handle<sys::nvmlDevice_st>,
    /// As of the last look at the instances.
    mig: Vec<MigHandle>,
    profiles: Option<Profiles>,
    gpm: Gpm,
}

impl Device {
    pub(crate) fn new(library: Arc<Library>, handle: Handle<sys::nvmlDevice_st>) -> Self {
        Self { library, handle, mig: Vec::new(), profiles: None, gpm: Gpm::default() }
    }

    /// What to ask for a scope's memory: the device, or any MIG device of the GPU instance, as those share its memory.
    fn handle_of(&self, scope: Scope) -> Reading<Handle<sys::nvmlDevice_st>> {
        let Scope::GpuInstance(id) = scope else { return Ok(self.handle) };
        let table = self.library.table()?;
        let is_of_it = |mig: &&MigHandle| mig.gpu_instance == id;
        if let Some(seen) = self.mig.iter().find(is_of_it).filter(|mig| mig::still_of(table, mig)) {
            return Ok(seen.device);
        }
        mig::handles(table, self.handle)?.iter().find(is_of_it).map(|mig| mig.device).ok_or(Absent::NotFound)
    }

    /// Without the privilege to see the list of the whole device, the lists of its MIG devices, together.
    fn processes_of_instances(&self) -> Reading<Vec<ProcessRow>> {
        let mut rows = Vec::new();
        for mig in mig::handles(self.library.table()?, self.handle)? {
            let of_it = mig::unless_gone(process::read(&self.library, mig.device))?.unwrap_or_default();
            rows.extend(of_it.into_iter().map(|row| ProcessRow {
                gpu_instance: Some(mig.gpu_instance),
                compute_instance: Some(mig.compute_instance),
                ..row
            }));
        }
        Ok(process::merged(rows))
    }
}

impl Gpu for Device {
    fn identity(&self) -> Reading<Identity> {
        identity::read(self.library.table()?, self.handle)
    }

    fn mig_mode(&self) -> Reading<MigMode> {
        mig::mode(self.library.table()?, self.handle)
    }

    fn instances(&mut self) -> Reading<Vec<MigInstance>> {
        let table = self.library.table()?;
        self.mig = mig::handles(table, self.handle)?;
        self.gpm.keep_instances(|id| self.mig.iter().any(|mig| mig.gpu_instance == id));
        if self.mig.is_empty() {
            return Ok(Vec::new());
        }
        let profiles = match self.profiles.take() {
            Some(profiles) => profiles,
            None => Profiles::read(table, self.handle)?,
        };
        let profiles = self.profiles.insert(profiles);
        mig::instances(table, self.handle, &self.mig, profiles)
    }

    fn memory(&self, scope: Scope) -> Reading<Memory> {
        memory::read(self.library.table()?, self.handle_of(scope)?)
    }

    fn processes(&self) -> Reading<Vec<ProcessRow>> {
        match process::read(&self.library, self.handle) {
            Err(Absent::NoPermission) if matches!(self.mig_mode(), Ok(MigMode::On { .. })) => {
                self.processes_of_instances()
            }
            rows => rows,
        }
    }

    fn process_utilization(&self, since_us: u64) -> Reading<Vec<UtilizationRow>> {
        utilization::of_processes(self.library.table()?, self.handle, since_us)
    }

    fn utilization_samples(&self, since_us: u64) -> Reading<Vec<UtilizationSample>> {
        utilization::samples(self.library.table()?, self.handle, since_us)
    }

    fn utilization_gauge(&self) -> Reading<Ppm> {
        utilization::gauge(self.library.table()?, self.handle)
    }

    fn has_gpm(&self) -> Reading<bool> {
        gpm::is_supported(self.library.table()?, self.handle)
    }

    fn gpm_mean(&mut self, scope: Scope, generation: u64, clock: &dyn Clock) -> Reading<Option<GpmMean>> {
        self.gpm.mean(&self.library, self.handle, scope, generation, clock)
    }

    fn is_accounting_on(&self) -> Reading<bool> {
        accounting::is_on(self.library.table()?, self.handle)
    }

    fn accounting_pids(&self) -> Reading<Vec<u32>> {
        accounting::pids(self.library.table()?, self.handle)
    }

    fn accounting_stats(&self, pid: u32) -> Reading<AccountingStats> {
        accounting::stats(self.library.table()?, self.handle, pid)
    }

    fn accounting_counters(&self, pid: u32) -> Reading<AccountingCounters> {
        accounting::counters(self.library.accounting_v2()?, self.handle, pid)
    }

    fn energy_mj(&self) -> Reading<u64> {
        sensors::energy_mj(self.library.table()?, self.handle)
    }

    fn power_mw(&self) -> Reading<u32> {
        sensors::power_mw(self.library.table()?, self.handle)
    }

    fn temperature_c(&self) -> Reading<u32> {
        sensors::temperature_c(self.library.table()?, self.handle)
    }

    fn clocks_mhz(&self) -> Reading<(u32, u32)> {
        sensors::clocks_mhz(self.library.table()?, self.handle)
    }

    fn uncorrectable_errors(&self) -> Reading<u64> {
        sensors::uncorrectable_errors(self.library.table()?, self.handle)
    }

    fn recovery_action(&self) -> Reading<u32> {
        sensors::recovery_action(self.library.table()?, self.handle)
    }
}
