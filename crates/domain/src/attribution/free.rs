//! Free slices: what could be sold and what is stranded.

use super::devices::Sighting;
use crate::fact::Placement;
use crate::geometry::Geometry;

/// Slices of one GPU: memory slices by place (bit k = slice k), compute slices by number, since they have no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slices {
    pub(super) memory_mask: u32,
    pub(super) compute_slices: u8,
}

impl Slices {
    /// Number of memory slices.
    pub(super) fn memory_slices(self) -> u8 {
        u8::try_from(self.memory_mask.count_ones()).unwrap_or(u8::MAX)
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Takes what is here of `wanted`, and returns it.
    pub(super) fn take(&mut self, wanted: Self) -> Self {
        let taken = Self {
            memory_mask: self.memory_mask & wanted.memory_mask,
            compute_slices: self.compute_slices.min(wanted.compute_slices),
        };
        self.memory_mask &= !taken.memory_mask;
        self.compute_slices -= taken.compute_slices;
        taken
    }
}

/// The memory slices of a placement.
pub(super) fn mask_of(placement: Placement) -> u32 {
    (placement.start..placement.start.saturating_add(placement.size)).fold(0, |mask, slice| mask | bit(slice))
}

/// All memory slices of a GPU with so many.
pub(super) fn full_mask(memory_slices: u8) -> u32 {
    mask_of(Placement { start: 0, size: memory_slices })
}

fn bit(slice: u8) -> u32 {
    1_u32.checked_shl(u32::from(slice)).unwrap_or(0)
}

/// Splits the free slices into idle and stranded. With MIG off nothing is stranded; a model whose geometry is not known has no
/// placements to try, so nothing is called stranded there either: never guessed.
pub(super) fn idle_and_stranded(free: Slices, seen: Sighting<'_>, geometry: &Geometry) -> (Slices, Slices) {
    let model = geometry.of(&seen.listed.model).filter(|_| seen.listed.mig);
    let Some(model) = model else { return (free, Slices::default()) };
    let mut rest = free;
    let mut idle = take_instances(&mut rest, seen, geometry);
    let mut legal: Vec<(u32, u8)> =
        model.placements().map(|(placement, compute)| (mask_of(placement), compute)).collect();
    legal.sort_unstable();
    legal.dedup();
    let packed = best_packing(rest, &legal);
    let packed = rest.take(packed);
    idle.memory_mask |= packed.memory_mask;
    idle.compute_slices += packed.compute_slices;
    (idle, rest)
}

/// Instances of the inventory whose slices are all free are idle as they stand.
fn take_instances(rest: &mut Slices, seen: Sighting<'_>, geometry: &Geometry) -> Slices {
    let mut idle = Slices::default();
    for (placement, compute_slices) in instances(seen, geometry) {
        let wanted = Slices { memory_mask: mask_of(placement), compute_slices };
        let fits = rest.memory_mask & wanted.memory_mask == wanted.memory_mask
            && compute_slices <= rest.compute_slices;
        if fits {
            let taken = rest.take(wanted);
            idle.memory_mask |= taken.memory_mask;
            idle.compute_slices += taken.compute_slices;
        }
    }
    idle
}

/// Placements and compute slices of the instances an inventory lists, in order of place.
pub(super) fn instances(seen: Sighting<'_>, geometry: &Geometry) -> Vec<(Placement, u8)> {
    let model = &seen.listed.model;
    let instances = seen.listed.instances.iter();
    let mut placed: Vec<(Placement, u8)> = instances
        .filter_map(|i| {
            Some((i.placement?, compute_slices_of(geometry, model, &i.profile, i.compute_slices)))
        })
        .collect();
    placed.sort_unstable();
    placed.dedup_by_key(|(placement, _)| *placement);
    placed
}

/// Compute slices of a profile: by the model's geometry, else what an inventory says of the instance, else the number before `g`,
/// which is that of the GPU instance in `1c.3g.40gb` too.
pub(super) fn compute_slices_of(geometry: &Geometry, model: &str, profile: &str, listed: Option<u8>) -> u8 {
    let known = geometry.of(model).and_then(|m| m.profile(profile)).map(|p| p.compute_slices);
    known.or(listed).unwrap_or_else(|| {
        let before = profile.split('g').next().unwrap_or_default();
        let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse().unwrap_or(1).max(1)
    })
}

/// The set of disjoint legal placements in `free` with most compute slices, then most memory slices.
fn best_packing(free: Slices, legal: &[(u32, u8)]) -> Slices {
    let Some(((mask, compute), others)) = legal.split_first() else { return Slices::default() };
    let without = best_packing(free, others);
    if free.memory_mask & mask != *mask || *compute > free.compute_slices {
        return without;
    }
    let here = Slices { memory_mask: *mask, compute_slices: *compute };
    let mut rest = free;
    rest.take(here);
    let more = best_packing(rest, others);
    let with = Slices { memory_mask: mask | more.memory_mask, compute_slices: compute + more.compute_slices };
    let rank = |s: Slices| (s.compute_slices, s.memory_slices());
    if rank(with) > rank(without) { with } else { without }
}
