//! Money: currencies with their own exponent, exact decimals, and the one rounding of a line (rule M-5).
//!
//! Nothing here is a binary float, and nothing wraps: what does not fit 128 bits is an error that names the operation.

mod currency;
mod decimal;

pub use currency::{Currency, CurrencyError};
pub use decimal::{Decimal, DecimalError};

use num_rational::Ratio;
use std::fmt;

/// The rounding rule, as it is printed on every document.
pub const ROUNDING_RULE: &str = "quantity times price, rounded once per line, half away from zero, to the currency's minor unit; \
                                 tax per rate on the sum of the lines, rounded once";

/// An amount in whole minor units of its currency (cents of EUR, yen of JPY, fils of KWD). May be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money {
    minor: i128,
    currency: Currency,
}

impl Money {
    /// `minor` minor units of `currency`.
    pub const fn from_minor(minor: i128, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Nothing, in `currency`.
    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    /// Minor units.
    pub const fn minor(self) -> i128 {
        self.minor
    }

    /// Its currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Both amounts together.
    ///
    /// # Errors
    /// The currencies differ, or the sum passes 128 bits.
    pub fn plus(self, other: Self) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::Currencies(self.currency, other.currency));
        }
        let minor = self.minor.checked_add(other.minor).ok_or(MoneyError::Overflow("a sum of amounts"))?;
        Ok(Self { minor, currency: self.currency })
    }

    /// This amount without the other.
    ///
    /// # Errors
    /// As [`Money::plus`].
    pub fn minus(self, other: Self) -> Result<Self, MoneyError> {
        let minor = other.minor.checked_neg().ok_or(MoneyError::Overflow("a difference of amounts"))?;
        self.plus(Self { minor, ..other })
    }

    /// The sum of `amounts`, zero where there is none.
    ///
    /// # Errors
    /// As [`Money::plus`].
    pub fn sum(currency: Currency, amounts: impl IntoIterator<Item = Self>) -> Result<Self, MoneyError> {
        amounts.into_iter().try_fold(Self::zero(currency), Self::plus)
    }

    /// `exact` major units, rounded half away from zero at the currency's exponent.
    ///
    /// # Errors
    /// The amount passes 128 bits.
    pub fn round(exact: Ratio<i128>, currency: Currency) -> Result<Self, MoneyError> {
        let scale = Ratio::from_integer(10_i128.pow(currency.exponent()));
        let minor = multiply_exact(exact, scale).ok_or(MoneyError::Overflow("an amount in minor units"))?;
        Ok(Self { minor: round_half_away(minor)?, currency })
    }
}

impl fmt::Display for Money {
    /// With all places of its currency and no sign of it: `0.13`, `-2.40`, `1300000` (JPY).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal::text_of(self.minor, self.currency.exponent()))
    }
}

/// Why an amount could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Two currencies in one sum.
    #[error("{0} and {1} cannot be added")]
    Currencies(Currency, Currency),
    /// Beyond 128 bits.
    #[error("{0} is larger than this ledger can hold")]
    Overflow(&'static str),
}

/// The exact product, or none where it passes 128 bits. Common factors are taken out first, so that only results that are truly
/// too large fail.
pub fn multiply_exact(a: Ratio<i128>, b: Ratio<i128>) -> Option<Ratio<i128>> {
    let (left, right) = (Ratio::new(*a.numer(), *b.denom()), Ratio::new(*b.numer(), *a.denom()));
    let numerator = left.numer().checked_mul(*right.numer())?;
    let denominator = left.denom().checked_mul(*right.denom())?;
    Some(Ratio::new(numerator, denominator))
}

/// The nearest integer; exactly half goes away from zero.
///
/// # Errors
/// The doubled fraction passes 128 bits.
fn round_half_away(exact: Ratio<i128>) -> Result<i128, MoneyError> {
    let (whole, rest) = (exact.numer() / exact.denom(), exact.numer() % exact.denom());
    let twice = rest.abs().checked_mul(2).ok_or(MoneyError::Overflow("a remainder"))?;
    Ok(if twice >= *exact.denom() { whole + rest.signum() } else { whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eur() -> Currency {
        "EUR".parse().unwrap()
    }

    #[test]
    fn halves_go_away_from_zero_on_both_sides() {
        // exact in thousandths | rounded in cents
        for (thousandths, cents) in [
            (125, 13),
            (175, 18),
            (675, 68),
            (1005, 101),
            (1025, 103),
            (2055, 206),
            (124, 12),
            (-125, -13),
            (-124, -12),
            (0, 0),
        ] {
            assert_eq!(
                Money::round(Ratio::new(thousandths, 1000), eur()).unwrap().minor(),
                cents,
                "{thousandths}/1000"
            );
        }
    }

    #[test]
    fn each_currency_has_all_its_places() {
        for (code, minor, text) in [
            ("EUR", 13, "0.13"),
            ("EUR", -240, "-2.40"),
            ("EUR", 0, "0.00"),
            ("JPY", 1_300_000, "1300000"),
            ("KWD", 1_005, "1.005"),
            ("USD", 1_000_000_000_000, "10000000000.00"),
        ] {
            assert_eq!(Money::from_minor(minor, code.parse().unwrap()).to_string(), text);
        }
    }

    #[test]
    fn sums_refuse_foreign_currency_and_overflow() {
        let usd: Currency = "USD".parse().unwrap();
        assert!(Money::zero(eur()).plus(Money::zero(usd)).is_err());
        assert!(Money::from_minor(i128::MAX, usd).plus(Money::from_minor(1, usd)).is_err());
        assert!(Money::round(Ratio::from_integer(i128::MAX), usd).is_err());
    }

    #[test]
    fn products_cancel_before_they_multiply() {
        let huge = Ratio::new(i128::MAX, 7);
        assert_eq!(multiply_exact(huge, Ratio::new(7, i128::MAX)), Some(Ratio::from_integer(1)));
        assert_eq!(multiply_exact(Ratio::from_integer(i128::MAX), Ratio::from_integer(2)), None);
    }
}
