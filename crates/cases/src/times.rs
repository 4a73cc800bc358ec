//! Instants and lengths of time, as the table writes them.

use gpuledger_domain::time::Instant;
use gpuledger_wire::time::parse_time;
use num_rational::Ratio;

/// The date of a time that names none.
pub(super) const DATE: &str = "2026-10-01";

/// An instant and how it was written, as RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) at: Instant,
    pub(super) text: String,
}

/// Reads `10:00`, `10:00:05.5`, `2026-10-25T01:30`, each with `+02:00` behind it or in UTC.
pub(super) fn instant(word: &str, date: &str) -> Result<Written, String> {
    let wrong = || {
        format!(
            "`{word}` is no time, expected one such as 10:00, 10:00:05.5, 2026-10-25T01:30 or 12:00+02:00"
        )
    };
    let (day, clock) = word.split_once('T').unwrap_or((date, word));
    let split = clock.find(['+', '-', 'Z']).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(split);
    let seconds = if clock.matches(':').count() == 1 { ":00" } else { "" };
    let zone = if zone.is_empty() { "Z" } else { zone };
    let text = format!("{day}T{clock}{seconds}{zone}");
    let at = parse_time(&text).map_err(|_| wrong())?;
    Ok(Written { at, text })
}

/// Reads `00:55:00`, `00:00:10.5`, `1234us`, `15m`, `10s`, `2h` in microseconds, fractions of one included.
pub(super) fn length(word: &str) -> Result<Ratio<i128>, String> {
    let wrong =
        || format!("`{word}` is no length of time, expected one such as 00:55:00, 15m, 10s or 1234us");
    for (unit, micros) in [("us", 1), ("m", 60_000_000), ("s", 1_000_000), ("h", 3_600_000_000)] {
        if let Some(number) = word.strip_suffix(unit) {
            return Ok(decimal(number).ok_or_else(wrong)? * Ratio::from_integer(micros));
        }
    }
    let parts: Vec<&str> = word.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return Err(wrong()) };
    let whole = |text: &str| text.parse::<i128>().ok().filter(|_| !text.starts_with('-'));
    let (hours, minutes) = whole(hours).zip(whole(minutes)).ok_or_else(wrong)?;
    let seconds = decimal(seconds).ok_or_else(wrong)?;
    Ok((Ratio::from_integer(hours * 3_600 + minutes * 60) + seconds) * Ratio::from_integer(1_000_000))
}

/// A whole number of microseconds.
pub(super) fn micros(word: &str) -> Result<i128, String> {
    let length = length(word)?;
    if length.is_integer() {
        Ok(length.to_integer())
    } else {
        Err(format!("`{word}` is no whole number of microseconds"))
    }
}

/// Reads a number without sign and with an optional fraction.
fn decimal(text: &str) -> Option<Ratio<i128>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(Ratio::new(digits.parse().ok()?, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_lengths_are_read_or_refused() {
        let at = |word: &str| instant(word, DATE).unwrap().at.to_string();
        assert_eq!(at("10:00"), "2026-10-01T10:00:00Z");
        assert_eq!(at("12:00:00.5+02:00"), "2026-10-01T10:00:00.5Z");
        assert_eq!(at("2026-10-25T01:30"), "2026-10-25T01:30:00Z");
        assert!(instant("25:00", DATE).is_err() && instant("noon", DATE).is_err());
        assert_eq!(micros("00:55:00").unwrap(), 3_300_000_000);
        assert_eq!((micros("15m").unwrap(), micros("1234us").unwrap()), (900_000_000, 1_234));
        assert_eq!(micros("26:00:00.000001").unwrap(), 93_600_000_001);
        assert!(micros("0.5us").is_err() && micros("5").is_err() && micros("-1s").is_err());
    }
}
