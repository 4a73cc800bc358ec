//! Exact decimals: prices, tax rates and fractions as people write them.

use num_rational::Ratio;
use std::fmt;
use std::str::FromStr;

/// Digits before the point that are read; a price of 10^18 is a slip of the keyboard.
const WHOLE_DIGITS_MAX: usize = 18;
/// Places after the point that are read.
const PLACES_MAX: usize = 12;

/// An exact decimal number that is not negative. Two that are equal in value are equal: `2.4` is `2.40`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal {
    /// In lowest terms; the denominator divides 10^12.
    value: Ratio<i128>,
}

impl Decimal {
    /// Its exact value.
    pub const fn value(self) -> Ratio<i128> {
        self.value
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        *self.value.numer() == 0
    }

    /// As text with at least `places` decimal places (at most 12), more where the value needs them: `2.40`, `0.00005`.
    pub fn with_places(self, places: u32) -> String {
        let places = places.min(12);
        let mut scale = places;
        let mut factor = 10_i128.pow(places);
        while factor % self.value.denom() != 0 && scale < 12 {
            scale += 1;
            factor *= 10;
        }
        text_of(self.value.numer() * (factor / self.value.denom()), scale)
    }
}

impl fmt::Display for Decimal {
    /// With as many places as it needs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_places(0))
    }
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let error = || DecimalError(text.to_owned());
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(error()),
            None => (text, ""),
        };
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty()
            || whole.len() > WHOLE_DIGITS_MAX
            || fraction.len() > PLACES_MAX
            || !digits(whole)
            || !digits(fraction)
        {
            return Err(error());
        }
        let mantissa: i128 = format!("{whole}{fraction}").parse().map_err(|_| error())?;
        let scale = u32::try_from(fraction.len()).map_err(|_| error())?;
        Ok(Self { value: Ratio::new(mantissa, 10_i128.pow(scale)) })
    }
}

/// A text that is no decimal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no decimal: digits with at most 18 before and 12 after the point are wanted, not negative, such as \"2.40\""
)]
pub struct DecimalError(String);

impl DecimalError {
    /// Of this text.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// `mantissa` × 10^-`scale` with exactly `scale` places.
pub(super) fn text_of(mantissa: i128, scale: u32) -> String {
    let factor = 10_u128.pow(scale);
    let (sign, magnitude) = (if mantissa < 0 { "-" } else { "" }, mantissa.unsigned_abs());
    let (whole, fraction) = (magnitude / factor, magnitude % factor);
    match usize::try_from(scale) {
        Ok(width) if width > 0 => format!("{sign}{whole}.{fraction:0width$}"),
        _ => format!("{sign}{whole}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_by_value() {
        for (text, plain, two_places) in [
            ("2.40", "2.4", "2.40"),
            ("0", "0", "0.00"),
            ("007", "7", "7.00"),
            ("0.00005", "0.00005", "0.00005"),
            ("123456789012345.123456789012", "123456789012345.123456789012", "123456789012345.123456789012"),
            ("0.19", "0.19", "0.19"),
        ] {
            let decimal: Decimal = text.parse().unwrap();
            assert_eq!(decimal.to_string(), plain);
            assert_eq!(decimal.with_places(2), two_places);
        }
        assert_eq!("2.4".parse::<Decimal>(), "2.40".parse::<Decimal>());
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "NaN",
            "1,5",
            "1 ",
            "1234567890123456789",
            "0.1234567890123",
            "٣",
        ] {
            assert!(text.parse::<Decimal>().is_err(), "{text}");
        }
    }
}
