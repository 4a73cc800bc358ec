//! Probing: one look at each source, from the best down.

use super::Ladder;
use super::rung::{Refusal, Refused, Rung, Standing, Want};
use gpuledger_nvml::{Absent, Gpu, Reading, Scope};
use std::collections::BTreeMap;

/// What cycles have found out since the last probe, which a probe must not try by itself: a sample of GPM more would cut the interval that
/// is running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Why GPM of the device fails though the device has it.
    pub device_gpm: Option<Absent>,
    /// The same of its instances.
    pub instance_gpm: Option<Absent>,
    /// A GPU instance that lives now.
    pub gpu_instance: Option<u32>,
}

/// Finds out where the readings of a device stand. Reads only.
pub fn probe(gpu: &dyn Gpu, mig: bool, known: Known) -> Ladder {
    let device_sm = device_sm(gpu, known);
    let mut standings = BTreeMap::new();
    standings.insert(Want::ProcessSm, process_sm(gpu, mig, known, &device_sm));
    standings.insert(Want::DeviceSm, device_sm);
    let memory = gpu.memory(Scope::Device).map(drop);
    standings.insert(Want::ProcessMemory, process_memory(gpu, memory));
    standings.insert(Want::DeviceMemory, one(Rung::MemoryRead, memory));
    standings.insert(Want::Energy, one(Rung::EnergyCounter, gpu.energy_mj()));
    if mig {
        standings.insert(Want::InstanceSm, instance_sm(gpu, known));
        let scope = known.gpu_instance.map(Scope::GpuInstance);
        let memory = scope.map_or(Ok(()), |scope| gpu.memory(scope).map(drop));
        standings.insert(Want::InstanceMemory, one(Rung::MemoryRead, memory));
    }
    Ladder { mig, standings }
}

fn device_sm(gpu: &dyn Gpu, known: Known) -> Standing {
    climb(
        [
            (Rung::Gpm, &|| gpm(gpu, known.device_gpm)),
            (Rung::DeviceSamples, &|| nvml(gpu.utilization_samples(0))),
            (Rung::Gauge, &|| nvml(gpu.utilization_gauge())),
        ],
        Rung::Nothing,
    )
}

fn instance_sm(gpu: &dyn Gpu, known: Known) -> Standing {
    climb([(Rung::Gpm, &|| gpm(gpu, known.instance_gpm))], Rung::AllocationOnly)
}

fn process_sm(gpu: &dyn Gpu, mig: bool, known: Known, device_sm: &Standing) -> Standing {
    if mig {
        let refused =
            [Rung::Accounting, Rung::ProcessSamples].map(|rung| Refusal { rung, why: Refused::MigOn });
        let instance = instance_sm(gpu, known);
        let rung = if instance.rung == Rung::Gpm { Rung::Derived } else { Rung::Nothing };
        let refused = refused.into_iter().chain(instance.refused).collect();
        return Standing { rung, refused, doubt: instance.doubt };
    }
    let last = if device_sm.rung == Rung::Nothing { Rung::Nothing } else { Rung::Derived };
    climb(
        [
            (Rung::Accounting, &|| accounting(gpu)),
            (Rung::ProcessSamples, &|| nvml(gpu.process_utilization(0))),
        ],
        last,
    )
}

/// A list without memory is no source of it. Where there is no process to tell by, it is one unless the device has no memory of its own.
fn process_memory(gpu: &dyn Gpu, of_device: Reading<()>) -> Standing {
    let list = || {
        let rows = gpu.processes().map_err(Refused::Nvml)?;
        let is_told = rows.iter().any(|row| row.memory_bytes.is_some());
        let may_be = rows.is_empty() && of_device != Err(Absent::NotSupported);
        if is_told || may_be { Ok(()) } else { Err(Refused::NotReported) }
    };
    climb([(Rung::MemoryRead, &list)], Rung::Nothing)
}

type Attempt<'a> = (Rung, &'a dyn Fn() -> Result<(), Refused>);

/// The first rung that holds, or that fails for a reason that may pass: a reading that is absent for a while is better than one that is
/// guessed. Else the last one.
fn climb<const N: usize>(rungs: [Attempt<'_>; N], last: Rung) -> Standing {
    let mut refused = Vec::new();
    for (rung, attempt) in rungs {
        match attempt() {
            Err(why) if why.lasts() => refused.push(Refusal { rung, why }),
            outcome => return Standing { rung, refused, doubt: outcome.err() },
        }
    }
    Standing { rung: last, refused, doubt: None }
}

/// A reading with one source.
fn one<T>(rung: Rung, reading: Reading<T>) -> Standing {
    climb([(rung, &|| reading.as_ref().map(drop).map_err(|why| Refused::Nvml(*why)))], Rung::Nothing)
}

fn nvml<T>(reading: Reading<T>) -> Result<(), Refused> {
    reading.map(drop).map_err(Refused::Nvml)
}

fn gpm(gpu: &dyn Gpu, known: Option<Absent>) -> Result<(), Refused> {
    match (gpu.has_gpm(), known) {
        (Ok(true), None) => Ok(()),
        (Ok(true), Some(why)) | (Err(why), _) => Err(Refused::Nvml(why)),
        (Ok(false), _) => Err(Refused::Nvml(Absent::NotSupported)),
    }
}

/// Counters of version 2 are tried on a process that accounting knows; where it knows none, on none: a driver that has the function says that
/// there is no such process. A driver without the function is told first: there nothing is gained by turning accounting on.
fn accounting(gpu: &dyn Gpu) -> Result<(), Refused> {
    let is_on = gpu.is_accounting_on().map_err(Refused::Nvml)?;
    let known = if is_on { gpu.accounting_pids().map_err(Refused::Nvml)? } else { Vec::new() };
    match gpu.accounting_counters(known.first().copied().unwrap_or(0)) {
        Err(why @ (Absent::NoFunction | Absent::VersionMismatch)) => Err(Refused::Nvml(why)),
        Ok(_) | Err(_) if !is_on => Err(Refused::AccountingOff),
        Err(why) if Refused::Nvml(why).lasts() => Err(Refused::Nvml(why)),
        Ok(_) | Err(_) => Ok(()),
    }
}
