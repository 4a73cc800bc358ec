//! The decision on each event, once: accepted, repeated, or parked with its reason (I-1, I-4, I-6, A-6, A-19).

use crate::incoming::Incoming;
use gpuledger_books::closed::Closed;
use gpuledger_domain::time::{Instant, MINUTE_US, Window};
use gpuledger_wire::{Event, EventData, EventError, MAX_EVENT_BYTES, decode_structured};
use serde_json::Value;

/// How far ahead of the clock a fact may be, in microseconds (A-19).
pub const SKEW_BOUND_US: i64 = 5 * MINUTE_US;

/// No fact is older: a machine whose clock was never set says 1970, and its GPUs would get decades of capacity.
pub const OLDEST: Instant = Instant::from_micros(946_684_800_000_000);

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
    if let Some(period) = refused_period(event, now, closed) {
        let Closed { period, closed_at, refused_from, .. } = period;
        let detail = format!(
            "would change {period}, which was closed at {closed_at} and takes no facts from {refused_from} on"
        );
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
    let is_small = fits(&event.raw_data, LEVELS, &mut { BYTES });
    match event.data {
        EventData::TelemetryWindow(_) => Ok(()),
        _ if is_small => Ok(()),
        _ => decode_structured(&event.canonical_bytes()).map(drop),
    }
}

/// Only its length and its depth can keep an event from being read back, and one of so few levels and bytes is far from either limit.
const LEVELS: u32 = 32;
const BYTES: usize = MAX_EVENT_BYTES / 16;

/// Whether a value has so few levels, and so few bytes in canonical form: what it takes is subtracted, and counted amply.
fn fits(value: &Value, levels: u32, bytes: &mut usize) -> bool {
    let takes = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
        // An escape takes six bytes at most.
        Value::String(text) => 2 + 6 * text.len(),
        Value::Array(_) | Value::Object(_) => 2,
    };
    let Some(left) = bytes.checked_sub(takes).filter(|_| levels > 0) else { return false };
    *bytes = left;
    match value {
        Value::Array(values) => values.iter().all(|value| fits(value, levels - 1, bytes)),
        Value::Object(members) => members.iter().all(|(name, value)| {
            *bytes = bytes.saturating_sub(4 + 6 * name.len());
            fits(value, levels - 1, bytes)
        }),
        _ => true,
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

/// The period, closed for everyone and too long ago, that this instant falls into (A-6).
pub(crate) fn too_late(at: Instant, now: Instant, closed: &[Closed]) -> Option<&Closed> {
    let mut for_everyone = closed.iter().filter(|period| period.tenant.is_none());
    for_everyone.find(|period| now >= period.refused_from && period.window.contains(at))
}

/// The period closed too long ago that an event would change: of the tenant it names, or of everyone.
fn refused_period<'c>(event: &Event, now: Instant, closed: &'c [Closed]) -> Option<&'c Closed> {
    let tenant = tenant_of(event);
    let is_about = |period: &Closed| match (&period.tenant, tenant) {
        (None, _) => true,
        (Some(own), named) => Some(own.as_str()) == named,
    };
    let mut refusing = closed.iter().filter(|period| now >= period.refused_from && is_about(period));
    refusing.find(|period| changes(event, period))
}

/// Whether an event speaks of a time in a period. A charge may name its period; reports speak of the time they begin at.
fn changes(event: &Event, period: &Closed) -> bool {
    match &event.data {
        EventData::ChargeRecorded(charge) => match &charge.period {
            Some(named) => named.as_str() == period.period.to_string(),
            None => period.window.contains(event.time),
        },
        EventData::UsageReported(usage) => period.window.contains(usage.start.get()),
        EventData::WorkReported(work) => {
            let (from, to) = (work.start.get(), work.end.get());
            let spread = Window::new(from, to).and_then(|window| window.intersect(period.window));
            spread.is_some() || period.window.contains(from)
        }
        _ => period.window.contains(event.fact_time()),
    }
}

/// The tenant that an event names.
fn tenant_of(event: &Event) -> Option<&str> {
    match &event.data {
        EventData::AllocationGranted(grant) => Some(&grant.tenant),
        EventData::AllocationTransferred(transfer) => Some(&transfer.tenant),
        EventData::WorkReported(work) => Some(&work.tenant),
        EventData::UsageReported(usage) => Some(&usage.tenant),
        EventData::ChargeRecorded(charge) => Some(&charge.tenant),
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::ids::TenantId;

    fn at(text: &str) -> Instant {
        gpuledger_wire::time::parse_time(text).unwrap()
    }

    /// October, of one tenant or of everyone, refused from the start of February on.
    fn october(tenant: Option<&str>) -> Closed {
        Closed {
            tenant: tenant.map(TenantId::new),
            period: "2026-10".parse().unwrap(),
            window: Window::new(at("2026-10-01T00:00:00Z"), at("2026-11-01T00:00:00Z")).unwrap(),
            closed_at: at("2026-11-02T00:00:00Z"),
            refused_from: at("2027-02-01T00:00:00Z"),
        }
    }

    fn reason(kind: &str, time: &str, data: &str, now: &str, closed: &[Closed]) -> &'static str {
        let text = format!(
            r#"{{"specversion":"1.0","id":"e","source":"/allocators/t","type":"gpuledger.{kind}.v1","time":"{time}","data":{data}}}"#
        );
        let event = decode_structured(text.as_bytes());
        let incoming =
            Incoming { event, origin: "f:1".to_owned(), raw: None, not_entitled: None, retry_of: None };
        match decide(&incoming, at(now), closed) {
            Decision::Admit(_) => "admitted",
            Decision::Park(parking) => parking.reason,
        }
    }

    #[test]
    fn a6_a_fact_that_would_change_a_period_closed_too_long_ago_is_refused() {
        const GRANT: &str = r#"{"allocation":"a","tenant":"acme","units":[{"sku":"l4","count":1}],"mode":"exclusive","class":"on_demand"}"#;
        const RELEASE: &str = r#"{"allocation":"a"}"#;
        const USAGE: &str = r#"{"tenant":"acme","sku":"s","quantity":"1","unit":"u","start":"2026-10-31T23:00:00Z","end":"2026-11-01T01:00:00Z"}"#;
        const CHARGE: &str =
            r#"{"tenant":"acme","description":"d","amount":"1","currency":"EUR","period":"2026-10"}"#;
        const LATER_CHARGE: &str =
            r#"{"tenant":"acme","description":"d","amount":"1","currency":"EUR","period":"2026-11"}"#;
        const WORK: &str = r#"{"pool":"p","tenant":"acme","start":"2026-10-31T23:59:00Z","end":"2026-11-01T00:01:00Z","requests":1}"#;
        let (last, over) = ("2026-10-31T23:59:59.999999Z", "2026-11-01T00:00:00Z");
        let (within, beyond) = ("2027-01-31T23:59:59.999999Z", "2027-02-01T00:00:00Z");
        let (acme, beta, everyone) = (Some("acme"), Some("beta"), None);
        // type | time | data | closed for | clock | decision
        for (kind, time, data, whose, now, decision) in [
            ("allocation.granted", last, GRANT, acme, within, "admitted"),
            ("allocation.granted", last, GRANT, acme, beyond, "late_refused"),
            ("allocation.granted", last, GRANT, everyone, beyond, "late_refused"),
            ("allocation.granted", last, GRANT, beta, beyond, "admitted"),
            ("allocation.granted", over, GRANT, acme, beyond, "admitted"),
            // A release names no tenant: it is refused once the period is closed for everyone.
            ("allocation.released", last, RELEASE, acme, beyond, "admitted"),
            ("allocation.released", last, RELEASE, everyone, beyond, "late_refused"),
            ("usage.reported", over, USAGE, acme, beyond, "late_refused"),
            ("charge.recorded", over, CHARGE, acme, beyond, "late_refused"),
            ("charge.recorded", last, LATER_CHARGE, acme, beyond, "admitted"),
            ("work.reported", over, WORK, acme, beyond, "late_refused"),
        ] {
            let found = reason(kind, time, data, now, &[october(whose)]);
            assert_eq!(found, decision, "{kind} at {time}, closed for {whose:?}, {now}");
        }
    }
}

#[cfg(test)]
mod bounds {
    use super::{BYTES, LEVELS, fits};
    use serde_json::{Value, json};

    fn is_small(value: &Value) -> bool {
        fits(value, LEVELS, &mut { BYTES })
    }

    #[test]
    fn what_is_long_or_deep_is_read_back_before_it_is_kept() {
        assert!(is_small(&json!({"gpu": "GPU-1", "units": [{"gpu": 1}, null, 1.5]})));
        assert!(!is_small(&json!({"text": "x".repeat(BYTES / 6)})));
        assert!(!is_small(&json!(vec![1; BYTES / 32])));
        let deep = |levels: u32| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(is_small(&deep(LEVELS - 1)));
        assert!(!is_small(&deep(LEVELS)));
    }
}
