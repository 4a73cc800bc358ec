//! The windows of the node: the parts of all lanes, put together.

use super::frame::Frame;
use super::part::{Part, gap};
use crate::ladder::{Quality, Why};
use gpuledger_domain::time::{Instant, Window};
use gpuledger_nvml::Absent;
use gpuledger_wire::bodies::{Gap, ProcessReading, TelemetryWindow, UnitReading};
use gpuledger_wire::number::Count;
use gpuledger_wire::text::Name;
use gpuledger_wire::time::Time;
use std::collections::BTreeMap;

/// A closed window of the node, without its place in a stream: the spool gives it one, or tells its time as a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedWindow {
    /// Which node.
    pub node: Name,
    /// Its boot.
    pub boot_id: Name,
    /// Its time.
    pub window: Window,
    /// Readings of units, GPU by GPU.
    pub units: Vec<UnitReading>,
    /// Readings of processes.
    pub processes: Vec<ProcessReading>,
    /// Times without readings.
    pub gaps: Vec<Gap>,
}

impl ClosedWindow {
    /// The event's data, once its place in the stream is known.
    pub fn numbered(self, stream: Name, sequence: Count) -> TelemetryWindow {
        TelemetryWindow {
            node: self.node,
            boot_id: self.boot_id,
            stream,
            sequence,
            start: Time(self.window.start()),
            end: Time(self.window.end()),
            units: self.units,
            processes: self.processes,
            gaps: self.gaps,
        }
    }
}

/// After so many windows without a look UTC was set, or the process was held: the windows between are not made up.
const HELD_WINDOWS: i64 = 6;

/// Gathers the parts of all lanes.
#[derive(Clone, Debug)]
pub struct NodeWindows {
    node: Name,
    boot_id: Name,
    frame: Frame,
    patience_us: i64,
    /// How far each lane has told.
    lanes: BTreeMap<Name, Instant>,
    waiting: BTreeMap<Instant, Vec<Part>>,
    /// All before it is closed.
    closed_to: Instant,
    looked: Instant,
    /// Before it a window that no lane has told is not made up.
    unseen_to: Instant,
    late: u64,
}

impl NodeWindows {
    /// Begins at an instant: the first window starts there. A window is closed once every lane has told it, or `patience_us` microseconds
    /// after its end without those that have not.
    pub fn new(node: Name, boot_id: Name, frame: Frame, patience_us: i64, began: Instant) -> Self {
        let (lanes, waiting) = (BTreeMap::new(), BTreeMap::new());
        Self {
            node,
            boot_id,
            frame,
            patience_us,
            lanes,
            waiting,
            closed_to: began,
            looked: began,
            unseen_to: began,
            late: 0,
        }
    }

    /// A GPU whose lane is waited for.
    pub fn expect(&mut self, gpu: Name) {
        self.lanes.entry(gpu).or_insert(Instant::MIN);
    }

    /// A GPU that is gone for good: nobody waits for it any more.
    pub fn forget(&mut self, gpu: &Name) {
        self.lanes.remove(gpu);
    }

    /// Takes what a lane has told, and how far. Parts of windows that were closed without it are dropped and counted.
    pub fn add(&mut self, gpu: &Name, told_to: Instant, parts: Vec<Part>) {
        let told = self.lanes.entry(gpu.clone()).or_insert(told_to);
        *told = told_to.max(*told);
        for part in parts {
            if part.window.end() <= self.closed_to {
                self.late += 1;
            } else {
                self.waiting.entry(part.window.start()).or_default().push(part);
            }
        }
    }

    /// Parts that came after their window was closed.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The windows that are complete, or have been waited for long enough, oldest first.
    pub fn close(&mut self, now: Instant) -> Vec<ClosedWindow> {
        self.skip_what_nobody_saw(now);
        let mut closed = Vec::new();
        while let Some(window) = self.frame.window_of(self.closed_to).filter(|next| self.is_due(*next, now)) {
            closed.extend(self.put_together(window));
        }
        closed
    }

    /// All windows up to an instant, the last one cut there: the node agent ends. If every lane has told all before the last one and none has looked in
    /// it, no device is to blame: its time is part of the stop, which the next start tells as a gap.
    pub fn flush(&mut self, at: Instant) -> Vec<ClosedWindow> {
        self.skip_what_nobody_saw(at);
        let mut closed = Vec::new();
        while let Some(window) = self.frame.window_of(self.closed_to).filter(|next| next.start() < at) {
            if window.end() > at && self.has_nobody_looked_since(window.start()) {
                break;
            }
            let cut = Window::new(window.start(), window.end().min(at)).unwrap_or(window);
            let before = self.closed_to;
            closed.extend(self.put_together(cut));
            if self.closed_to == before {
                break;
            }
        }
        closed
    }

    fn has_nobody_looked_since(&self, start: Instant) -> bool {
        let have_all_told = self.lanes.values().all(|told| *told >= start);
        !self.lanes.is_empty() && have_all_told && !self.waiting.contains_key(&start)
    }

    fn is_due(&self, window: Window, now: Instant) -> bool {
        let told = self.lanes.values().all(|told| *told >= window.end());
        (told && now >= window.end()) || now >= window.end().plus(self.patience_us)
    }

    /// After a long time without a look nobody is late: there is nothing to wait for in the windows between.
    fn skip_what_nobody_saw(&mut self, now: Instant) {
        let now_window = self.frame.window_of(now);
        let length_us = now_window.map_or(1, Window::micros);
        if now.since(self.looked) > HELD_WINDOWS.saturating_mul(length_us) {
            self.unseen_to = now_window.map_or(now, Window::start);
        }
        self.looked = now;
    }

    fn put_together(&mut self, window: Window) -> Option<ClosedWindow> {
        let nominal = self.frame.window_of(window.start())?;
        let begun = Window::new(window.start().max(self.closed_to), window.end())?;
        let parts = self.waiting.remove(&nominal.start()).unwrap_or_default();
        if parts.is_empty() && self.is_unseen(nominal) {
            self.closed_to = self.next_seen(begun);
            return None;
        }
        self.closed_to = begun.end();
        let mut closed = ClosedWindow {
            node: self.node.clone(),
            boot_id: self.boot_id.clone(),
            window: begun,
            units: Vec::new(),
            processes: Vec::new(),
            gaps: Vec::new(),
        };
        for gpu in self.lanes.keys().filter(|gpu| !parts.iter().any(|part| part.gpu == **gpu)) {
            closed.units.extend(silent(gpu));
            closed.gaps.extend(gap(gpu, begun, Why::Nvml(Absent::TimedOut)));
        }
        for part in parts {
            closed.units.extend(part.units);
            closed.processes.extend(part.processes);
            closed.gaps.extend(part.gaps);
        }
        closed.units.sort_by(|a, b| (&a.gpu, a.placement).cmp(&(&b.gpu, b.placement)));
        let of = |process: &ProcessReading| (process.placement, process.pid, process.started_at.get());
        closed.processes.sort_by(|a, b| (&a.gpu, of(a)).cmp(&(&b.gpu, of(b))));
        Some(closed)
    }

    /// Nobody was there: every lane is past the window and has nothing of it, or nobody looked for long.
    fn is_unseen(&self, window: Window) -> bool {
        let all_past = self.lanes.values().all(|told| *told >= window.end());
        window.start() < self.unseen_to || (!self.lanes.is_empty() && all_past)
    }

    fn next_seen(&self, skipped: Window) -> Instant {
        let waiting = self.waiting.keys().find(|start| **start >= skipped.end());
        let unseen_to = self.unseen_to.max(skipped.end());
        waiting.map_or(unseen_to, |start| unseen_to.min(*start))
    }
}

/// The row of a GPU whose lane has said nothing.
fn silent(gpu: &Name) -> Option<UnitReading> {
    let why = Quality::from(Absent::TimedOut);
    let labels = ["sm_active_us", "memory_byte_us", "energy_mj"];
    Some(UnitReading {
        gpu: gpu.clone(),
        placement: None,
        sm_active_us: None,
        memory_byte_us: None,
        memory_bytes_max: None,
        energy_mj: None,
        covered_us: Count::new(0)?,
        coverage: BTreeMap::new(),
        quality: labels.iter().filter_map(|reading| super::part::label(reading, why)).collect(),
    })
}

#[cfg(test)]
mod tests;
