//! Tax per rate on the sum of the lines, rounded once, and split over the lines so that their parts add up (M-5).

use crate::money::{Currency, Decimal, Money, MoneyError, multiply_exact};
use crate::share::split_by_largest_remainder;
use num_rational::Ratio;

/// A tax as a customer's terms state it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaxRate {
    /// Such as `VAT`.
    pub name: String,
    /// As a fraction: `0.19` is 19 %.
    pub rate: Decimal,
}

/// One tax of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tax {
    /// Its name.
    pub name: String,
    /// Its rate.
    pub rate: Decimal,
    /// What it is on: the sum of the lines.
    pub base: Money,
    /// Base times rate, rounded once.
    pub amount: Money,
    /// Each line's part, in the order of the lines; they add up to the amount.
    pub by_line: Vec<Money>,
}

/// The taxes on lines of these amounts, which are not negative.
///
/// # Errors
/// An amount is too large.
pub fn taxes_on(lines: &[Money], rates: &[TaxRate], currency: Currency) -> Result<Vec<Tax>, MoneyError> {
    let base = Money::sum(currency, lines.iter().copied())?;
    rates.iter().map(|rate| tax(rate, base, lines)).collect()
}

fn tax(rate: &TaxRate, base: Money, lines: &[Money]) -> Result<Tax, MoneyError> {
    let currency = base.currency();
    let scale = 10_i128.pow(currency.exponent());
    let exact = multiply_exact(Ratio::new(base.minor(), scale), rate.rate.value())
        .ok_or(MoneyError::Overflow("base times tax rate"))?;
    let amount = Money::round(exact, currency)?;
    let largest = lines.iter().map(|m| m.minor().saturating_abs()).max().unwrap_or(0);
    largest.checked_mul(amount.minor()).ok_or(MoneyError::Overflow("line times tax"))?;
    let weights: Vec<_> = lines.iter().map(|m| Ratio::from_integer(m.minor())).collect();
    let by_line = split_by_largest_remainder(amount.minor(), &weights);
    Ok(Tax {
        name: rate.name.clone(),
        rate: rate.rate,
        base,
        amount,
        by_line: by_line.into_iter().map(|minor| Money::from_minor(minor, currency)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taxed(lines: &[i128], rate: &str) -> Tax {
        let currency: Currency = "EUR".parse().unwrap();
        let lines: Vec<Money> = lines.iter().map(|m| Money::from_minor(*m, currency)).collect();
        let rate = TaxRate { name: "VAT".to_owned(), rate: rate.parse().unwrap() };
        taxes_on(&lines, &[rate], currency).unwrap().remove(0)
    }

    #[test]
    fn m5_tax_is_on_the_sum_of_the_lines_and_its_parts_add_up() {
        // lines in cents | rate | tax in cents | parts
        for (lines, rate, amount, parts) in [
            (vec![13, 18, 68, 101, 103, 206], "0.19", 97, vec![3, 3, 13, 19, 20, 39]),
            (vec![0], "0.19", 0, vec![0]),
            (vec![], "0.19", 0, vec![]),
            (vec![100, 100, 100], "0.005", 2, vec![1, 1, 0]),
            (vec![50], "0.01", 1, vec![1]),
            (vec![49], "0.01", 0, vec![0]),
        ] {
            let tax = taxed(&lines, rate);
            let split: Vec<i128> = tax.by_line.iter().map(|m| m.minor()).collect();
            assert_eq!((tax.amount.minor(), split), (amount, parts), "{lines:?} {rate}");
        }
    }
}
