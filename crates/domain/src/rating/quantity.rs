//! How much of something: exact, and as text on documents.

use crate::money::{Decimal, DecimalError};
use num_rational::Ratio;
use std::fmt;
use std::str::FromStr;

/// Parts of one: a quantity has twelve places, as a decimal of an event or a card has.
const ONE: i128 = 1_000_000_000_000;
/// Parts of a microsecond of a second.
const MICRO: i128 = 1_000_000;

/// A quantity in its line's unit (seconds of GPU time, the unit a meter was reported in), exact to twelve places. Negative only as a
/// difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i128);

impl Quantity {
    /// One.
    pub const ONE: Self = Self(ONE);

    /// Microseconds as seconds; none beyond 128 bits.
    pub fn of_micros(us: i128) -> Option<Self> {
        us.checked_mul(MICRO).map(Self)
    }

    /// The same number.
    pub fn of(decimal: Decimal) -> Self {
        let value = decimal.value();
        // A decimal has at most twelve places, so the denominator divides.
        Self(value.numer() * (ONE / value.denom()))
    }

    /// Its exact value.
    pub fn value(self) -> Ratio<i128> {
        Ratio::new(self.0, ONE)
    }

    /// Whole microseconds of a quantity in seconds, what is below one cut off.
    pub const fn micros(self) -> i128 {
        self.0 / MICRO
    }

    /// Whether it is nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Both together; none beyond 128 bits.
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// What is left of it without `other`; none beyond 128 bits.
    pub fn minus(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }
}

impl fmt::Display for Quantity {
    /// With as many places as it needs: `1800`, `0.333333`, `-0.00001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, parts, one) =
            (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs(), ONE.unsigned_abs());
        let (whole, fraction) = (parts / one, format!("{:012}", parts % one));
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}"),
            fraction => write!(f, "{sign}{whole}.{fraction}"),
        }
    }
}

impl FromStr for Quantity {
    type Err = DecimalError;

    /// Reads what [`Display`](fmt::Display) wrote.
    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let error = || DecimalError::new(text);
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !plain(whole) || !plain(fraction) || fraction.len() > 12 {
            return Err(error());
        }
        let parts: i128 = format!("{whole}{fraction:0<12}").parse().map_err(|_| error())?;
        Ok(Self(sign * parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_come_back_from_their_text() {
        for (us, text) in [
            (1_800_000_000, "1800"),
            (333_333, "0.333333"),
            (1_500_000, "1.5"),
            (0, "0"),
            (-10, "-0.00001"),
            (1_261_440_000_000_000_000_000_000, "1261440000000000000"),
        ] {
            let quantity = Quantity::of_micros(us).unwrap();
            assert_eq!((quantity.to_string().as_str(), text.parse()), (text, Ok(quantity)));
            assert_eq!(quantity.micros(), us);
        }
        for text in ["", "-", ".5", "1.", "1e3", "1.1234567890123", "1,5", "+1"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn decimals_keep_all_their_places() {
        let one: Decimal = "999999999999999999.000000000001".parse().unwrap();
        assert_eq!(Quantity::of(one).to_string(), "999999999999999999.000000000001");
        assert_eq!(Quantity::of(one).value(), one.value());
    }
}
