//! What each context gets of its unit, and what stands from an instant on.

use super::{Builder, LiveContext};
use crate::world::track::{CELLS, Share};
use std::collections::BTreeMap;

const WHOLE: u32 = 1_000_000;

impl Builder {
    /// Writes down the state of every GPU that was touched at this instant.
    pub(super) fn settle(&mut self) {
        for gpu in std::mem::take(&mut self.touched) {
            self.settle_busy(gpu);
            self.settle_memory(gpu);
            let state = self.gpus[gpu].state(self.now_us, &self.world);
            let states = &mut self.world.gpus[gpu].states;
            states.push(state);
        }
    }

    fn settle_busy(&mut self, gpu: usize) {
        let mut groups: BTreeMap<Option<usize>, Vec<&LiveContext>> = BTreeMap::new();
        for context in self.gpus[gpu].contexts.iter().filter(|context| context.is_open) {
            groups.entry(self.world.contexts[context.index].gpu_instance).or_default().push(context);
        }
        let mut parts = Vec::new();
        let mut busy = BTreeMap::new();
        for (instance, contexts) in groups {
            let demands: Vec<&Share> = contexts.iter().map(|context| &context.demand).collect();
            let shares = divide(&demands);
            let total = added(&shares);
            for (context, share) in contexts.iter().zip(shares) {
                self.world.contexts[context.index].busy.set(self.now_us, share);
            }
            parts.push((instance, total.clone()));
            if let Some(instance) = instance {
                busy.insert(instance, total);
            }
        }
        for instance in self.gpus[gpu].instances.values() {
            let share = busy.remove(instance).unwrap_or(Share::ZERO);
            self.world.gpu_instances[*instance].busy.set(self.now_us, share);
        }
        let device = self.of_device(gpu, &parts);
        self.world.gpus[gpu].busy.set(self.now_us, device);
    }

    /// The device's share: that of its contexts, or of its GPU instances weighted by multiprocessors.
    fn of_device(&self, gpu: usize, parts: &[(Option<usize>, Share)]) -> Share {
        let all = u64::from(self.world.gpus[gpu].model.multiprocessors);
        let weight = |instance: &Option<usize>| {
            instance.map_or(all, |i| u64::from(self.world.gpu_instances[i].profile.multiprocessors))
        };
        let in_cell = |cell| {
            let sum: u64 =
                parts.iter().map(|(instance, share)| u64::from(share.in_cell(cell)) * weight(instance)).sum();
            u32::try_from(sum / all).unwrap_or(WHOLE).min(WHOLE)
        };
        over_cells(parts.iter().all(|(_, share)| share.is_constant()), in_cell)
    }

    fn settle_memory(&mut self, gpu: usize) {
        let now_us = self.now_us;
        let mut by_instance: BTreeMap<usize, u64> =
            self.gpus[gpu].instances.values().map(|index| (*index, 0)).collect();
        let mut total = 0;
        for entry in &self.gpus[gpu].contexts {
            let context = &mut self.world.contexts[entry.index];
            context.memory.set(now_us, entry.memory_bytes);
            total += entry.memory_bytes;
            if let Some(sum) = context.gpu_instance.and_then(|index| by_instance.get_mut(&index)) {
                *sum += entry.memory_bytes;
            }
        }
        for (index, bytes) in by_instance {
            self.world.gpu_instances[index].memory.set(now_us, bytes);
        }
        self.world.gpus[gpu].memory.set(now_us, total);
    }
}

fn over_cells(is_constant: bool, in_cell: impl Fn(usize) -> u32) -> Share {
    if is_constant {
        Share::Constant(in_cell(0))
    } else {
        Share::cells(std::array::from_fn::<u32, CELLS, _>(in_cell))
    }
}

/// The sum of shares that were divided.
fn added(shares: &[Share]) -> Share {
    over_cells(shares.iter().all(Share::is_constant), |cell| {
        shares.iter().map(|share| share.in_cell(cell)).sum()
    })
}

/// What each gets: what it wants where there is room for all, else in proportion, so that they add up to the whole unit.
fn divide(demands: &[&Share]) -> Vec<Share> {
    let most: u64 = demands.iter().map(|demand| u64::from(demand.most())).sum();
    if most <= u64::from(WHOLE) {
        return demands.iter().map(|demand| (*demand).clone()).collect();
    }
    let is_constant = demands.iter().all(|demand| demand.is_constant());
    let cells = if is_constant { 1 } else { CELLS };
    let divided: Vec<Vec<u32>> = (0..cells)
        .map(|cell| divide_cell(&demands.iter().map(|demand| demand.in_cell(cell)).collect::<Vec<_>>()))
        .collect();
    (0..demands.len()).map(|i| over_cells(is_constant, |cell| divided[cell][i])).collect()
}

fn divide_cell(demands: &[u32]) -> Vec<u32> {
    let sum: u64 = demands.iter().map(|demand| u64::from(*demand)).sum();
    if sum <= u64::from(WHOLE) {
        return demands.to_vec();
    }
    let mut parts: Vec<u32> = demands
        .iter()
        .map(|demand| u32::try_from(u64::from(*demand) * u64::from(WHOLE) / sum).unwrap_or(WHOLE))
        .collect();
    let left = WHOLE.saturating_sub(parts.iter().sum());
    // Floors lose less than one part each: the first ones get it back.
    for part in parts.iter_mut().filter(|part| **part > 0).take(usize::try_from(left).unwrap_or(0)) {
        *part += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_room_is_not_divided() {
        assert_eq!(divide_cell(&[400_000, 600_000]), [400_000, 600_000]);
    }

    #[test]
    fn what_has_no_room_is_divided_in_proportion_and_adds_up() {
        assert_eq!(divide_cell(&[1_000_000, 1_000_000, 1_000_000]), [333_334, 333_333, 333_333]);
        assert_eq!(divide_cell(&[800_000, 0, 800_000]), [500_000, 0, 500_000]);
        let parts = divide_cell(&[700_000, 330_000, 10_000, 999_999]);
        assert_eq!(parts.iter().sum::<u32>(), WHOLE);
    }
}
