//! From when to when a job held what it was given.

use crate::clock::{self, ClockError, Read};
use crate::report::{Reason, Reject};
use crate::table::Row;
use chrono_tz::Tz;
use gpuledger_domain::time::{Instant, SECOND_US};

/// A job's hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: Instant,
    /// None: it lasts.
    pub(super) end: Option<Instant>,
    /// Whether a local time occurred twice and one had to be chosen.
    pub(super) chosen: bool,
    /// Seconds in which it was suspended.
    pub(super) suspended: i64,
}

/// Whether Slurm writes no instant here.
pub(super) fn is_unknown(text: Option<&str>) -> bool {
    text.is_none_or(|t| ["Unknown", "None", "N/A", "0"].contains(&t))
}

/// The span of a job that still runs.
pub(super) fn open(row: Row<'_>, zone: Tz) -> Result<Span, Reject> {
    let starts = instants(row, "start", zone)?.all();
    let start = *starts.first().ok_or_else(|| Reject::value("start", "is empty"))?;
    Ok(Span { start, end: None, chosen: starts.len() > 1, suspended: 0 })
}

/// The span of a job that is over. Where a local time occurred twice the elapsed time decides; else the earliest counts.
pub(super) fn over(row: Row<'_>, zone: Tz) -> Result<Span, Reject> {
    if is_unknown(row.get("end")) {
        return Err(Reject::new(
            Reason::NoEnd,
            Some("end"),
            "a job that is over needs its end; Slurm calls such a job runaway",
        ));
    }
    let (starts, ends) = (instants(row, "start", zone)?.all(), instants(row, "end", zone)?.all());
    let chosen = starts.len() + ends.len() > 2;
    let elapsed = row.get("elapsed").and_then(seconds).map(|s| s.saturating_mul(SECOND_US));
    let pairs = || starts.iter().flat_map(|s| ends.iter().map(move |e| (*s, *e))).filter(|(s, e)| s <= e);
    let exact = pairs().find(|(s, e)| Some(e.since(*s)) == elapsed);
    let Some((start, end)) = exact.or_else(|| pairs().next()) else {
        let message = format!("the job ends at {}, before it starts at {}", listed(&ends), listed(&starts));
        return Err(Reject::new(Reason::Contradiction, Some("end"), message));
    };
    let suspended = end.since(start) - elapsed.unwrap_or_else(|| end.since(start));
    if suspended < 0 {
        let message = format!("more time elapsed than lies between start {start} and end {end}");
        return Err(Reject::new(Reason::Contradiction, Some("elapsed"), message));
    }
    Ok(Span { start, end: Some(end), chosen, suspended: suspended / SECOND_US })
}

fn instants(row: Row<'_>, name: &str, zone: Tz) -> Result<Read, Reject> {
    clock::read(row.need(name)?, zone).map_err(|e| match e {
        ClockError::Skipped { .. } => Reject::new(Reason::NoSuchTime, Some(name), e.to_string()),
        ClockError::Text(_) | ClockError::Range(_) => Reject::value(name, e.to_string()),
    })
}

fn listed(instants: &[Instant]) -> String {
    instants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

/// Seconds in `[D-]HH:MM:SS`, in `MM:SS`, or as a plain number.
fn seconds(text: &str) -> Option<i64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (days.parse::<u32>().ok()?, clock),
        None => (0, text),
    };
    let mut total = 0_i64;
    for part in clock.split(':') {
        total = total.checked_mul(60)?.checked_add(i64::from(part.parse::<u32>().ok()?))?;
    }
    total.checked_add(i64::from(days) * 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Columns;

    fn span(start: &str, end: &str, elapsed: &str, zone: Tz) -> Result<(String, String, bool, i64), Reason> {
        let columns = Columns::new(["start", "end", "elapsed"].map(str::to_owned).to_vec()).unwrap();
        let fields = [start, end, elapsed].map(str::to_owned);
        let span = over(columns.row(&fields), zone).map_err(|r| r.reason)?;
        Ok((span.start.to_string(), span.end.unwrap().to_string(), span.chosen, span.suspended))
    }

    #[test]
    fn elapsed_times() {
        assert_eq!(seconds("10-13:27:06"), Some(10 * 86_400 + 13 * 3600 + 27 * 60 + 6));
        assert_eq!((seconds("00:00:00"), seconds("01:05"), seconds("90")), (Some(0), Some(65), Some(90)));
        assert_eq!((seconds("INVALID"), seconds("-5"), seconds("")), (None, None, None));
    }

    #[test]
    fn where_the_clock_was_set_back_the_elapsed_time_decides() {
        let zone = Tz::Europe__Berlin;
        let (from, to) = ("2026-10-25T02:30:00", "2026-10-25T02:40:00");
        let at = |start: &str, end: &str| Ok((start.to_owned(), end.to_owned(), true, 0));
        assert_eq!(span(from, to, "00:10:00", zone), at("2026-10-25T00:30:00Z", "2026-10-25T00:40:00Z"));
        assert_eq!(span(from, to, "01:10:00", zone), at("2026-10-25T00:30:00Z", "2026-10-25T01:40:00Z"));
        // The local end is before the local start, and the job ran across the change.
        assert_eq!(span(to, from, "00:50:00", zone), at("2026-10-25T00:40:00Z", "2026-10-25T01:30:00Z"));
        assert_eq!(span(from, to, "", zone), at("2026-10-25T00:30:00Z", "2026-10-25T00:40:00Z"));
        assert_eq!(span("2026-03-29T02:30:00", "2026-03-29T04:00:00", "", zone), Err(Reason::NoSuchTime));
    }

    #[test]
    fn suspends_and_contradictions() {
        let (from, to) = ("2026-01-01T00:00:00", "2026-01-01T01:00:00");
        assert_eq!(span(from, to, "00:20:00", Tz::UTC).unwrap().3, 2400);
        assert_eq!(span(from, to, "02:00:00", Tz::UTC), Err(Reason::Contradiction));
        assert_eq!(span(to, from, "INVALID", Tz::UTC), Err(Reason::Contradiction));
        assert_eq!(span(from, "Unknown", "", Tz::UTC), Err(Reason::NoEnd));
        assert_eq!(span("NaN", to, "", Tz::UTC), Err(Reason::BadValue));
        assert_eq!(span(from, from, "00:00:00", Tz::UTC).unwrap().3, 0);
    }
}
