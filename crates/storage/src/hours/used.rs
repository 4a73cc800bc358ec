//! What was read of a unit, or of one owner's processes on it, in an hour.

use super::series::Series;
use std::collections::BTreeMap;

/// Reading, label, covered microseconds.
pub type QualityMap = BTreeMap<String, BTreeMap<String, u64>>;

/// Readings of an hour. What was never read is absent, which is not zero (M-8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Microseconds that the readings cover.
    pub covered_us: Series<u64>,
    /// Time with an active SM, weighted, in microseconds.
    pub sm_active_us: Series<u64>,
    /// Bytes times microseconds.
    pub memory_byte_us: Series<u128>,
    /// Millijoules.
    pub energy_mj: Series<u64>,
    /// Greatest memory use seen, in bytes.
    pub memory_bytes_max: Option<u64>,
    /// How each reading was taken, and what it covers.
    pub quality: Quality,
}

impl Used {
    /// Adds other readings of the same hour.
    pub fn merge(&mut self, other: &Self) {
        self.covered_us.merge(&other.covered_us);
        self.sm_active_us.merge(&other.sm_active_us);
        self.memory_byte_us.merge(&other.memory_byte_us);
        self.energy_mj.merge(&other.energy_mj);
        self.memory_bytes_max = self.memory_bytes_max.max(other.memory_bytes_max);
        for (reading, label, covered_us) in &other.quality.told {
            self.quality.add(reading, label, *covered_us, 0);
        }
    }
}

/// Readings with their labels and covered microseconds. They are few and come in the same order each time, so they lie in a list.
#[derive(Clone, Debug, Default)]
pub struct Quality {
    told: Vec<(String, String, u64)>,
}

impl Quality {
    /// Adds covered time to a reading's label. `guess` is where it probably stands.
    pub fn add(&mut self, reading: &str, label: &str, covered_us: u64, guess: usize) {
        let is_it = |(a, b, _): &(String, String, u64)| a == reading && b == label;
        let place = match self.told.get(guess) {
            Some(told) if is_it(told) => Some(guess),
            _ => self.told.iter().position(is_it),
        };
        match place.and_then(|place| self.told.get_mut(place)) {
            Some((_, _, sum)) => *sum = sum.saturating_add(covered_us),
            None => self.told.push((reading.to_owned(), label.to_owned(), covered_us)),
        }
    }

    /// Adds covered time to the reading and label at a place that [`Quality::add`] gave them.
    pub fn add_at(&mut self, place: usize, covered_us: u64) {
        if let Some((_, _, sum)) = self.told.get_mut(place) {
            *sum = sum.saturating_add(covered_us);
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// In order.
    pub fn to_map(&self) -> QualityMap {
        let mut map = QualityMap::new();
        for (reading, label, covered_us) in &self.told {
            map.entry(reading.clone()).or_default().insert(label.clone(), *covered_us);
        }
        map
    }

    /// From reading, label, covered microseconds.
    pub fn from_map(map: &QualityMap) -> Self {
        let mut quality = Self::default();
        for (reading, labels) in map {
            for (label, covered_us) in labels {
                quality.told.push((reading.clone(), label.clone(), *covered_us));
            }
        }
        quality
    }
}

impl PartialEq for Quality {
    /// The order in which labels came is no part of it.
    fn eq(&self, other: &Self) -> bool {
        self.to_map() == other.to_map()
    }
}

impl Eq for Quality {}
