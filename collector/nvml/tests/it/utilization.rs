//! The utilisation rings and the gauge.

use crate::sim::{NOTHING, Sim, h100, mig, on};
use gpuledger_nvml::{Absent, Ppm};

const BUSY: &str = "- {at: 0s, start: {pid: 10, on: [{gpu: 0, sm: 40%}]}}\n- {at: 0s, start: {pid: 11, on: [{gpu: 0, sm: 20%}]}}";

#[test]
fn busy_processes_have_rows_after_the_asked_instant_only() {
    on("utilization::busy_processes_have_rows_after_the_asked_instant_only", &h100(BUSY), |sim| {
        let gpu = sim.gpu();
        sim.at_ms(5_000);
        let rows = gpu.process_utilization(Sim::driver_us(4_000)).expect("rows");
        let mut seen: Vec<_> = rows.iter().map(|row| (row.pid, row.sm_percent)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [(10, 40), (11, 20)]);
        assert!(
            rows.iter()
                .all(|row| row.timestamp_us > Sim::driver_us(4_000)
                    && row.timestamp_us <= Sim::driver_us(5_000))
        );
    });
}

#[test]
fn an_idle_device_has_empty_rings() {
    on("utilization::an_idle_device_has_empty_rings", &h100(NOTHING), |sim| {
        let gpu = sim.gpu();
        sim.at_ms(5_000);
        assert_eq!(gpu.process_utilization(0), Ok(vec![]));
        let samples = gpu.utilization_samples(0).expect("samples");
        assert!(samples.iter().all(|sample| sample.percent == 0), "{samples:?}");
        assert_eq!(gpu.utilization_gauge(), Ok(Ppm(0)));
    });
}

#[test]
fn samples_come_oldest_first_and_only_once() {
    on("utilization::samples_come_oldest_first_and_only_once", &h100(BUSY), |sim| {
        let gpu = sim.gpu();
        sim.at_ms(5_000);
        let first = gpu.utilization_samples(0).expect("samples");
        assert!(first.is_sorted_by_key(|sample| sample.timestamp_us));
        let last = first.last().expect("a sample");
        assert_eq!(last.percent, 60);
        sim.at_ms(6_000);
        let second = gpu.utilization_samples(last.timestamp_us).expect("samples");
        assert!(!second.is_empty());
        assert!(second.iter().all(|sample| sample.timestamp_us > last.timestamp_us));
    });
}

#[test]
fn the_gauge_is_a_share() {
    on("utilization::the_gauge_is_a_share", &h100(BUSY), |sim| {
        let gpu = sim.gpu();
        sim.at_ms(5_000);
        assert_eq!(gpu.utilization_gauge(), Ok(Ppm(600_000)));
    });
}

#[test]
fn under_mig_none_of_them_is_supported() {
    let timeline = "- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}";
    on("utilization::under_mig_none_of_them_is_supported", &mig("550.54.15", "a100-80", timeline), |sim| {
        let gpu = sim.gpu();
        assert_eq!(gpu.process_utilization(0), Err(Absent::NotSupported));
        assert_eq!(gpu.utilization_samples(0), Err(Absent::NotSupported));
        assert_eq!(gpu.utilization_gauge(), Err(Absent::NotSupported));
    });
}

#[test]
fn rows_that_cannot_be_true_are_handed_on_as_they_are() {
    let timeline =
        format!("{BUSY}\n- {{at: 0s, garbage_rows: {{gpu: 0, rows: [{{pid: 4000000, sm: 37100}}]}}}}");
    on("utilization::rows_that_cannot_be_true_are_handed_on_as_they_are", &h100(&timeline), |sim| {
        let gpu = sim.gpu();
        sim.at_ms(5_000);
        let rows = gpu.process_utilization(Sim::driver_us(4_000)).expect("rows");
        assert!(rows.iter().any(|row| row.sm_percent == 37_100));
        assert!(rows.iter().any(|row| row.pid == 10));
    });
}
