//! Measured time by unit and owner, for pools that divide by it.

use crate::fact::{Placement, Runtime};
use crate::ids::GpuId;
use crate::measured::{Owner, Rollup};
use crate::time::{HOUR_US, Instant, MINUTE_US, Window};
use std::collections::BTreeMap;

/// Rollups of jobs and pods by what they are about, in order of time.
pub(super) struct Measured<'a>(BTreeMap<(&'a GpuId, Option<Placement>, &'a Owner), Vec<&'a Rollup>>);

/// The owners that the names of a grant mean.
pub(super) fn owners(runtime: &Runtime) -> impl Iterator<Item = Owner> {
    let job = runtime.slurm_job.clone().map(Owner::Job);
    job.into_iter().chain(runtime.pod_uid.clone().map(Owner::Pod))
}

impl<'a> Measured<'a> {
    pub(super) fn new(rollups: &'a [Rollup]) -> Self {
        let mut of_unit: BTreeMap<_, Vec<&Rollup>> = BTreeMap::new();
        for rollup in rollups.iter().filter(|r| matches!(r.owner, Owner::Job(_) | Owner::Pod(_))) {
            of_unit.entry((&rollup.gpu, rollup.placement, &rollup.owner)).or_default().push(rollup);
        }
        of_unit.values_mut().for_each(|rollups| rollups.sort_by_key(|rollup| rollup.hour));
        Self(of_unit)
    }

    /// SM-active microseconds of the owner on the unit inside `window`. A minute that the window cuts counts in proportion of time, rounded
    /// down. What was not measured counts nothing.
    pub(super) fn active_us(
        &self,
        gpu: &GpuId,
        placement: Option<Placement>,
        owner: &Owner,
        window: Window,
    ) -> i128 {
        let rollups = self.0.get(&(gpu, placement, owner)).map(Vec::as_slice).unwrap_or_default();
        let from = rollups.partition_point(|rollup| rollup.hour.plus(HOUR_US) <= window.start());
        let inside = rollups[from..].iter().take_while(|rollup| rollup.hour < window.end());
        inside.flat_map(|rollup| minutes(rollup)).map(|(at, active_us)| part(at, active_us, window)).sum()
    }
}

fn minutes(rollup: &Rollup) -> impl Iterator<Item = (Instant, u64)> {
    rollup.minutes.iter().filter_map(|(minute, readings)| {
        Some((rollup.hour.plus(i64::from(*minute) * MINUTE_US), readings.sm_active_us?))
    })
}

fn part(minute: Instant, active_us: u64, window: Window) -> i128 {
    let inside = Window::new(minute, minute.plus(MINUTE_US)).and_then(|minute| minute.intersect(window));
    inside.map_or(0, |inside| i128::from(active_us) * i128::from(inside.micros()) / i128::from(MINUTE_US))
}
