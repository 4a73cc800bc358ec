//! How long the node's cycles take.

use super::exposition::{Exposition, Value};
use gpuledger_telemetry::names::Metric;
use std::time::Duration;

/// Upper edges in microseconds, three to a doubling or so where a cycle should lie; a period is a second.
const EDGES_US: [u64; 16] = [
    500, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_000, 10_000, 15_000, 20_000, 50_000, 100_000, 500_000,
    1_000_000, 5_000_000,
];

/// A histogram of durations.
#[derive(Debug, Default)]
pub(super) struct Durations {
    /// Durations up to each edge and above the one before it.
    counts: [u64; EDGES_US.len()],
    count: u64,
    sum_us: u128,
}

impl Durations {
    pub(super) fn add(&mut self, duration: Duration) {
        let us = duration.as_micros();
        if let Some(slot) = EDGES_US.iter().zip(&mut self.counts).find(|(edge, _)| us <= u128::from(**edge)) {
            *slot.1 += 1;
        }
        self.count += 1;
        self.sum_us += us;
    }

    pub(super) fn write(&self, into: &mut Exposition, metric: Metric) {
        let edges = EDGES_US.iter().map(|edge| Value::micro(*edge).to_string());
        let mut so_far = 0;
        let buckets: Vec<(String, u64)> = edges
            .zip(self.counts)
            .map(|(edge, count)| {
                so_far += count;
                (edge, so_far)
            })
            .collect();
        into.histogram(metric, &buckets, self.count, Value::micro(self.sum_us));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_telemetry::names::COLLECTOR_CYCLE_DURATION;

    #[test]
    fn buckets_are_cumulative_and_the_last_holds_all() {
        let mut durations = Durations::default();
        for ms in [1, 2, 2, 6_000] {
            durations.add(Duration::from_millis(ms));
        }
        let mut exposition = Exposition::default();
        durations.write(&mut exposition, COLLECTOR_CYCLE_DURATION);
        let text = exposition.into_text();
        for line in [
            "# TYPE gpuledger_collector_cycle_duration_seconds histogram",
            "gpuledger_collector_cycle_duration_seconds_bucket{le=\"0.0005\"} 0",
            "gpuledger_collector_cycle_duration_seconds_bucket{le=\"0.001\"} 1",
            "gpuledger_collector_cycle_duration_seconds_bucket{le=\"0.002\"} 3",
            "gpuledger_collector_cycle_duration_seconds_bucket{le=\"5\"} 3",
            "gpuledger_collector_cycle_duration_seconds_bucket{le=\"+Inf\"} 4",
            "gpuledger_collector_cycle_duration_seconds_sum 6.005",
            "gpuledger_collector_cycle_duration_seconds_count 4",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
