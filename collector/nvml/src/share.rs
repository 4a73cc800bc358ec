//! Where binary floating point ends.

use crate::absent::{Absent, Reading};
use crate::values::Ppm;

/// How far past all a counter may round, in per cent.
const ROUNDING_PERCENT: f64 = 1.0;

/// Per cent as a share. Just past the whole is the whole, since the counter's two clocks round; further past it, below nothing, or no number is
/// not believed.
pub(crate) fn from_percent(percent: f64) -> Reading<Ppm> {
    if !(0.0..=100.0 + ROUNDING_PERCENT).contains(&percent) {
        return Err(Absent::Implausible);
    }
    whole(percent.min(100.0) * 10_000.0)
        .and_then(|ppm| u32::try_from(ppm).map_err(|_| Absent::Implausible))
        .map(Ppm)
}

/// Whole per cent as a share.
pub(crate) fn from_whole_percent(percent: u32) -> Reading<Ppm> {
    if percent > 100 { Err(Absent::Implausible) } else { Ok(Ppm(percent * 10_000)) }
}

/// The nearest whole number that is not negative.
pub(crate) fn whole(value: f64) -> Reading<u64> {
    // 2^53: up to there every whole number is itself.
    if !(0.0..=9_007_199_254_740_992.0).contains(&value) {
        return Err(Absent::Implausible);
    }
    #[expect(
        clippy::as_conversions,
        reason = "the library has no other way from a float; the range is checked"
    )]
    Ok(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cent_becomes_a_share() {
        assert_eq!(from_percent(0.0), Ok(Ppm(0)));
        assert_eq!(from_percent(43.21), Ok(Ppm(432_100)));
        assert_eq!(from_percent(33.333_333_3), Ok(Ppm(333_333)));
        assert_eq!(from_percent(100.0), Ok(Ppm::ALL));
        assert_eq!(from_percent(-0.0), Ok(Ppm(0)));
    }

    #[test]
    fn rounding_past_the_whole_is_the_whole() {
        assert_eq!(from_percent(100.4), Ok(Ppm::ALL));
        assert_eq!(from_percent(101.0), Ok(Ppm::ALL));
    }

    #[test]
    fn what_cannot_be_a_share_is_not_believed() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 101.1, 37_100.0, 1e300] {
            assert_eq!(from_percent(value), Err(Absent::Implausible), "{value}");
        }
        assert_eq!(from_whole_percent(100), Ok(Ppm::ALL));
        assert_eq!(from_whole_percent(101), Err(Absent::Implausible));
    }
}
