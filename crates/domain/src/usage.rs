//! Usage: who held what, when, and how much of it counts. The one shape that reports, documents and read models are made of.

use crate::fact::{Class, Runtime};
use crate::ids::{AllocationId, GpuId, NodeId, ProjectId, SkuId, Source, TenantId};
use crate::share::{Share, split_by_largest_remainder};
use crate::time::{CELL_US, Instant, Window};
use num_rational::Ratio;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One stretch in which one owner's allocation held one unit under unchanged circumstances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageSpan {
    /// By which allocation.
    pub allocation: AllocationId,
    /// Which unit of it, counted from 0 in the order of the grant.
    pub unit: u32,
    /// How many alike units: above 1 for unplaced units only.
    pub count: u32,
    /// Who owns the allocation here.
    pub tenant: TenantId,
    /// For which project.
    pub project: Option<ProjectId>,
    /// What is priced.
    pub sku: SkuId,
    /// How it was bought.
    pub class: Class,
    /// Where it stands; none for an unplaced unit.
    pub place: Option<SpanPlace>,
    /// GPU equivalents of an unplaced unit, by its SKU's slices; not used where it is placed.
    pub weight: Share,
    /// When it was held and chargeable.
    pub window: Window,
    /// How the unit's time is split; none: it is held alone.
    pub split: Option<Split>,
    /// Whether the tenant holds the unit. One whom a work pool serves has a part of the unit's time and holds nothing.
    pub held: bool,
    /// Billing state of the allocation over the window, where one was said.
    pub state: Option<String>,
    /// By which process owners its readings are known.
    pub telling: Telling,
}

/// By which names a node knows who holds a placed unit, and how long spans of the same names hold it in the minutes at the span's edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    /// Slurm job and pod of the grant; none where it names none, or where another span of these names holds the unit at the same time.
    pub runtime: Runtime,
    /// Whether it holds the unit exclusively: nobody else may, though a pool may serve others with it.
    pub alone: bool,
    /// Held by these names in the UTC minute of the start, before it, in microseconds below a minute.
    pub before_us: u32,
    /// Held by these names in the UTC minute of the end, from it on, in microseconds below a minute.
    pub after_us: u32,
}

/// The device and slices of a placed unit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpanPlace {
    /// Which GPU.
    pub gpu: GpuId,
    /// On which node at the start of the span.
    pub node: NodeId,
    /// First memory slice of the unit.
    pub memory_start: u8,
    /// Compute slices of the unit.
    pub compute_slices: u8,
    /// Memory slices of the unit.
    pub memory_slices: u8,
    /// Compute slices of the whole GPU.
    pub gpu_compute_slices: u8,
    /// Memory slices of the whole GPU.
    pub gpu_memory_slices: u8,
}

/// How the time of a shared unit is split among its holders (M-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// When the unit's holders, shares and state last changed: cells are cut there, and nowhere else between UTC quarters.
    pub since: Instant,
    /// Shares of all holders in order of allocation id; the unit's free rest comes last where they are less than 1 in all.
    pub weights: Arc<[Share]>,
    /// Which of them this holder has.
    pub position: usize,
}

/// Two ways to count a part: as conserved time, or as granted.
#[derive(Clone, Copy)]
enum Basis {
    Conserved,
    Granted,
}

impl Split {
    /// The split among holders with `shares`, seen by the holder at `position`; shares below 1 in all leave a free rest.
    pub fn new(since: Instant, shares: &[Share], position: usize) -> Self {
        let mut weights = shares.to_vec();
        let sum: Share = shares.iter().sum();
        let one = Ratio::from_integer(1);
        if sum < one {
            weights.push(one - sum);
        }
        Self { since, weights: weights.into(), position }
    }

    /// Whether the holders were granted more than there is.
    pub fn is_oversubscribed(&self) -> bool {
        self.weights.iter().sum::<Share>() > Ratio::from_integer(1)
    }

    /// The same split seen from another position.
    #[must_use]
    pub fn at(&self, position: usize) -> Self {
        Self { position, ..self.clone() }
    }

    /// The holder's conserved part of `window`, which starts at or after `since`, in microseconds.
    pub fn conserved_us(&self, window: Window) -> i128 {
        self.part(window, Basis::Conserved)
    }

    /// The holder's part of `window`, which starts at or after `since`, in microseconds.
    fn part(&self, window: Window, basis: Basis) -> i128 {
        let mut sum = 0;
        let first = window.start().floor(CELL_US);
        let last = window.end().floor(CELL_US);
        if first == last {
            return self.within_cell(first, window, basis);
        }
        if let Some(head) = Window::new(window.start(), first.plus(CELL_US)) {
            sum += self.within_cell(first, head, basis);
        }
        let whole_from = first.plus(CELL_US);
        let whole_cells = i128::from(last.since(whole_from)) / i128::from(CELL_US);
        sum += whole_cells * self.prefix(i128::from(CELL_US), basis);
        if let Some(tail) = Window::new(last, window.end()) {
            sum += self.within_cell(last, tail, basis);
        }
        sum
    }

    /// The part of a window inside one cell. The cell is split once, as a function of how much of it has passed, so that the parts
    /// of neighbouring windows add up wherever a query, a price or a period cuts it.
    fn within_cell(&self, cell: Instant, window: Window, basis: Basis) -> i128 {
        let origin = cell.max(self.since);
        let upto = |at: Instant| self.prefix(i128::from(at.since(origin)), basis);
        upto(window.end()) - upto(window.start())
    }

    fn prefix(&self, length_us: i128, basis: Basis) -> i128 {
        let total = match basis {
            Basis::Conserved => length_us,
            Basis::Granted => {
                let sum: Share = self.weights.iter().sum();
                (sum * Ratio::from_integer(length_us)).floor().to_integer()
            }
        };
        split_by_largest_remainder(total, &self.weights)[self.position]
    }
}

impl UsageSpan {
    /// Time the tenant held the unit, in unit-microseconds (`allocated_us` of M-4).
    pub fn allocated_us(&self) -> i128 {
        if self.held { i128::from(self.window.micros()) * i128::from(self.count) } else { 0 }
    }

    /// Time after shares as granted, in unit-microseconds: what is billed (`unit_seconds` of M-4, times a million).
    pub fn billed_us(&self) -> i128 {
        self.part_us(Basis::Granted)
    }

    /// Time after shares as conserved: scaled down where more was granted than there is.
    pub fn conserved_us(&self) -> i128 {
        self.part_us(Basis::Conserved)
    }

    fn part_us(&self, basis: Basis) -> i128 {
        let one = self
            .split
            .as_ref()
            .map_or_else(|| i128::from(self.window.micros()), |s| s.part(self.window, basis));
        one * i128::from(self.count)
    }

    /// Compute-slice-microseconds; none for an unplaced unit.
    pub fn compute_slice_us(&self) -> Option<i128> {
        self.place.as_ref().map(|p| self.conserved_us() * i128::from(p.compute_slices))
    }

    /// Memory-slice-microseconds; none for an unplaced unit.
    pub fn memory_slice_us(&self) -> Option<i128> {
        self.place.as_ref().map(|p| self.conserved_us() * i128::from(p.memory_slices))
    }

    /// Whole-GPU equivalents in microseconds: memory-slice time by the GPU's memory slices (M-4).
    pub fn gpu_us(&self) -> Share {
        match &self.place {
            Some(p) => {
                Ratio::new(self.conserved_us() * i128::from(p.memory_slices), i128::from(p.gpu_memory_slices))
            }
            None => Ratio::from_integer(self.conserved_us()) * self.weight,
        }
    }

    /// The share of the unit that was granted.
    pub fn share(&self) -> Share {
        self.split.as_ref().map_or(Ratio::from_integer(1), |s| s.weights[s.position])
    }

    /// The part of the span inside `window`, or none. Parts of a span add up to it.
    pub fn cut(&self, window: Window) -> Option<Self> {
        let window = self.window.intersect(window)?;
        Some(Self { window, ..self.clone() })
    }
}

/// How a unit's hold ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It runs to the horizon.
    Open,
    /// It ended.
    Ended {
        /// When.
        at: Instant,
        /// Whether the provider took the unit: preempted, or broken at the end.
        provider_took: bool,
    },
}

/// An allocation as reports show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationView {
    /// Which.
    pub allocation: AllocationId,
    /// When it was granted.
    pub start: Instant,
    /// The latest end of its units.
    pub end: End,
    /// The end of each unit, by its index; all units of an unplaced run share one index.
    pub unit_ends: BTreeMap<u32, End>,
    /// Owner at the horizon.
    pub tenant: TenantId,
    /// Owner's project at the horizon.
    pub project: Option<ProjectId>,
    /// How it was bought.
    pub class: Class,
    /// The reason of the release.
    pub reason: Option<String>,
    /// Who granted it.
    pub source: Source,
    /// Labels of the grant.
    pub labels: BTreeMap<String, String>,
    /// Slurm job of the grant.
    pub slurm_job: Option<String>,
    /// Pod of the grant.
    pub pod_uid: Option<String>,
}
