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

    CONSUMER_MESSAGES = "gpuledger_consumer_messages_total", "Kafka records whose effects are committed.", ["topic"];
    CONSUMER_BATCHES = "gpuledger_consumer_batches_total",
        "Batches by outcome: committed, fenced, failed.", ["outcome"];
    CONSUMER_PARTITIONS = "gpuledger_consumer_assigned_partitions", "Partitions assigned to this process.", [];
    CONSUMER_LAG = "gpuledger_consumer_lag_messages", "Records behind the end of a topic, all its partitions.", ["topic"];

    PRODUCER_MESSAGES = "gpuledger_producer_messages_total", "Kafka records acknowledged.", ["topic"];
    PRODUCER_FAILURES = "gpuledger_producer_failures_total", "Kafka records that were not acknowledged.", ["topic"];

    LEDGER_FACTS = "gpuledger_ledger_facts_total",
        "Facts by outcome: accepted, repeated, conflict, parked.", ["outcome"];
    LEDGER_WINDOWS = "gpuledger_ledger_telemetry_windows_total",
        "Telemetry windows by outcome: accepted, repeated, parked.", ["outcome"];
    LEDGER_ENTRIES = "gpuledger_ledger_entries_total", "Entries posted, negations included.", [];
    LEDGER_JOURNALS = "gpuledger_ledger_journals_total", "Journals posted by whether they replace one: first, revised.", ["revision"];
    LEDGER_PARKED = "gpuledger_ledger_parked_events", "Parked events without a decision.", [];
    LEDGER_FINDINGS = "gpuledger_ledger_findings", "Findings that hold now.", ["kind"];
    LEDGER_TRANSACTION = "gpuledger_ledger_transaction_duration_seconds", "Time of a batch's transaction.", [];
    LEDGER_HORIZON = "gpuledger_ledger_horizon_timestamp_seconds",
        "Instant up to which usage is posted, Unix time.", [];

    BILLING_DOCUMENTS = "gpuledger_billing_documents_total", "Documents by step: drafted, issued, paid, discarded.", ["step"];
    BILLING_CLOSE = "gpuledger_billing_close_duration_seconds", "Time to close a period.", [];

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
