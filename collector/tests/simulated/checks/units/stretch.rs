//! Windows of a unit one after the other.

use super::Unit;
use crate::checks::{Findings, PERIOD_US, count, plain, word};
use crate::node::Outing;
use crate::oracle::{Place, Spans, busy};

/// How much busy time an even spread of one reading over an instant can carry across it: the worst of readings that begin up to three periods
/// before it, end after it, and are three periods long at most.
pub(super) fn moved_over(outing: &Outing, place: Place, edge_us: u64) -> u128 {
    // Most readings lie a little after whole periods: what comes before them in a cycle may have been delayed.
    let near = [10, 30, 60, 120].map(|ms| ms * 1_000);
    let steps: Vec<u64> = near.into_iter().chain((1..12).map(|step| step * PERIOD_US / 4)).collect();
    let truth = |from: u64, to: u64| busy(&outing.world, place, &Spans::one(from, to)) / 1_000_000;
    let mut worst = 0;
    for before in &steps {
        let from = edge_us.saturating_sub(*before);
        for after in steps.iter().filter(|after| before + **after <= 3 * PERIOD_US) {
            let to = edge_us + after;
            let spread = truth(from, to) * u128::from(edge_us - from) / u128::from(to - from);
            worst = worst.max(spread.abs_diff(truth(from, edge_us)));
        }
    }
    worst + worst / 4
}

/// Windows of a unit one after the other that are covered from end to end by means: what moves over an edge between them stays within.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    times: Option<(u64, u64)>,
    told: u128,
    windows: u128,
}

impl Stretch {
    pub(super) fn add(&mut self, unit: &Unit<'_>, findings: &mut Findings) {
        let [row] = unit.rows else { return self.end(unit.outing, unit.place, findings) };
        let is_whole = unit.slot.is_plain() && unit.covered_us("sm_active_us") == unit.slot.length_us;
        let is_mean = plain(word(&row.quality, "sm_active_us")) == "interval_mean";
        let (Some(active), true) = (row.sm_active_us, is_whole && is_mean) else {
            return self.end(unit.outing, unit.place, findings);
        };
        let (from, to) = unit.slot.times.pieces()[0];
        if self.times.is_none_or(|(_, end)| end != from) {
            self.end(unit.outing, unit.place, findings);
        }
        let begin = self.times.map_or(from, |(begin, _)| begin);
        self.times = Some((begin, to));
        self.told += u128::from(count(active));
        self.windows += 1;
    }

    /// Compares and begins anew.
    pub(super) fn end(&mut self, outing: &Outing, place: Place, findings: &mut Findings) {
        let Self { times, told, windows } = std::mem::take(self);
        let Some((from, to)) = times else { return };
        let truth = busy(&outing.world, place, &Spans::one(from, to)) / 1_000_000;
        let slack = moved_over(outing, place, from) + moved_over(outing, place, to);
        let tolerance = truth / 200 + slack + 30 * windows;
        findings.check(told.abs_diff(truth) <= tolerance, || {
            format!(
                "GPU {} {:?} from {from} to {to} us: busy for {} us, truly {truth}, tolerance {tolerance}",
                place.gpu, place.slices, told
            )
        });
        findings.case("windows within 0.5 % as a whole", u64::try_from(windows).unwrap_or(0));
    }
}
