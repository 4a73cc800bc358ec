//! Minimum and granularity: what is added at the end of a unit's hold (V-6).

use super::charge::{Charge, Rating, UnitUse, basis_of, pieces, price_at};
use super::select::Ambiguous;
use crate::time::Window;
use crate::usage::{End, UsageSpan};
use num_rational::Ratio;
use std::borrow::Cow;

/// The part that minimum and granularity add to a unit, where its last charged microsecond is the tenant's and lies in the period.
///
/// Charged time is rounded up over the whole hold, under all its owners; the added time counts by the share (and number) of units held
/// last, to whole microseconds. An open hold adds nothing yet, one the provider ended adds nothing ever.
pub(super) fn added<'a>(unit: &UnitUse, rating: Rating<'a>) -> Result<Option<Charge<'a>>, Ambiguous> {
    let End::Ended { provider_took: false, .. } = unit.end else { return Ok(None) };
    let charged = charged(unit, rating)?;
    let Some(last) = charged.iter().rev().find(|s| s.billed_us() > 0) else { return Ok(None) };
    let Some(moment) = Window::new(last.window.end().plus(-1), last.window.end()) else { return Ok(None) };
    if last.tenant != *rating.tenant || !rating.period.contains(moment.start()) {
        return Ok(None);
    }
    let Some(price) = price_at(unit, last, moment.start(), rating)? else { return Ok(None) };
    let charged_us: i128 = charged.iter().map(|s| i128::from(s.window.micros())).sum();
    let extra_us = rounded_up(charged_us, price.price.minimum_us, price.price.granularity_us) - charged_us;
    if extra_us == 0 {
        return Ok(None);
    }
    Ok(Some(Charge {
        allocation: last.allocation.clone(),
        unit: last.unit,
        project: last.project.clone(),
        sku: last.sku.clone(),
        class: last.class,
        state: last.state.clone(),
        basis: basis_of(last),
        window: moment,
        quantity_us: after_share(extra_us, last),
        added: true,
        price,
    }))
}

/// What of the hold is charged: all of it, but for time in billing states that the price of the instant leaves out.
fn charged<'u>(unit: &'u UnitUse, rating: Rating<'_>) -> Result<Cow<'u, [UsageSpan]>, Ambiguous> {
    if unit.spans.iter().all(|span| span.state.is_none()) {
        return Ok(Cow::Borrowed(&unit.spans));
    }
    let mut charged = Vec::new();
    for piece in unit.spans.iter().flat_map(|span| pieces(span, rating)) {
        let price = price_at(unit, &piece, piece.window.start(), rating)?;
        if price.is_none_or(|price| price.price.bills(piece.state.as_deref())) {
            charged.push(piece);
        }
    }
    Ok(Cow::Owned(charged))
}

/// `ceil(max(charged, minimum), granularity)` in microseconds.
fn rounded_up(charged_us: i128, minimum_us: i64, granularity_us: i64) -> i128 {
    let (least, step) = (charged_us.max(i128::from(minimum_us)), i128::from(granularity_us.max(1)));
    match least % step {
        0 => least,
        rest => least + step - rest,
    }
}

/// The added time of all alike units by the share held, to the nearest microsecond; half a microsecond counts whole.
fn after_share(extra_us: i128, last: &UsageSpan) -> i128 {
    (Ratio::from_integer(extra_us * i128::from(last.count)) * last.share()).round().to_integer()
}

#[cfg(test)]
mod tests {
    use super::rounded_up;

    #[test]
    fn v6_time_is_rounded_up_once_over_the_larger_of_held_and_minimum() {
        // held | minimum | granularity | billed
        for (held, minimum, granularity, billed) in [
            (1, 0, 1, 1),
            (1, 60, 1, 60),
            (61, 60, 1, 61),
            (61, 60, 60, 120),
            (60, 60, 60, 60),
            (1, 90, 60, 120),
            (3600, 0, 3600, 3600),
            (3601, 0, 3600, 7200),
        ] {
            assert_eq!(rounded_up(held, minimum, granularity), billed, "{held} {minimum} {granularity}");
        }
    }
}
