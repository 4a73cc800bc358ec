//! The decision on each event, once: accepted, repeated, or parked with its reason (I-1, I-4, I-6, A-6, A-19).

use crate::incoming::Incoming;
use gpuledger_domain::time::{Instant, MINUTE_US, Window};
use gpuledger_wire::{Event, EventData, EventError, decode_structured};

/// How far ahead of the clock a fact may be, in microseconds.
pub const SKEW_BOUND_US: i64 = 5 * MINUTE_US;
/// A fact of a period closed longer ago than this is refused, in microseconds: 90 days.
pub const LATENESS_LIMIT_US: i64 = 90 * 24 * 60 * MINUTE_US;

/// No fact is older: a machine whose clock was never set says 1970, and its GPUs would get decades of capacity.
pub const OLDEST: Instant = Instant::from_micros(946_684_800_000_000);
/// A closed period of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// What was closed.
    pub window: Window,
    /// When.
    pub closed_at: Instant,
}

/// What is decided about one event before its identity is looked up.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision<'e> {
    /// It may be accepted, if its identity is free.
    Admit(&'e Event),
    /// It is kept aside.
    Park(Parking),
}

/// Why an event is kept aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parking {
    /// `bad_value`, `future`, `not_entitled`, `late_refused` or `conflict`.
    pub reason: &'static str,
    /// What is wrong and what would be right.
    pub detail: String,
    /// The subject of the finding.
    pub subject: String,
}

/// Decides on one event.
pub fn decide<'e>(incoming: &'e Incoming, now: Instant, closed: &[Closed]) -> Decision<'e> {
    let event = match &incoming.event {
        Ok(event) => event,
        Err(error) => return Decision::Park(bad_value(error, &incoming.origin)),
    };
    let park =
        |reason, detail| Decision::Park(Parking { reason, detail, subject: event.subject_of_finding() });
    if let Some(why) = &incoming.not_entitled {
        return park("not_entitled", why.clone());
    }
    let names = [&event.source, &event.id];
    if let Some(name) = names.into_iter().find(|name| !gpuledger_storage::facts::is_storable_name(name)) {
        return park(
            "bad_value",
            format!("a name of {} bytes cannot be stored, the limit is 1024", name.len()),
        );
    }
    let at = event.fact_time();
    if at.min(event.time) < OLDEST {
        return park(
            "bad_value",
            format!("happens at {}, expected a time not before {OLDEST}: is the clock set?", event.time),
        );
    }
    if at.max(event.time) > now.plus(SKEW_BOUND_US) {
        return park(
            "future",
            format!("happens at {}, the clock says {now}; it is tried again when due", event.time),
        );
    }
    if let Some(period) = too_late(at, now, closed) {
        let detail =
            format!("falls into {}, closed at {}, more than 90 days ago", period.window, period.closed_at);
        return park("late_refused", detail);
    }
    if let Err(error) = reads_back(event) {
        return park("bad_value", format!("cannot be kept: in the form it is stored in, {}", error.fault));
    }
    Decision::Admit(event)
}

/// What is accepted is stored in canonical form and read again and again: an event that grows beyond the limits on the way (an envelope around
/// a full body, numbers written out) would make the ledger unreadable. Telemetry is stored, and read only by an export.
fn reads_back(event: &Event) -> Result<(), EventError> {
    match event.data {
        EventData::TelemetryWindow(_) => Ok(()),
        _ => decode_structured(&event.canonical_bytes()).map(drop),
    }
}

/// The same identity with another content: what stands first stands (I-1).
pub fn conflict(event: &Event) -> Parking {
    let detail = format!("{} {} was accepted with another content, which stands", event.source, event.id);
    Parking { reason: "conflict", detail, subject: event.subject_of_finding() }
}

/// The database would not hold it, alone.
pub fn refused(incoming: &Incoming, error: &crate::LedgerError) -> Parking {
    let subject = match &incoming.event {
        Ok(event) => event.subject_of_finding(),
        Err(_) => incoming.origin.clone(),
    };
    Parking { reason: "bad_value", detail: format!("{}: {error}", incoming.origin), subject }
}

fn too_late(at: Instant, now: Instant, closed: &[Closed]) -> Option<&Closed> {
    closed.iter().find(|period| period.window.contains(at) && now.since(period.closed_at) > LATENESS_LIMIT_US)
}

fn bad_value(error: &EventError, origin: &str) -> Parking {
    let about = &error.about;
    let named = match (&about.source, &about.id) {
        (Some(source), Some(id)) => format!("{source} {id}"),
        _ => origin.to_owned(),
    };
    Parking {
        reason: "bad_value",
        detail: format!("{origin}: {}", error.fault),
        subject: about.subject.clone().unwrap_or(named),
    }
}
