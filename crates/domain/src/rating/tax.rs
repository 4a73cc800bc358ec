//! Tax per rate on the sum of the lines, rounded once, and split over the lines so that their parts add up (M-5).

use crate::money::{Currency, Decimal, Money, MoneyError, multiply_exact};
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

/// The taxes on lines of these amounts. Corrections among them are negative.
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
    let by_line = split(amount.minor(), lines, rate.rate).ok_or(MoneyError::Overflow("line times tax"))?;
    Ok(Tax {
        name: rate.name.clone(),
        rate: rate.rate,
        base,
        amount,
        by_line: by_line.into_iter().map(|minor| Money::from_minor(minor, currency)).collect(),
    })
}

/// Each line's part of the tax in minor units: the floor of its own exact tax, and what remains one by one to the largest remainders, ties
/// to the earlier line. The parts add up to `amount`, which is the rounded sum of the exact ones; with lines of both signs too.
fn split(amount: i128, lines: &[Money], rate: Decimal) -> Option<Vec<i128>> {
    let exact = |line: &Money| multiply_exact(Ratio::from_integer(line.minor()), rate.value());
    let exact: Vec<Ratio<i128>> = lines.iter().map(exact).collect::<Option<_>>()?;
    let mut parts: Vec<i128> = exact.iter().map(|one| one.floor().to_integer()).collect();
    let left = parts.iter().try_fold(amount, |left, part| left.checked_sub(*part))?;
    let remainder = |index: usize| exact[index] - exact[index].floor();
    let mut order: Vec<usize> = (0..lines.len()).collect();
    // A stable sort, largest first, keeps equal remainders in the order of the lines.
    order.sort_by_key(|index| std::cmp::Reverse(remainder(*index)));
    for index in order.into_iter().take(usize::try_from(left).unwrap_or(0)) {
        parts[index] += 1;
    }
    Some(parts)
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
            // Corrections: exact parts 190.00 and -189.81, of which 0.19 remains.
            (vec![1000, -999], "0.19", 0, vec![190, -190]),
            (vec![-250, 100], "0.19", -29, vec![-48, 19]),
            (vec![100, -100], "0.19", 0, vec![19, -19]),
        ] {
            let tax = taxed(&lines, rate);
            let split: Vec<i128> = tax.by_line.iter().map(|m| m.minor()).collect();
            assert_eq!((tax.amount.minor(), split), (amount, parts), "{lines:?} {rate}");
        }
    }
}
