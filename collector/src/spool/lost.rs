//! Windows in place of those that are lost: they keep the sequence without holes, and say which time is missing.
//!
//! Such a window has the sequence of the lost one, no readings, and one gap. Its id is its own: were the lost window sent before it
//! was lost, the ledger has that sequence already and does nothing.

use super::frame::Place;
use super::gaps::Missed;
use super::reason::Reason;
use gpuledger_domain::time::HOUR_US;
use gpuledger_wire::bodies::TelemetryWindow;
use gpuledger_wire::number::Count;
use gpuledger_wire::text::Name;
use gpuledger_wire::time::Time;
use gpuledger_wire::{Event, EventData, encode_structured};

/// A window that was numbered and cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostWindow {
    /// Its stream.
    pub(crate) stream: String,
    /// Its sequence.
    pub(crate) sequence: u64,
    /// The time nobody knows anything about now, with the gaps the window may have carried.
    pub(crate) missed: Missed,
}

/// The windows between two places of one stream. Their time is cut evenly: where each began is lost with them.
pub(crate) fn between(from: Place, to: Place, reason: Reason) -> Vec<LostWindow> {
    let count = to.sequence.saturating_sub(from.sequence);
    if from.stream != to.stream || count == 0 {
        return Vec::new();
    }
    // Of the first windows of a stream nobody knows where they began: they cover no time.
    let end = to.window_end().or(from.window_end()).unwrap_or_default();
    let start = from.window_end().unwrap_or(end).min(end);
    let edge = |nth: u64| {
        let part = i128::from(end.since(start)) * i128::from(nth) / i128::from(count);
        start.plus(i64::try_from(part).unwrap_or(i64::MAX))
    };
    let lost = |nth: u64| LostWindow {
        stream: from.stream.to_string(),
        sequence: from.sequence + nth,
        missed: Missed { start: edge(nth), end: edge(nth + 1), reason },
    };
    (0..count).map(lost).collect()
}

impl LostWindow {
    /// The event in its place; none where even this is no valid event, which nothing here can be.
    pub(crate) fn event(&self, source: &str, node: &Name) -> Option<Vec<u8>> {
        let Missed { start, end, .. } = self.missed;
        let window = TelemetryWindow {
            node: node.clone(),
            // A collector that lost the window does not know in which boot it was measured.
            boot_id: Name::new("unknown").ok()?,
            stream: Name::new(&self.stream).ok()?,
            sequence: Count::new(i64::try_from(self.sequence).ok()?)?,
            // A window has an hour at most, a gap has not.
            start: Time(start.max(end.plus(-HOUR_US)).min(end)),
            end: Time(end),
            units: Vec::new(),
            processes: Vec::new(),
            gaps: vec![self.missed.gap().ok()?],
        };
        let id = format!("{}-lost-{}", self.stream, self.sequence);
        Event::new(source, &id, end, EventData::from(window)).ok().map(|event| encode_structured(&event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::time::Instant;
    use gpuledger_wire::decode_structured;
    use uuid::Uuid;

    fn place(sequence: u64, window_end_us: Option<i64>) -> Place {
        Place { stream: Uuid::nil(), position: sequence, sequence, window_end_us }
    }

    #[test]
    fn each_lost_sequence_has_a_window_and_their_time_adds_up() {
        let lost = between(place(3, Some(100)), place(6, Some(200)), Reason::Damaged);
        let seen: Vec<_> =
            lost.iter().map(|l| (l.sequence, l.missed.start.as_micros(), l.missed.end.as_micros())).collect();
        assert_eq!(seen, [(3, 100, 133), (4, 133, 166), (5, 166, 200)]);
        let node = Name::new("n1").unwrap();
        for one in &lost {
            let event = decode_structured(&one.event("/nodes/n1/collector", &node).unwrap()).unwrap();
            assert_eq!(event.id, format!("{}-lost-{}", Uuid::nil(), one.sequence));
        }
    }

    #[test]
    fn lost_facts_and_lost_streams_need_no_window() {
        assert_eq!(between(place(3, Some(100)), place(3, Some(100)), Reason::Damaged), []);
        let other = Place { stream: Uuid::from_u128(1), ..place(9, Some(200)) };
        assert_eq!(between(place(3, Some(100)), other, Reason::Damaged), []);
    }

    #[test]
    fn a_lost_day_is_a_window_of_an_hour_with_a_gap_of_a_day() {
        let lost = between(place(0, Some(0)), place(1, Some(24 * HOUR_US)), Reason::Damaged);
        let bytes = lost[0].event("/nodes/n1/collector", &Name::new("n1").unwrap()).unwrap();
        let EventData::TelemetryWindow(window) = decode_structured(&bytes).unwrap().data else { panic!() };
        assert_eq!(window.start.get(), Instant::from_micros(23 * HOUR_US));
        assert_eq!(window.gaps[0].start.get(), Instant::from_micros(0));
    }
}
