use super::*;
use crate::health::{Signal, Xid};
use crate::metrics::figures::{ReadingFigure, UnitFigures};
use crate::spool::Reason;
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{Absent, Identity, Memory, Ppm};
use gpuledger_wire::bodies;
use gpuledger_wire::number::{BigCount, Count, SliceIndex, Slices};
use gpuledger_wire::text::Name;
use std::sync::atomic::{AtomicU64, Ordering};

/// A clock that stands where the test put it.
#[derive(Default)]
pub(in crate::metrics) struct Hand(AtomicU64);

impl Hand {
    pub(in crate::metrics) fn set(&self, second: u64) {
        self.0.store(second * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now(&self) -> Stamp {
        stamp(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, monotonic_us: u64) {
        self.0.store(monotonic_us, Ordering::Relaxed);
    }
}

fn stamp(monotonic_us: u64) -> Stamp {
    Stamp { monotonic_us, real: Instant::from_micros(i64::try_from(monotonic_us).unwrap()) }
}

pub(in crate::metrics) fn board(dcgm: bool) -> (Arc<Hand>, Board) {
    let clock = Arc::new(Hand::default());
    (clock.clone(), Board::new("n1", clock, Health::default(), 5_000_000, dcgm))
}

fn unit() -> UnitFigures {
    let memory = Memory { total: 80 << 30, reserved: Some(1 << 30), used: 4 << 30, free: 75 << 30 };
    UnitFigures { memory: Ok(memory), processes: Some(1), sm_active: Some(Ppm(250_000)) }
}

fn instance(gpu_instance: u32, generation: u64) -> InstanceFigures {
    let placement = Ok(Placement { start: 4 * (gpu_instance - 1), size: 4 });
    InstanceFigures { gpu_instance, generation, profile: "3g.40gb".to_owned(), placement, unit: unit() }
}

/// A window's reading: a quarter of a second of a whole one, with memory known for less. By the number of the instance as above; none: the device.
fn reading(gpu_instance: Option<u8>) -> UnitReading {
    let placement = gpu_instance.map(|id| bodies::Placement {
        start: SliceIndex::new(4 * (id - 1)).unwrap(),
        size: Slices::new(4).unwrap(),
    });
    UnitReading {
        gpu: Name::new("GPU-1").unwrap(),
        placement,
        sm_active_us: Count::new(250_000),
        memory_byte_us: BigCount::new(4 << 30),
        memory_bytes_max: None,
        energy_mj: None,
        covered_us: Count::new(600_000).unwrap(),
        coverage: BTreeMap::from([(Name::new("sm_active_us").unwrap(), Count::new(1_000_000).unwrap())]),
        quality: BTreeMap::new(),
    }
}

pub(in crate::metrics) fn figures(instances: Vec<InstanceFigures>) -> GpuFigures {
    GpuFigures {
        identity: Identity {
            uuid: "GPU-1".to_owned(),
            index: 0,
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            pci_bus_id: "00000000:3B:00.0".to_owned(),
            minor: Some(2),
            compute_capability: Some((9, 0)),
        },
        mig: !instances.is_empty(),
        device: unit(),
        instances,
        utilization: Ok(Ppm(370_000)),
        power_mw: Ok(409_692),
        energy_mj: Ok(319_159_391),
        temperature_c: Ok(61),
        clocks_mhz: Ok((1_215, 1_593)),
        uncorrectable_errors: Ok(0),
        readings: vec![ReadingFigure {
            reading: "sm_active".to_owned(),
            rung: "A".to_owned(),
            quality: "interval_mean".to_owned(),
            source: "nvmlGpmMetricsGet".to_owned(),
        }],
    }
}

fn has(text: &str, line: &str) -> bool {
    text.lines().any(|each| each == line)
}

#[test]
fn counters_add_up_over_cycles_and_gauges_show_the_last() {
    let (_, board) = board(false);
    for second in 1..=3 {
        board.read(figures(vec![]), stamp(second), Outcome::Complete);
        board.measured(&[reading(None)]);
    }
    let text = board.exposition();
    for line in [
        "gpuledger_gpu_sm_active_seconds_total{gpu=\"GPU-1\"} 0.75",
        "gpuledger_gpu_sm_covered_seconds_total{gpu=\"GPU-1\"} 3",
        "gpuledger_gpu_memory_bytes{gpu=\"GPU-1\",state=\"allocated\"} 4294967296",
        "gpuledger_gpu_power_watts{gpu=\"GPU-1\"} 409.692",
        "gpuledger_gpu_energy_joules_total{gpu=\"GPU-1\"} 319159.391",
        "gpuledger_gpu_clock_hertz{gpu=\"GPU-1\",domain=\"sm\"} 1215000000",
        "gpuledger_collector_cycles_total{gpu=\"GPU-1\",outcome=\"complete\"} 3",
        "gpuledger_gpu_info{gpu=\"GPU-1\",index=\"0\",model=\"NVIDIA H100 80GB HBM3\",pci_bus_id=\"00000000:3B:00.0\",mig=\"off\"} 1",
        "gpuledger_gpu_reading_info{gpu=\"GPU-1\",reading=\"sm_active\",rung=\"A\",quality=\"interval_mean\",source=\"nvmlGpmMetricsGet\"} 1",
    ] {
        assert!(has(&text, line), "{line} is not in\n{text}");
    }
}

#[test]
fn what_cannot_be_measured_is_absent_and_never_zero() {
    let (_, board) = board(true);
    let mut blind = figures(vec![]);
    blind.device = UnitFigures { memory: Err(Absent::NoPermission), processes: None, sm_active: None };
    blind.power_mw = Err(Absent::NotSupported);
    blind.readings.clear();
    blind.utilization = Err(Absent::NotSupported);
    board.read(blind, stamp(1), Outcome::Complete);
    board.measured(&[UnitReading { sm_active_us: None, memory_byte_us: None, ..reading(None) }]);
    let text = board.exposition();
    for name in [
        "sm_active",
        "sm_covered",
        "gpu_memory_",
        "gpu_processes",
        "power_watts",
        "POWER_USAGE",
        "GPU_UTIL",
        "FB_",
    ] {
        assert!(!text.contains(name), "{name} is in\n{text}");
    }
}

#[test]
fn device_values_stand_once_with_mig_on() {
    let (_, board) = board(true);
    board.read(figures(vec![instance(1, 1), instance(2, 2)]), stamp(1), Outcome::Complete);
    board.measured(&[reading(None), reading(Some(1)), reading(Some(2))]);
    let text = board.exposition();
    for (name, times) in [
        ("gpuledger_gpu_sm_active_seconds_total{", 1),
        ("gpuledger_gpu_power_watts{", 1),
        ("DCGM_FI_DEV_POWER_USAGE{", 1),
        ("gpuledger_gpu_instance_sm_active_seconds_total{", 2),
        ("DCGM_FI_DEV_FB_USED{", 2),
    ] {
        assert_eq!(text.matches(name).count(), times, "{name} in\n{text}");
    }
}

#[test]
fn an_instance_that_is_gone_disappears_and_a_new_one_under_its_id_begins_at_zero() {
    let (_, board) = board(false);
    let both = [reading(Some(1)), reading(Some(2))];
    board.read(figures(vec![instance(1, 1), instance(2, 2)]), stamp(1), Outcome::Complete);
    board.measured(&both);
    board.read(figures(vec![instance(1, 1)]), stamp(2), Outcome::Complete);
    board.measured(&both);
    let name = "gpuledger_gpu_instance_sm_active_seconds_total";
    let text = board.exposition();
    assert!(
        has(&text, &format!("{name}{{gpu=\"GPU-1\",gpu_instance=\"1\",profile=\"3g.40gb\"}} 0.5")),
        "{text}"
    );
    assert!(!text.contains("gpu_instance=\"2\""), "{text}");
    board.read(figures(vec![instance(1, 3)]), stamp(3), Outcome::Complete);
    board.measured(&both);
    let text = board.exposition();
    assert!(
        has(&text, &format!("{name}{{gpu=\"GPU-1\",gpu_instance=\"1\",profile=\"3g.40gb\"}} 0.25")),
        "{text}"
    );
}

#[test]
fn a_gpu_that_is_gone_disappears() {
    let (_, board) = board(false);
    board.read(figures(vec![]), stamp(1), Outcome::Complete);
    board.has_gpus(&BTreeSet::new());
    assert!(!board.exposition().contains("GPU-1"));
}

#[test]
fn stale_figures_are_not_shown_and_the_node_is_not_ready() {
    let (clock, board) = board(false);
    board.has_gpus(&BTreeSet::from(["GPU-1".to_owned()]));
    assert_eq!(board.ready().faults, [("GPU-1".to_owned(), "not read yet".to_owned())]);
    clock.set(10);
    board.read(figures(vec![]), clock.now(), Outcome::Complete);
    clock.set(15);
    assert!(board.ready().ok, "five seconds are not too old");
    assert!(board.exposition().contains("power_watts"));
    clock.set(16);
    let expected = ("GPU-1".to_owned(), "not read since 1970-01-01T00:00:10Z".to_owned());
    assert_eq!(board.ready().faults, [expected]);
    let text = board.exposition();
    assert!(!text.contains("power_watts"), "{text}");
    assert!(has(&text, "gpuledger_gpu_last_read_timestamp_seconds{gpu=\"GPU-1\"} 10"), "{text}");
}

#[test]
fn a_gpu_known_to_be_lost_leaves_the_node_ready_and_one_that_cannot_be_seen_does_not() {
    let (clock, board) = board(false);
    board.read(figures(vec![]), clock.now(), Outcome::Complete);
    clock.set(100);
    let mut health = GpuHealth::new(Name::new("GPU-1").unwrap());
    health.on(Signal::Failed(Absent::Unknown), clock.now());
    board.judged(&health);
    assert_eq!(board.ready().faults, [("GPU-1".to_owned(), "cannot be read: unknown".to_owned())]);
    assert!(has(&board.exposition(), "gpuledger_gpu_readable{gpu=\"GPU-1\"} 0"));
    health.on(Signal::Failed(Absent::Lost), clock.now());
    board.judged(&health);
    assert!(board.ready().ok);
    assert!(has(&board.exposition(), "gpuledger_gpu_state{gpu=\"GPU-1\",state=\"fault\"} 1"));
}

#[test]
fn xids_are_counted_by_number_and_the_last_one_stands_under_the_exporters_name() {
    let (_, board) = board(true);
    board.read(figures(vec![]), stamp(1), Outcome::Complete);
    for number in [31, 13, 31] {
        board.xid("GPU-1", Xid(number).0);
    }
    let text = board.exposition();
    assert!(has(&text, "gpuledger_gpu_xid_errors_total{gpu=\"GPU-1\",xid=\"31\"} 2"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("DCGM_FI_DEV_XID_ERRORS{") && line.ends_with(" 31")));
}

#[test]
fn the_exporters_names_are_off_by_default_and_carry_its_labels() {
    let (_, off) = board(false);
    off.read(figures(vec![]), stamp(1), Outcome::Complete);
    assert!(!off.exposition().contains("DCGM"));
    let (_, on) = board(true);
    on.loaded(Versions { driver: "550.54.15".to_owned(), nvml: "12.550.54.15".to_owned(), cuda: 12_040 });
    on.read(figures(vec![instance(2, 1)]), stamp(1), Outcome::Complete);
    let holder =
        Holder { namespace: "ml".to_owned(), pod: "train-0".to_owned(), container: "main".to_owned() };
    on.held(BTreeMap::from([(("GPU-1".to_owned(), Some(2)), holder)]));
    let text = on.exposition();
    let head = "gpu=\"0\",UUID=\"GPU-1\",pci_bus_id=\"00000000:3B:00.0\",device=\"nvidia2\",modelName=\"NVIDIA H100 80GB HBM3\"";
    let tail = "Hostname=\"n1\",DCGM_FI_DRIVER_VERSION=\"550.54.15\"";
    for line in [
        format!("DCGM_FI_DEV_POWER_USAGE{{{head},{tail}}} 409.692"),
        format!("DCGM_FI_DEV_GPU_UTIL{{{head},{tail}}} 37"),
        format!("DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{head},{tail}}} 0.37"),
        format!("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{head},{tail}}} 319159391"),
        format!(
            "DCGM_FI_DEV_FB_USED{{{head},GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"2\",{tail},container=\"main\",namespace=\"ml\",pod=\"train-0\"}} 4096"
        ),
    ] {
        assert!(has(&text, &line), "{line} is not in\n{text}");
    }
}

/// The last window arrived at 18.5 s.
fn spool(waiting: u64) -> SpoolStatus {
    SpoolStatus {
        bytes: 9,
        max_bytes: 1 << 30,
        waiting,
        stream: "s".to_owned(),
        acknowledged_window_end: Some(Instant::from_micros(18_500_000)),
        window_end: Some(Instant::from_micros(19_500_000)),
        trouble: None,
        windows: 2,
        facts: 1,
        not_kept: BTreeMap::from([(Reason::DiskFull, 3)]),
        damaged_records: 0,
        damaged_windows: 0,
        refused: 0,
    }
}

#[test]
fn without_anything_waiting_there_is_no_delay_and_a_full_disk_is_not_ready() {
    let (clock, board) = board(false);
    clock.set(4_000);
    board.delivered(spool(0), PublishStatus::default());
    assert!(has(&board.exposition(), "gpuledger_collector_delivery_delay_seconds 0"));
    assert!(has(&board.exposition(), "gpuledger_collector_unkept_windows_total{reason=\"disk_full\"} 3"));
    assert!(board.ready().ok);
    board.delivered(SpoolStatus { trouble: Some(Reason::DiskFull), ..spool(0) }, PublishStatus::default());
    let expected = ("spool".to_owned(), "windows are not kept: disk_full".to_owned());
    assert_eq!(board.ready().faults, [expected]);
}

#[test]
fn the_whole_text_is_what_prometheus_reads() {
    let (clock, board) = board(true);
    clock.set(20);
    board.loaded(Versions { driver: "550".to_owned(), nvml: "12".to_owned(), cuda: 12_040 });
    board.read(figures(vec![instance(1, 1)]), stamp(15_000_000), Outcome::Complete);
    board.measured(&[reading(None), reading(Some(1))]);
    board.judged(&GpuHealth::new(Name::new("GPU-1").unwrap()));
    board.xid("GPU-1", 31);
    board.discarded("vanished", 2);
    board.gap("timed_out");
    board.delivered(spool(1), PublishStatus::default());
    let text = board.exposition();
    assert!(has(&text, "gpuledger_collector_delivery_delay_seconds 1.5"), "{text}");
    let mut families = BTreeSet::new();
    let mut family = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split(' ').next().unwrap();
            assert!(families.insert(family), "{family} twice");
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            let parts = ["", "_bucket", "_sum", "_count"];
            assert!(
                parts.iter().any(|part| name.strip_suffix(part) == Some(family)),
                "{name} stands in {family}"
            );
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(families.len() > 30, "{families:?}");
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let series: BTreeSet<&str> =
        samples.iter().filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series).collect();
    assert_eq!(series.len(), samples.len(), "no series twice");
}
