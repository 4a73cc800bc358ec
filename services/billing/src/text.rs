//! Numbers as people read them.

use num_rational::Ratio;

/// Places of an unrounded amount that are written out.
const EXACT_PLACES: u32 = 9;
const SECOND_US: i128 = 1_000_000;
const HOUR_US: i128 = 3_600 * SECOND_US;

/// Microseconds as exact decimal seconds with as many places as they need: `1800`, `0.333333`.
pub(crate) fn seconds(us: i128) -> String {
    let (sign, us) = (if us < 0 { "-" } else { "" }, us.unsigned_abs());
    let (whole, rest) = (us / 1_000_000, us % 1_000_000);
    let fraction = format!("{rest:06}");
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        fraction => format!("{sign}{whole}.{fraction}"),
    }
}

/// Whether an amount of a document is anything but nothing.
pub(crate) fn is_something(amount: &str) -> bool {
    amount.bytes().any(|digit| (b'1'..=b'9').contains(&digit))
}

/// Reads back what [`seconds`] wrote; none where it is no such number.
pub(crate) fn microseconds(text: &str) -> Option<i128> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if whole.is_empty()
        || fraction.len() > 6
        || !(whole.bytes().chain(fraction.bytes())).all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let fraction: i128 = format!("{fraction:0<6}").parse().ok()?;
    whole.parse::<i128>().ok()?.checked_mul(SECOND_US)?.checked_add(fraction)?.checked_mul(sign)
}

/// Microseconds as hours, minutes and seconds, exact: `19 h`, `1 h 30 min`, `−30 min`, `2 min 0.5 s`.
pub(crate) fn hours(us: i128) -> String {
    let (sign, us) = if us < 0 { ("\u{2212}", us.saturating_neg()) } else { ("", us) };
    let (hours, rest) = (us / HOUR_US, us % HOUR_US);
    let (minutes, rest) = (rest / (60 * SECOND_US), rest % (60 * SECOND_US));
    let mut parts = Vec::new();
    if hours > 0 {
        parts.push(format!("{} h", grouped(&hours.to_string())));
    }
    if minutes > 0 {
        parts.push(format!("{minutes} min"));
    }
    if rest > 0 || parts.is_empty() {
        parts.push(format!("{} s", seconds(rest)));
    }
    format!("{sign}{}", parts.join(" "))
}

/// A decimal number with its whole digits in groups of three, by narrow no-break spaces.
pub(crate) fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("\u{2212}", rest));
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(w, f)| (w, Some(f)));
    let mut text = String::from(sign);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// An exact ratio, not negative, as a decimal: whole where it ends within nine places, else cut there and marked with an ellipsis.
pub(crate) fn exact(value: Ratio<i128>) -> String {
    let mut text = value.to_integer().to_string();
    let mut rest = value.fract();
    if *rest.numer() == 0 {
        return text;
    }
    text.push('.');
    for _ in 0..EXACT_PLACES {
        rest *= Ratio::from_integer(10);
        text.push_str(&rest.to_integer().to_string());
        rest = rest.fract();
        if *rest.numer() == 0 {
            return text;
        }
    }
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_come_back() {
        for (us, text) in [
            (1_800_000_000, "1800"),
            (333_333, "0.333333"),
            (1_500_000, "1.5"),
            (0, "0"),
            (-10, "-0.00001"),
            (185_294_426_970_000, "185294426.97"),
        ] {
            assert_eq!(seconds(us), text);
            assert_eq!(microseconds(text), Some(us));
        }
        for text in ["", "-", ".5", "1e3", "1.1234567", "1,5"] {
            assert_eq!(microseconds(text), None, "{text}");
        }
    }

    #[test]
    fn hours_are_exact_and_grouped() {
        for (us, text) in [
            (68_400_000_000, "19 h"),
            (5_400_000_000, "1 h 30 min"),
            (1_800_000_000, "30 min"),
            (3_600_500_000, "1 h 0.5 s"),
            (0, "0 s"),
            (-5_400_000_000, "\u{2212}1 h 30 min"),
            (185_294_426_970_000, "51\u{202f}470 h 40 min 26.97 s"),
        ] {
            assert_eq!(hours(us), text);
        }
        assert_eq!(grouped("-1234567.50"), "\u{2212}1\u{202f}234\u{202f}567.50");
    }

    #[test]
    fn exact_amounts_say_where_they_were_cut() {
        for (n, d, text) in
            [(1, 8, "0.125"), (7, 1, "7"), (1, 3, "0.333333333…"), (360_001 * 11, 36_000, "110.000305555…")]
        {
            assert_eq!(exact(Ratio::new(n, d)), text);
        }
    }
}
