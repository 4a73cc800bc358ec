//! Names of all metrics: `gpuledger_<subsystem>_<what>_<unit>[_total]`, base units, no label names inside.
//!
//! Dashboards and alerts depend on them, so they stand in one place with the help text each is registered with.
//! Labels are bounded: topics, kinds, reasons, routes. Event ids and tenants are never labels, GPUs only in series of a node's own collector
//! (`gpuledger_gpu_…`, `gpuledger_gpu_instance_…`, `gpuledger_collector_…`), where the node bounds them: at most 16 devices of at most seven
//! instances. Device values stand in `gpuledger_gpu_…` once, never again for each instance, so that sums are right.

/// A metric: its name, what it counts, its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Full name.
    pub name: &'static str,
    /// One sentence for people.
    pub help: &'static str,
    /// Label names, in the order of their values.
    pub labels: &'static [&'static str],
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $help:literal, [$($label:literal),*];)*) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric { name: $name, help: $help, labels: &[$($label),*] };
        )*

        /// Every metric of the product.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    BUILD_INFO = "gpuledger_build_info", "Version of the running binary; always 1.", ["version"];

    LEDGER_FACTS = "gpuledger_ledger_facts_total",
        "Facts by outcome: accepted, repeated, parked.", ["outcome"];
    LEDGER_WINDOWS = "gpuledger_ledger_telemetry_windows_total",
        "Telemetry windows by outcome: accepted.", ["outcome"];
    AUDIT_SIZE = "gpuledger_audit_published_leaves", "Leaves under the published head of the audit log.", [];
    AUDIT_FAILURES = "gpuledger_audit_failures_total",
        "Rounds of the audit log that published nothing, by reason; refused is for a person to look at.", ["reason"];
    LEDGER_PARKED = "gpuledger_ledger_parked_events", "Parked events without a decision.", [];
    LEDGER_HORIZON = "gpuledger_ledger_horizon_timestamp_seconds",
        "Horizon of the ledger, Unix time.", [];
    LEDGER_UNARCHIVED = "gpuledger_ledger_unarchived_hours",
        "Hours of telemetry that should be in the archive and are not.", [];

    HTTP_REQUESTS = "gpuledger_http_request_duration_seconds",
        "Time of requests by route template.", ["method", "route", "status"];

    NODE_INFO = "gpuledger_node_info", "The node as its collector sees it; always 1.", ["node", "driver", "nvml"];

    GPU_INFO = "gpuledger_gpu_info", "A GPU; always 1.", ["gpu", "index", "model", "pci_bus_id", "mig"];
    GPU_STATE = "gpuledger_gpu_state", "1 for the state the GPU is in: ok, fault.", ["gpu", "state"];
    GPU_READABLE = "gpuledger_gpu_readable", "1 while the GPU can be read, 0 while it cannot.", ["gpu"];
    GPU_READING_INFO = "gpuledger_gpu_reading_info",
        "How a reading of the GPU is taken, by quality label and source call; always 1.",
        ["gpu", "reading", "rung", "quality", "source"];
    GPU_READ_TIME = "gpuledger_gpu_last_read_timestamp_seconds", "When the GPU was last read, Unix time.", ["gpu"];
    GPU_SM_ACTIVE = "gpuledger_gpu_sm_active_seconds_total",
        "SM-active time of the whole GPU; absent where it cannot be measured.", ["gpu"];
    GPU_SM_COVERED = "gpuledger_gpu_sm_covered_seconds_total",
        "Time that the SM-active time covers.", ["gpu"];
    GPU_MEMORY_TIME = "gpuledger_gpu_memory_byte_seconds_total",
        "Memory in use times time, of the whole GPU.", ["gpu"];
    GPU_MEMORY = "gpuledger_gpu_memory_bytes",
        "Device memory by state: allocated, free, reserved by the driver.", ["gpu", "state"];
    GPU_PROCESSES = "gpuledger_gpu_processes", "Processes that hold a context on the GPU.", ["gpu"];
    GPU_POWER = "gpuledger_gpu_power_watts", "Power of the whole GPU.", ["gpu"];
    GPU_ENERGY = "gpuledger_gpu_energy_joules_total", "Energy of the whole GPU since the driver was loaded.", ["gpu"];
    GPU_TEMPERATURE = "gpuledger_gpu_temperature_celsius", "Temperature of the GPU.", ["gpu"];
    GPU_CLOCK = "gpuledger_gpu_clock_hertz", "Clock rate by domain: sm, memory.", ["gpu", "domain"];
    GPU_MEMORY_ERRORS = "gpuledger_gpu_uncorrectable_memory_errors_total",
        "Uncorrectable memory errors since the driver was loaded.", ["gpu"];
    GPU_XIDS = "gpuledger_gpu_xid_errors_total", "Xid errors since the collector began, by number.", ["gpu", "xid"];

    INSTANCE_SM_ACTIVE = "gpuledger_gpu_instance_sm_active_seconds_total",
        "SM-active time of a MIG instance, relative to the instance.", ["gpu", "gpu_instance", "profile"];
    INSTANCE_SM_COVERED = "gpuledger_gpu_instance_sm_covered_seconds_total",
        "Time that the SM-active time of the instance covers.", ["gpu", "gpu_instance", "profile"];
    INSTANCE_MEMORY_TIME = "gpuledger_gpu_instance_memory_byte_seconds_total",
        "Memory in use times time, of a MIG instance.", ["gpu", "gpu_instance", "profile"];
    INSTANCE_MEMORY = "gpuledger_gpu_instance_memory_bytes",
        "Memory of a MIG instance by state: allocated, free, reserved by the driver.",
        ["gpu", "gpu_instance", "profile", "state"];
    INSTANCE_PROCESSES = "gpuledger_gpu_instance_processes",
        "Processes that hold a context in the MIG instance.", ["gpu", "gpu_instance", "profile"];

    COLLECTOR_CYCLES = "gpuledger_collector_cycles_total",
        "Cycles by outcome: complete, torn, failed.", ["gpu", "outcome"];
    COLLECTOR_CYCLE_DURATION = "gpuledger_collector_cycle_duration_seconds",
        "Time from waking to the end of a cycle of all GPUs.", [];
    COLLECTOR_DISCARDED = "gpuledger_collector_discarded_rows_total",
        "Process rows that were not believed, by reason.", ["reason"];
    COLLECTOR_STALLED = "gpuledger_collector_stalled_calls_total",
        "Driver calls that passed their deadline.", ["gpu"];
    COLLECTOR_LATE = "gpuledger_collector_late_readings_total",
        "Readings of a GPU's windows that came after the window was closed, and were dropped.", [];
    COLLECTOR_RELOADS = "gpuledger_collector_driver_reloads_total",
        "Times that NVML was initialised anew.", [];
    COLLECTOR_DISAGREEMENTS = "gpuledger_collector_owner_disagreements_total",
        "Times that the two ways to tell an owner did not agree.", [];
    COLLECTOR_SPOOL_BYTES = "gpuledger_collector_spool_bytes", "Size of the spool on disk.", [];
    COLLECTOR_SPOOL_RECORDS = "gpuledger_collector_spool_records", "Records not acknowledged yet.", [];
    COLLECTOR_SPOOL_LIMIT = "gpuledger_collector_spool_limit_bytes", "Size the spool may have.", [];
    COLLECTOR_DELAY = "gpuledger_collector_delivery_delay_seconds",
        "Time from the end of the last window that arrived to now, while others wait; 0 where none waits.", [];
    COLLECTOR_DAMAGED = "gpuledger_collector_damaged_records_total",
        "Records that could not be read again from the spool.", [];
    COLLECTOR_UNKEPT = "gpuledger_collector_unkept_windows_total",
        "Windows that the spool could not keep, by reason; a gap tells their time.", ["reason"];
    COLLECTOR_PUBLISHED = "gpuledger_collector_published_events_total", "Events that arrived.", [];
    COLLECTOR_NOT_ENTITLED = "gpuledger_collector_not_entitled_events_total",
        "Events that arrived and are parked, because the token of this node does not allow them.", [];
    COLLECTOR_PUBLISH_FAILURES = "gpuledger_collector_publish_failures_total",
        "Times that events did not arrive and were kept for later.", [];
    COLLECTOR_REFUSED = "gpuledger_collector_refused_events_total",
        "Events that were refused for good; they lie beside the spool.", [];
    COLLECTOR_GAPS = "gpuledger_collector_gaps_total", "Gaps recorded, by reason.", ["reason"];
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        for Metric { name, help, labels } in ALL {
            assert!(name.starts_with("gpuledger_"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert!(help.ends_with('.'), "{name}: help is a sentence");
            for abbreviation in ["_ms", "_us", "_sec_", "_kb", "_msgs", "_count"] {
                assert!(!name.contains(abbreviation), "{name}: base units, no abbreviations");
            }
            for label in *labels {
                assert!(!["job", "instance"].contains(label), "{name}: {label} belongs to the scraper");
            }
        }
    }

    #[test]
    fn names_are_unique() {
        let unique: BTreeSet<&str> = ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(unique.len(), ALL.len());
    }
}
