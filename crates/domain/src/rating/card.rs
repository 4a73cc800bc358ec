//! Rate cards as the rules see them.

use crate::fact::Class;
use crate::money::{Currency, Decimal};
use crate::time::Instant;
use std::collections::BTreeSet;
use std::fmt;

/// One version of a rate card. Versions of one card share its id; each holds from its `effective_from` until the next one's (V-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateCard {
    /// Which card.
    pub id: String,
    /// What its prices are in.
    pub currency: Currency,
    /// From when this version holds.
    pub effective_from: Instant,
    /// Tenant ids, or `*` for everyone.
    pub tenants: Vec<String>,
    /// Its prices.
    pub prices: Vec<Price>,
    /// Terms of the whole card that this version cannot rate.
    pub unrated: BTreeSet<Term>,
}

/// One price of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// A SKU id, or a pattern in which `*` stands for any text.
    pub sku: String,
    /// For this class only; none: for every class.
    pub class: Option<Class>,
    /// What one price buys.
    pub per: Per,
    /// How much it is; a price of 0 is a price (V-11).
    pub price: Decimal,
    /// Charged time of a unit is rounded up to a multiple of this, in microseconds, 1 or more (V-6).
    pub granularity_us: i64,
    /// Least charged time of a unit, in microseconds, 0 or more (V-6).
    pub minimum_us: i64,
    /// Which price counts when it changes in mid-allocation.
    pub lock: Lock,
    /// Billing states that are charged; none: all time is.
    pub billed_states: Option<BTreeSet<String>>,
    /// Terms of this price that this version cannot rate.
    pub unrated: BTreeSet<Term>,
}

/// What one price buys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Per {
    /// One unit for one hour.
    Hour,
    /// One piece of reported usage (V-13); never GPU time.
    Unit,
}

impl Per {
    /// The word used on cards and documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Unit => "unit",
        }
    }

    /// The one with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Hour, Self::Unit].into_iter().find(|per| per.as_str() == word)
    }
}

/// Which price counts when it changes in mid-allocation (V-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    /// The one at each instant: a change splits the allocation.
    #[default]
    AtEvent,
    /// The one at the allocation's start, to its end.
    AtStart,
}

impl Lock {
    /// The word used on cards and documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AtEvent => "at_event",
            Self::AtStart => "at_start",
        }
    }

    /// The one with this word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::AtEvent, Self::AtStart].into_iter().find(|lock| lock.as_str() == word)
    }
}

/// Terms a card may carry that are read and kept, but not rated yet: a period that needs one is not closed, because a bill that
/// leaves a term out in silence is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// A free quantity.
    Free,
    /// Prices by tier.
    Tiers,
    /// A least amount per period.
    MinimumSpend,
    /// Credits for lost service.
    ServiceCredits,
}

impl Term {
    /// The member of the card that states it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Tiers => "tiers",
            Self::MinimumSpend => "minimum_spend",
            Self::ServiceCredits => "service_credits",
        }
    }
}

/// A term that a charge would need and that cannot be rated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnratedTerm {
    /// Of which card.
    pub card: String,
    /// Of which version.
    pub effective_from: Instant,
    /// Of which price, counted from 0; none: of the whole card.
    pub price: Option<usize>,
    /// Which.
    pub term: Term,
}

impl fmt::Display for UnratedTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate card {:?} (effective {}): ", self.card, self.effective_from)?;
        if let Some(index) = self.price {
            write!(f, "prices[{index}].")?;
        }
        write!(
            f,
            "{} cannot be rated by this version; take it out of the card or leave the period open",
            self.term.as_str()
        )
    }
}

impl RateCard {
    /// Whether it is for this tenant, and if so whether by name.
    pub(super) fn names(&self, tenant: &str) -> Option<bool> {
        if self.tenants.iter().any(|t| t == tenant) {
            return Some(true);
        }
        self.tenants.iter().any(|t| t == "*").then_some(false)
    }
}

impl Price {
    /// Whether its SKU is a pattern.
    pub(super) fn is_pattern(&self) -> bool {
        self.sku.contains('*')
    }

    /// Whether time in this billing state is charged. Time of which no state was said is: the basis is the allocation, and a
    /// state takes time out of it.
    pub(super) fn bills(&self, state: Option<&str>) -> bool {
        match (&self.billed_states, state) {
            (Some(billed), Some(state)) => billed.contains(state),
            (None, _) | (_, None) => true,
        }
    }

    /// Whether it is for this SKU.
    pub(super) fn covers(&self, sku: &str) -> bool {
        if self.is_pattern() { matches_pattern(self.sku.as_bytes(), sku.as_bytes()) } else { self.sku == sku }
    }
}

/// Whether `text` has the form of `pattern`, in which `*` stands for any text, also none.
fn matches_pattern(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on after the last star when what follows it did not fit.
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t));
        } else if pattern.get(p) == text.get(t) {
            p += 1;
            t += 1;
        } else if let Some((after_star, from)) = retry {
            p = after_star;
            t = from + 1;
            retry = Some((p, t));
        } else {
            return false;
        }
    }
    pattern.get(p..).is_none_or(|rest| rest.iter().all(|b| *b == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_ids() {
        // pattern | sku | covers
        for row in "
            *          h100          yes
            */share    h100/share    yes
            */share    h100          no
            */share    h100/shared   no
            h100*      h100/1g.10gb  yes
            h100*      a100          no
            *a*b*      xaxxbx        yes
            *a*b       aab           yes
            *a*b       aba           no
            h100       h100          yes
            h100       h100/share    no"
            .lines()
            .filter(|l| !l.trim().is_empty())
        {
            let cells: Vec<&str> = row.split_whitespace().collect();
            let price = Price {
                sku: cells[0].to_owned(),
                class: None,
                per: Per::Hour,
                price: Decimal::default(),
                granularity_us: 1,
                minimum_us: 0,
                lock: Lock::AtEvent,
                billed_states: None,
                unrated: BTreeSet::new(),
            };
            assert_eq!(price.covers(cells[1]), cells[2] == "yes", "{row}");
        }
    }
}
