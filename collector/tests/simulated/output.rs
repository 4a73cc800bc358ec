//! What a collector said: its events, read as any receiver would read them.

use gpuledger_domain::time::Instant;
use gpuledger_wire::bodies::{AllocationPlaced, NodeInventory, TelemetryWindow, UnitState};
use gpuledger_wire::{Event, EventData, decode_structured};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Everything that arrived, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) events: Vec<Event>,
}

impl Output {
    /// Reads the sink's file. Each line is a valid event, says what it is by a name of its own, and has no member that nobody knows.
    pub(crate) fn read(file: &Path, log: &str) -> Self {
        let text = fs::read_to_string(file).unwrap_or_else(|why| panic!("nothing arrived: {why}\n{log}"));
        let mut ids = BTreeSet::new();
        let mut events = Vec::new();
        for line in text.lines() {
            let event = decode_structured(line.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{line}"));
            assert_eq!(event.unknown_members(), Vec::<String>::new(), "{line}");
            assert!(ids.insert(event.id.clone()), "the id {} came twice", event.id);
            events.push(event);
        }
        Self { events }
    }

    /// Windows, in the order of arrival.
    pub(crate) fn windows(&self) -> impl Iterator<Item = &TelemetryWindow> {
        self.events.iter().filter_map(|event| match &event.data {
            EventData::TelemetryWindow(window) => Some(window),
            _ => None,
        })
    }

    /// States of units.
    pub(crate) fn states(&self) -> impl Iterator<Item = (Instant, &UnitState)> {
        self.events.iter().filter_map(|event| match &event.data {
            EventData::UnitState(state) => Some((event.time, state)),
            _ => None,
        })
    }

    /// Inventories.
    pub(crate) fn inventories(&self) -> impl Iterator<Item = (Instant, &NodeInventory)> {
        self.events.iter().filter_map(|event| match &event.data {
            EventData::NodeInventory(inventory) => Some((event.time, inventory)),
            _ => None,
        })
    }

    /// Placements of jobs and pods.
    pub(crate) fn placements(&self) -> impl Iterator<Item = (Instant, &AllocationPlaced)> {
        self.events.iter().filter_map(|event| match &event.data {
            EventData::AllocationPlaced(placed) => Some((event.time, placed)),
            _ => None,
        })
    }
}
