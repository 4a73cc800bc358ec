//! The best packing of legal placements into free slices, by trying them all.

use gpuledger_domain::geometry::ModelGeometry;

/// Compute and memory slices of the packing with most compute, then most memory slices. `free` tells which memory slices
/// are free, `compute` how many compute slices are.
pub(crate) fn best(model: &ModelGeometry, free: &[bool], compute: u8) -> (u8, u8) {
    from(model, free, compute, 0)
}

/// The best packing of the slices from `at` on: leave slice `at` alone, or start one of the profiles there.
fn from(model: &ModelGeometry, free: &[bool], compute: u8, at: usize) -> (u8, u8) {
    if at >= free.len() {
        return (0, 0);
    }
    let mut best = from(model, free, compute, at + 1);
    for profile in &model.profiles {
        let end = at + usize::from(profile.memory_slices);
        let starts_here = profile.starts.iter().any(|start| usize::from(*start) == at);
        let fits = end <= free.len() && profile.memory_slices > 0 && profile.compute_slices <= compute;
        if starts_here && fits && free[at..end].iter().all(|slice| *slice) {
            let (c, m) = from(model, free, compute - profile.compute_slices, end);
            best = best.max((c + profile.compute_slices, m + profile.memory_slices));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::geometry::Profile;

    fn a100() -> ModelGeometry {
        let profile = |name: &str, compute_slices, memory_slices, starts: &[u8]| Profile {
            name: name.to_owned(),
            compute_slices,
            memory_slices,
            starts: starts.to_vec(),
        };
        ModelGeometry {
            models: vec!["NVIDIA A100-SXM4-80GB".to_owned()],
            compute_slices: 7,
            memory_slices: 8,
            profiles: vec![
                profile("1g.10gb", 1, 1, &[0, 1, 2, 3, 4, 5, 6]),
                profile("1g.20gb", 1, 2, &[0, 2, 4, 6]),
                profile("2g.20gb", 2, 2, &[0, 2, 4]),
                profile("3g.40gb", 3, 4, &[0, 4]),
                profile("4g.40gb", 4, 4, &[0]),
                profile("7g.80gb", 7, 8, &[0]),
            ],
        }
    }

    #[test]
    fn an_empty_gpu_packs_whole() {
        assert_eq!(best(&a100(), &[true; 8], 7), (7, 8));
    }

    #[test]
    fn three_compute_slices_without_memory_fit_nothing() {
        assert_eq!(best(&a100(), &[false; 8], 3), (0, 0));
    }

    #[test]
    fn after_four_small_ones_the_last_slice_takes_no_profile_alone() {
        let mut free = [false; 8];
        free[7] = true;
        assert_eq!(best(&a100(), &free, 1), (0, 0));
    }

    #[test]
    fn most_compute_comes_before_most_memory() {
        // Slices 4 to 7 and three compute slices: 3g.40gb takes all; with two compute slices 1g + 1g.20gb take three slices.
        let free = [false, false, false, false, true, true, true, true];
        assert_eq!(best(&a100(), &free, 3), (3, 4));
        assert_eq!(best(&a100(), &free, 2), (2, 4));
        assert_eq!(best(&a100(), &free, 1), (1, 2));
    }
}
