//! Shares as exact rationals and the split of integer time by largest remainder (rule M-3).

use num_rational::Ratio;

/// A share of a unit: an exact rational above 0. Above 1 is refused where it is read, not here.
pub type Share = Ratio<i128>;

/// Reads `"1/4"`, `"0.25"` or `"1"` exactly.
///
/// # Errors
/// Says what is wrong with the text: not a number, zero, negative, above one, or a part beyond 10^15.
pub fn parse_share(text: &str) -> Result<Share, ShareError> {
    let ratio = match text.split_once('/') {
        Some((numerator, denominator)) => {
            let (n, d) = (digits(numerator)?, digits(denominator)?);
            if d == 0 {
                return Err(ShareError::Range);
            }
            Ratio::new(n, d)
        }
        None => match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() && fraction.len() <= 15 => {
                let places = u32::try_from(fraction.len()).map_err(|_| ShareError::Text)?;
                let scale = 10_i128.pow(places);
                Ratio::new(digits(whole)? * scale + digits(fraction)?, scale)
            }
            Some(_) => return Err(ShareError::Text),
            None => Ratio::from_integer(digits(text)?),
        },
    };
    if ratio <= Ratio::from_integer(0) || ratio > Ratio::from_integer(1) {
        return Err(ShareError::Range);
    }
    Ok(ratio)
}

fn digits(text: &str) -> Result<i128, ShareError> {
    if text.is_empty() || text.len() > 15 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ShareError::Text);
    }
    text.parse().map_err(|_| ShareError::Text)
}

/// Why a text is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// Not of the form `1/4`, `0.25` or `1`.
    #[error("a share is written as a rational such as \"1/4\", with at most 15 digits a side")]
    Text,
    /// Not above 0 and at most 1.
    #[error("a share lies above 0 and is at most 1")]
    Range,
}

/// Largest common denominator of shares that are split together: times a cell's microseconds it stays within 128 bits.
const COMMON_DENOMINATOR_MAX: i128 = 10_i128.pow(27);

/// Whether shares can be added up and split exactly within 128 bits. A dozen shares with large, unrelated denominators cannot.
pub fn have_common_measure(shares: impl IntoIterator<Item = Share>) -> bool {
    let mut common = 1_i128;
    for share in shares {
        let factor = share.denom() / gcd(common, *share.denom());
        match common.checked_mul(factor).filter(|product| *product <= COMMON_DENOMINATOR_MAX) {
            Some(product) => common = product,
            None => return false,
        }
    }
    true
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Splits `total` (not negative) in proportion to `weights` (not negative, their sum above zero) by largest remainder: each part
/// gets the floor of its exact quota, and what remains goes one by one to the largest remainders, ties to the earlier weight.
/// The caller orders the weights so that the tie rule it needs is "earlier first". The parts add up to `total`.
pub fn split_by_largest_remainder(total: i128, weights: &[Share]) -> Vec<i128> {
    let sum: Share = weights.iter().sum();
    if sum == Ratio::from_integer(0) {
        return vec![0; weights.len()];
    }
    let quotas: Vec<Share> = weights.iter().map(|w| *w * Ratio::from_integer(total) / sum).collect();
    let mut parts: Vec<i128> = quotas.iter().map(|q| q.floor().to_integer()).collect();
    let left = total - parts.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    // A stable sort by remainder, largest first, keeps equal remainders in the order of the weights.
    order.sort_by(|a, b| quotas[*b].fract().cmp(&quotas[*a].fract()));
    for index in order.into_iter().take(usize::try_from(left).unwrap_or(0)) {
        parts[index] += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Share {
        parse_share(text).unwrap()
    }

    #[test]
    fn shares_are_read_exactly_or_refused() {
        assert_eq!(share("0.25"), share("1/4"));
        assert_eq!(share("2/4"), Share::new(1, 2));
        assert_eq!(share("1"), Share::from_integer(1));
        for bad in [
            "",
            "0",
            "0/3",
            "3/2",
            "1.5",
            "-1/2",
            "1/0",
            "1e-3",
            ".5",
            "1.",
            "1/2/3",
            "1234567890123456/9999999999999999",
        ] {
            assert!(parse_share(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn remainders_go_to_the_largest_and_ties_to_the_earlier() {
        let seventh = [Share::new(2, 7), Share::new(2, 7), Share::new(3, 7)];
        assert_eq!(split_by_largest_remainder(10_000_000, &seventh), [2_857_143, 2_857_143, 4_285_714]);
        let halves = [Share::new(1, 2), Share::new(1, 2)];
        assert_eq!(split_by_largest_remainder(1, &halves), [1, 0]);
        assert_eq!(split_by_largest_remainder(5, &[Share::from_integer(0)]), [0]);
    }

    #[test]
    fn shares_without_a_common_measure_are_seen() {
        let primes = [999_983, 999_979, 999_961, 999_959, 999_953];
        assert!(have_common_measure(primes[..4].iter().map(|p| Share::new(1, *p))));
        assert!(!have_common_measure(primes.iter().map(|p| Share::new(1, *p))));
        assert!(have_common_measure((1..=1000).map(|_| Share::new(1, 1000))));
    }
}
