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
