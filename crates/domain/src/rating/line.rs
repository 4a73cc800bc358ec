//! From priced pieces to the lines of a document: equal prices are one line, and a line is rounded once (V-4, M-5).

use super::card::{Lock, Per};
use super::charge::Charge;
use super::quantity::Quantity;
use super::select::PriceRef;
use crate::fact::Class;
use crate::ids::{AllocationId, ProjectId, SkuId, Source};
use crate::money::{Currency, Decimal, Money, MoneyError, multiply_exact};
use crate::time::Instant;
use num_rational::Ratio;
use std::collections::BTreeMap;

/// Seconds of the hour that a price is for.
const HOUR: i128 = 3_600;

/// What one line stands for: charges that differ in any of these are different lines (V-4). The order of lines is the order of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineKey {
    /// Units held over time.
    Usage(UsageKey),
    /// Other things sold by quantity (V-13).
    Meter(MeterKey),
    /// One recorded charge (V-13).
    Charge(ChargeKey),
}

/// Units held over time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageKey {
    /// For which project.
    pub project: Option<ProjectId>,
    /// What was held.
    pub sku: SkuId,
    /// How it was bought.
    pub class: Class,
    /// Billing state, where one was said.
    pub state: Option<String>,
    /// What is billed by.
    pub basis: Basis,
    /// At which price.
    pub price: PriceKey,
}

/// Other things sold by quantity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeterKey {
    /// For which project.
    pub project: Option<ProjectId>,
    /// What.
    pub sku: SkuId,
    /// The unit it was reported in: quantities of different units do not add up.
    pub unit: String,
    /// At which price.
    pub price: PriceKey,
}

/// One recorded charge: the fact that recorded it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChargeKey {
    /// For which project.
    pub project: Option<ProjectId>,
    /// Who recorded it.
    pub source: Source,
    /// The id of the fact.
    pub id: String,
}

/// A price of one version of a card.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriceKey {
    /// The rate card.
    pub card: String,
    /// Its version.
    pub effective_from: Instant,
    /// Which of its prices, counted from 0.
    pub index: usize,
    /// The price itself.
    pub price: Decimal,
    /// What one price buys.
    pub per: Per,
}

/// What usage is billed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// What was held.
    Allocation,
    /// The part of a pool's time that reported work gave.
    Work,
}

impl Basis {
    /// The word used on documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allocation => "allocation",
            Self::Work => "work",
        }
    }

    /// The basis with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Allocation, Self::Work].into_iter().find(|basis| basis.as_str() == word)
    }
}

/// The terms of a price that a document names beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Which price counts when it changes.
    pub lock: Lock,
    /// Granularity in microseconds.
    pub granularity_us: i64,
    /// Minimum in microseconds.
    pub minimum_us: i64,
}

/// One line of a document, or what several stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it stands for.
    pub key: LineKey,
    /// Terms of its price; none of a recorded charge.
    pub terms: Option<Terms>,
    /// What a recorded charge is for.
    pub description: Option<String>,
    /// The exact sum of its parts: unit-seconds after shares, added parts included; reported units; 1 of a recorded charge.
    pub quantity: Quantity,
    /// Quantity times price, rounded once.
    pub amount: Money,
    /// What the quantity is made of, in order.
    pub uses: Vec<LineUse>,
}

/// What one unit of an allocation, or one fact, gives to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUse {
    /// Which.
    pub of: UseOf,
    /// Its first instant in this line.
    pub start: Instant,
    /// The first instant after its last; equal to the start where a fact speaks of one instant.
    pub end: Instant,
    /// How much, the added part included.
    pub quantity: Quantity,
    /// What minimum and granularity added (V-6).
    pub added: Quantity,
}

/// What a part of a line is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UseOf {
    /// A unit of an allocation.
    Unit(AllocationId, u32),
    /// A fact, by source and id.
    Fact(Source, String),
}

impl PriceKey {
    pub(super) fn of(price: PriceRef<'_>) -> Self {
        Self {
            card: price.card.id.clone(),
            effective_from: price.card.effective_from,
            index: price.index,
            price: price.price.price,
            per: price.price.per,
        }
    }
}

impl Terms {
    pub(super) fn of(price: PriceRef<'_>) -> Self {
        let price = price.price;
        Self { lock: price.lock, granularity_us: price.granularity_us, minimum_us: price.minimum_us }
    }
}

impl LineKey {
    /// The word used on documents for this kind of charge.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Usage(_) => "usage",
            Self::Meter(_) => "meter",
            Self::Charge(_) => "charge",
        }
    }

    /// For which project.
    pub const fn project(&self) -> Option<&ProjectId> {
        match self {
            Self::Usage(key) => key.project.as_ref(),
            Self::Meter(key) => key.project.as_ref(),
            Self::Charge(key) => key.project.as_ref(),
        }
    }

    /// What was sold; none of a recorded charge.
    pub const fn sku(&self) -> Option<&SkuId> {
        match self {
            Self::Usage(key) => Some(&key.sku),
            Self::Meter(key) => Some(&key.sku),
            Self::Charge(_) => None,
        }
    }

    /// At which price; none of a recorded charge.
    pub const fn price(&self) -> Option<&PriceKey> {
        match self {
            Self::Usage(key) => Some(&key.price),
            Self::Meter(key) => Some(&key.price),
            Self::Charge(_) => None,
        }
    }
}

/// Quantity times price in major units, unrounded; none beyond 128 bits.
pub fn exact_amount(quantity: Quantity, price: Decimal, per: Per) -> Option<Ratio<i128>> {
    let value = quantity.value();
    let pieces = match per {
        Per::Hour => multiply_exact(value, Ratio::new(1, HOUR))?,
        Per::Unit => value,
    };
    multiply_exact(pieces, price.value())
}

/// The amount of a line: quantity times price, rounded once.
pub(super) fn amount(quantity: Quantity, price: &PriceKey, currency: Currency) -> Result<Money, MoneyError> {
    let exact = exact_amount(quantity, price.price, price.per);
    Money::round(exact.ok_or(MoneyError::Overflow("quantity times price"))?, currency)
}

/// Gathers charges into lines, in order of their keys.
///
/// # Errors
/// An amount is too large.
pub fn lines_of(charges: Vec<Charge<'_>>, currency: Currency) -> Result<Vec<Line>, MoneyError> {
    let mut groups: BTreeMap<UsageKey, Vec<Charge<'_>>> = BTreeMap::new();
    for charge in charges {
        groups.entry(key_of(&charge)).or_default().push(charge);
    }
    groups.into_iter().map(|(key, charges)| line(key, &charges, currency)).collect()
}

fn key_of(charge: &Charge<'_>) -> UsageKey {
    UsageKey {
        project: charge.project.clone(),
        sku: charge.sku.clone(),
        class: charge.class,
        state: charge.state.clone(),
        basis: charge.basis,
        price: PriceKey::of(charge.price),
    }
}

fn line(key: UsageKey, charges: &[Charge<'_>], currency: Currency) -> Result<Line, MoneyError> {
    let too_large = MoneyError::Overflow("a quantity");
    let sum = charges.iter().try_fold(0_i128, |sum, c| sum.checked_add(c.quantity_us)).ok_or(too_large)?;
    let quantity = Quantity::of_micros(sum).ok_or(too_large)?;
    Ok(Line {
        terms: charges.first().map(|charge| Terms::of(charge.price)),
        description: None,
        quantity,
        amount: amount(quantity, &key.price, currency)?,
        uses: uses_of(charges).ok_or(too_large)?,
        key: LineKey::Usage(key),
    })
}

fn uses_of(charges: &[Charge<'_>]) -> Option<Vec<LineUse>> {
    let mut uses: BTreeMap<(&AllocationId, u32), LineUse> = BTreeMap::new();
    for charge in charges {
        let entry = uses.entry((&charge.allocation, charge.unit)).or_insert_with(|| LineUse {
            of: UseOf::Unit(charge.allocation.clone(), charge.unit),
            start: charge.window.start(),
            end: charge.window.end(),
            quantity: Quantity::default(),
            added: Quantity::default(),
        });
        entry.start = entry.start.min(charge.window.start());
        entry.end = entry.end.max(charge.window.end());
        let quantity = Quantity::of_micros(charge.quantity_us)?;
        entry.quantity = entry.quantity.plus(quantity)?;
        if charge.added {
            entry.added = entry.added.plus(quantity)?;
        }
    }
    Some(uses.into_values().collect())
}
