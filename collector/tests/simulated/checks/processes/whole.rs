//! Processes over all of their lives.

use super::Process;
use crate::checks::{Findings, PERIOD_US, count, plain, word};
use crate::node::Outing;
use crate::oracle::{Spans, Who, busy_of, contexts, disturbed, listed};

/// A process over all of the run.
#[derive(Debug, Default)]
pub(super) struct Whole {
    told: u128,
    is_counter: bool,
    rows: u64,
}

impl Whole {
    pub(super) fn add(&mut self, process: &Process<'_>) {
        for row in process.rows {
            let is_counter = plain(word(&row.quality, "sm_active_us")) == "driver_counter";
            self.is_counter = is_counter && (self.is_counter || self.rows == 0);
            self.told += row.sm_active_us.map_or(0, |us| u128::from(count(us)));
            self.rows += 1;
        }
    }

    /// Counters of the driver tell of all of a life, but for the samples in which it began and ended.
    pub(super) fn check(&self, outing: &Outing, who: Who, findings: &mut Findings) {
        let contexts = contexts(&outing.world, who);
        let lived = Spans::one(0, outing.until_us).and(&listed(&contexts));
        let is_quiet =
            !lived.widened(20 * PERIOD_US, 20 * PERIOD_US).meets(&disturbed(&outing.world, who.place.gpu));
        if !self.is_counter
            || !is_quiet
            || lived.pieces().first().is_none_or(|(from, _)| *from < 2 * PERIOD_US)
        {
            return;
        }
        let truth = busy_of(&contexts, &lived) / 1_000_000;
        // Nothing was told of the time after the last reading before the end of the run.
        let ends_us = lived.pieces().last().map_or(0, |(_, to)| *to);
        let unread = if ends_us + PERIOD_US >= outing.until_us { u128::from(10 * PERIOD_US) } else { 0 };
        let tolerance = truth / 200 + u128::from(PERIOD_US) + unread + u128::from(self.rows);
        findings.check(self.told.abs_diff(truth) <= tolerance, || {
            format!("PID {} on GPU {}: busy for {} us by counters over its life, truly {truth}, tolerance {tolerance}", who.pid, who.place.gpu, self.told)
        });
        findings.case("lives of processes by counters within 0.5 %", 1);
    }
}
