//! The join of readings with who held the unit: a pure function of spans and rollups.
//!
//! Whose name a process owner bears has what that owner used. Where no owner bears the holder's name, the unit's reading belongs to its
//! exclusive holder: less what owners of other names used, where it held the whole minute; by the part that it held, where not. Every part is a
//! difference of two rounded prefixes, so that whatever is cut adds up, and no tenant's figure asks for another tenant's spans.

mod unit;

use super::Rollup;
use super::amounts::Amounts;
use crate::ids::GpuId;
use crate::time::{HOUR_US, Instant, Window};
use crate::usage::UsageSpan;
use std::collections::{BTreeMap, BTreeSet};
use unit::Unit;

/// Readings of a span over a part of one UTC minute; without any, of one UTC hour in which there were none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading<'r> {
    /// Which span, by its place in the list.
    pub span: usize,
    /// Over which time.
    pub window: Window,
    /// What was measured.
    pub amounts: Amounts,
    /// How SM-active time was measured; where it was not, why not (M-8).
    pub label: &'r str,
}

/// Where spans stand: their places in a list, by GPU.
#[derive(Clone, Debug, Default)]
pub struct Holders(BTreeMap<GpuId, Vec<usize>>);

impl Holders {
    /// Of the placed ones of `spans`.
    pub fn new(spans: &[UsageSpan]) -> Self {
        let mut by_gpu: BTreeMap<GpuId, Vec<usize>> = BTreeMap::new();
        for (index, span) in spans.iter().enumerate() {
            if let Some(place) = &span.place {
                by_gpu.entry(place.gpu.clone()).or_default().push(index);
            }
        }
        Self(by_gpu)
    }

    /// The GPUs with spans, by id.
    pub fn gpus(&self) -> impl Iterator<Item = &GpuId> {
        self.0.keys()
    }

    /// The places of the spans on a GPU, in the order of the list.
    pub fn on(&self, gpu: &GpuId) -> &[usize] {
        self.0.get(gpu).map(Vec::as_slice).unwrap_or_default()
    }

    /// Hands the readings of `spans`, of which this is made, to `each`: by GPU, hour, unit, span and minute. Of a GPU and hour that is in
    /// `rollups`, all must be in it, in any order.
    pub fn read<'r>(&self, spans: &[UsageSpan], rollups: &'r [Rollup], mut each: impl FnMut(Reading<'r>)) {
        let mut groups: BTreeMap<(&GpuId, Instant), Vec<&'r Rollup>> = BTreeMap::new();
        for rollup in rollups {
            groups.entry((&rollup.gpu, rollup.hour)).or_default().push(rollup);
        }
        let hours: BTreeSet<Instant> = groups.keys().map(|(_, hour)| *hour).collect();
        let mut current: Option<(&GpuId, BTreeMap<Instant, Vec<usize>>)> = None;
        for ((gpu, hour), group) in &groups {
            if current.as_ref().is_none_or(|(of, _)| of != gpu) {
                current = Some((gpu, self.by_hour(spans, gpu, &hours)));
            }
            let Some(held) = current.as_ref().and_then(|(_, by_hour)| by_hour.get(hour)) else { continue };
            for unit in units(spans, held) {
                Unit::new(spans, &unit, group, *hour).read(&mut each);
            }
        }
    }

    /// Spans on a GPU that overlap each of `hours`.
    fn by_hour(
        &self,
        spans: &[UsageSpan],
        gpu: &GpuId,
        hours: &BTreeSet<Instant>,
    ) -> BTreeMap<Instant, Vec<usize>> {
        let mut by_hour: BTreeMap<Instant, Vec<usize>> = BTreeMap::new();
        for index in self.on(gpu) {
            let window = spans[*index].window;
            for hour in hours.range(window.start().floor(HOUR_US)..window.end()) {
                by_hour.entry(*hour).or_default().push(*index);
            }
        }
        by_hour
    }
}

/// The spans that `held` names, by unit.
fn units(spans: &[UsageSpan], held: &[usize]) -> Vec<Vec<usize>> {
    let mut units: BTreeMap<(u8, u8), Vec<usize>> = BTreeMap::new();
    for index in held {
        if let Some(place) = &spans[*index].place {
            units.entry((place.memory_start, place.memory_slices)).or_default().push(*index);
        }
    }
    units.into_values().collect()
}

#[cfg(test)]
mod tests;
