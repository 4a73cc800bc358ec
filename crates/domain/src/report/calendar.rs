//! Calendar values of a span: the day, hour or month of its tenant's zone.

use super::GroupKey;
use crate::time::{CELL_US, Instant, Window};
use crate::usage::UsageSpan;
use chrono::{DateTime, Datelike, Offset, TimeDelta, TimeZone, Timelike};
use chrono_tz::Tz;

/// The calendar values of one part of a span.
#[derive(Clone, Debug, Default)]
pub(super) struct Calendar {
    pub(super) day: String,
    pub(super) hour: String,
    pub(super) month: String,
}

/// Cuts a span where a calendar key asked for changes. Every zone's hours begin at UTC quarters, so walking quarters finds all edges.
pub(super) fn calendar_parts(span: &UsageSpan, keys: &[GroupKey], zone: Tz) -> Vec<(UsageSpan, Calendar)> {
    let step = if keys.contains(&GroupKey::Hour) {
        Step::Hour
    } else if keys.contains(&GroupKey::Day) {
        Step::Day
    } else if keys.contains(&GroupKey::Month) {
        Step::Month
    } else {
        return vec![(span.clone(), Calendar::default())];
    };
    let mut parts = Vec::new();
    let mut at = span.window.start();
    while at < span.window.end() {
        let local = local(at, zone);
        let next = step.next(at, zone).min(span.window.end());
        let Some(part) = Window::new(at, next).and_then(|window| span.cut(window)) else { break };
        parts.push((part, calendar(&local)));
        at = next;
    }
    parts
}

#[derive(Clone, Copy)]
enum Step {
    Hour,
    Day,
    Month,
}

impl Step {
    /// The first instant after `at` at which the zone's hour, day or month is another one.
    fn next(self, at: Instant, zone: Tz) -> Instant {
        let now = local(at, zone);
        let same = |other: &DateTime<Tz>| {
            let day = (other.year(), other.ordinal()) == (now.year(), now.ordinal());
            match self {
                Self::Hour => day && other.hour() == now.hour() && other.offset().fix() == now.offset().fix(),
                Self::Day => day,
                Self::Month => (other.year(), other.month()) == (now.year(), now.month()),
            }
        };
        // Whole days first, so that a month costs tens of steps and not thousands.
        let mut next = at.plus(1).ceil(CELL_US);
        if !matches!(self, Self::Hour) {
            let day_us = 96 * CELL_US;
            while same(&local(next.plus(day_us), zone)) {
                next = next.plus(day_us);
            }
        }
        while same(&local(next, zone)) {
            next = next.plus(CELL_US);
        }
        next
    }
}

fn local(at: Instant, zone: Tz) -> DateTime<Tz> {
    let epoch = DateTime::UNIX_EPOCH;
    let utc = epoch.checked_add_signed(TimeDelta::microseconds(at.as_micros())).unwrap_or(epoch);
    zone.from_utc_datetime(&utc.naive_utc())
}

fn calendar(local: &DateTime<Tz>) -> Calendar {
    Calendar {
        day: local.format("%Y-%m-%d").to_string(),
        hour: format!("{}{}", local.format("%Y-%m-%dT%H:00:00"), local.format("%:z")),
        month: local.format("%Y-%m").to_string(),
    }
}
