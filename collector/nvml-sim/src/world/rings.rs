//! The driver's rings of samples: six a second, the last 72 kept, whole per cent.

use super::World;
use std::collections::BTreeSet;

/// Entries of a ring.
pub const RING_ENTRIES: u64 = 72;

/// A sample of the device's ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtilizationSample {
    /// End of the sample, by the driver's clock.
    pub stamp_us: u64,
    /// Per cent.
    pub percent: u32,
}

/// A row of process utilisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessSample {
    /// Whose, by index.
    pub process: usize,
    /// Its last sample that was not zero, by the driver's clock.
    pub stamp_us: u64,
    /// Per cent over all samples that count.
    pub sm_percent: u32,
}

/// End of the k-th sample: sixths of a second.
fn end_of(k: u64) -> u64 {
    k * 1_000_000 / 6
}

/// The last sample that is complete.
fn last_sample(t_us: u64) -> u64 {
    let k = t_us.saturating_mul(6) / 1_000_000 + 1;
    if end_of(k) <= t_us { k } else { k - 1 }
}

fn percent(integral: u128, length_us: u64) -> u32 {
    let whole = u128::from(length_us) * 10_000;
    (integral + whole / 2).checked_div(whole).map_or(0, |mean| u32::try_from(mean).unwrap_or(u32::MAX))
}

impl World {
    /// Samples that are in the ring and later than a stamp, oldest first, as their numbers.
    fn samples(&self, t_us: u64, since_stamp_us: u64) -> Vec<u64> {
        let last = last_sample(t_us);
        let loaded_us = self.driver(t_us).map_or(t_us, |life| life.from_us);
        (last.saturating_sub(RING_ENTRIES - 1).max(1)..=last)
            .filter(|k| end_of(k - 1) >= loaded_us && self.stamp_us(end_of(*k)) > since_stamp_us)
            .collect()
    }

    /// The device's samples later than a stamp of the driver's clock, oldest first; 0 is the whole ring.
    pub fn utilization_samples(&self, gpu: usize, t_us: u64, since_stamp_us: u64) -> Vec<UtilizationSample> {
        let busy = self.device_busy(gpu);
        self.samples(t_us, since_stamp_us)
            .into_iter()
            .map(|k| {
                let (from, to) = (end_of(k - 1), end_of(k));
                UtilizationSample {
                    stamp_us: self.stamp_us(to),
                    percent: percent(busy.between(from, to), to - from),
                }
            })
            .collect()
    }

    /// The gauge: per cent of the last complete sample.
    pub fn utilization_percent(&self, gpu: usize, t_us: u64) -> u32 {
        let k = last_sample(t_us);
        let (from, to) = (end_of(k.saturating_sub(1)), end_of(k));
        percent(self.device_busy(gpu).between(from, to), to - from)
    }

    /// Rows of process utilisation over the samples later than a stamp of the driver's clock: processes with a sample that is not zero.
    pub fn process_utilization(&self, gpu: usize, t_us: u64, since_stamp_us: u64) -> Vec<ProcessSample> {
        let samples = self.samples(t_us, since_stamp_us);
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
        let (from, to) = (end_of(first - 1), end_of(*last));
        self.contexts_between(gpu, from, to)
            .into_iter()
            .filter_map(|index| {
                let context = self.context(index);
                let integral = context.busy.between(from, to);
                let latest =
                    samples.iter().rev().find(|k| context.busy.between(end_of(**k - 1), end_of(**k)) > 0)?;
                Some(ProcessSample {
                    process: context.process,
                    stamp_us: self.stamp_us(end_of(*latest)),
                    sm_percent: percent(integral, to - from),
                })
            })
            .collect()
    }

    /// Contexts that lived at some instant of `[from, to)`.
    fn contexts_between(&self, gpu: usize, from_us: u64, to_us: u64) -> BTreeSet<usize> {
        let states = self.states(gpu);
        let first = states.partition_point(|state| state.from_us <= from_us).saturating_sub(1);
        states[first..]
            .iter()
            .take_while(|state| state.from_us < to_us)
            .flat_map(|state| state.contexts.iter().map(|entry| entry.context))
            .collect()
    }
}
