//! From windows to packed hours: pure, and bounded. Node by node in order; where there are more rows than may be held, the last nodes are let go,
//! and everything from the first of them on is left for the next time.

use super::minutes::parts;
use super::node_hour::{Lists, NodeHour};
use gpuledger_domain::time::{HOUR_US, MINUTE_US};
use gpuledger_storage::hours::PackedHour;
use gpuledger_storage::unread::Unread;
use gpuledger_wire::block::Staged;
use gpuledger_wire::window::{Reading, Window, read_window};
use gpuledger_wire::{Event, EventData, EventError};
use std::collections::BTreeMap;

/// Hours by node.
#[derive(Debug)]
pub(super) struct Fold {
    nodes: BTreeMap<String, BTreeMap<i64, NodeHour>>,
    lists: Lists,
    /// What nodes say they could not measure.
    unread: Vec<Unread>,
    rows: usize,
    most_rows: usize,
    until: Option<String>,
}

impl Fold {
    /// A fold that holds at most about so many rows, and one node in any case.
    pub(super) fn new(most_rows: usize) -> Self {
        Self {
            nodes: BTreeMap::new(),
            lists: Lists::default(),
            unread: Vec::new(),
            rows: 0,
            most_rows,
            until: None,
        }
    }

    /// First node that is left for the next time; none: no node is.
    pub(super) fn until(&self) -> Option<&str> {
        self.until.as_deref()
    }

    /// Adds a window, unless its node is left for the next time.
    ///
    /// # Errors
    /// Its bytes are not those of an accepted window.
    pub(super) fn take(&mut self, staged: &Staged<'_>) -> Result<(), EventError> {
        if self.until.as_deref().is_some_and(|until| staged.node >= until) {
            return Ok(());
        }
        if !self.nodes.contains_key(staged.node) {
            self.nodes.insert(staged.node.to_owned(), BTreeMap::new());
        }
        let Some(hours) = self.nodes.get_mut(staged.node) else { return Ok(()) };
        let before = rows_of(hours);
        let plain = staged.plain()?;
        let (lists, mut list) = (&mut self.lists, None);
        let each = |window: &Window<'_>, reading: &Reading<'_, '_>| {
            let number = match list {
                Some((of_window, number)) if of_window == reading.list => number,
                _ => lists.number(reading.quality),
            };
            list = Some((reading.list, number));
            add(hours, window, (reading, number));
        };
        match read_window(&plain, each) {
            Some(window) if window.gaps == 0 => {}
            Some(_) => self.unread.extend(unread(staged.node, &staged.to_event()?)),
            // The judge of events says what is wrong with it.
            None => drop(staged.to_event()?),
        }
        self.rows += rows_of(hours) - before;
        if self.rows > self.most_rows {
            self.let_go();
        }
        Ok(())
    }

    /// Lets go of the later half of the nodes.
    fn let_go(&mut self) {
        let keep = self.nodes.len().div_ceil(2);
        if let Some(first) = self.nodes.keys().nth(keep).cloned() {
            self.leave(&first);
        }
    }

    /// Leaves the nodes from this one on for the next time.
    pub(super) fn leave(&mut self, first: &str) {
        for hours in self.nodes.split_off(first).values() {
            self.rows -= rows_of(hours);
        }
        self.unread.retain(|one| one.node.as_str() < first);
        self.until = Some(first.to_owned());
    }

    /// Adds another fold of other windows of the same hour.
    pub(super) fn join(mut self, mut other: Self) -> Self {
        match (self.until.clone(), other.until.clone()) {
            (Some(first), None) => other.leave(&first),
            (None, Some(first)) => self.leave(&first),
            (Some(a), Some(b)) if a < b => other.leave(&a),
            (Some(_), Some(b)) => self.leave(&b),
            (None, None) => {}
        }
        for (node, hours) in other.nodes {
            let mine = self.nodes.entry(node).or_default();
            for (hour_us, rows) in hours {
                mine.entry(hour_us).or_default().join(rows);
            }
        }
        self.unread.append(&mut other.unread);
        self
    }

    /// Times that nodes say they could not measure; gives them away.
    pub(super) fn unread(&mut self) -> Vec<Unread> {
        std::mem::take(&mut self.unread)
    }

    /// The hours that have rows, each with its nodes.
    pub(super) fn by_hour(self) -> BTreeMap<i64, BTreeMap<String, NodeHour>> {
        let mut by_hour: BTreeMap<i64, BTreeMap<String, NodeHour>> = BTreeMap::new();
        for (node, hours) in self.nodes {
            for (hour_us, rows) in hours {
                by_hour.entry(hour_us).or_default().insert(node.clone(), rows);
            }
        }
        by_hour
    }
}

/// What a window says of times without readings. An empty time says nothing.
fn unread(node: &str, event: &Event) -> Vec<Unread> {
    let EventData::TelemetryWindow(window) = &event.data else { return Vec::new() };
    let all = window.gaps.iter().map(|gap| Unread {
        node: node.to_owned(),
        reason: gap.reason.to_string(),
        start_us: gap.start.get().as_micros(),
        end_us: gap.end.get().as_micros(),
    });
    all.filter(|one| one.start_us < one.end_us).collect()
}

/// The rows of an hour's nodes, with what stood there before added to them.
pub(super) fn rows_with(
    hour_us: i64,
    mut nodes: BTreeMap<String, NodeHour>,
    stood: &[PackedHour],
) -> Vec<PackedHour> {
    for row in stood {
        if let Some(rows) = nodes.get_mut(&row.key.node) {
            rows.add_packed(row);
        }
    }
    nodes.into_iter().flat_map(|(node, rows)| rows.packed(hour_us, &node)).collect()
}

fn rows_of(hours: &BTreeMap<i64, NodeHour>) -> usize {
    hours.values().map(NodeHour::len).sum()
}

fn add(
    hours: &mut BTreeMap<i64, NodeHour>,
    window: &Window<'_>,
    (reading, list): (&Reading<'_, '_>, Option<u16>),
) {
    for part in parts(window) {
        let hour_us = part.from.floor(HOUR_US).as_micros();
        let minute = u8::try_from(part.from.as_micros().rem_euclid(HOUR_US) / MINUTE_US).unwrap_or(0);
        let rows = hours.entry(hour_us).or_default();
        rows.add(minute, window, (reading, list), |amount| part.of(amount), part.is_first());
    }
}

#[cfg(test)]
mod tests;
