//! From what a tenant held to priced pieces.

use super::card::{Lock, Term, UnratedTerm};
use super::increment;
use super::line::{Line, lines_of};
use super::select::{Ambiguous, PriceRef, RateCards, Wanted};
use crate::fact::Class;
use crate::ids::{AllocationId, ProjectId, SkuId, TenantId};
use crate::money::{Currency, MoneyError};
use crate::time::{Instant, Window};
use crate::usage::{AllocationView, End, UsageSpan};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// All charged time of one unit of an allocation, under all its owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitUse {
    /// When its allocation was granted.
    pub start: Instant,
    /// How its hold ended.
    pub end: End,
    /// What was held and chargeable, in order of time, at least one; none overlaps another.
    pub spans: Vec<UsageSpan>,
}

/// Whose usage is rated, over what, at which prices.
#[derive(Clone, Copy, Debug)]
pub struct Rating<'a> {
    /// Whose.
    pub tenant: &'a TenantId,
    /// The period.
    pub period: Window,
    /// What the tenant pays in.
    pub currency: Currency,
    /// All prices there are.
    pub cards: &'a RateCards,
}

/// A piece of usage with the one price that holds for all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge<'a> {
    /// Of which allocation.
    pub allocation: AllocationId,
    /// Of which unit of it.
    pub unit: u32,
    /// For which project.
    pub project: Option<ProjectId>,
    /// What was held.
    pub sku: SkuId,
    /// How it was bought.
    pub class: Class,
    /// When it was held; of an added part, the last charged microsecond.
    pub window: Window,
    /// How much, in unit-microseconds after shares.
    pub quantity_us: i128,
    /// Whether minimum or granularity added it (V-6).
    pub added: bool,
    /// At which price.
    pub price: PriceRef<'a>,
}

/// Usage no card has a price for: billed nothing (V-11).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unpriced {
    /// By which allocation.
    pub allocation: AllocationId,
    /// What was held.
    pub sku: SkuId,
    /// How it was bought.
    pub class: Class,
    /// From its first to its last unpriced microsecond.
    pub window: Window,
    /// How much, in unit-microseconds after shares.
    pub quantity_us: i128,
}

/// A tenant's usage of a period with its prices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priced<'a> {
    /// Priced pieces, in order of allocation and unit.
    pub charges: Vec<Charge<'a>>,
    /// In order of allocation, SKU and class.
    pub unpriced: Vec<Unpriced>,
}

/// What a tenant's usage of a period comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rated {
    /// In order of their key.
    pub lines: Vec<Line>,
    /// In order of allocation, SKU and class.
    pub unpriced: Vec<Unpriced>,
}

/// Why a period could not be rated.
#[derive(Debug, thiserror::Error)]
pub enum RateError {
    /// Two prices fit equally well.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// Terms of a card that cannot be rated.
    #[error("{}", join(.0))]
    Unrated(Vec<UnratedTerm>),
    /// An amount is too large.
    #[error(transparent)]
    Money(#[from] MoneyError),
}

fn join(terms: &[impl fmt::Display]) -> String {
    terms.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Gathers spans by allocation and unit. Time before `from` is never charged (A-6: facts before the books open give usage only).
pub fn gather_units(spans: &[UsageSpan], allocations: &[AllocationView], from: Instant) -> Vec<UnitUse> {
    let views: BTreeMap<&AllocationId, &AllocationView> =
        allocations.iter().map(|a| (&a.allocation, a)).collect();
    let mut units: BTreeMap<(&AllocationId, u32), Vec<UsageSpan>> = BTreeMap::new();
    let charged = Window::new(from, Instant::MAX);
    for span in spans {
        if let Some(part) = charged.and_then(|window| span.cut(window)) {
            units.entry((&span.allocation, span.unit)).or_default().push(part);
        }
    }
    units
        .into_iter()
        .map(|((allocation, unit), mut spans)| {
            spans.sort_by_key(|s| s.window);
            let view = views.get(allocation);
            let first = spans.first().map_or(from, |s| s.window.start());
            let end =
                view.and_then(|v| v.unit_ends.get(&unit).or(Some(&v.end))).cloned().unwrap_or(End::Open);
            UnitUse { start: view.map_or(first, |v| v.start), end, spans }
        })
        .collect()
}

/// Prices a tenant's usage of a period, before it becomes lines.
///
/// # Errors
/// Two prices fit equally well.
pub fn price<'a>(units: &[UnitUse], rating: Rating<'a>) -> Result<Priced<'a>, Ambiguous> {
    let mut charges = Vec::new();
    let mut unpriced = BTreeMap::new();
    for unit in units {
        for piece in pieces(unit, rating) {
            match price_at(unit, &piece, piece.window.start(), rating)? {
                Some(price) => charges.push(charge(&piece, price)),
                None => note_unpriced(&piece, &mut unpriced),
            }
        }
        charges.extend(increment::added(unit, rating)?);
    }
    Ok(Priced { charges, unpriced: unpriced.into_values().collect() })
}

/// Rates a tenant's usage of a period.
///
/// # Errors
/// Two prices fit equally well, a card has terms that cannot be rated, or an amount is too large.
pub fn rate(units: &[UnitUse], rating: Rating<'_>) -> Result<Rated, RateError> {
    let Priced { charges, unpriced } = price(units, rating)?;
    let mut unrated = card_terms(rating);
    unrated.extend(charges.iter().flat_map(|c| price_terms(c.price)));
    if !unrated.is_empty() {
        return Err(RateError::Unrated(unrated.into_values().collect()));
    }
    Ok(Rated { lines: lines_of(charges, rating.currency)?, unpriced })
}

/// The tenant's spans of a unit inside the period, cut wherever the price may change.
fn pieces(unit: &UnitUse, rating: Rating<'_>) -> Vec<UsageSpan> {
    let mut pieces = Vec::new();
    for span in unit.spans.iter().filter(|s| s.tenant == *rating.tenant) {
        let Some(span) = span.cut(rating.period) else { continue };
        let mut edges = vec![span.window.start()];
        edges.extend(rating.cards.changes(span.window));
        edges.push(span.window.end());
        let windows = edges.iter().zip(edges.iter().skip(1)).filter_map(|(from, to)| Window::new(*from, *to));
        pieces.extend(windows.filter_map(|w| span.cut(w)).filter(|p| p.billed_us() != 0));
    }
    pieces
}

/// The price of a span's unit at `at`: the one at the allocation's start where that one says so, else the one at `at` (V-7).
pub(super) fn price_at<'a>(
    unit: &UnitUse,
    span: &UsageSpan,
    at: Instant,
    rating: Rating<'a>,
) -> Result<Option<PriceRef<'a>>, Ambiguous> {
    let find = |at| {
        let wanted =
            Wanted { tenant: &span.tenant, sku: &span.sku, class: span.class, currency: rating.currency };
        rating.cards.select(wanted, at)
    };
    match find(unit.start)? {
        Some(locked) if locked.price.lock == Lock::AtStart => Ok(Some(locked)),
        _ => find(at),
    }
}

fn charge<'a>(piece: &UsageSpan, price: PriceRef<'a>) -> Charge<'a> {
    Charge {
        allocation: piece.allocation.clone(),
        unit: piece.unit,
        project: piece.project.clone(),
        sku: piece.sku.clone(),
        class: piece.class,
        window: piece.window,
        quantity_us: piece.billed_us(),
        added: false,
        price,
    }
}

fn note_unpriced(piece: &UsageSpan, unpriced: &mut BTreeMap<(AllocationId, SkuId, Class), Unpriced>) {
    let fresh = Unpriced {
        allocation: piece.allocation.clone(),
        sku: piece.sku.clone(),
        class: piece.class,
        window: piece.window,
        quantity_us: 0,
    };
    let entry = unpriced.entry((piece.allocation.clone(), piece.sku.clone(), piece.class)).or_insert(fresh);
    entry.quantity_us += piece.billed_us();
    let (start, end) =
        (entry.window.start().min(piece.window.start()), entry.window.end().max(piece.window.end()));
    entry.window = Window::new(start, end).unwrap_or(entry.window);
}

type TermKey = (String, Instant, Option<usize>, Term);

/// Terms of whole cards that hold for the tenant in the period.
fn card_terms(rating: Rating<'_>) -> BTreeMap<TermKey, UnratedTerm> {
    let holds = |from, end| Window::new(from, end).and_then(|w| w.intersect(rating.period)).is_some();
    rating
        .cards
        .iter()
        .filter(|(card, end)| holds(card.effective_from, *end) && card.currency == rating.currency)
        .filter(|(card, _)| card.names(rating.tenant.as_str()).is_some())
        .flat_map(|(card, _)| terms(&card.id, card.effective_from, None, &card.unrated))
        .collect()
}

fn price_terms(price: PriceRef<'_>) -> Vec<(TermKey, UnratedTerm)> {
    terms(&price.card.id, price.card.effective_from, Some(price.index), &price.price.unrated)
}

fn terms(
    card: &str,
    effective_from: Instant,
    price: Option<usize>,
    of: &BTreeSet<Term>,
) -> Vec<(TermKey, UnratedTerm)> {
    let one = |term: &Term| {
        let unrated = UnratedTerm { card: card.to_owned(), effective_from, price, term: *term };
        ((card.to_owned(), effective_from, price, *term), unrated)
    };
    of.iter().map(one).collect()
}

#[cfg(test)]
#[path = "charge/tests.rs"]
mod tests;
