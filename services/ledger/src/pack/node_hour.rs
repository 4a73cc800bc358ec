//! Rows of one node and hour while they are added up.

use gpuledger_storage::hours::{HourKey, PackedHour, Used};
use gpuledger_wire::window::{Owner, Reading, Window};
use std::collections::BTreeMap;

/// GPU, and first memory slice and number of slices.
type Unit = (String, Option<(u8, u8)>);

/// Rows in the order in which they were first seen. Windows of a node name the same rows in the same order, so the next reading is
/// probably of the row after the last one; only where it is not, it is looked up.
#[derive(Debug, Default)]
pub(super) struct NodeHour {
    rows: Vec<Row>,
    places: BTreeMap<(Unit, String), usize>,
    next: usize,
}

#[derive(Debug)]
struct Row {
    gpu: String,
    placement: Option<(u8, u8)>,
    /// Empty: the unit itself.
    owner: String,
    used: Used,
    /// The list with which its quality began; its entries stand in that order.
    list: Option<u16>,
}

/// Lists of labels that readings came with. A row whose readings keep their list is added to without comparing names.
#[derive(Debug, Default)]
pub(super) struct Lists {
    seen: Vec<Vec<(String, String)>>,
}

/// So many lists are told apart; readings with others have their names compared.
const MOST_LISTS: u16 = 64;

impl Lists {
    /// The number of a list; none: there are too many.
    pub(super) fn number(&mut self, quality: &[(&str, &str)]) -> Option<u16> {
        let is_it = |seen: &Vec<(String, String)>| {
            seen.len() == quality.len() && seen.iter().zip(quality).all(|(a, b)| (&*a.0, &*a.1) == *b)
        };
        let place = self.seen.iter().position(is_it).unwrap_or(self.seen.len());
        let number = u16::try_from(place).ok().filter(|number| *number < MOST_LISTS)?;
        if place == self.seen.len() {
            let owned = |(reading, label): &(&str, &str)| ((*reading).to_owned(), (*label).to_owned());
            self.seen.push(quality.iter().map(owned).collect());
        }
        Some(number)
    }
}

impl NodeHour {
    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a reading's part of a minute. What was seen at most counts in the first part. `list`: the number of its labels.
    pub(super) fn add(
        &mut self,
        minute: u8,
        window: &Window<'_>,
        (reading, list): (&Reading<'_, '_>, Option<u16>),
        part: impl Fn(u128) -> u128,
        is_first: bool,
    ) {
        let narrow = |amount: u64| u64::try_from(part(u128::from(amount))).unwrap_or(u64::MAX);
        let row = self.row(reading, reading.process.map(|process| process.owner(window.boot_id)));
        let used = &mut row.used;
        used.covered_us.add(minute, narrow(reading.covered_us));
        if let Some(amount) = reading.sm_active_us {
            used.sm_active_us.add(minute, narrow(amount));
        }
        if let Some(amount) = reading.memory_byte_us {
            used.memory_byte_us.add(minute, part(amount));
        }
        if let Some(amount) = reading.energy_mj {
            used.energy_mj.add(minute, narrow(amount));
        }
        used.memory_bytes_max = used.memory_bytes_max.max(reading.memory_bytes_max.filter(|_| is_first));
        let is_first_list = used.quality.is_empty();
        let is_in_place = !is_first_list && list.is_some() && row.list == list;
        if is_first_list {
            row.list = list;
        }
        for (place, (name, label)) in reading.quality.iter().enumerate() {
            let covered_us = narrow(reading.covered_us_of(name));
            if is_in_place {
                used.quality.add_at(place, covered_us);
            } else {
                used.quality.add(name, label, covered_us, place);
            }
        }
    }

    fn row(&mut self, reading: &Reading<'_, '_>, owner: Option<Owner<'_>>) -> &mut Row {
        let place = match self.rows.get(self.next) {
            Some(row) if row.is_of(reading, owner) => self.next,
            _ => self.look_up(reading, owner),
        };
        self.next = place + 1;
        &mut self.rows[place]
    }

    fn look_up(&mut self, reading: &Reading<'_, '_>, owner: Option<Owner<'_>>) -> usize {
        let owner = owner.map(|owner| owner.to_string()).unwrap_or_default();
        self.place_of(reading.gpu, reading.placement, &owner)
    }

    fn place_of(&mut self, gpu: &str, placement: Option<(u8, u8)>, owner: &str) -> usize {
        let key = ((gpu.to_owned(), placement), owner.to_owned());
        let rows = &mut self.rows;
        *self.places.entry(key).or_insert_with(|| {
            rows.push(Row {
                gpu: gpu.to_owned(),
                placement,
                owner: owner.to_owned(),
                used: Used::default(),
                list: None,
            });
            rows.len() - 1
        })
    }

    /// Adds other rows of the same node and hour.
    pub(super) fn join(&mut self, other: Self) {
        for Row { gpu, placement, owner, used, list: _ } in other.rows {
            let place = self.place_of(&gpu, placement, &owner);
            self.rows[place].used.merge(&used);
        }
    }

    /// Adds a row that stands already.
    pub(super) fn add_packed(&mut self, stood: &PackedHour) {
        let HourKey { gpu, placement, owner, .. } = &stood.key;
        for (owner, used) in [("", &stood.unit), (owner, &stood.used)] {
            if let Some(used) = used {
                let place = self.place_of(gpu, *placement, owner);
                self.rows[place].used.merge(used);
            }
        }
    }

    /// The rows to be stored: one for each owner of a unit, the unit's own readings in the first; one without owner where nobody was there.
    pub(super) fn packed(self, hour_us: i64, node: &str) -> Vec<PackedHour> {
        let mut units: BTreeMap<Unit, BTreeMap<String, Used>> = BTreeMap::new();
        for row in self.rows {
            units.entry((row.gpu, row.placement)).or_default().insert(row.owner, row.used);
        }
        let mut packed = Vec::new();
        for ((gpu, placement), mut owners) in units {
            let mut unit = owners.remove("");
            let key = |owner: String| HourKey {
                hour_us,
                node: node.to_owned(),
                gpu: gpu.clone(),
                placement,
                owner,
            };
            if owners.is_empty() {
                packed.push(PackedHour { key: key(String::new()), used: None, unit: unit.take() });
            }
            for (owner, used) in owners {
                packed.push(PackedHour { key: key(owner), used: Some(used), unit: unit.take() });
            }
        }
        packed
    }
}

impl Row {
    fn is_of(&self, reading: &Reading<'_, '_>, owner: Option<Owner<'_>>) -> bool {
        self.gpu == reading.gpu
            && self.placement == reading.placement
            && owner.map_or(self.owner.is_empty(), |owner| owner.is_named(&self.owner))
    }
}
