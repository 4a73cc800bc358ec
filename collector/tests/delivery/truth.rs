//! What must arrive, and what did.

use gpuledger_collector::window::ClosedWindow;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_wire::bodies::{TelemetryWindow, UnitReading};
use gpuledger_wire::number::{BigCount, Count};
use gpuledger_wire::text::Name;
use gpuledger_wire::{Event, EventData};
use std::collections::{BTreeMap, BTreeSet};

/// Length of a window.
pub(crate) const STEP_US: i64 = 10_000_000;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn count(value: i64) -> Count {
    Count::new(value).unwrap()
}

/// Window number `n`, whose readings are a function of `n`.
pub(crate) fn window(n: i64) -> ClosedWindow {
    let unit = |gpu: i64| UnitReading {
        gpu: name(&format!("GPU-{gpu}")),
        placement: None,
        sm_active_us: Some(count((n * 7_919 + gpu * 104_729).rem_euclid(STEP_US))),
        memory_byte_us: BigCount::new(i128::from(n) * 1_000_000_007),
        memory_bytes_max: Some(count(n * 4_096)),
        energy_mj: None,
        covered_us: count(STEP_US),
        coverage: BTreeMap::new(),
        quality: BTreeMap::from([(name("sm_active_us"), name("driver_counter"))]),
    };
    let edge = |n: i64| Instant::from_micros(n * STEP_US);
    ClosedWindow {
        node: name("n1"),
        boot_id: name("b1"),
        window: Window::new(edge(n), edge(n + 1)).unwrap(),
        units: (0..3).map(unit).collect(),
        processes: Vec::new(),
        gaps: Vec::new(),
    }
}

/// Everything that arrived, by identity (I-1).
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    events: BTreeMap<String, Event>,
    /// How often an event arrived again.
    pub(crate) repeated: u64,
}

impl Arrived {
    /// Takes an event; the same identity with another content fails the test.
    pub(crate) fn take(&mut self, event: Event) {
        assert_eq!(event.source, "/nodes/n1/collector");
        if let Some(before) = self.events.get(&event.id) {
            assert_eq!(*before, event, "the same identity with another content");
            self.repeated += 1;
        } else {
            self.events.insert(event.id.clone(), event);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn facts(&self) -> usize {
        self.events.values().filter(|event| !matches!(event.data, EventData::TelemetryWindow(_))).count()
    }

    fn windows(&self) -> impl Iterator<Item = (&str, &TelemetryWindow)> {
        self.events.iter().filter_map(|(id, event)| match &event.data {
            EventData::TelemetryWindow(window) => Some((id.as_str(), window)),
            _ => None,
        })
    }

    /// Reasons of the gaps, and how long they are in windows.
    pub(crate) fn gaps(&self) -> BTreeMap<String, i64> {
        let mut found = BTreeMap::new();
        for gap in self.windows().flat_map(|(_, window)| &window.gaps) {
            let steps = gap.end.get().since(gap.start.get()) / STEP_US;
            *found.entry(gap.reason.to_string()).or_default() += steps;
        }
        found
    }

    /// Fails unless each stream is without a hole, each of the offered windows is there once, with its content, or lies in gaps, and no
    /// gap lies where there is a window.
    pub(crate) fn assert_exactly_once(&self, offered: &BTreeSet<i64>) {
        self.assert_no_holes();
        let mut measured: BTreeMap<i64, &str> = BTreeMap::new();
        for (id, found) in self.windows().filter(|(id, _)| !id.contains("lost")) {
            let n = found.start.get().as_micros() / STEP_US;
            let mut expected = window(n).numbered(found.stream.clone(), found.sequence);
            expected.gaps = found.gaps.clone();
            assert_eq!(*found, expected, "window {n} has another content");
            assert!(offered.contains(&n), "window {n} was never offered");
            if let Some(other) = measured.insert(n, id) {
                panic!("window {n} arrived as {other} and as {id}");
            }
        }
        let missing = self.missing();
        for n in offered {
            let told = missing.contains(n);
            match measured.get(n) {
                None => assert!(told, "window {n} is neither there nor a gap"),
                Some(id) => assert!(!told, "window {n} arrived as {id} and is called a gap"),
            }
        }
        let last = measured.keys().last().expect("something arrived");
        let silent: Vec<i64> =
            (0..*last).filter(|n| !measured.contains_key(n) && !missing.contains(n)).collect();
        assert!(silent.is_empty(), "nobody says anything about {silent:?}");
    }

    fn assert_no_holes(&self) {
        let mut streams: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
        for (id, window) in self.windows() {
            let new = streams.entry(&window.stream).or_default().insert(window.sequence.get());
            assert!(new, "{id} has a sequence that another window has");
        }
        for (stream, sequences) in streams {
            let holes = sequences.last().map_or(0, |last| last + 1) - i64::try_from(sequences.len()).unwrap();
            assert_eq!(holes, 0, "stream {stream} has holes");
        }
    }

    /// Windows that lie in gaps as a whole. Gaps begin and end where windows do.
    fn missing(&self) -> BTreeSet<i64> {
        let gaps = self.windows().flat_map(|(_, window)| &window.gaps);
        gaps.flat_map(|gap| {
            let (start, end) = (gap.start.get().as_micros(), gap.end.get().as_micros());
            assert_eq!((start % STEP_US, end % STEP_US), (0, 0), "a gap of a part of a window");
            start / STEP_US..end / STEP_US
        })
        .collect()
    }
}
