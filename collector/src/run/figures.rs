//! What the board shows of a cycle.

use crate::cycle::View;
use crate::ladder::{Ladder, Want};
use crate::metrics::{GpuFigures, InstanceFigures, ReadingFigure, UnitFigures};
use crate::probe::want_word;
use crate::topology::GpuInstance;
use crate::window::UnitKey;
use gpuledger_nvml::{Absent, MigMode};
use std::collections::BTreeSet;

/// The figures of one device.
pub(super) fn figures(view: &View) -> GpuFigures {
    let gauges = view.gauges;
    GpuFigures {
        identity: view.identity.clone(),
        mig: matches!(view.mig, Ok(MigMode::On { .. })),
        device: unit(view, UnitKey::Device),
        instances: view.instances.iter().map(|one| instance(view, one)).collect(),
        utilization: gauges.utilization,
        power_mw: gauges.power_mw,
        energy_mj: gauges.energy_mj,
        temperature_c: gauges.temperature_c,
        clocks_mhz: gauges.clocks_mhz,
        uncorrectable_errors: gauges.uncorrectable_errors,
        readings: view.ladder.as_deref().map(readings).unwrap_or_default(),
    }
}

fn instance(view: &View, of: &GpuInstance) -> InstanceFigures {
    let profile = of.devices.first().and_then(|device| device.profile.clone().ok());
    InstanceFigures {
        gpu_instance: of.id,
        generation: of.generation,
        profile: profile.unwrap_or_default(),
        placement: of.placement(),
        unit: unit(view, UnitKey::Instance { id: of.id, generation: of.generation }),
    }
}

fn unit(view: &View, key: UnitKey) -> UnitFigures {
    let of_unit = match key {
        UnitKey::Device => None,
        UnitKey::Instance { id, .. } => Some(id),
    };
    let here = |gpu_instance: Option<u32>| of_unit.is_none() || gpu_instance == of_unit;
    let count = |processes: &Vec<crate::cycle::LiveProcess>| {
        // One with contexts in two compute instances is one process.
        let here = processes.iter().filter(|process| here(process.gpu_instance));
        let pids: BTreeSet<u32> = here.map(|process| process.process.pid).collect();
        u32::try_from(pids.len()).unwrap_or(u32::MAX)
    };
    UnitFigures {
        memory: view.memory.get(&key).copied().unwrap_or(Err(Absent::NotYet)),
        processes: view.processes.as_ref().map(count),
        sm_active: view.sm_active.get(&key).copied(),
    }
}

fn readings(ladder: &Ladder) -> Vec<ReadingFigure> {
    let figure = |(want, standing): (Want, &crate::ladder::Standing)| ReadingFigure {
        reading: want_word(want).to_owned(),
        rung: standing.rung.letter().map(String::from).unwrap_or_default(),
        quality: standing.quality().to_string(),
        source: standing.rung.call(want).to_owned(),
    };
    ladder.standings().map(figure).collect()
}
