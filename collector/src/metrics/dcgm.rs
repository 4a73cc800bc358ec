//! The names and labels of dcgm-exporter, for dashboards that fleets have already (`--dcgm-names`; off by default, since beside a dcgm-exporter
//! they would double every sum).
//!
//! Names, units, help and labels as in its default counters (github.com/NVIDIA/dcgm-exporter). Two differences: whole-device values are not
//! repeated for each MIG instance, and a unit that several pods share carries no pod.

use super::board::{Read, State};
use super::exposition::{Exposition, Value};
use super::figures::{InstanceFigures, UnitFigures};
use gpuledger_nvml::Memory;
use std::collections::BTreeMap;

/// Labels in the order of the exporter.
const LABELS: &[&str] = &[
    "gpu",
    "UUID",
    "pci_bus_id",
    "device",
    "modelName",
    "GPU_I_PROFILE",
    "GPU_I_ID",
    "Hostname",
    "DCGM_FI_DRIVER_VERSION",
    "container",
    "namespace",
    "pod",
];

const MIB: u64 = 1 << 20;

/// A device value: name, type, help, and the value of a GPU.
type DeviceField = (&'static str, &'static str, &'static str, fn(&Row<'_>) -> Option<Value>);
/// A value of a device without instances, or of an instance.
type UnitField = (&'static str, &'static str, fn(&UnitFigures) -> Option<Value>);

struct Row<'a> {
    read: &'a Read,
    last_xid: u64,
}

const DEVICE: &[DeviceField] = &[
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", |row| {
        row.read.figures.clocks_mhz.ok().map(|(sm, _)| Value::whole(sm))
    }),
    ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", |row| {
        row.read.figures.clocks_mhz.ok().map(|(_, memory)| Value::whole(memory))
    }),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", |row| {
        row.read.figures.temperature_c.ok().map(Value::whole)
    }),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", |row| {
        row.read.figures.power_mw.ok().map(Value::milli)
    }),
    (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        |row| row.read.figures.energy_mj.ok().map(Value::whole),
    ),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", |row| {
        row.read.figures.utilization.ok().map(|share| Value::whole(share.0 / 10_000))
    }),
    // The same question as the gauge: the time in which any kernel ran. A mean of performance counters would be better, and is of the SMs.
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.", |row| {
        row.read.figures.utilization.ok().map(|share| Value::micro(share.0))
    }),
    ("DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", |row| {
        Some(Value::whole(row.last_xid))
    }),
];

const UNIT: &[UnitField] = &[
    ("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", |unit| {
        mib(unit, |memory| Some(memory.free))
    }),
    ("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", |unit| {
        mib(unit, |memory| Some(memory.used))
    }),
    ("DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", |unit| {
        mib(unit, |memory| memory.reserved)
    }),
    ("DCGM_FI_PROF_SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp assigned.", |unit| {
        unit.sm_active.map(|share| Value::micro(share.0))
    }),
];

fn mib(unit: &UnitFigures, bytes: fn(&Memory) -> Option<u64>) -> Option<Value> {
    unit.memory.as_ref().ok().and_then(bytes).map(|bytes| Value::whole(bytes / MIB))
}

/// Writes all of them.
pub(super) fn write(into: &mut Exposition, state: &State, fresh: &BTreeMap<&str, &Read>) {
    for (name, kind, help, value) in DEVICE {
        let mut family = into.named(name, kind, help, LABELS);
        for (uuid, read) in fresh {
            let last_xid = state.gpus.get(*uuid).map_or(0, |gpu| gpu.last_xid);
            let labels = Labels::new(state, read, None);
            family.maybe(&labels.values(), value(&Row { read, last_xid }));
        }
    }
    for (name, help, value) in UNIT {
        let mut family = into.named(name, "gauge", help, LABELS);
        for read in fresh.values() {
            // With MIG on the instances are what is held, and the device's memory would count them twice.
            if !read.figures.mig {
                family.maybe(&Labels::new(state, read, None).values(), value(&read.figures.device));
            }
            for instance in &read.figures.instances {
                family.maybe(&Labels::new(state, read, Some(instance)).values(), value(&instance.unit));
            }
        }
    }
}

/// The values of the labels of one unit.
struct Labels<'a> {
    index: String,
    device: String,
    instance: String,
    profile: &'a str,
    read: &'a Read,
    state: &'a State,
    gpu_instance: Option<u32>,
}

impl<'a> Labels<'a> {
    fn new(state: &'a State, read: &'a Read, instance: Option<&'a InstanceFigures>) -> Self {
        let identity = &read.figures.identity;
        let number = identity.minor.unwrap_or(identity.index);
        Self {
            index: identity.index.to_string(),
            device: format!("nvidia{number}"),
            instance: instance.map(|instance| instance.gpu_instance.to_string()).unwrap_or_default(),
            profile: instance.map_or("", |instance| &instance.profile),
            read,
            state,
            gpu_instance: instance.map(|instance| instance.gpu_instance),
        }
    }

    fn values(&self) -> [&str; 12] {
        let identity = &self.read.figures.identity;
        let driver = self.state.versions.as_ref().map_or("", |versions| versions.driver.as_str());
        let holder = self.state.holders.get(&(identity.uuid.clone(), self.gpu_instance));
        let (container, namespace, pod) =
            holder.map_or(("", "", ""), |holder| (&holder.container, &holder.namespace, &holder.pod));
        [
            &self.index,
            &identity.uuid,
            &identity.pci_bus_id,
            &self.device,
            &identity.name,
            self.profile,
            &self.instance,
            &self.state.node,
            driver,
            container,
            namespace,
            pod,
        ]
    }
}
