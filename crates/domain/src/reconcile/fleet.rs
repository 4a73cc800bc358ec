//! What reconciliation knows of all GPUs: who is called what, who holds what.

use super::there::mask_of;
use crate::attribution::Attribution;
use crate::fact::{Placement, Runtime};
use crate::ids::{AllocationId, GpuId};
use crate::measured::Owner;
use crate::time::{Instant, Window};
use crate::usage::{AllocationView, End, UsageSpan};
use std::collections::BTreeMap;

/// The ledger at a horizon, by the names that nodes know.
#[derive(Debug)]
pub struct Fleet<'a> {
    by_name: BTreeMap<Owner, Vec<&'a AllocationView>>,
    runtimes: BTreeMap<&'a AllocationId, Runtime>,
    by_allocation: BTreeMap<&'a AllocationId, Vec<&'a UsageSpan>>,
    by_gpu: BTreeMap<&'a GpuId, Vec<&'a UsageSpan>>,
}

impl<'a> Fleet<'a> {
    /// Of what the ledger says.
    pub fn new(ledger: &'a Attribution) -> Self {
        Self::of(&ledger.allocations, &ledger.spans)
    }

    pub(super) fn of(allocations: &'a [AllocationView], spans: &'a [UsageSpan]) -> Self {
        let mut fleet = Self {
            by_name: BTreeMap::new(),
            runtimes: BTreeMap::new(),
            by_allocation: BTreeMap::new(),
            by_gpu: BTreeMap::new(),
        };
        for view in allocations {
            let job = view.slurm_job.clone().map(Owner::Job);
            let pod = view.pod_uid.clone().map(Owner::Pod);
            for name in job.into_iter().chain(pod) {
                fleet.by_name.entry(name).or_default().push(view);
            }
            let runtime = Runtime { slurm_job: view.slurm_job.clone(), pod_uid: view.pod_uid.clone() };
            if runtime != Runtime::default() {
                fleet.runtimes.insert(&view.allocation, runtime);
            }
        }
        for span in spans.iter().filter(|span| span.held) {
            fleet.by_allocation.entry(&span.allocation).or_default().push(span);
            if let Some(place) = &span.place {
                fleet.by_gpu.entry(&place.gpu).or_default().push(span);
            }
        }
        fleet
    }

    pub(super) fn spans_on(&self, gpu: &GpuId) -> impl Iterator<Item = &'a UsageSpan> + '_ {
        self.by_gpu.get(gpu).into_iter().flatten().copied()
    }

    /// The names in the grant of an allocation, where it has any.
    pub(super) fn runtime(&self, allocation: &AllocationId) -> Option<&Runtime> {
        self.runtimes.get(allocation)
    }

    /// Whether any allocation bears the owner's name, at whatever time.
    pub(super) fn knows(&self, owner: &Owner) -> bool {
        self.by_name.contains_key(owner)
    }

    /// Allocations of the owner's name that hold something in the window, or are granted it.
    fn in_force(&self, owner: &Owner, window: Window) -> impl Iterator<Item = &'a AllocationView> + '_ {
        let views = self.by_name.get(owner).into_iter().flatten().copied();
        views.filter(move |view| view.start < window.end() && end_of(view) > window.start())
    }

    /// Whether an allocation of the owner's name is in force in the window.
    pub(super) fn is_in_force(&self, owner: &Owner, window: Window) -> bool {
        self.in_force(owner, window).next().is_some()
    }

    /// Whether one of them has units whose devices are not known.
    pub(super) fn is_unplaced(&self, owner: &Owner, window: Window) -> bool {
        self.in_force(owner, window).any(|view| !self.is_placed(view))
    }

    /// One of them, where the devices of all of them are known. That it does not hold the unit in question is known to the caller.
    pub(super) fn elsewhere(&self, owner: &Owner, window: Window) -> Option<&'a AllocationId> {
        let mut in_force = self.in_force(owner, window).peekable();
        let first = in_force.peek().map(|view| &view.allocation)?;
        in_force.all(|view| self.is_placed(view)).then_some(first)
    }

    fn is_placed(&self, view: &AllocationView) -> bool {
        let spans = self.by_allocation.get(&view.allocation);
        spans.is_some_and(|spans| spans.iter().all(|span| span.place.is_some()))
    }

    /// The allocation of the owner's name that held these slices last before the window, and when its hold ended, where none is in force.
    pub(super) fn released(
        &self,
        owner: &Owner,
        gpu: &GpuId,
        placement: Option<Placement>,
        window: Window,
    ) -> Option<(&'a AllocationId, Instant)> {
        if self.is_in_force(owner, window) {
            return None;
        }
        let held_here = |view: &&AllocationView| {
            let spans = self.by_allocation.get(&view.allocation).into_iter().flatten();
            spans.filter_map(|span| span.place.as_ref()).any(|place| {
                let unit = Placement { start: place.memory_start, size: place.memory_slices };
                let all = place.gpu_memory_slices;
                place.gpu == *gpu && mask_of(Some(unit), all) & mask_of(placement, all) != 0
            })
        };
        let views = self.by_name.get(owner).into_iter().flatten().copied();
        let before = views.filter(|view| end_of(view) <= window.start()).filter(held_here);
        before.map(|view| (&view.allocation, end_of(view))).max_by_key(|(id, end)| (*end, *id))
    }
}

/// When it ended; later than everything while it runs.
fn end_of(view: &AllocationView) -> Instant {
    match view.end {
        End::Open => Instant::MAX,
        End::Ended { at, .. } => at,
    }
}
