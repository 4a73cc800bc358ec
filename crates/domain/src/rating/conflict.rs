//! Cards that would leave a price open: found when a card is applied, long before a period closes (V-12).

use super::card::{Price, RateCard};
use super::select::RateCards;
use crate::time::{Instant, Window};
use std::fmt;

/// Two prices that could be meant equally for one use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardConflict {
    /// Id, version and price index of the one.
    pub first: (String, Instant, usize),
    /// Id, version and price index of the other.
    pub second: (String, Instant, usize),
    /// When both hold.
    pub window: Window,
}

impl fmt::Display for CardConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = (&self.first, &self.second);
        write!(
            f,
            "rate card {:?} (effective {}) prices[{}] and rate card {:?} (effective {}) prices[{}] fit the same use equally well; \
             name a tenant, an exact sku or a class in one of them",
            a.0, a.1, a.2, b.0, b.1, b.2
        )
    }
}

/// Every pair of prices that could be meant equally for one tenant, SKU, class and instant.
pub fn check_cards(cards: &RateCards) -> Vec<CardConflict> {
    let versions: Vec<(&RateCard, Instant)> = cards.iter().collect();
    let mut conflicts = Vec::new();
    for (position, (card, end)) in versions.iter().enumerate() {
        for (other, other_end) in versions.iter().skip(position) {
            let both = Window::new(card.effective_from.max(other.effective_from), (*end).min(*other_end));
            if let Some(window) =
                both.filter(|_| card.currency == other.currency && share_a_tenant(card, other))
            {
                collide(card, other, window, &mut conflicts);
            }
        }
    }
    conflicts
}

/// Whether some tenant is meant by both cards in the same way: by name in both, or by `*` in both.
fn share_a_tenant(card: &RateCard, other: &RateCard) -> bool {
    card.tenants.iter().any(|t| other.tenants.contains(t))
}

fn collide(card: &RateCard, other: &RateCard, window: Window, conflicts: &mut Vec<CardConflict>) {
    let same = std::ptr::eq(card, other);
    for (index, price) in card.prices.iter().enumerate() {
        let skip = if same { index + 1 } else { 0 };
        for (other_index, other_price) in other.prices.iter().enumerate().skip(skip) {
            if equal_rank(price, other_price) {
                conflicts.push(CardConflict {
                    first: (card.id.clone(), card.effective_from, index),
                    second: (other.id.clone(), other.effective_from, other_index),
                    window,
                });
            }
        }
    }
}

fn equal_rank(a: &Price, b: &Price) -> bool {
    let same_kind = a.per == b.per && a.class == b.class && a.is_pattern() == b.is_pattern();
    same_kind
        && if a.is_pattern() { patterns_meet(a.sku.as_bytes(), b.sku.as_bytes()) } else { a.sku == b.sku }
}

/// Whether some text has the form of both patterns.
fn patterns_meet(a: &[u8], b: &[u8]) -> bool {
    // meets[i][j]: the first i bytes of a and the first j bytes of b have a text in common.
    let mut meets = vec![vec![false; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            let last_a = i.checked_sub(1).and_then(|k| a.get(k).copied());
            let last_b = j.checked_sub(1).and_then(|k| b.get(k).copied());
            meets[i][j] = match (last_a, last_b) {
                (None, None) => true,
                (Some(b'*'), None) => meets[i - 1][j],
                (None, Some(b'*')) => meets[i][j - 1],
                // The star stands for nothing, or for one more byte.
                (Some(b'*'), Some(_)) | (Some(_), Some(b'*')) => meets[i - 1][j] || meets[i][j - 1],
                (Some(x), Some(y)) => x == y && meets[i - 1][j - 1],
                (Some(_), None) | (None, Some(_)) => false,
            };
        }
    }
    meets[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::select::tests::{card, cards};
    use super::*;

    #[test]
    fn patterns_meet_where_one_text_fits_both() {
        for (a, b, expected) in [
            ("*", "*/share", true),
            ("h100*", "*/share", true),
            ("h100*", "a100*", false),
            ("*/share", "*/1g", false),
            ("a*c", "ab*", true),
            ("a*c", "b*", false),
            ("*a", "*ba", true),
        ] {
            assert_eq!(patterns_meet(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
            assert_eq!(patterns_meet(b.as_bytes(), a.as_bytes()), expected, "{b} {a}");
        }
    }

    #[test]
    fn v12_equal_candidates_are_found_when_applied() {
        // cards: id from tenants sku:class=price … | number of conflicts
        for (texts, expected) in [
            (vec!["std 0 * l40s:-=2.40 l40s:spot=1.00"], 0),
            (vec!["std 0 * l40s:-=2.40 l40s:-=2.50"], 1),
            (vec!["std 0 * l40s:-=2.40", "std 10 * l40s:-=2.50"], 0),
            (vec!["std 0 * l40s:-=2.40", "alt 10 * l40s:-=2.50"], 1),
            (vec!["std 0 * l40s:-=2.40", "own 0 acme l40s:-=2.50"], 0),
            (vec!["one 0 acme,beta l40s:-=2.40", "two 0 beta l40s:-=2.50"], 1),
            (vec!["std 0 * */share:-=2.40 *:-=1.00"], 1),
            (vec!["std 0 * */share:-=2.40 l4:-=1.00"], 0),
        ] {
            assert_eq!(check_cards(&cards(&texts)).len(), expected, "{texts:?}");
        }
        let mut foreign = card("alt 0 * l40s:-=2.50");
        foreign.currency = "EUR".parse().unwrap();
        assert_eq!(check_cards(&RateCards::new([card("std 0 * l40s:-=2.40"), foreign])), vec![]);
    }
}
