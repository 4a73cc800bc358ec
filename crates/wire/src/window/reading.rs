//! Readings of units and processes.

use super::fields::{Fields, instant, name};
use crate::number::{BigCount, Count, SliceIndex, Slices};
use std::fmt;

/// A reading. What could not be taken is absent, never zero (M-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading<'a, 's> {
    /// Which GPU.
    pub gpu: &'a str,
    /// First memory slice and number of slices; none: the whole GPU.
    pub placement: Option<(u8, u8)>,
    /// Which process; none: the unit itself.
    pub process: Option<Process<'a>>,
    /// SM-active time in microseconds.
    pub sm_active_us: Option<u64>,
    /// Bytes times microseconds.
    pub memory_byte_us: Option<u128>,
    /// Most memory in use at once, in bytes; of units.
    pub memory_bytes_max: Option<u64>,
    /// Millijoules; of units.
    pub energy_mj: Option<u64>,
    /// Microseconds of the window that the readings cover.
    pub covered_us: u64,
    /// Reading and its label.
    pub quality: &'s [(&'a str, &'a str)],
    /// Which of the lists of its window `quality` is: readings with the same number have the same one.
    pub list: u32,
    /// Reading and the microseconds it covers, where those are others.
    pub coverage: &'s [(&'a str, u64)],
}

impl Reading<'_, '_> {
    /// Microseconds of the window that a reading covers, by its name in `quality`.
    pub fn covered_us_of(&self, reading: &str) -> u64 {
        self.coverage.iter().find(|(name, _)| *name == reading).map_or(self.covered_us, |(_, own)| *own)
    }
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process<'a> {
    /// Its number.
    pub pid: u64,
    /// When it began, microseconds UTC.
    pub started_at_us: i64,
    /// Container id.
    pub container: Option<&'a str>,
    /// Kubernetes pod UID.
    pub pod_uid: Option<&'a str>,
    /// Slurm job number.
    pub slurm_job: Option<&'a str>,
}

/// Whose a process is, the strongest name first: its job, else its pod, else its container, else itself by boot, number and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner<'a> {
    /// A Slurm job.
    Job(&'a str),
    /// A pod.
    Pod(&'a str),
    /// A container.
    Container(&'a str),
    /// The process.
    Process {
        /// The node's boot.
        boot_id: &'a str,
        /// Its number.
        pid: u64,
        /// When it began, microseconds UTC.
        started_at_us: i64,
    },
}

impl<'a> Process<'a> {
    /// Whose it is, in this boot of its node.
    pub fn owner(&self, boot_id: &'a str) -> Owner<'a> {
        match (self.slurm_job, self.pod_uid, self.container) {
            (Some(job), ..) => Owner::Job(job),
            (None, Some(pod), _) => Owner::Pod(pod),
            (None, None, Some(container)) => Owner::Container(container),
            (None, None, None) => {
                Owner::Process { boot_id, pid: self.pid, started_at_us: self.started_at_us }
            }
        }
    }
}

impl Owner<'_> {
    /// Whether packed hours name it so: as its text, without making it.
    pub fn is_named(&self, text: &str) -> bool {
        match self {
            Self::Job(job) => text.strip_prefix("job:") == Some(*job),
            Self::Pod(pod) => text.strip_prefix("pod:") == Some(*pod),
            Self::Container(container) => text.strip_prefix("container:") == Some(*container),
            Self::Process { boot_id, .. } => {
                let begins = text.strip_prefix("pid:").is_some_and(|rest| rest.starts_with(boot_id));
                begins && self.to_string() == text
            }
        }
    }
}

impl fmt::Display for Owner<'_> {
    /// As packed hours name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "job:{job}"),
            Self::Pod(pod) => write!(f, "pod:{pod}"),
            Self::Container(container) => write!(f, "container:{container}"),
            Self::Process { boot_id, pid, started_at_us } => write!(f, "pid:{boot_id}/{pid}/{started_at_us}"),
        }
    }
}

/// What the reading before had: the next one mostly is of the same GPU and was taken in the same way, and what has the same bytes says the same.
#[derive(Default)]
pub(super) struct Scratch<'a> {
    gpu: &'a str,
    /// The bytes of both lists.
    told: &'a [u8],
    quality: Vec<(&'a str, &'a str)>,
    coverage: Vec<(&'a str, u64)>,
    list: u32,
}

pub(super) fn unit<'a>(
    bytes: &'a [u8],
    length_us: i64,
    scratch: &mut Scratch<'a>,
    each: impl FnOnce(&Reading<'a, '_>),
) -> Option<()> {
    let mut fields = Fields::new(bytes);
    let gpu = scratch.gpu(fields.bytes(1)?)?;
    let placement = placement(&mut fields, 2)?;
    let sm_active_us = count_or_none(&mut fields, 3)?;
    let memory_byte_us = wide_or_none(&mut fields, 4)?;
    let memory_bytes_max = count_or_none(&mut fields, 5)?;
    let energy_mj = count_or_none(&mut fields, 6)?;
    let covered_us = covered(fields.number_or_zero(7)?, length_us)?;
    scratch.read(&mut fields, (8, 9), length_us)?;
    let Scratch { quality, coverage, list, .. } = scratch;
    each(&Reading {
        gpu,
        placement,
        process: None,
        sm_active_us,
        memory_byte_us,
        memory_bytes_max,
        energy_mj,
        covered_us,
        quality,
        list: *list,
        coverage,
    });
    Some(())
}

pub(super) fn process<'a>(
    bytes: &'a [u8],
    length_us: i64,
    scratch: &mut Scratch<'a>,
    each: impl FnOnce(&Reading<'a, '_>),
) -> Option<()> {
    let mut fields = Fields::new(bytes);
    let gpu = scratch.gpu(fields.bytes(1)?)?;
    let placement = placement(&mut fields, 2)?;
    let process = Process {
        pid: count(fields.number_or_zero(3)?)?,
        started_at_us: instant(fields.signed_or_zero(4)?)?.as_micros(),
        container: name_or_none(&mut fields, 5)?,
        pod_uid: name_or_none(&mut fields, 6)?,
        slurm_job: name_or_none(&mut fields, 7)?,
    };
    let sm_active_us = count_or_none(&mut fields, 8)?;
    let memory_byte_us = wide_or_none(&mut fields, 9)?;
    let covered_us = covered(fields.number_or_zero(10)?, length_us)?;
    scratch.read(&mut fields, (11, 12), length_us)?;
    let Scratch { quality, coverage, list, .. } = scratch;
    each(&Reading {
        gpu,
        placement,
        process: Some(process),
        sm_active_us,
        memory_byte_us,
        memory_bytes_max: None,
        energy_mj: None,
        covered_us,
        quality,
        list: *list,
        coverage,
    });
    Some(())
}

impl<'a> Scratch<'a> {
    fn gpu(&mut self, bytes: &'a [u8]) -> Option<&'a str> {
        if self.gpu.as_bytes() != bytes || bytes.is_empty() {
            self.gpu = name(bytes)?;
        }
        Some(self.gpu)
    }

    /// Both maps, to the end of the message; no reading stands twice in one. All readings of a window have its length.
    fn read(&mut self, fields: &mut Fields<'a>, maps: (u8, u8), length_us: i64) -> Option<()> {
        let told = fields.rest();
        if told != self.told {
            self.read_anew(fields, maps, length_us)?;
            self.told = told;
        }
        Some(())
    }

    fn read_anew(
        &mut self,
        fields: &mut Fields<'a>,
        (quality, coverage): (u8, u8),
        length_us: i64,
    ) -> Option<()> {
        self.told = &[];
        self.list += 1;
        self.quality.clear();
        self.coverage.clear();
        while let Some(entry) = fields.bytes_or_none(quality)? {
            let mut entry = Fields::new(entry);
            let told = (name(entry.bytes(1)?)?, name(entry.bytes(2)?)?);
            let is_new = self.quality.iter().all(|(reading, _)| *reading != told.0);
            (is_new && entry.is_empty()).then(|| self.quality.push(told))?;
        }
        while let Some(entry) = fields.bytes_or_none(coverage)? {
            let mut entry = Fields::new(entry);
            let told = (name(entry.bytes(1)?)?, covered(entry.number_or_zero(2)?, length_us)?);
            let is_new = self.coverage.iter().all(|(reading, _)| *reading != told.0);
            (is_new && entry.is_empty()).then(|| self.coverage.push(told))?;
        }
        fields.is_empty().then_some(())
    }
}

/// Nothing covers more than the window.
fn covered(us: u64, length_us: i64) -> Option<u64> {
    (i64::try_from(us).ok()? <= length_us).then_some(us)
}

fn count(value: u64) -> Option<u64> {
    Count::new(i64::try_from(value).ok()?).map(|_| value)
}

fn count_or_none(fields: &mut Fields<'_>, number: u8) -> Option<Option<u64>> {
    match fields.number_or_none(number)? {
        Some(value) => count(value).map(Some),
        None => Some(None),
    }
}

fn name_or_none<'a>(fields: &mut Fields<'a>, number: u8) -> Option<Option<&'a str>> {
    match fields.bytes_or_none(number)? {
        Some(bytes) => name(bytes).map(Some),
        None => Some(None),
    }
}

fn placement(fields: &mut Fields<'_>, number: u8) -> Option<Option<(u8, u8)>> {
    let Some(bytes) = fields.bytes_or_none(number)? else { return Some(None) };
    let mut inner = Fields::new(bytes);
    let start = u8::try_from(inner.number_or_zero(1)?).ok().filter(|n| *n <= SliceIndex::MAX)?;
    let size =
        u8::try_from(inner.number_or_zero(2)?).ok().filter(|n| (Slices::MIN..=Slices::MAX).contains(n))?;
    (inner.is_empty() && start + size <= 16).then_some(Some((start, size)))
}

fn wide_or_none(fields: &mut Fields<'_>, number: u8) -> Option<Option<u128>> {
    let Some(bytes) = fields.bytes_or_none(number)? else { return Some(None) };
    let mut inner = Fields::new(bytes);
    let low = inner.fixed_or_zero(1)?;
    let high = inner.number_or_zero(2)?;
    let value = (u128::from(high) << 64) | u128::from(low);
    let is_bounded = i128::try_from(value).is_ok_and(|value| value <= BigCount::MAX);
    (inner.is_empty() && is_bounded).then_some(Some(value))
}
