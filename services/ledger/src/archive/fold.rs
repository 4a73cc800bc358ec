//! From windows to minutes: one row a unit, owner and minute, of the windows of a file, divided over minutes as in packed hours.

use crate::pack::minutes::{Part, parts};
use gpuledger_archive::minutes::MinuteRow;
use gpuledger_domain::time::{Instant, MINUTE_US};
use gpuledger_wire::window::{Owner, Reading, Window};
use std::collections::BTreeMap;

/// What a row is about, within a node.
type Key<'w> = (Instant, &'w str, Option<(u8, u8)>, Option<Owner<'w>>);

/// Minutes of one node.
#[derive(Default)]
pub(super) struct Minutes<'w> {
    rows: BTreeMap<Key<'w>, Sums<'w>>,
}

/// Readings so far. What was never taken is absent (M-8).
#[derive(Default)]
struct Sums<'w> {
    sm_active_us: Option<u64>,
    memory_byte_us: Option<u128>,
    memory_bytes_max: Option<u64>,
    energy_mj: Option<u64>,
    covered_us: u64,
    quality: BTreeMap<&'w str, BTreeMap<&'w str, u64>>,
}

impl<'w> Minutes<'w> {
    /// Adds a reading of a window.
    pub(super) fn add(&mut self, window: &Window<'w>, reading: &Reading<'w, '_>) {
        let owner = reading.process.map(|process| process.owner(window.boot_id));
        for part in parts(window) {
            let key = (part.from.floor(MINUTE_US), reading.gpu, reading.placement, owner);
            self.rows.entry(key).or_default().add(&part, reading);
        }
    }

    /// Gives the rows of this node, by minute and unit, and begins anew.
    pub(super) fn take(&mut self, node: &str) -> Vec<MinuteRow> {
        std::mem::take(&mut self.rows).into_iter().map(|(key, sums)| sums.row(node, key)).collect()
    }
}

impl<'w> Sums<'w> {
    fn add(&mut self, part: &Part<'_>, reading: &Reading<'w, '_>) {
        let narrow = |amount: u64| part.narrow(amount);
        self.sm_active_us = plus(self.sm_active_us, reading.sm_active_us.map(narrow), u64::saturating_add);
        let memory = reading.memory_byte_us.map(|amount| part.of(amount));
        self.memory_byte_us = plus(self.memory_byte_us, memory, u128::saturating_add);
        self.memory_bytes_max =
            self.memory_bytes_max.max(reading.memory_bytes_max.filter(|_| part.is_first()));
        self.energy_mj = plus(self.energy_mj, reading.energy_mj.map(narrow), u64::saturating_add);
        self.covered_us = self.covered_us.saturating_add(narrow(reading.covered_us));
        for (name, label) in reading.quality {
            let covered = self.quality.entry(name).or_default().entry(label).or_default();
            *covered = covered.saturating_add(narrow(reading.covered_us_of(name)));
        }
    }

    fn row(self, node: &str, (minute, gpu, placement, owner): Key<'w>) -> MinuteRow {
        let held = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        MinuteRow {
            minute,
            node: node.to_owned(),
            gpu: gpu.to_owned(),
            placement: placement.map(|(start, size)| (i32::from(start), i32::from(size))),
            owner: owner.map(|owner| owner.to_string()),
            sm_active_us: self.sm_active_us.map(held),
            memory_byte_us: self.memory_byte_us.map(|n| i128::try_from(n).unwrap_or(i128::MAX)),
            memory_bytes_max: self.memory_bytes_max.map(held),
            energy_mj: self.energy_mj.map(held),
            covered_us: held(self.covered_us),
            quality: serde_json::json!(self.quality).to_string(),
        }
    }
}

fn plus<T>(sum: Option<T>, more: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    match (sum, more) {
        (Some(sum), Some(more)) => Some(add(sum, more)),
        (sum, more) => sum.or(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_wire::window::Process;

    fn window(start_us: i64) -> Window<'static> {
        Window {
            node: "n1",
            boot_id: "b1",
            stream: "s",
            sequence: 0,
            start: Instant::from_micros(start_us),
            end: Instant::from_micros(start_us + 10_000_000),
            units: 1,
            processes: 0,
            gaps: 0,
            gap_us: 0,
        }
    }

    fn reading(sm_active_us: Option<u64>, process: Option<Process<'static>>) -> Reading<'static, 'static> {
        Reading {
            gpu: "GPU-1",
            placement: None,
            process,
            sm_active_us,
            memory_byte_us: None,
            memory_bytes_max: None,
            energy_mj: None,
            covered_us: 9_000_000,
            quality: &[("sm_active_us", "interval_mean")],
            list: 1,
            coverage: &[("sm_active_us", 8_000_000)],
        }
    }

    #[test]
    fn windows_of_a_minute_are_one_row_and_the_next_minute_another() {
        let mut minutes = Minutes::default();
        for (start_us, sm) in [(0, 5), (50_000_000, 7), (60_000_000, 9)] {
            minutes.add(&window(start_us), &reading(Some(sm), None));
        }
        let rows = minutes.take("n1");
        let told: Vec<_> =
            rows.iter().map(|r| (r.minute.as_micros(), r.sm_active_us, r.covered_us)).collect();
        assert_eq!(told, [(0, Some(12), 18_000_000), (60_000_000, Some(9), 9_000_000)]);
        assert_eq!(rows[0].quality, r#"{"sm_active_us":{"interval_mean":16000000}}"#);
        assert_eq!(minutes.take("n1"), []);
    }

    #[test]
    fn zero_is_a_reading_and_absent_is_none_m_8() {
        let mut minutes = Minutes::default();
        minutes.add(&window(0), &reading(None, None));
        assert_eq!(minutes.take("n1")[0].sm_active_us, None);
        minutes.add(&window(0), &reading(None, None));
        minutes.add(&window(0), &reading(Some(0), None));
        assert_eq!(minutes.take("n1")[0].sm_active_us, Some(0));
    }

    #[test]
    fn processes_of_a_job_are_one_row_beside_that_of_the_unit() {
        let of = |pid, slurm_job| {
            Some(Process { pid, started_at_us: 3, container: None, pod_uid: None, slurm_job })
        };
        let mut minutes = Minutes::default();
        for process in [None, of(1, Some("7")), of(2, Some("7")), of(3, None)] {
            minutes.add(&window(0), &reading(Some(1), process));
        }
        let told: Vec<_> = minutes.take("n1").into_iter().map(|r| (r.owner, r.sm_active_us)).collect();
        let owned = |owner: &str, sm| (Some(owner.to_owned()), Some(sm));
        assert_eq!(told, [(None, Some(1)), owned("job:7", 2), owned("pid:b1/3/3", 1)]);
    }
}
