//! The split of a unit's time among its holders by largest remainder (M-3), microsecond by microsecond.

use gpuledger_domain::share::Share;
use gpuledger_domain::time::{CELL_US, Instant, Window};
use num_bigint::BigInt;

/// The parts of `total` microseconds for holders with these `shares`, in the order in which ties go, and what is idle.
/// Shares over one in all are scaled down.
pub(crate) fn parts(total: i64, shares: &[Share]) -> (Vec<i128>, i128) {
    let one = Share::from_integer(1);
    let sum: Share = shares.iter().sum();
    let whole = sum.max(one);
    let mut weights = shares.to_vec();
    weights.push(whole - sum);
    let quotas: Vec<Share> =
        weights.iter().map(|w| *w * Share::from_integer(i128::from(total)) / whole).collect();
    let mut given: Vec<i128> = quotas.iter().map(|q| q.to_integer()).collect();
    // What the whole numbers leave goes out one by one, each to whoever lacks most.
    while given.iter().sum::<i128>() < i128::from(total) {
        let mut lacks_most = 0;
        for n in 1..quotas.len() {
            let lacking = |n: usize| quotas[n] - Share::from_integer(given[n]);
            if lacking(n) > lacking(lacks_most) {
                lacks_most = n;
            }
        }
        given[lacks_most] += 1;
    }
    let idle = given.pop().unwrap_or(0);
    (given, idle)
}

/// `total` divided by weights of any size, above zero in all; ties go to the earlier one.
pub(crate) fn divide(total: i128, weights: &[BigInt]) -> Vec<i128> {
    let all: BigInt = weights.iter().sum();
    let wanted: Vec<BigInt> = weights.iter().map(|weight| weight * total).collect();
    // A part is at most the total.
    let whole = |wanted: &BigInt| i128::try_from(wanted / &all).unwrap_or(total);
    let mut given: Vec<i128> = wanted.iter().map(whole).collect();
    while given.iter().sum::<i128>() < total {
        let lacking = |n: usize| &wanted[n] - given[n] * &all;
        let mut lacks_most = 0;
        for n in 1..wanted.len() {
            if lacking(n) > lacking(lacks_most) {
                lacks_most = n;
            }
        }
        given[lacks_most] += 1;
    }
    given
}

/// The window cut at every UTC quarter of an hour.
pub(crate) fn cells(window: Window) -> Vec<Window> {
    cut_every(window, CELL_US)
}

/// The window cut wherever so many microseconds of UTC have passed.
pub(crate) fn cut_every(window: Window, step_us: i64) -> Vec<Window> {
    let mut cells = Vec::new();
    let mut start = window.start();
    while start < window.end() {
        let next = (start.as_micros().div_euclid(step_us) + 1) * step_us;
        let end = Instant::from_micros(next).min(window.end());
        cells.extend(Window::new(start, end));
        start = end;
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(n: i128, d: i128) -> Share {
        Share::new(n, d)
    }

    #[test]
    fn thirds_leave_a_microsecond_to_the_first() {
        assert_eq!(parts(10, &[share(1, 3), share(1, 3), share(1, 3)]), (vec![4, 3, 3], 0));
    }

    #[test]
    fn what_nobody_holds_is_idle_and_comes_last_in_a_tie() {
        assert_eq!(parts(1, &[share(1, 2)]), (vec![1], 0));
        assert_eq!(parts(7, &[share(1, 4)]), (vec![2], 5));
    }

    #[test]
    fn shares_over_one_are_scaled_down() {
        let shares = [share(1, 2), share(1, 2), share(3, 4)];
        assert_eq!(parts(10_000_000, &shares), (vec![2_857_143, 2_857_143, 4_285_714], 0));
    }

    #[test]
    fn a_tie_by_weight_goes_to_the_earlier() {
        let weights = [2, 0, 2, 3].map(BigInt::from);
        assert_eq!(divide(10_000_000, &weights), [2_857_143, 0, 2_857_143, 4_285_714]);
        assert_eq!(divide(1, &[1, 1].map(BigInt::from)), [1, 0]);
    }

    #[test]
    fn cells_end_at_quarters_of_an_hour() {
        let window = Window::new(Instant::from_micros(CELL_US - 1), Instant::from_micros(2 * CELL_US + 1));
        let lengths: Vec<i64> = window.map(cells).unwrap_or_default().iter().map(|c| c.micros()).collect();
        assert_eq!(lengths, [1, CELL_US, 1]);
    }
}
