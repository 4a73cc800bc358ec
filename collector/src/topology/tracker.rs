//! Generations of GPU instances.

use gpuledger_nvml::{MigInstance, Placement, Reading};
use std::collections::{BTreeMap, BTreeSet};

/// A live GPU instance with the MIG devices in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInstance {
    /// NVML's id; it comes back.
    pub id: u32,
    /// Ours; it does not.
    pub generation: u64,
    /// Its MIG devices, in order of compute instance; at least one, since a GPU instance without any cannot be seen.
    pub devices: Vec<MigInstance>,
}

impl GpuInstance {
    /// The memory slices it takes, or why they could not be read.
    pub fn placement(&self) -> Reading<Placement> {
        first(&self.devices, |device| device.placement)
    }
}

/// The first answer among the devices of one GPU instance, else the first reason.
fn first<T>(devices: &[MigInstance], of: impl Fn(&MigInstance) -> Reading<T>) -> Reading<T> {
    let mut readings = devices.iter().map(of);
    let head = readings.next().unwrap_or(Err(gpuledger_nvml::Absent::NotFound));
    head.or_else(|why| readings.find_map(Result::ok).ok_or(why))
}

/// Follows the instances of one device over the cycles.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    given: u64,
    instances: BTreeMap<u32, GpuInstance>,
    doubted: BTreeSet<u32>,
}

impl Tracker {
    /// Takes the list as it was read. Whether anything came, went or changed.
    pub fn update(&mut self, seen: &[MigInstance]) -> bool {
        let mut before = std::mem::take(&mut self.instances);
        let doubted = std::mem::take(&mut self.doubted);
        let mut changed = false;
        for (id, mut devices) in by_gpu_instance(seen) {
            let known = before.remove(&id).filter(|_| !doubted.contains(&id));
            if let Some(known) = &known {
                devices.iter_mut().for_each(|device| keep_what_was_read(device, &known.devices));
            }
            let stays = known.as_ref().filter(|known| has_stayed(&known.devices, &devices));
            let generation = stays.map_or_else(|| self.next_generation(), |known| known.generation);
            changed |= known.is_none_or(|known| !is_same_layout(&known.devices, &devices));
            self.instances.insert(id, GpuInstance { id, generation, devices });
        }
        changed || !before.is_empty()
    }

    /// Something says that an instance may have been made anew, though it looks the same: a MIG event, a `NOT_FOUND`. None: any of them.
    pub fn doubt(&mut self, gpu_instance: Option<u32>) {
        match gpu_instance {
            Some(id) => drop(self.doubted.insert(id)),
            None => self.doubted.extend(self.instances.keys()),
        }
    }

    /// The live instances, in order of id.
    pub fn instances(&self) -> impl Iterator<Item = &GpuInstance> {
        self.instances.values()
    }

    /// The live instance with this id.
    pub fn instance(&self, id: u32) -> Option<&GpuInstance> {
        self.instances.get(&id)
    }

    fn next_generation(&mut self) -> u64 {
        self.given += 1;
        self.given
    }
}

fn by_gpu_instance(seen: &[MigInstance]) -> BTreeMap<u32, Vec<MigInstance>> {
    let mut devices: BTreeMap<u32, Vec<MigInstance>> = BTreeMap::new();
    for device in seen {
        devices.entry(device.gpu_instance).or_default().push(device.clone());
    }
    devices.values_mut().for_each(|list| list.sort_by_key(|device| device.compute_instance));
    devices
}

/// A GPU instance outlives its compute instances only while one of them stays: with the last of them it is out of sight.
fn has_stayed(before: &[MigInstance], now: &[MigInstance]) -> bool {
    now.iter().any(|device| before.iter().any(|known| is_same(known, device)))
}

/// Whether two lists of one device, read one after the other, show the same instances.
pub fn is_same_layout(before: &[MigInstance], after: &[MigInstance]) -> bool {
    before.len() == after.len()
        && before.iter().all(|device| after.iter().any(|other| is_same(device, other)))
}

/// Ids, UUID, profile and placement. What could not be read on either side says nothing.
fn is_same(one: &MigInstance, other: &MigInstance) -> bool {
    one.gpu_instance == other.gpu_instance
        && one.compute_instance == other.compute_instance
        && one.uuid == other.uuid
        && agree(&one.profile, &other.profile)
        && agree(&one.placement, &other.placement)
}

fn agree<T: PartialEq>(one: &Reading<T>, other: &Reading<T>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one == other,
        _ => true,
    }
}

/// These do not change while an instance lives: one failed call does not make them unknown again.
fn keep_what_was_read(device: &mut MigInstance, before: &[MigInstance]) {
    let Some(known) = before.iter().find(|known| is_same(known, device)) else { return };
    keep(&mut device.profile, &known.profile);
    keep(&mut device.placement, &known.placement);
    keep(&mut device.compute_slices, &known.compute_slices);
    keep(&mut device.multiprocessors, &known.multiprocessors);
    keep(&mut device.memory_bytes, &known.memory_bytes);
}

fn keep<T: Clone>(now: &mut Reading<T>, known: &Reading<T>) {
    if now.is_err() && known.is_ok() {
        now.clone_from(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_nvml::Absent;

    fn device(gpu_instance: u32, compute_instance: u32, uuid: &str, start: u32) -> MigInstance {
        MigInstance {
            index: 0,
            uuid: uuid.to_owned(),
            gpu_instance,
            compute_instance,
            profile: Ok("3g.40gb".to_owned()),
            compute_profile: None,
            placement: Ok(Placement { start, size: 4 }),
            compute_slices: Ok(3),
            multiprocessors: Ok(60),
            memory_bytes: Ok(1),
        }
    }

    fn generations(tracker: &Tracker) -> Vec<(u32, u64)> {
        tracker.instances().map(|instance| (instance.id, instance.generation)).collect()
    }

    #[test]
    fn what_stays_keeps_its_generation_and_what_comes_has_a_new_one() {
        let mut tracker = Tracker::default();
        assert!(tracker.update(&[device(1, 0, "MIG-a", 0)]));
        assert!(!tracker.update(&[device(1, 0, "MIG-a", 0)]));
        assert!(tracker.update(&[device(1, 0, "MIG-a", 0), device(2, 0, "MIG-b", 4)]));
        assert_eq!(generations(&tracker), [(1, 1), (2, 2)]);
        assert!(tracker.update(&[device(2, 0, "MIG-b", 4)]));
        assert!(tracker.update(&[device(1, 0, "MIG-a", 0), device(2, 0, "MIG-b", 4)]));
        assert_eq!(generations(&tracker), [(1, 3), (2, 2)], "the same ids and UUID, another instance");
    }

    #[test]
    fn another_place_profile_or_uuid_under_the_same_ids_is_another_instance() {
        let mut tracker = Tracker::default();
        tracker.update(&[device(1, 0, "MIG-a", 0)]);
        tracker.update(&[device(1, 0, "MIG-a", 4)]);
        assert_eq!(generations(&tracker), [(1, 2)]);
        tracker.update(&[device(1, 0, "MIG-b", 4)]);
        assert_eq!(generations(&tracker), [(1, 3)]);
        let other = MigInstance { profile: Ok("4g.40gb".to_owned()), ..device(1, 0, "MIG-b", 4) };
        tracker.update(&[other]);
        assert_eq!(generations(&tracker), [(1, 4)]);
    }

    #[test]
    fn a_doubt_makes_a_new_generation_though_everything_looks_the_same() {
        let mut tracker = Tracker::default();
        let seen = [device(1, 0, "MIG-a", 0), device(2, 0, "MIG-b", 4)];
        tracker.update(&seen);
        tracker.doubt(Some(2));
        assert!(tracker.update(&seen));
        assert_eq!(generations(&tracker), [(1, 1), (2, 3)]);
        tracker.doubt(None);
        tracker.update(&seen);
        assert_eq!(generations(&tracker), [(1, 4), (2, 5)]);
    }

    #[test]
    fn a_gpu_instance_outlives_one_of_its_compute_instances() {
        let mut tracker = Tracker::default();
        tracker.update(&[device(1, 0, "MIG-a", 0), device(1, 1, "MIG-b", 0)]);
        assert!(tracker.update(&[device(1, 1, "MIG-b", 0), device(1, 2, "MIG-c", 0)]));
        assert_eq!(generations(&tracker), [(1, 1)]);
        tracker.update(&[device(1, 0, "MIG-a", 0)]);
        assert_eq!(generations(&tracker), [(1, 2)], "none of the old ones is left");
    }

    #[test]
    fn one_failed_reading_of_a_placement_changes_nothing() {
        let mut tracker = Tracker::default();
        tracker.update(&[device(1, 0, "MIG-a", 0)]);
        let torn = MigInstance { placement: Err(Absent::Unknown), ..device(1, 0, "MIG-a", 0) };
        assert!(!tracker.update(&[torn]));
        assert_eq!(tracker.instance(1).unwrap().placement(), Ok(Placement { start: 0, size: 4 }));
    }
}
