//! Accounting's counters of processes: they only grow while a process lives, and outlive it.

use super::SAMPLE_US;
use crate::window::{ProcessKey, Span};
use gpuledger_nvml::AccountingCounters;
use std::collections::BTreeMap;

/// The last reading of one process.
#[derive(Clone, Copy, Debug)]
struct Account {
    start_us: u64,
    samples: u64,
    sum: u64,
    at_us: u64,
}

/// Counters of all processes of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    known: BTreeMap<ProcessKey, Account>,
}

/// A reading of one process, with what is known of its life by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) counters: AccountingCounters,
    /// When it was read; for an ended process, when it ended.
    pub(super) at_us: u64,
    /// When it began, if that was watched: then its counters began at zero there.
    pub(super) born_us: Option<u64>,
}

/// What a reading says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing yet.
    Seed,
    /// No sample came since the last reading.
    Nothing,
    /// Busy for so many parts per million of a microsecond over this time.
    Busy(Span, u128),
    /// The counters went back: accounting was cleared.
    Reset,
}

impl Accounts {
    /// Begins anew with all processes.
    pub(super) fn reseed(&mut self) {
        self.known.clear();
    }

    /// Takes a reading: the mean of the new samples over the time since the last one.
    pub(super) fn read(&mut self, process: ProcessKey, read: Read) -> Step {
        let counters = read.counters;
        let now = Account {
            start_us: counters.start_us,
            samples: counters.samples,
            sum: counters.gpu_percent_hundredths,
            at_us: read.at_us,
        };
        let known = self.known.get(&process).filter(|known| known.start_us == counters.start_us).copied();
        let before = known.or(read.born_us.map(|at_us| Account { samples: 0, sum: 0, at_us, ..now }));
        let Some(before) = before else {
            self.known.insert(process, now);
            return Step::Seed;
        };
        let (samples, sum) = (now.samples.checked_sub(before.samples), now.sum.checked_sub(before.sum));
        let (Some(samples), Some(sum)) = (samples, sum) else {
            self.known.insert(process, now);
            return Step::Reset;
        };
        if samples == 0 {
            self.known.entry(process).or_insert(before);
            return Step::Nothing;
        }
        self.known.insert(process, now);
        // A sample a second: a process that ended and is not reaped gets none, though it is still listed.
        let spoken_us = samples.saturating_add(1).saturating_mul(SAMPLE_US);
        let until_us = now.at_us.min(before.at_us.saturating_add(spoken_us));
        let Some(span) = Span::new(before.at_us, until_us) else { return Step::Nothing };
        let whole = u128::from(span.length_us()) * 1_000_000;
        let busy = u128::from(sum) * u128::from(span.length_us()) * 100 / u128::from(samples);
        Step::Busy(span, busy.min(whole))
    }

    /// Forgets processes that are gone.
    pub(super) fn retain(&mut self, lives: impl Fn(&ProcessKey) -> bool) {
        self.known.retain(|process, _| lives(process));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ProcessId;
    use crate::window::UnitKey;
    use gpuledger_domain::time::Instant;

    const KEY: ProcessKey = ProcessKey {
        unit: UnitKey::Device,
        process: ProcessId { pid: 7, started_at: Instant::from_micros(0) },
    };

    fn read(samples: u64, sum: u64, at_us: u64) -> Read {
        let counters =
            AccountingCounters { samples, gpu_percent_hundredths: sum, start_us: 5, is_running: true };
        Read { counters, at_us, born_us: None }
    }

    fn busy(from: u64, to: u64, amount: u128) -> Step {
        Step::Busy(Span::new(from, to).unwrap(), amount)
    }

    #[test]
    fn the_mean_of_the_new_samples_holds_for_the_time_between() {
        let mut accounts = Accounts::default();
        assert_eq!(accounts.read(KEY, read(10, 100_000, 0)), Step::Seed);
        // Ten samples of 25 %.
        assert_eq!(
            accounts.read(KEY, read(20, 125_000, 10_000_000)),
            busy(0, 10_000_000, 2_500_000 * 1_000_000)
        );
    }

    #[test]
    fn a_zombie_is_told_no_longer_than_its_samples_reach() {
        let mut accounts = Accounts::default();
        accounts.read(KEY, read(10, 100_000, 0));
        // Two samples of 100 % in ten seconds.
        assert_eq!(
            accounts.read(KEY, read(12, 120_000, 10_000_000)),
            busy(0, 3_000_000, 3_000_000 * 1_000_000)
        );
        assert_eq!(accounts.read(KEY, read(12, 120_000, 20_000_000)), Step::Nothing);
    }

    #[test]
    fn without_a_new_sample_the_time_waits() {
        let mut accounts = Accounts::default();
        accounts.read(KEY, read(10, 0, 0));
        assert_eq!(accounts.read(KEY, read(10, 0, 500)), Step::Nothing);
        assert_eq!(accounts.read(KEY, read(11, 10_000, 1_000)), busy(0, 1_000, 1_000 * 1_000_000));
    }

    #[test]
    fn a_process_that_began_under_our_eyes_is_told_from_its_beginning() {
        let mut accounts = Accounts::default();
        let first = Read { born_us: Some(100), ..read(4, 20_000, 500) };
        assert_eq!(accounts.read(KEY, first), busy(100, 500, 200 * 1_000_000));
    }

    #[test]
    fn cleared_counters_and_another_context_begin_anew() {
        let mut accounts = Accounts::default();
        accounts.read(KEY, read(10, 100_000, 0));
        assert_eq!(accounts.read(KEY, read(2, 20_000, 100)), Step::Reset);
        let mut other = read(1, 0, 200);
        other.counters.start_us = 6;
        assert_eq!(accounts.read(KEY, other), Step::Seed);
    }
}
