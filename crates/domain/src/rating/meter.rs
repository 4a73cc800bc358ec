//! Other things sold: usage that others report, and charges that others record (V-13). They go through the same cards and documents, outside
//! the GPU balance.

use super::card::Per;
use super::charge::{RateError, Rating};
use super::line::{ChargeKey, Line, LineKey, LineUse, MeterKey, PriceKey, Terms, UseOf, amount};
use super::quantity::Quantity;
use super::select::{Ambiguous, PriceRef, Wanted};
use crate::ids::{ProjectId, SkuId, Source, TenantId};
use crate::money::{Currency, Decimal, Money, MoneyError};
use crate::time::Instant;
use std::collections::BTreeMap;

/// Usage of something that is no GPU time, as it was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Who reported it.
    pub source: Source,
    /// The id of the fact.
    pub id: String,
    /// Whose.
    pub tenant: TenantId,
    /// For which project.
    pub project: Option<ProjectId>,
    /// What.
    pub sku: SkuId,
    /// Of which unit, such as `gib_hour`.
    pub unit: String,
    /// How much.
    pub quantity: Decimal,
    /// First instant: it decides period and price.
    pub start: Instant,
    /// First instant after it.
    pub end: Instant,
}

/// A charge as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Who recorded it.
    pub source: Source,
    /// The id of the fact.
    pub id: String,
    /// Whose.
    pub tenant: TenantId,
    /// For which project.
    pub project: Option<ProjectId>,
    /// What for.
    pub description: String,
    /// Net, in major units; negative in the tenant's favour.
    pub amount: Quantity,
    /// In which currency.
    pub currency: Currency,
    /// When.
    pub at: Instant,
}

/// Reported usage that no card has a price for: billed nothing (V-11).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnpricedMeter {
    /// What.
    pub sku: SkuId,
    /// Of which unit.
    pub unit: String,
    /// First instant of all reports.
    pub start: Instant,
    /// First instant after them.
    pub end: Instant,
    /// How much.
    pub quantity: Quantity,
}

/// Lines of what was reported, and what of it has no price. `reported` is the tenant's and belongs to the period.
pub(super) fn meter_lines(
    reported: &[Reported],
    rating: Rating<'_>,
) -> Result<(Vec<Line>, Vec<UnpricedMeter>), RateError> {
    let mut groups: BTreeMap<MeterKey, (PriceRef<'_>, Vec<&Reported>)> = BTreeMap::new();
    let mut unpriced: BTreeMap<(&SkuId, &str), UnpricedMeter> = BTreeMap::new();
    for one in reported {
        match price_of(one, rating)? {
            Some(price) => {
                let group = groups.entry(key_of(one, price)).or_insert((price, Vec::new()));
                group.1.push(one);
            }
            None => note_unpriced(one, &mut unpriced)?,
        }
    }
    let lines =
        groups.into_iter().map(|(key, (price, parts))| meter_line(key, price, &parts, rating.currency));
    Ok((lines.collect::<Result<_, _>>()?, unpriced.into_values().collect()))
}

/// What of `reported` has no price.
///
/// # Errors
/// Two prices fit equally well, or a quantity is too large.
pub fn unpriced_meters(reported: &[Reported], rating: Rating<'_>) -> Result<Vec<UnpricedMeter>, RateError> {
    meter_lines(reported, rating).map(|(_, unpriced)| unpriced)
}

/// The price at the begin of what was reported.
pub(super) fn price_of<'a>(one: &Reported, rating: Rating<'a>) -> Result<Option<PriceRef<'a>>, Ambiguous> {
    let wanted = Wanted {
        tenant: rating.tenant,
        sku: &one.sku,
        class: None,
        per: Per::Unit,
        currency: rating.currency,
    };
    rating.select(wanted, one.start)
}

fn key_of(one: &Reported, price: PriceRef<'_>) -> MeterKey {
    MeterKey {
        project: one.project.clone(),
        sku: one.sku.clone(),
        unit: one.unit.clone(),
        price: PriceKey::of(price),
    }
}

fn meter_line(
    key: MeterKey,
    price: PriceRef<'_>,
    parts: &[&Reported],
    currency: Currency,
) -> Result<Line, MoneyError> {
    let sum = |sum: Quantity, one: &&Reported| sum.plus(Quantity::of(one.quantity));
    let quantity =
        parts.iter().try_fold(Quantity::default(), sum).ok_or(MoneyError::Overflow("a quantity"))?;
    let mut uses: Vec<LineUse> = parts.iter().map(|one| use_of(one)).collect();
    uses.sort_by(|a, b| (a.start, &a.of).cmp(&(b.start, &b.of)));
    Ok(Line {
        terms: Some(Terms::of(price)),
        description: None,
        quantity,
        amount: amount(quantity, &key.price, currency)?,
        uses,
        key: LineKey::Meter(key),
    })
}

fn use_of(one: &Reported) -> LineUse {
    LineUse {
        of: UseOf::Fact(one.source.clone(), one.id.clone()),
        start: one.start,
        end: one.end,
        quantity: Quantity::of(one.quantity),
        added: Quantity::default(),
    }
}

fn note_unpriced<'r>(
    one: &'r Reported,
    unpriced: &mut BTreeMap<(&'r SkuId, &'r str), UnpricedMeter>,
) -> Result<(), MoneyError> {
    let entry = unpriced.entry((&one.sku, &one.unit)).or_insert_with(|| UnpricedMeter {
        sku: one.sku.clone(),
        unit: one.unit.clone(),
        start: one.start,
        end: one.end,
        quantity: Quantity::default(),
    });
    (entry.start, entry.end) = (entry.start.min(one.start), entry.end.max(one.end));
    let sum = entry.quantity.plus(Quantity::of(one.quantity));
    entry.quantity = sum.ok_or(MoneyError::Overflow("a quantity"))?;
    Ok(())
}

/// A line for each recorded charge, and the charges in another currency than the tenant's, which are billed nothing. `recorded` is the
/// tenant's and belongs to the period.
pub(super) fn charge_lines(
    recorded: &[Recorded],
    currency: Currency,
) -> Result<(Vec<Line>, Vec<Recorded>), MoneyError> {
    let (ours, foreign): (Vec<&Recorded>, Vec<&Recorded>) =
        recorded.iter().partition(|one| one.currency == currency);
    let lines = ours.into_iter().map(|one| charge_line(one, currency)).collect::<Result<Vec<_>, _>>()?;
    let by_key: BTreeMap<LineKey, Line> = lines.into_iter().map(|line| (line.key.clone(), line)).collect();
    Ok((by_key.into_values().collect(), foreign.into_iter().cloned().collect()))
}

fn charge_line(one: &Recorded, currency: Currency) -> Result<Line, MoneyError> {
    let part = LineUse {
        of: UseOf::Fact(one.source.clone(), one.id.clone()),
        start: one.at,
        end: one.at,
        quantity: Quantity::ONE,
        added: Quantity::default(),
    };
    Ok(Line {
        key: LineKey::Charge(ChargeKey {
            project: one.project.clone(),
            source: one.source.clone(),
            id: one.id.clone(),
        }),
        terms: None,
        description: Some(one.description.clone()),
        quantity: Quantity::ONE,
        amount: Money::round(one.amount.value(), currency)?,
        uses: vec![part],
    })
}

#[cfg(test)]
#[path = "meter/tests.rs"]
mod tests;
