//! Which price: explicit tenant before `*`, exact SKU before pattern, explicit class before none (V-12).

use super::card::{Per, Price, RateCard};
use crate::fact::Class;
use crate::ids::{SkuId, TenantId};
use crate::money::Currency;
use crate::time::{Instant, Window};
use std::collections::BTreeMap;

/// All rate cards with all their versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateCards {
    /// By id, then by the instant from which a version holds.
    versions: BTreeMap<String, BTreeMap<Instant, RateCard>>,
}

/// What a price is looked up for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Whose.
    pub tenant: &'a TenantId,
    /// What was held.
    pub sku: &'a SkuId,
    /// How it was bought; none of what is no GPU time.
    pub class: Option<Class>,
    /// What the price must be for.
    pub per: Per,
    /// What the tenant pays in; cards in another currency are not for it.
    pub currency: Currency,
}

/// A price with the card it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceRef<'a> {
    /// The version of the card.
    pub card: &'a RateCard,
    /// Which of its prices, counted from 0.
    pub index: usize,
    /// The price itself.
    pub price: &'a Price,
}

/// Two prices that fit equally well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sku {sku:?} of tenant {tenant:?} has two equal prices at {at}: {first} and {second}")]
pub struct Ambiguous {
    /// Whose.
    pub tenant: String,
    /// For what.
    pub sku: String,
    /// When.
    pub at: Instant,
    /// One of them, as card and index.
    pub first: String,
    /// The other.
    pub second: String,
}

impl RateCards {
    /// The cards; of two with the same id and `effective_from` the one given later counts.
    pub fn new(cards: impl IntoIterator<Item = RateCard>) -> Self {
        let mut versions: BTreeMap<String, BTreeMap<Instant, RateCard>> = BTreeMap::new();
        for card in cards {
            versions.entry(card.id.clone()).or_default().insert(card.effective_from, card);
        }
        Self { versions }
    }

    /// Every version with the window in which it holds, by id and instant.
    pub fn iter(&self) -> impl Iterator<Item = (&RateCard, Instant)> {
        self.versions.values().flat_map(|versions| {
            let ends = versions.keys().skip(1).copied().chain([Instant::MAX]);
            versions.values().zip(ends)
        })
    }

    /// The version of each card that holds at `at`.
    pub fn in_effect(&self, at: Instant) -> impl Iterator<Item = &RateCard> {
        self.versions
            .values()
            .filter_map(move |versions| versions.range(..=at).next_back().map(|(_, card)| card))
    }

    /// Instants inside `window` at which any price may change, in order; the window's start is none.
    pub fn changes(&self, window: Window) -> Vec<Instant> {
        let mut instants: Vec<Instant> = self
            .versions
            .values()
            .flat_map(BTreeMap::keys)
            .copied()
            .filter(|at| window.contains(*at) && *at != window.start())
            .collect();
        instants.sort_unstable();
        instants.dedup();
        instants
    }

    /// The price of what is wanted, at `at`; none where no card has one.
    ///
    /// # Errors
    /// Two prices fit equally well. [`check_cards`](super::check_cards) finds such cards when they are applied.
    pub fn select(&self, wanted: Wanted<'_>, at: Instant) -> Result<Option<PriceRef<'_>>, Ambiguous> {
        let mut best: Option<((bool, bool, bool), PriceRef<'_>)> = None;
        let mut tie: Option<PriceRef<'_>> = None;
        for (rank, found) in self.candidates(wanted, at) {
            match &best {
                Some((standing, _)) if rank < *standing => {}
                Some((standing, _)) if rank == *standing => tie = Some(found),
                _ => (best, tie) = (Some((rank, found)), None),
            }
        }
        match (best, tie) {
            (Some((_, first)), Some(second)) => Err(Ambiguous {
                tenant: wanted.tenant.to_string(),
                sku: wanted.sku.to_string(),
                at,
                first: first.to_string(),
                second: second.to_string(),
            }),
            (best, _) => Ok(best.map(|(_, found)| found)),
        }
    }

    /// Every price that fits, with how well: (tenant by name, SKU exact, class by name), better is greater.
    fn candidates(&self, wanted: Wanted<'_>, at: Instant) -> Vec<((bool, bool, bool), PriceRef<'_>)> {
        let mut found = Vec::new();
        for card in self.in_effect(at).filter(|card| card.currency == wanted.currency) {
            let Some(by_name) = card.names(wanted.tenant.as_str()) else { continue };
            for (index, price) in card.prices.iter().enumerate() {
                let class_fits = price.class.is_none_or(|class| Some(class) == wanted.class);
                if price.per == wanted.per && class_fits && price.covers(wanted.sku.as_str()) {
                    let rank = (by_name, !price.is_pattern(), price.class.is_some());
                    found.push((rank, PriceRef { card, index, price }));
                }
            }
        }
        found
    }
}

impl std::fmt::Display for PriceRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "rate card {:?} (effective {}) prices[{}]",
            self.card.id, self.card.effective_from, self.index
        )
    }
}

#[cfg(test)]
#[path = "select/tests.rs"]
pub(super) mod tests;
