//! Units that are held and measured, and do nothing.

use crate::finding::{Finding, Kind};
use crate::ids::AllocationId;
use crate::measured::Reading;
use crate::time::Instant;
use crate::usage::UsageSpan;
use std::collections::BTreeMap;

/// For how much measured time a unit must do nothing, in microseconds.
pub const IDLE_US: i128 = 3_600_000_000;
/// It does nothing while its SM-active time is less than one part in so many of the measured time.
pub const IDLE_PARTS_IN: i128 = 100;

/// Held units that may be idle.
#[derive(Debug, Default)]
pub(super) struct Idle {
    runs: BTreeMap<(AllocationId, u32), Run>,
    found: Vec<Finding>,
}

/// Minutes without activity in a row. Those without a reading neither end a run nor count.
#[derive(Debug)]
struct Run {
    unit: String,
    since: Instant,
    measured_us: i128,
    /// End of the hold, as far as it is known.
    held_until: Instant,
}

impl Idle {
    /// Reads the readings of a span, in order of time.
    pub(super) fn read(&mut self, span: &UsageSpan, reading: &Reading<'_>) {
        let (Some(active_us), Some(place)) = (reading.amounts.sm_active_us, &span.place) else { return };
        let measured_us = reading.amounts.covered_us;
        let key = (span.allocation.clone(), span.unit);
        if active_us * IDLE_PARTS_IN < measured_us {
            let run = self.runs.entry(key).or_insert_with(|| Run {
                unit: format!("unit {} ({} of node {})", span.unit, place.gpu, place.node),
                since: reading.window.start(),
                measured_us: 0,
                held_until: span.window.end(),
            });
            run.measured_us += measured_us;
            run.held_until = span.window.end();
        } else if active_us > 0
            && let Some(run) = self.runs.remove(&key)
        {
            self.found.extend(run.finding(&key.0, Some(reading.window.start())));
        }
    }

    /// What was idle for long enough: until it was active, or its hold ended.
    pub(super) fn findings(self, as_of: Instant) -> Vec<Finding> {
        let standing = self.runs.into_iter().filter_map(|((allocation, _), run)| {
            let over = Some(run.held_until).filter(|end| *end < as_of);
            run.finding(&allocation, over)
        });
        let standing: Vec<Finding> = standing.collect();
        self.found.into_iter().chain(standing).collect()
    }
}

impl Run {
    fn finding(&self, allocation: &AllocationId, until: Option<Instant>) -> Option<Finding> {
        (self.measured_us >= IDLE_US).then(|| Finding {
            kind: Kind::IdleAllocation,
            subject: allocation.to_string(),
            since: self.since,
            until,
            detail: format!("{} is held by {allocation} and was not used", self.unit),
        })
    }
}
