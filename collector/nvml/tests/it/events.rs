//! What NVML reports by itself.

use crate::sim::{GPU, OTHER, Sim, h100, mig, on};
use gpuledger_nvml::{Absent, DeviceEvent, Driver, EventKind, Nvml};
use std::time::Duration;

/// The clock stands still while a test waits.
const SHORT: Duration = Duration::ZERO;

fn next(sim: &Sim, nvml: &Nvml, ms: u64) -> Option<DeviceEvent> {
    sim.at_ms(ms);
    nvml.next_event(SHORT).expect("events")
}

#[test]
fn a_critical_error_names_its_device_and_instance() {
    let timeline = "
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}
- {at: 10s, xid: {gpu: 0, number: 79}}
- {at: 20s, xid: {gpu: 0, number: 43, gi: 1, ci: 0}}";
    on(
        "events::a_critical_error_names_its_device_and_instance",
        &mig("580.105.08", "h100-80", timeline),
        |sim| {
            let nvml = sim.nvml();
            assert_eq!(next(sim, &nvml, 1_000), None);
            let whole = DeviceEvent { gpu: GPU.to_owned(), gpu_instance: None, kind: EventKind::Xid(79) };
            assert_eq!(next(sim, &nvml, 11_000), Some(whole.clone()));
            assert_eq!(next(sim, &nvml, 12_000), None);
            let part = DeviceEvent { gpu_instance: Some(1), kind: EventKind::Xid(43), ..whole };
            assert_eq!(next(sim, &nvml, 21_000), Some(part));
        },
    );
}

#[test]
fn a_change_of_instances_is_reported() {
    let timeline = "- {at: 10s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}";
    on("events::a_change_of_instances_is_reported", &mig("580.105.08", "h100-80", timeline), |sim| {
        let nvml = sim.nvml();
        assert_eq!(next(sim, &nvml, 1_000), None);
        assert_eq!(next(sim, &nvml, 11_000).map(|event| event.kind), Some(EventKind::MigChange));
    });
}

#[test]
fn what_happened_before_the_set_was_made_is_not_reported() {
    on(
        "events::what_happened_before_the_set_was_made_is_not_reported",
        &h100("- {at: 1s, xid: {gpu: 0, number: 31}}"),
        |sim| {
            let nvml = sim.nvml();
            assert_eq!(next(sim, &nvml, 5_000), None);
        },
    );
}

#[test]
fn a_lost_device_does_not_silence_the_others_and_joins_when_it_is_back() {
    let scenario = format!(
        "name: test\ngpus: [{{uuid: {GPU}, model: h100-80}}, {{uuid: {OTHER}, model: h100-80}}]\ntimeline:\n\
         - {{at: 0s, lose: {{gpu: 0}}}}\n- {{at: 10s, xid: {{gpu: 1, number: 31}}}}\n- {{at: 20s, recover: {{gpu: 0}}}}\n\
         - {{at: 30s, xid: {{gpu: 0, number: 13}}}}\n"
    );
    on("events::a_lost_device_does_not_silence_the_others_and_joins_when_it_is_back", &scenario, |sim| {
        let nvml = sim.nvml();
        assert_eq!(next(sim, &nvml, 1_000), None);
        assert_eq!(next(sim, &nvml, 11_000).map(|event| event.gpu).as_deref(), Some(OTHER));
        assert_eq!(next(sim, &nvml, 25_000), None);
        assert_eq!(next(sim, &nvml, 31_000).map(|event| event.gpu).as_deref(), Some(GPU));
    });
}

#[test]
fn a_node_whose_devices_report_nothing_says_so() {
    let scenario = format!(
        "name: test\ngpus: [{{uuid: {GPU}, model: t4, unreadable: {{nvmlDeviceRegisterEvents: NOT_SUPPORTED}}}}]\n"
    );
    on("events::a_node_whose_devices_report_nothing_says_so", &scenario, |sim| {
        assert_eq!(sim.nvml().next_event(SHORT), Err(Absent::NotSupported));
    });
}
