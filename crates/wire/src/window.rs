//! Telemetry windows read where they lie: protobuf in its plain form, with borrowed texts.
//!
//! The reader of events is the judge of what a window may be: it makes a tree of checked values, and says what is wrong. This one
//! makes nothing: it looks at each byte once, and gives up at the first thing that is not as our own writer would put it, so that the judge
//! is asked. What it takes the judge takes too, with the same content; tests compare both.

mod fields;
mod reading;

pub use reading::{Owner, Process, Reading};

use crate::event::MAX_EVENT_BYTES;
use fields::{Fields, instant, name};
use gpuledger_domain::time::{HOUR_US, Instant};
use reading::{Scratch, process, unit};

/// The outer parts of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window<'a> {
    /// Which node.
    pub node: &'a str,
    /// The node's boot.
    pub boot_id: &'a str,
    /// Random id of the collector's spool.
    pub stream: &'a str,
    /// Place in the stream, below 2^63 - 1.
    pub sequence: i64,
    /// First instant.
    pub start: Instant,
    /// First instant after it, at most an hour later.
    pub end: Instant,
    /// Number of readings of units.
    pub units: u32,
    /// Number of readings of processes.
    pub processes: u32,
    /// Number of gaps.
    pub gaps: u32,
    /// Length of its gaps together, in microseconds.
    pub gap_us: i64,
}

impl Window<'_> {
    /// Length in microseconds.
    pub const fn length_us(&self) -> i64 {
        self.end.since(self.start)
    }
}

/// Reads a window and tells each reading in its order. None: it is not in plain form, and the reader of events has to judge. What was
/// told until then counts for nothing.
pub fn read_window<'a>(
    bytes: &'a [u8],
    mut each: impl FnMut(&Window<'a>, &Reading<'a, '_>),
) -> Option<Window<'a>> {
    if bytes.len() > MAX_EVENT_BYTES {
        return None;
    }
    let mut fields = Fields::new(bytes);
    let mut window = head(&mut fields)?;
    let mut scratch = Scratch::default();
    while let Some(bytes) = fields.bytes_or_none(7)? {
        window.units += 1;
        unit(bytes, window.length_us(), &mut scratch, |reading| each(&window, reading))?;
    }
    while let Some(bytes) = fields.bytes_or_none(8)? {
        window.processes += 1;
        process(bytes, window.length_us(), &mut scratch, |reading| each(&window, reading))?;
    }
    while let Some(bytes) = fields.bytes_or_none(9)? {
        window.gaps += 1;
        window.gap_us = window.gap_us.saturating_add(gap_us(bytes)?);
    }
    if !fields.is_empty() {
        return None;
    }
    Some(window)
}

/// The members before the lists; what is zero is not written.
fn head<'a>(fields: &mut Fields<'a>) -> Option<Window<'a>> {
    let node = name(fields.bytes(1)?)?;
    let boot_id = name(fields.bytes(2)?)?;
    let stream = name(fields.bytes(3)?)?;
    let sequence = i64::try_from(fields.number_or_zero(4)?).ok().filter(|n| *n < i64::MAX)?;
    let start = instant(fields.signed_or_zero(5)?)?;
    let end = instant(fields.signed_or_zero(6)?)?;
    let window =
        Window { node, boot_id, stream, sequence, start, end, units: 0, processes: 0, gaps: 0, gap_us: 0 };
    (0..=HOUR_US).contains(&window.length_us()).then_some(window)
}

fn gap_us(bytes: &[u8]) -> Option<i64> {
    let mut fields = Fields::new(bytes);
    let start = instant(fields.signed_or_zero(1)?)?;
    let end = instant(fields.signed_or_zero(2)?)?;
    name(fields.bytes(3)?)?;
    (fields.is_empty() && start <= end).then(|| end.since(start))
}

#[cfg(test)]
mod tests;
