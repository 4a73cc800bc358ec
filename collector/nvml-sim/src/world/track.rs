//! Functions of time that are constant between changes, with their exact integrals.

use std::sync::Arc;

/// Number of cells after which a load that is not constant repeats.
pub const CELLS: usize = 64;

/// How busy something is over time, in parts per million.
#[derive(Debug)]
pub struct Track {
    cell_us: u64,
    segments: Vec<Segment>,
}

#[derive(Debug)]
struct Segment {
    from_us: u64,
    before: u128,
    share: Share,
}

/// A share between two changes.
#[derive(Clone, Debug)]
pub(super) enum Share {
    /// Parts per million.
    Constant(u32),
    /// Parts per million for each cell, counted from the start of the timeline.
    Cells(Arc<Cells>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cells {
    ppm: [u32; CELLS],
    prefix: [u64; CELLS + 1],
}

impl Share {
    pub(super) const ZERO: Self = Self::Constant(0);

    pub(super) fn cells(ppm: [u32; CELLS]) -> Self {
        if ppm.iter().all(|share| *share == ppm[0]) {
            return Self::Constant(ppm[0]);
        }
        let mut prefix = [0; CELLS + 1];
        for (i, share) in ppm.iter().enumerate() {
            prefix[i + 1] = prefix[i] + u64::from(*share);
        }
        Self::Cells(Arc::new(Cells { ppm, prefix }))
    }

    pub(super) fn in_cell(&self, cell: usize) -> u32 {
        match self {
            Self::Constant(ppm) => *ppm,
            Self::Cells(cells) => cells.ppm[cell],
        }
    }

    pub(super) fn most(&self) -> u32 {
        match self {
            Self::Constant(ppm) => *ppm,
            Self::Cells(cells) => cells.ppm.iter().copied().max().unwrap_or(0),
        }
    }

    pub(super) fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// Integral over [0, t).
    fn until(&self, t_us: u64, cell_us: u64) -> u128 {
        match self {
            Self::Constant(ppm) => u128::from(*ppm) * u128::from(t_us),
            Self::Cells(cells) => {
                let (rounds, cell) = place(t_us, cell_us);
                let whole =
                    u128::from(rounds) * u128::from(cells.prefix[CELLS]) + u128::from(cells.prefix[cell]);
                whole * u128::from(cell_us) + u128::from(cells.ppm[cell]) * u128::from(t_us % cell_us)
            }
        }
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Constant(a), Self::Constant(b)) => a == b,
            (Self::Cells(a), Self::Cells(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

/// (rounds passed, cell) of an instant.
fn place(t_us: u64, cell_us: u64) -> (u64, usize) {
    let cells = t_us / cell_us;
    let round = u64::try_from(CELLS).unwrap_or(u64::MAX);
    (cells / round, usize::try_from(cells % round).unwrap_or(0))
}

impl Track {
    pub(super) fn new(cell_us: u64) -> Self {
        Self { cell_us, segments: Vec::new() }
    }

    /// From now on it is another share. Instants never go back.
    pub(super) fn set(&mut self, t_us: u64, share: Share) {
        let before = self.until(t_us);
        match self.segments.last_mut() {
            Some(last) if last.share == share => {}
            Some(last) if last.from_us == t_us => last.share = share,
            None if share == Share::ZERO => {}
            _ => self.segments.push(Segment { from_us: t_us, before, share }),
        }
    }

    fn segment(&self, t_us: u64) -> Option<&Segment> {
        let next = self.segments.partition_point(|segment| segment.from_us <= t_us);
        next.checked_sub(1).map(|last| &self.segments[last])
    }

    /// The share at an instant, in parts per million.
    pub fn at(&self, t_us: u64) -> u32 {
        self.segment(t_us).map_or(0, |segment| segment.share.in_cell(place(t_us, self.cell_us).1))
    }

    /// Integral from the start to an instant, in parts per million times microseconds.
    pub fn until(&self, t_us: u64) -> u128 {
        self.segment(t_us).map_or(0, |segment| {
            let (to, from) =
                (segment.share.until(t_us, self.cell_us), segment.share.until(segment.from_us, self.cell_us));
            segment.before + (to - from)
        })
    }

    /// Integral over `[from, to)`, in parts per million times microseconds.
    pub fn between(&self, from_us: u64, to_us: u64) -> u128 {
        self.until(to_us.max(from_us)) - self.until(from_us)
    }

    /// Busy time over `[from, to)` in whole microseconds; the parts of any cut add up.
    pub fn busy_us(&self, from_us: u64, to_us: u64) -> u64 {
        let whole = self.until(to_us.max(from_us)) / 1_000_000 - self.until(from_us) / 1_000_000;
        u64::try_from(whole).unwrap_or(u64::MAX)
    }

    /// Mean share over `[from, to)` in parts per million, rounded half up; the share of the instant where it is empty.
    pub fn mean_ppm(&self, from_us: u64, to_us: u64) -> u32 {
        let length = u128::from(to_us.saturating_sub(from_us));
        if length == 0 {
            return self.at(to_us);
        }
        u32::try_from((self.between(from_us, to_us) + length / 2) / length).unwrap_or(u32::MAX)
    }
}

/// An amount of memory over time, in bytes.
#[derive(Debug, Default)]
pub struct Amount {
    segments: Vec<(u64, u64, u128)>,
}

impl Amount {
    /// From now on it is another amount. Instants never go back.
    pub(super) fn set(&mut self, t_us: u64, bytes: u64) {
        let before = self.until(t_us);
        match self.segments.last_mut() {
            Some(last) if last.1 == bytes => {}
            Some(last) if last.0 == t_us => last.1 = bytes,
            None if bytes == 0 => {}
            _ => self.segments.push((t_us, bytes, before)),
        }
    }

    fn segment(&self, t_us: u64) -> Option<(u64, u64, u128)> {
        let next = self.segments.partition_point(|(from, _, _)| *from <= t_us);
        next.checked_sub(1).map(|last| self.segments[last])
    }

    /// Bytes at an instant.
    pub fn at(&self, t_us: u64) -> u64 {
        self.segment(t_us).map_or(0, |(_, bytes, _)| bytes)
    }

    /// Integral from the start to an instant, in bytes times microseconds.
    pub fn until(&self, t_us: u64) -> u128 {
        self.segment(t_us)
            .map_or(0, |(from, bytes, before)| before + u128::from(bytes) * u128::from(t_us - from))
    }

    /// Integral over `[from, to)`, in bytes times microseconds.
    pub fn byte_us(&self, from_us: u64, to_us: u64) -> u128 {
        self.until(to_us.max(from_us)) - self.until(from_us)
    }

    /// The most over `[from, to)`.
    pub fn most(&self, from_us: u64, to_us: u64) -> u64 {
        let within = self.segments.iter().filter(|(from, _, _)| from_us < *from && *from < to_us);
        within.map(|(_, bytes, _)| *bytes).fold(self.at(from_us), u64::max)
    }
}

#[cfg(test)]
mod tests;
