//! Accounting: a sample a second for each process, kept after its end.

use super::{Context, World};
use std::collections::BTreeMap;

/// Period of the sampler.
pub const SAMPLE_US: u64 = 1_000_000;

/// What accounting knows of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountingFigures {
    /// Whose, by index.
    pub process: usize,
    /// PID as the caller sees it.
    pub pid: u32,
    /// When it opened its context, by the driver's clock.
    pub start_stamp_us: u64,
    /// Length of its life in milliseconds; 0 while it lives.
    pub time_ms: u64,
    /// Whether it lives.
    pub is_running: bool,
    /// Number of samples.
    pub samples: u64,
    /// Sum of the samples in hundredths of a per cent.
    pub gpu_percent_hundredths: u64,
    /// The same for the share of the device's memory.
    pub memory_percent_hundredths: u64,
    /// Most memory in use at once.
    pub memory_bytes_max: u64,
}

impl AccountingFigures {
    /// Whole per cent over its life, as version 1 tells it.
    pub fn gpu_percent(&self) -> u32 {
        mean_percent(self.gpu_percent_hundredths, self.samples)
    }

    /// The same for memory.
    pub fn memory_percent(&self) -> u32 {
        mean_percent(self.memory_percent_hundredths, self.samples)
    }
}

fn mean_percent(hundredths: u64, samples: u64) -> u32 {
    let whole = samples * 100;
    (hundredths + whole / 2).checked_div(whole).map_or(0, |mean| u32::try_from(mean).unwrap_or(u32::MAX))
}

impl World {
    /// What accounting knows of a GPU's processes: of each PID the latest, in order of PIDs. None where accounting is off.
    pub fn accounting(&self, gpu: usize, t_us: u64) -> Option<Vec<AccountingFigures>> {
        let since_us = self.state(gpu, t_us).accounting_since_us?;
        let mut latest = BTreeMap::new();
        for context in self.contexts.iter().filter(|context| {
            context.gpu == gpu && since_us <= context.from_us && context.from_us <= t_us && !context.is_hidden
        }) {
            if let Some(pid) = self.visible_pid(self.process(context.process)) {
                latest.insert(pid, context);
            }
        }
        Some(latest.into_iter().map(|(pid, context)| self.figures(pid, context, t_us)).collect())
    }

    fn figures(&self, pid: u32, context: &Context, t_us: u64) -> AccountingFigures {
        let end = context.until_us.min(t_us);
        let last = end - end % SAMPLE_US;
        let first = context.from_us - context.from_us % SAMPLE_US;
        let is_running = context.until_us > t_us;
        let total = u128::from(self.memory(context.gpu, t_us).total).max(1);
        let busy = context.busy.between(first, last.max(first));
        let memory = context.memory.byte_us(first, last.max(first));
        let small = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        AccountingFigures {
            process: context.process,
            pid,
            start_stamp_us: self.stamp_us(context.from_us),
            time_ms: if is_running { 0 } else { (end - context.from_us) / 1000 },
            is_running,
            samples: last.saturating_sub(first) / SAMPLE_US,
            gpu_percent_hundredths: small(busy / (u128::from(SAMPLE_US) * 100)),
            memory_percent_hundredths: small(memory * 10_000 / total / u128::from(SAMPLE_US)),
            memory_bytes_max: context.memory.most(context.from_us, end.max(context.from_us + 1)),
        }
    }
}
