use super::*;
use gpuledger_nvml::{
    AccountingCounters, AccountingStats, Clock, DeviceEvent, GpmMean, Gpu, Identity, Memory, MigInstance,
    MigMode, Placement, Ppm, ProcessRow, Reading, Scope, UtilizationRow, UtilizationSample, Versions,
};
use std::time::Duration;

/// A node of an H100 with MIG on whose placements need privilege, an A100 with accounting off, and a GPU that is lost.
struct Node {
    /// The driver's accounting has counters.
    has_counters: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Model {
    Hopper,
    Ampere { has_counters: bool },
}

impl Driver for Node {
    fn versions(&self) -> Reading<Versions> {
        Ok(Versions { driver: "550.54.15".to_owned(), nvml: "12.550.54.15".to_owned(), cuda: 12_040 })
    }

    fn gpu_count(&self) -> Reading<u32> {
        Ok(3)
    }

    fn gpu(&self, index: u32) -> Reading<Box<dyn Gpu>> {
        match index {
            0 => Ok(Box::new(Model::Hopper)),
            1 => Ok(Box::new(Model::Ampere { has_counters: self.has_counters })),
            _ => Err(Absent::Lost),
        }
    }

    fn next_event(&self, _: Duration) -> Reading<Option<DeviceEvent>> {
        Ok(None)
    }
}

impl Model {
    /// What only a whole GPU has.
    fn without_mig<T>(self, value: T) -> Reading<T> {
        if self == Self::Hopper { Err(Absent::NotSupported) } else { Ok(value) }
    }
}

impl Gpu for Model {
    fn identity(&self) -> Reading<Identity> {
        let (uuid, index, name) = match self {
            Self::Hopper => ("GPU-aaaa", 0, "NVIDIA H100 80GB HBM3"),
            Self::Ampere { .. } => ("GPU-bbbb", 1, "NVIDIA A100-SXM4-40GB"),
        };
        Ok(Identity {
            uuid: uuid.to_owned(),
            index,
            name: name.to_owned(),
            pci_bus_id: format!("00000000:{index}B:00.0"),
            minor: Some(index),
            compute_capability: None,
        })
    }

    fn mig_mode(&self) -> Reading<MigMode> {
        Ok(match self {
            Self::Hopper => MigMode::On { turns_off: false },
            Self::Ampere { .. } => MigMode::Off { turns_on: false },
        })
    }

    fn instances(&mut self) -> Reading<Vec<MigInstance>> {
        let instance = |gpu_instance: u32, placement: Reading<Placement>| MigInstance {
            index: gpu_instance - 1,
            uuid: format!("MIG-{gpu_instance}"),
            gpu_instance,
            compute_instance: 0,
            profile: Ok("3g.40gb".to_owned()),
            compute_profile: None,
            placement,
            compute_slices: Ok(3),
            multiprocessors: Ok(60),
            memory_bytes: Ok(40 << 30),
        };
        Ok(vec![instance(1, Ok(Placement { start: 0, size: 4 })), instance(2, Err(Absent::NoPermission))])
    }

    fn memory(&self, scope: Scope) -> Reading<Memory> {
        match (self, scope) {
            (Self::Hopper, Scope::Device) => Err(Absent::NoPermission),
            _ => Ok(Memory { total: 4, reserved: Some(1), used: 1, free: 2 }),
        }
    }

    fn processes(&self) -> Reading<Vec<ProcessRow>> {
        Ok(Vec::new())
    }

    fn process_utilization(&self, _: u64) -> Reading<Vec<UtilizationRow>> {
        self.without_mig(Vec::new())
    }

    fn utilization_samples(&self, _: u64) -> Reading<Vec<UtilizationSample>> {
        self.without_mig(Vec::new())
    }

    fn utilization_gauge(&self) -> Reading<Ppm> {
        self.without_mig(Ppm(0))
    }

    fn has_gpm(&self) -> Reading<bool> {
        Ok(*self == Self::Hopper)
    }

    fn gpm_mean(&mut self, _: Scope, _: u64, _: &dyn Clock) -> Reading<Option<GpmMean>> {
        panic!("a probe takes no sample: it would cut the interval of a collector")
    }

    fn is_accounting_on(&self) -> Reading<bool> {
        Ok(false)
    }

    fn accounting_pids(&self) -> Reading<Vec<u32>> {
        Ok(Vec::new())
    }

    fn accounting_stats(&self, _: u32) -> Reading<AccountingStats> {
        Err(Absent::NotFound)
    }

    fn accounting_counters(&self, _: u32) -> Reading<AccountingCounters> {
        match self {
            Self::Ampere { has_counters: true } => Err(Absent::NotFound),
            _ => Err(Absent::NoFunction),
        }
    }

    fn energy_mj(&self) -> Reading<u64> {
        Ok(1)
    }

    fn power_mw(&self) -> Reading<u32> {
        Ok(1)
    }

    fn temperature_c(&self) -> Reading<u32> {
        Ok(1)
    }

    fn clocks_mhz(&self) -> Reading<(u32, u32)> {
        Ok((1, 1))
    }

    fn uncorrectable_errors(&self) -> Reading<u64> {
        Ok(0)
    }

    fn recovery_action(&self) -> Reading<u32> {
        Ok(0)
    }
}

fn report() -> Report {
    report_of(Node { has_counters: false })
}

/// In a procfs of an unprivileged process in the node's own namespaces.
fn report_of(node: Node) -> Report {
    let root = tempfile::tempdir().unwrap();
    let own = root.path().join("self");
    std::fs::create_dir_all(own.join("ns")).unwrap();
    std::fs::write(own.join("status"), "Name:\tc\nCapEff:\t0000000000080000\n").unwrap();
    std::fs::write(own.join("ns/pid"), "pid:[4026531836]").unwrap();
    std::fs::write(own.join("ns/cgroup"), "cgroup:[4026531835]").unwrap();
    let settings = Settings {
        node: "n1".to_owned(),
        proc_root: root.path().to_owned(),
        pod_resources_socket: root.path().join("kubelet.sock"),
        ..Settings::default()
    };
    let driver: Arc<dyn Driver> = Arc::new(node);
    look(&driver, &settings, &own.join("status")).unwrap()
}

fn reading<'a>(report: &'a Report, gpu: usize, word: &str) -> &'a ReadingReport {
    report.gpus[gpu].readings.iter().find(|reading| reading.reading == word).unwrap()
}

#[test]
fn each_reading_names_its_rung_its_call_and_its_label() {
    let report = report();
    let instance = reading(&report, 0, "instance_sm");
    assert_eq!((instance.rung, instance.quality.as_str()), (Some('A'), "interval_mean"));
    assert_eq!(instance.source, Some("nvmlGpmMigSampleGet"));
    let process = reading(&report, 1, "process_sm");
    assert_eq!((process.rung, process.quality.as_str()), (Some('C'), "driver_sampled"));
    assert_eq!(process.refused[0].why, "no_function");
    assert!(process.refused[0].advice.contains("610"), "turning accounting on would not help");
    assert_eq!(reading(&report, 0, "gpu_memory").quality, "unavailable(no_permission)");
}

#[test]
fn a_gpu_that_cannot_be_read_is_named_and_makes_the_report_incomplete() {
    let report = report();
    assert_eq!(report.gpus[2].unreadable.as_deref(), Some("lost"));
    assert!(!report.is_complete());
}

#[test]
fn accounting_is_advised_where_the_driver_has_its_counters() {
    let report = report_of(Node { has_counters: true });
    let refused = &reading(&report, 1, "process_sm").refused[0];
    assert_eq!(refused.why, "accounting_off");
    assert!(refused.advice.contains("nvidia-smi -am 1"), "{}", refused.advice);
    assert_eq!(report.privileges[4].held, Held::No);
}

#[test]
fn privileges_say_whether_they_are_held() {
    let held: Vec<Held> = report().privileges.iter().map(|privilege| privilege.held).collect();
    assert_eq!(held, [Held::Yes, Held::Yes, Held::No, Held::Yes, Held::Needless, Held::Needless]);
}

#[test]
fn the_json_is_stable() {
    let value = serde_json::to_value(report()).unwrap();
    assert_eq!(value["gpus"][0]["instances"][1]["placement"], "unavailable(no_permission)");
    assert_eq!(value["gpus"][0]["readings"][0]["reading"], "gpu_sm");
    assert_eq!(value["gpus"][0]["readings"][0].get("words"), None);
    assert_eq!(value["privileges"][5]["held"], "needless");
    let members: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members.len(), 7, "{members:?}");
}

#[test]
fn the_table_is_calm_and_aligned() {
    assert_eq!(table(&report()), include_str!("tests/table.txt"));
}
