//! Energy of whole GPUs.

use super::{Findings, PERIOD_US, Slot, count, slots};
use crate::node::Outing;
use crate::oracle::{Spans, energy_set};
use std::collections::BTreeMap;

/// The counter is read with the first cycle of each window; a failure may leave three readings out.
const READING_US: u64 = 30 * PERIOD_US;

pub(super) fn check(outing: &Outing, findings: &mut Findings) {
    let mut stretches: BTreeMap<usize, Stretch> = BTreeMap::new();
    for (slot, window) in slots(outing) {
        for row in window.units.iter().filter(|row| row.placement.is_none()) {
            let gpu = outing.gpu(&row.gpu);
            let stretch = stretches.entry(gpu).or_default();
            match row.energy_mj {
                Some(told) if slot.is_plain() => {
                    exact(outing, &slot, gpu, count(told), findings);
                    stretch.add(outing, gpu, &slot, count(told), findings);
                }
                _ => {
                    let unread =
                        slot.is_quiet(outing, gpu) && !slot.is_last && !near_reset(outing, &slot, gpu);
                    findings.check(!unread, || {
                        format!("{}: no energy of GPU {gpu} ({:?})", slot.name, row.quality)
                    });
                    stretch.end(outing, gpu, findings);
                }
            }
        }
    }
    for (gpu, stretch) in &mut stretches {
        stretch.end(outing, *gpu, findings);
        let resets = energy_set(&outing.world, *gpu).pieces().len();
        findings.case("energy counters that were set", u64::try_from(resets).unwrap_or(0));
    }
}

fn near_reset(outing: &Outing, slot: &Slot, gpu: usize) -> bool {
    slot.times.widened(READING_US, READING_US).meets(&energy_set(&outing.world, gpu))
}

/// Where nothing stands in the way the readings lie on the edges of the window.
fn exact(outing: &Outing, slot: &Slot, gpu: usize, told: u64, findings: &mut Findings) {
    if !slot.is_quiet(outing, gpu) || near_reset(outing, slot, gpu) || slot.is_last {
        return;
    }
    let truth: u64 = slot.times.pieces().iter().map(|(from, to)| outing.world.used_mj(gpu, *from, *to)).sum();
    findings.check(told.abs_diff(truth) <= 2, || {
        format!("{}: GPU {gpu} used {told} mJ, truly {truth}", slot.name)
    });
    findings.case("windows with exact energy", 1);
}

/// Windows one after the other that all tell of energy: what a reading spreads over an edge between them stays within.
#[derive(Debug, Default)]
struct Stretch {
    times: Option<(u64, u64)>,
    told: u64,
    windows: u64,
}

impl Stretch {
    fn add(&mut self, outing: &Outing, gpu: usize, slot: &Slot, told: u64, findings: &mut Findings) {
        let (from, to) = slot.times.pieces()[0];
        if self.times.is_none_or(|(_, end)| end != from) {
            self.end(outing, gpu, findings);
        }
        let begin = self.times.map_or(from, |(begin, _)| begin);
        self.times = Some((begin, to));
        self.told += told;
        self.windows += 1;
    }

    /// Never more than was used; and no less either, but for a reading at each end.
    fn end(&mut self, outing: &Outing, gpu: usize, findings: &mut Findings) {
        let Self { times, told, windows } = std::mem::take(self);
        let Some((from, to)) = times else { return };
        let world = &outing.world;
        let truth = world.used_mj(gpu, from, to);
        let edges = world.used_mj(gpu, from, from + READING_US)
            + world.used_mj(gpu, to.saturating_sub(READING_US), to);
        let near = Spans::one(from, to).widened(READING_US, READING_US);
        let is_set = near.meets(&energy_set(world, gpu)) || near.meets(&crate::oracle::disturbed(world, gpu));
        // A reading that began before the first of these windows, or ended after the last, is spread evenly over its time.
        let before = world.used_mj(gpu, from.saturating_sub(READING_US), from);
        let after = world.used_mj(gpu, to, to + READING_US);
        let is_cut = near.meets(&crate::oracle::disturbed(world, gpu));
        let before = before + if is_cut { after } else { 0 };
        findings.check(told <= truth + before + 2 * windows, || {
            format!("GPU {gpu} from {from} to {to} us: used {told} mJ, truly {truth}")
        });
        findings.check(is_set || told + edges + 2 * windows >= truth, || {
            format!("GPU {gpu} from {from} to {to} us: used {told} mJ, truly {truth}")
        });
    }
}
