//! Adjustments of a closed period: each line as it comes to from all facts now, minus what stands for it on documents.

use super::line::{Line, LineKey, LineUse, UseOf};
use super::quantity::Quantity;
use crate::money::{Money, MoneyError};
use std::collections::{BTreeMap, BTreeSet};

/// What stands on documents for one line of a closed period: the invoice's line and all adjustments of it, as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stood {
    /// Id of the line that stood first.
    pub first: String,
    /// Sum of all of them.
    pub line: Line,
}

/// How much, and what it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// How much.
    pub quantity: Quantity,
    /// What it comes to.
    pub amount: Money,
}

/// The correction of one line of a closed period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustment {
    /// The difference: quantity, amount and parts may be negative.
    pub line: Line,
    /// Id of the line it corrects; none where no document has such a line yet.
    pub corrects: Option<String>,
    /// What the line comes to now.
    pub now: Figure,
    /// What stood for it before.
    pub stood: Figure,
}

impl Stood {
    /// Adds a later line with the same key.
    ///
    /// # Errors
    /// The sum is too large, or the currencies differ.
    pub fn add(&mut self, later: &Line) -> Result<(), MoneyError> {
        let too_large = MoneyError::Overflow("a quantity");
        self.line.quantity = self.line.quantity.plus(later.quantity).ok_or(too_large)?;
        self.line.amount = self.line.amount.plus(later.amount)?;
        self.line.uses = combined(&later.uses, &self.line.uses, Quantity::plus).ok_or(too_large)?;
        Ok(())
    }
}

/// The corrections of a closed period, in order of their keys: one for each line whose quantity or amount is not what stands. A line that no
/// document has is corrected from nothing, one that is gone to nothing.
///
/// # Errors
/// A difference is too large, or the currencies differ.
pub fn adjust(now: Vec<Line>, mut stood: BTreeMap<LineKey, Stood>) -> Result<Vec<Adjustment>, MoneyError> {
    let mut adjustments = Vec::new();
    for line in now {
        let before = stood.remove(&line.key);
        adjustments.push(difference(line, before)?);
    }
    for (_, gone) in stood {
        let nothing = Line {
            quantity: Quantity::default(),
            amount: Money::zero(gone.line.amount.currency()),
            uses: Vec::new(),
            ..gone.line.clone()
        };
        adjustments.push(difference(nothing, Some(gone))?);
    }
    adjustments.retain(|one| !one.line.quantity.is_zero() || one.line.amount.minor() != 0);
    adjustments.sort_by(|a, b| a.line.key.cmp(&b.line.key));
    Ok(adjustments)
}

fn difference(now: Line, before: Option<Stood>) -> Result<Adjustment, MoneyError> {
    let too_large = MoneyError::Overflow("a difference");
    let figure = Figure { quantity: now.quantity, amount: now.amount };
    let Some(Stood { first, line: before }) = before else {
        let nothing = Figure { quantity: Quantity::default(), amount: Money::zero(now.amount.currency()) };
        return Ok(Adjustment { line: now, corrects: None, now: figure, stood: nothing });
    };
    let stood = Figure { quantity: before.quantity, amount: before.amount };
    let line = Line {
        quantity: now.quantity.minus(before.quantity).ok_or(too_large)?,
        amount: now.amount.minus(before.amount)?,
        uses: combined(&now.uses, &before.uses, Quantity::minus).ok_or(too_large)?,
        ..now
    };
    Ok(Adjustment { line, corrects: Some(first), now: figure, stood })
}

/// The parts of both, each quantity by `with`; parts that come to nothing are left out.
fn combined(
    these: &[LineUse],
    those: &[LineUse],
    with: fn(Quantity, Quantity) -> Option<Quantity>,
) -> Option<Vec<LineUse>> {
    let by_of = |uses: &[LineUse]| -> BTreeMap<UseOf, LineUse> {
        uses.iter().map(|one| (one.of.clone(), one.clone())).collect()
    };
    let (these, those) = (by_of(these), by_of(those));
    let names: BTreeSet<&UseOf> = these.keys().chain(those.keys()).collect();
    let mut uses = Vec::new();
    for name in names {
        let (this, that) = (these.get(name), those.get(name));
        let Some(sample) = this.or(that) else { continue };
        let of = |part: Option<&LineUse>, what: fn(&LineUse) -> Quantity| part.map(what).unwrap_or_default();
        let quantity = with(of(this, |u| u.quantity), of(that, |u| u.quantity))?;
        let added = with(of(this, |u| u.added), of(that, |u| u.added))?;
        if !quantity.is_zero() || !added.is_zero() {
            uses.push(LineUse { quantity, added, ..sample.clone() });
        }
    }
    Some(uses)
}

#[cfg(test)]
#[path = "adjust/tests.rs"]
mod tests;
