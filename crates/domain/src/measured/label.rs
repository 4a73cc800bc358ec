//! Labels of readings, and which of them is weaker (M-8).

/// Words of M-8, strongest first: what was measured over the whole time, by the driver, seen at instants, derived, not measured.
const WORDS: [&str; 8] = [
    "interval_mean",
    "driver_counter",
    "driver_sampled",
    "driver_sampled_device",
    "point_gauge",
    "derived_share",
    "allocation_only",
    "unavailable",
];

/// Nobody measured: there is the allocation alone.
pub const ALLOCATION_ONLY: &str = "allocation_only";
/// The unit was measured at other times of the hour, not at these.
pub const GAP: &str = "unavailable(gap)";
/// Several hold the unit, and no process owner tells them apart.
pub const SHARED: &str = "unavailable(shared)";
/// A pool served the tenant; what ran is its operator's.
pub const POOL: &str = "unavailable(pool)";
/// The node said nothing of this unit, and not why.
pub const NOT_REPORTED: &str = "unavailable(not_reported)";

/// There is a reading, and its producer gave no label.
pub const UNLABELLED: &str = "unlabelled";

/// Whether the label says that there is no reading.
pub fn is_unavailable(label: &str) -> bool {
    label.starts_with("unavailable") || label == ALLOCATION_ONLY
}

/// The weaker of two labels: by the order of M-8, a word with a remark in brackets below the bare one, then by text. A word that M-8 does
/// not have is weaker than every reading, and stronger than none.
pub fn weaker<'l>(a: &'l str, b: &'l str) -> &'l str {
    if strength(a) >= strength(b) { a } else { b }
}

fn strength(label: &str) -> (usize, bool, &str) {
    let word = label.split_once('(').map_or(label, |(word, _)| word);
    let unknown = WORDS.len() - 2;
    let place = WORDS.iter().position(|known| *known == word);
    // Words that say "no reading" move up by one, so that an unknown word has its place between.
    let rank = place.map_or(unknown, |rank| if rank >= unknown { rank + 1 } else { rank });
    (rank, word.len() != label.len(), label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_in_the_order_of_m_8() {
        let order = [
            "interval_mean",
            "driver_counter",
            "driver_counter(shared_unverified)",
            "driver_sampled",
            "driver_sampled_device",
            "point_gauge",
            "derived_share(equal)",
            "derived_share(sampled)",
            "made_up",
            ALLOCATION_ONLY,
            GAP,
            SHARED,
        ];
        for (place, stronger) in order.iter().enumerate() {
            for weak in &order[place..] {
                assert_eq!(weaker(stronger, weak), *weak);
                assert_eq!(weaker(weak, stronger), *weak);
            }
        }
    }

    #[test]
    fn what_is_no_reading_is_known_by_its_label() {
        assert!(is_unavailable("unavailable(not_supported)") && is_unavailable(ALLOCATION_ONLY));
        assert!(!is_unavailable("point_gauge") && !is_unavailable("derived_share(equal)"));
    }
}
