//! Names of all metrics: `gpuledger_<subsystem>_<what>_<unit>[_total]`, base units, no label names inside.
//!
//! Dashboards and alerts depend on them, so they stand in one place with the help text each is registered with.
//! Labels are bounded: topics, kinds, reasons, routes. Event ids, GPUs and tenants are never labels.

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
    LEDGER_PARKED = "gpuledger_ledger_parked_events", "Parked events without a decision.", [];
    LEDGER_HORIZON = "gpuledger_ledger_horizon_timestamp_seconds",
        "Horizon of the ledger, Unix time.", [];

    HTTP_REQUESTS = "gpuledger_http_request_duration_seconds",
        "Time of requests by route template.", ["method", "route", "status"];
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
