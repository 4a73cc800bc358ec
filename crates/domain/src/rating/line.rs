//! From priced pieces to the lines of a document: equal prices are one line, and a line is rounded once (V-4, M-5).

use super::card::{Lock, Per};
use super::charge::Charge;
use crate::fact::Class;
use crate::ids::{AllocationId, ProjectId, SkuId};
use crate::money::{Currency, Decimal, Money, MoneyError, multiply_exact};
use crate::time::{HOUR_US, Instant, Window};
use num_rational::Ratio;
use std::collections::BTreeMap;

/// What a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineKind {
    /// Units held over time.
    Usage,
}

impl LineKind {
    /// The word used on documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "usage",
        }
    }
}

/// What one line stands for: charges that differ in any of these are different lines (V-4). The order of lines is the order of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineKey {
    /// What it is for.
    pub kind: LineKind,
    /// For which project.
    pub project: Option<ProjectId>,
    /// What was held.
    pub sku: SkuId,
    /// How it was bought.
    pub class: Class,
    /// The rate card.
    pub card: String,
    /// Its version.
    pub effective_from: Instant,
    /// Which of its prices, counted from 0.
    pub price_index: usize,
    /// The price itself.
    pub unit_price: Decimal,
    /// What one price buys.
    pub per: Per,
}

/// One line of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it stands for.
    pub key: LineKey,
    /// Which price counts when it changes.
    pub lock: Lock,
    /// Granularity of the price, in microseconds.
    pub granularity_us: i64,
    /// Minimum of the price, in microseconds.
    pub minimum_us: i64,
    /// The exact sum of its charges, in unit-microseconds after shares, added parts included.
    pub quantity_us: i128,
    /// Quantity times price, rounded once.
    pub amount: Money,
    /// What the quantity is made of, by allocation and unit.
    pub uses: Vec<LineUse>,
}

/// What one unit of an allocation gives to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUse {
    /// Which allocation.
    pub allocation: AllocationId,
    /// Which unit of it.
    pub unit: u32,
    /// From its first to its last charged microsecond in this line.
    pub window: Window,
    /// Unit-microseconds after shares, the added part included.
    pub quantity_us: i128,
    /// What minimum and granularity added (V-6).
    pub added_us: i128,
}

impl Line {
    /// Quantity times price before rounding, in major units; none where it passes 128 bits.
    pub fn exact(&self) -> Option<Ratio<i128>> {
        exact_amount(self.quantity_us, self.key.unit_price)
    }
}

/// Hours times price.
fn exact_amount(quantity_us: i128, price: Decimal) -> Option<Ratio<i128>> {
    multiply_exact(Ratio::new(quantity_us, i128::from(HOUR_US)), price.value())
}

/// Gathers charges into lines, in order of their keys.
///
/// # Errors
/// An amount is too large.
pub fn lines_of(charges: Vec<Charge<'_>>, currency: Currency) -> Result<Vec<Line>, MoneyError> {
    let mut groups: BTreeMap<LineKey, Vec<Charge<'_>>> = BTreeMap::new();
    for charge in charges {
        groups.entry(key_of(&charge)).or_default().push(charge);
    }
    groups.into_iter().map(|(key, charges)| line(key, &charges, currency)).collect()
}

fn key_of(charge: &Charge<'_>) -> LineKey {
    LineKey {
        kind: LineKind::Usage,
        project: charge.project.clone(),
        sku: charge.sku.clone(),
        class: charge.class,
        card: charge.price.card.id.clone(),
        effective_from: charge.price.card.effective_from,
        price_index: charge.price.index,
        unit_price: charge.price.price.price,
        per: charge.price.price.per,
    }
}

fn line(key: LineKey, charges: &[Charge<'_>], currency: Currency) -> Result<Line, MoneyError> {
    let quantity_us = charges
        .iter()
        .try_fold(0_i128, |sum, c| sum.checked_add(c.quantity_us))
        .ok_or(MoneyError::Overflow("a quantity"))?;
    let exact =
        exact_amount(quantity_us, key.unit_price).ok_or(MoneyError::Overflow("quantity times price"))?;
    let terms = charges.first().map(|c| c.price.price);
    Ok(Line {
        lock: terms.map(|t| t.lock).unwrap_or_default(),
        granularity_us: terms.map_or(1, |t| t.granularity_us),
        minimum_us: terms.map_or(0, |t| t.minimum_us),
        quantity_us,
        amount: Money::round(exact, currency)?,
        uses: uses_of(charges),
        key,
    })
}

fn uses_of(charges: &[Charge<'_>]) -> Vec<LineUse> {
    let mut uses: BTreeMap<(&AllocationId, u32), LineUse> = BTreeMap::new();
    for charge in charges {
        let entry = uses.entry((&charge.allocation, charge.unit)).or_insert_with(|| LineUse {
            allocation: charge.allocation.clone(),
            unit: charge.unit,
            window: charge.window,
            quantity_us: 0,
            added_us: 0,
        });
        let start = entry.window.start().min(charge.window.start());
        let end = entry.window.end().max(charge.window.end());
        entry.window = Window::new(start, end).unwrap_or(entry.window);
        entry.quantity_us += charge.quantity_us;
        entry.added_us += if charge.added { charge.quantity_us } else { 0 };
    }
    uses.into_values().collect()
}
