//! Our own series.

use super::board::{Gpu, Read, State};
use super::exposition::{Exposition, Value};
use super::figures::InstanceFigures;
use crate::clock::Stamp;
use crate::spool::SpoolStatus;
use gpuledger_nvml::Memory;
use gpuledger_telemetry::names::{self, Metric};
use std::collections::BTreeMap;

type Fresh<'a> = BTreeMap<&'a str, &'a Read>;

/// Writes all of them.
pub(super) fn write(into: &mut Exposition, state: &State, fresh: &Fresh<'_>, now: Stamp) {
    build(into);
    node(into, state);
    conditions(into, state);
    identities(into, fresh);
    readings(into, fresh);
    device(into, state, fresh);
    gauges(into, fresh);
    instances(into, state, fresh);
    collector(into, state);
    delivery(into, state, now);
}

fn build(into: &mut Exposition) {
    into.family(names::BUILD_INFO).sample(&[env!("CARGO_PKG_VERSION")], Value::whole(1_u32));
}

fn node(into: &mut Exposition, state: &State) {
    let (driver, nvml) =
        state.versions.as_ref().map_or(("", ""), |versions| (&versions.driver, &versions.nvml));
    into.family(names::NODE_INFO).sample(&[&state.node, driver, nvml], Value::whole(1_u32));
}

/// What is shown of every GPU, however old its figures are.
fn conditions(into: &mut Exposition, state: &State) {
    let mut family = into.family(names::GPU_STATE);
    for (uuid, word) in state.gpus.iter().filter_map(|(uuid, gpu)| Some((uuid, gpu.word?))) {
        for each in ["ok", "fault"] {
            family.sample(&[uuid, each], Value::whole(u32::from(word == each)));
        }
    }
    let mut family = into.family(names::GPU_READABLE);
    for (uuid, gpu) in state.gpus.iter().filter(|(_, gpu)| gpu.word.is_some()) {
        family.sample(&[uuid], Value::whole(u32::from(gpu.is_readable)));
    }
    let mut family = into.family(names::GPU_READ_TIME);
    for (uuid, gpu) in &state.gpus {
        let at = gpu.read.as_ref().and_then(|read| u64::try_from(read.at.real.as_micros()).ok());
        family.maybe(&[uuid], at.map(Value::micro));
    }
    let mut family = into.family(names::GPU_XIDS);
    for (uuid, gpu) in &state.gpus {
        for (number, times) in &gpu.xids {
            family.sample(&[uuid, &number.to_string()], Value::whole(*times));
        }
    }
}

fn identities(into: &mut Exposition, fresh: &Fresh<'_>) {
    let mut family = into.family(names::GPU_INFO);
    for (uuid, Read { figures, .. }) in fresh {
        let identity = &figures.identity;
        let mig = if figures.mig { "on" } else { "off" };
        let index = identity.index.to_string();
        let labels = [uuid, index.as_str(), &identity.name, &identity.pci_bus_id, mig];
        family.sample(&labels, Value::whole(1_u32));
    }
}

fn readings(into: &mut Exposition, fresh: &Fresh<'_>) {
    let mut family = into.family(names::GPU_READING_INFO);
    for (uuid, read) in fresh {
        for reading in &read.figures.readings {
            let labels = [uuid, reading.reading.as_str(), &reading.rung, &reading.quality, &reading.source];
            family.sample(&labels, Value::whole(1_u32));
        }
    }
}

fn device(into: &mut Exposition, state: &State, fresh: &Fresh<'_>) {
    let mut totals = |metric: Metric, value: fn(&Gpu) -> Option<Value>| {
        let mut family = into.family(metric);
        for uuid in fresh.keys() {
            family.maybe(&[uuid], state.gpus.get(*uuid).and_then(value));
        }
    };
    totals(names::GPU_SM_ACTIVE, |gpu| gpu.device().sm_active_us.map(Value::micro));
    totals(names::GPU_SM_COVERED, |gpu| {
        let totals = gpu.device();
        totals.sm_active_us.map(|_| Value::micro(totals.sm_covered_us))
    });
    totals(names::GPU_MEMORY_TIME, |gpu| gpu.device().memory_byte_us.map(Value::micro));
    let mut family = into.family(names::GPU_MEMORY);
    for (uuid, read) in fresh {
        for (state, bytes) in read.figures.device.memory.iter().flat_map(memory_states) {
            family.sample(&[uuid, state], Value::whole(bytes));
        }
    }
}

/// Without a reserved part apart, it is within the allocated one.
fn memory_states(memory: &Memory) -> impl Iterator<Item = (&'static str, u64)> {
    let reserved = memory.reserved.map(|bytes| ("reserved", bytes));
    [("allocated", memory.used), ("free", memory.free)].into_iter().chain(reserved)
}

fn gauges(into: &mut Exposition, fresh: &Fresh<'_>) {
    let mut each = |metric: Metric, value: fn(&Read) -> Option<Value>| {
        let mut family = into.family(metric);
        for (uuid, read) in fresh {
            family.maybe(&[uuid], value(read));
        }
    };
    each(names::GPU_PROCESSES, |read| read.figures.device.processes.map(Value::whole));
    each(names::GPU_POWER, |read| read.figures.power_mw.ok().map(Value::milli));
    each(names::GPU_ENERGY, |read| read.figures.energy_mj.ok().map(Value::milli));
    each(names::GPU_TEMPERATURE, |read| read.figures.temperature_c.ok().map(Value::whole));
    each(names::GPU_MEMORY_ERRORS, |read| read.figures.uncorrectable_errors.ok().map(Value::whole));
    let mut family = into.family(names::GPU_CLOCK);
    for (uuid, read) in fresh {
        let Ok((sm, memory)) = read.figures.clocks_mhz else { continue };
        for (domain, mhz) in [("sm", sm), ("memory", memory)] {
            family.sample(&[uuid, domain], Value::whole(u64::from(mhz) * 1_000_000));
        }
    }
}

fn instances(into: &mut Exposition, state: &State, fresh: &Fresh<'_>) {
    let mut each = |metric: Metric, value: fn(&Gpu, &InstanceFigures) -> Option<Value>| {
        let mut family = into.family(metric);
        for (uuid, read) in fresh {
            let Some(gpu) = state.gpus.get(*uuid) else { continue };
            for instance in &read.figures.instances {
                let id = instance.gpu_instance.to_string();
                let labels = [uuid, id.as_str(), &instance.profile];
                family.maybe(&labels, value(gpu, instance));
            }
        }
    };
    each(names::INSTANCE_SM_ACTIVE, |gpu, instance| gpu.instance(instance).sm_active_us.map(Value::micro));
    each(names::INSTANCE_SM_COVERED, |gpu, instance| {
        let totals = gpu.instance(instance);
        totals.sm_active_us.map(|_| Value::micro(totals.sm_covered_us))
    });
    each(names::INSTANCE_MEMORY_TIME, |gpu, instance| {
        gpu.instance(instance).memory_byte_us.map(Value::micro)
    });
    each(names::INSTANCE_PROCESSES, |_, instance| instance.unit.processes.map(Value::whole));
    let mut family = into.family(names::INSTANCE_MEMORY);
    for (uuid, read) in fresh {
        for instance in &read.figures.instances {
            let id = instance.gpu_instance.to_string();
            for (state, bytes) in instance.unit.memory.iter().flat_map(memory_states) {
                let labels = [uuid, id.as_str(), &instance.profile, state];
                family.sample(&labels, Value::whole(bytes));
            }
        }
    }
}

fn collector(into: &mut Exposition, state: &State) {
    let mut family = into.family(names::COLLECTOR_CYCLES);
    for (uuid, gpu) in &state.gpus {
        for (outcome, times) in &gpu.cycles {
            family.sample(&[uuid, outcome.as_str()], Value::whole(*times));
        }
    }
    state.durations.write(into, names::COLLECTOR_CYCLE_DURATION);
    let mut family = into.family(names::COLLECTOR_STALLED);
    for (uuid, gpu) in &state.gpus {
        family.sample(&[uuid], Value::whole(gpu.stalled));
    }
    let mut family = into.family(names::COLLECTOR_DISCARDED);
    for (reason, rows) in &state.discarded {
        family.sample(&[reason], Value::whole(*rows));
    }
    let mut family = into.family(names::COLLECTOR_GAPS);
    for (reason, times) in &state.gaps {
        family.sample(&[reason], Value::whole(*times));
    }
    into.family(names::COLLECTOR_LATE).sample(&[], Value::whole(state.late_parts));
    into.family(names::COLLECTOR_RELOADS).sample(&[], Value::whole(state.reloads));
    into.family(names::COLLECTOR_DISAGREEMENTS).sample(&[], Value::whole(state.disagreements));
}

fn delivery(into: &mut Exposition, state: &State, now: Stamp) {
    let Some((spool, publish)) = &state.delivery else { return };
    for (metric, value) in [
        (names::COLLECTOR_SPOOL_BYTES, Value::whole(spool.bytes)),
        (names::COLLECTOR_SPOOL_LIMIT, Value::whole(spool.max_bytes)),
        (names::COLLECTOR_SPOOL_RECORDS, Value::whole(spool.waiting)),
        (names::COLLECTOR_DELAY, Value::micro(delay_us(spool, now))),
        (names::COLLECTOR_DAMAGED, Value::whole(spool.damaged_records)),
        (names::COLLECTOR_PUBLISHED, Value::whole(publish.arrived)),
        (names::COLLECTOR_NOT_ENTITLED, Value::whole(publish.not_entitled)),
        (names::COLLECTOR_PUBLISH_FAILURES, Value::whole(publish.failures)),
        (names::COLLECTOR_REFUSED, Value::whole(spool.refused)),
    ] {
        into.family(metric).sample(&[], value);
    }
    let mut family = into.family(names::COLLECTOR_UNKEPT);
    for (reason, windows) in &spool.not_kept {
        family.sample(&[reason.word()], Value::whole(*windows));
    }
}

/// How far the ledger is behind: from the end of the last window that arrived, while others wait.
fn delay_us(spool: &SpoolStatus, now: Stamp) -> u64 {
    let waiting = spool.waiting > 0;
    let since = spool.acknowledged_window_end.filter(|_| waiting).map_or(0, |end| now.real.since(end));
    u64::try_from(since).unwrap_or_default()
}
