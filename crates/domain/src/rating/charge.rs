//! From what a tenant held to priced pieces.

use super::card::{Lock, Per, Term, UnratedTerm};
use super::increment;
use super::line::{Basis, Line, lines_of};
use super::meter::{Recorded, Reported, UnpricedMeter, charge_lines, meter_lines, price_of};
use super::select::{Ambiguous, PriceRef, RateCards, Wanted};
use crate::fact::Class;
use crate::ids::{AllocationId, ProjectId, SkuId, TenantId};
use crate::money::{Currency, MoneyError};
use crate::time::{Instant, Window};
use crate::usage::{AllocationView, End, UsageSpan};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// All chargeable time of one unit of an allocation: of its hold, under all its owners; or the parts that a work pool gave to those it served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitUse {
    /// When its allocation was granted.
    pub start: Instant,
    /// How its hold ended; parts of a pool end with nothing, since minimum and granularity are of holds.
    pub end: End,
    /// What was held and chargeable, in order of time, at least one. Those of a hold do not overlap.
    pub spans: Vec<UsageSpan>,
}

/// Everything that was sold to one tenant and belongs to one period.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sold<'a> {
    /// Units it held at any time: what lies in the period is taken out of them.
    pub units: &'a [UnitUse],
    /// What was reported of the period.
    pub reported: &'a [Reported],
    /// What was recorded for the period.
    pub recorded: &'a [Recorded],
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
    /// The prices that hold for it.
    pub cards: &'a RateCards,
    /// Prices for what those have none for: of a closed period, the cards that were applied since (V-12 keeps them from changing a price, not
    /// from giving one).
    pub later: Option<&'a RateCards>,
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
    /// Billing state, where one was said.
    pub state: Option<String>,
    /// What is billed by.
    pub basis: Basis,
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
    /// In order of SKU and unit.
    pub unpriced_meters: Vec<UnpricedMeter>,
    /// Charges in another currency than the tenant's: billed nothing.
    pub foreign: Vec<Recorded>,
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

impl<'a> Rating<'a> {
    /// The price of what is wanted, at `at`.
    ///
    /// # Errors
    /// Two prices fit equally well.
    pub(super) fn select(self, wanted: Wanted<'_>, at: Instant) -> Result<Option<PriceRef<'a>>, Ambiguous> {
        match (self.cards.select(wanted, at)?, self.later) {
            (None, Some(later)) => later.select(wanted, at),
            (found, _) => Ok(found),
        }
    }

    /// Instants inside `window` at which any price may change, in order.
    fn changes(self, window: Window) -> Vec<Instant> {
        let mut instants = self.cards.changes(window);
        instants.extend(self.later.into_iter().flat_map(|later| later.changes(window)));
        instants.sort_unstable();
        instants.dedup();
        instants
    }
}

/// Gathers spans by allocation and unit, parts of a pool beside the hold they are parts of. Time before `from` is never charged (A-6: facts
/// before the books open give usage only).
pub fn gather_units(spans: &[UsageSpan], allocations: &[AllocationView], from: Instant) -> Vec<UnitUse> {
    let views: BTreeMap<&AllocationId, &AllocationView> =
        allocations.iter().map(|a| (&a.allocation, a)).collect();
    let mut units: BTreeMap<(&AllocationId, u32, bool), Vec<UsageSpan>> = BTreeMap::new();
    let charged = Window::new(from, Instant::MAX);
    for span in spans {
        if let Some(part) = charged.and_then(|window| span.cut(window)) {
            units.entry((&span.allocation, span.unit, !span.held)).or_default().push(part);
        }
    }
    units
        .into_iter()
        .map(|((allocation, unit, is_part), mut spans)| {
            spans.sort_by_key(|s| s.window);
            let view = views.get(allocation);
            let first = spans.first().map_or(from, |s| s.window.start());
            let end = view.filter(|_| !is_part).and_then(|v| v.unit_ends.get(&unit).or(Some(&v.end)));
            let end = end.cloned().unwrap_or(End::Open);
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
        let own = unit.spans.iter().filter(|span| span.tenant == *rating.tenant);
        for span in own.filter_map(|span| span.cut(rating.period)) {
            for piece in pieces(&span, rating).iter().filter(|piece| piece.billed_us() != 0) {
                match price_at(unit, piece, piece.window.start(), rating)? {
                    Some(price) if price.price.bills(piece.state.as_deref()) => {
                        charges.push(charge(piece, price))
                    }
                    Some(_) => {}
                    None => note_unpriced(piece, &mut unpriced),
                }
            }
        }
        charges.extend(increment::added(unit, rating)?);
    }
    Ok(Priced { charges, unpriced: unpriced.into_values().collect() })
}

/// Rates what was sold to a tenant in a period.
///
/// # Errors
/// Two prices fit equally well, a card has terms that cannot be rated, or an amount is too large.
pub fn rate(sold: Sold<'_>, rating: Rating<'_>) -> Result<Rated, RateError> {
    let Priced { charges, unpriced } = price(sold.units, rating)?;
    let mut unrated = card_terms(rating);
    unrated.extend(charges.iter().flat_map(|c| price_terms(c.price)));
    for one in sold.reported {
        unrated.extend(price_of(one, rating)?.into_iter().flat_map(price_terms));
    }
    if !unrated.is_empty() {
        return Err(RateError::Unrated(unrated.into_values().collect()));
    }
    let mut lines = lines_of(charges, rating.currency)?;
    let (metered, unpriced_meters) = meter_lines(sold.reported, rating)?;
    let (recorded, foreign) = charge_lines(sold.recorded, rating.currency)?;
    lines.extend(metered.into_iter().chain(recorded));
    Ok(Rated { lines, unpriced, unpriced_meters, foreign })
}

/// A span cut wherever the price may change.
pub(super) fn pieces(span: &UsageSpan, rating: Rating<'_>) -> Vec<UsageSpan> {
    let mut edges = vec![span.window.start()];
    edges.extend(rating.changes(span.window));
    edges.push(span.window.end());
    let windows = edges.iter().zip(edges.iter().skip(1)).filter_map(|(from, to)| Window::new(*from, *to));
    windows.filter_map(|w| span.cut(w)).collect()
}

/// The price of a span's unit at `at`: the one at the allocation's start where that one says so, else the one at `at` (V-7).
pub(super) fn price_at<'a>(
    unit: &UnitUse,
    span: &UsageSpan,
    at: Instant,
    rating: Rating<'a>,
) -> Result<Option<PriceRef<'a>>, Ambiguous> {
    let find = |at| {
        let wanted = Wanted {
            tenant: &span.tenant,
            sku: &span.sku,
            class: Some(span.class),
            per: Per::Hour,
            currency: rating.currency,
        };
        rating.select(wanted, at)
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
        state: piece.state.clone(),
        basis: basis_of(piece),
        window: piece.window,
        quantity_us: piece.billed_us(),
        added: false,
        price,
    }
}

/// What a span is billed by.
pub(super) fn basis_of(span: &UsageSpan) -> Basis {
    if span.held { Basis::Allocation } else { Basis::Work }
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
pub(super) mod tests;
