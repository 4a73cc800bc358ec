//! Table of prices and look-ups.

use super::*;
use crate::rating::Lock;
use std::collections::BTreeSet;

/// Reads `id from tenant,tenant sku:class=price …`: a card in USD; `from` in seconds, class `-` for none, `!` after the price for
/// lock `at_start`.
pub(in crate::rating) fn card(text: &str) -> RateCard {
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap().to_owned();
    let (id, from, tenants) = (next(), next(), next());
    let prices = words.map(price).collect();
    RateCard {
        id,
        currency: "USD".parse().unwrap(),
        effective_from: Instant::from_micros(from.parse::<i64>().unwrap() * 1_000_000),
        tenants: tenants.split(',').map(str::to_owned).collect(),
        prices,
        unrated: BTreeSet::new(),
    }
}

fn price(text: &str) -> Price {
    let (what, price) = text.split_once('=').unwrap();
    let (sku, class) = what.split_once(':').unwrap();
    let class = [Class::OnDemand, Class::Reserved, Class::Spot].into_iter().find(|c| c.as_str() == class);
    let lock = if price.ends_with('!') { Lock::AtStart } else { Lock::AtEvent };
    Price {
        sku: sku.to_owned(),
        class,
        per: Per::Hour,
        price: price.trim_end_matches('!').parse().unwrap(),
        granularity_us: 1,
        minimum_us: 0,
        lock,
        billed_states: None,
        unrated: BTreeSet::new(),
    }
}

pub(in crate::rating) fn cards(texts: &[&str]) -> RateCards {
    RateCards::new(texts.iter().map(|t| card(t)))
}

#[test]
fn v12_tenant_goes_before_sku_and_sku_before_class() {
    let cards = cards(&[
        "std 0 * l40s:-=2.40 l40s:spot=0.80 */share:-=2.00 */share:spot=0.50",
        "std 100 * l40s:-=3.00",
        "own 50 acme */share:-=1.50 *:spot=0.70",
    ]);
    // at second | tenant | sku | class | price, - for none
    for row in "
        0    acme  l40s        on_demand  2.4
        0    acme  l40s        spot       0.8
        49   acme  h100/share  spot       0.5
        50   acme  h100/share  on_demand  1.5
        50   acme  l40s        spot       0.7
        50   acme  l40s        reserved   2.4
        50   beta  l40s        spot       0.8
        50   beta  h100        on_demand  -
        100  beta  l40s        spot       3
        100  beta  h100/share  spot       -"
        .lines()
        .filter(|l| !l.trim().is_empty())
    {
        let cells: Vec<&str> = row.split_whitespace().collect();
        let class = [Class::OnDemand, Class::Reserved, Class::Spot]
            .into_iter()
            .find(|c| c.as_str() == cells[3])
            .unwrap();
        let wanted = Wanted {
            tenant: &TenantId::new(cells[1]),
            sku: &SkuId::new(cells[2]),
            class: Some(class),
            per: Per::Hour,
            currency: "USD".parse().unwrap(),
        };
        let at = Instant::from_micros(cells[0].parse::<i64>().unwrap() * 1_000_000);
        let found = cards.select(wanted, at).unwrap().map_or("-".to_owned(), |f| f.price.price.to_string());
        assert_eq!(found, cells[4], "{row}");
    }
}

#[test]
fn v12_equal_candidates_are_an_error() {
    let cards = cards(&["std 0 * l40s:-=2.40", "alt 0 * l40s:-=2.50"]);
    let wanted = Wanted {
        tenant: &TenantId::new("acme"),
        sku: &SkuId::new("l40s"),
        class: Some(Class::OnDemand),
        per: Per::Hour,
        currency: "USD".parse().unwrap(),
    };
    let error = cards.select(wanted, Instant::default()).unwrap_err();
    assert!(error.to_string().contains("two equal prices"), "{error}");
    let eur = Wanted { currency: "EUR".parse().unwrap(), ..wanted };
    assert_eq!(
        cards.select(eur, Instant::default()),
        Ok(None),
        "a card in another currency is not for the tenant"
    );
}

#[test]
fn a_version_applied_again_replaces_itself() {
    let cards = cards(&["std 0 * l40s:-=2.40", "std 0 * l40s:-=2.60"]);
    assert_eq!(cards.iter().count(), 1);
    assert_eq!(cards.iter().next().unwrap().0.prices[0].price.to_string(), "2.6");
}
