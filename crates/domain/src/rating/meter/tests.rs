//! Text tables of what is reported and recorded. Usage is `id start end sku quantity unit [project]`, a charge is `id amount currency`.

use super::super::charge::tests::{at, table};
use super::super::charge::{Sold, rate};
use super::super::select::tests::card;
use super::*;
use crate::rating::{RateCards, Rated};
use crate::time::Window;

fn reported(text: &str) -> Reported {
    let words: Vec<&str> = text.split_whitespace().collect();
    Reported {
        source: Source::new("/meters/m"),
        id: words[0].to_owned(),
        tenant: TenantId::new("acme"),
        project: words.get(6).map(|p| ProjectId::new(p)),
        sku: SkuId::new(words[3]),
        unit: words[5].to_owned(),
        quantity: words[4].parse().unwrap(),
        start: at(words[1]),
        end: at(words[2]),
    }
}

fn recorded(text: &str) -> Recorded {
    let words: Vec<&str> = text.split_whitespace().collect();
    Recorded {
        source: Source::new("/platform"),
        id: words[0].to_owned(),
        tenant: TenantId::new("acme"),
        project: None,
        description: format!("what {} is for", words[0]),
        amount: words[1].parse().unwrap(),
        currency: words[2].parse().unwrap(),
        at: at("5"),
    }
}

/// Prices by unit: two versions, the second one from second 1000 on.
fn cards() -> RateCards {
    let mut cards = [
        card("std 0 * storage-gib:-=0.0001 l40s:-=2.40 egress:spot=1"),
        card("std 1000 * storage-gib:-=0.0002"),
    ];
    cards.iter_mut().flat_map(|card| &mut card.prices).for_each(|price| price.per = Per::Unit);
    RateCards::new(cards)
}

fn rated(usage: &str, charges: &str) -> Rated {
    let (reported, recorded): (Vec<Reported>, Vec<Recorded>) = (
        table(usage).into_iter().map(reported).collect(),
        table(charges).into_iter().map(recorded).collect(),
    );
    let (cards, tenant) = (cards(), TenantId::new("acme"));
    let period = Window::new(at("0"), at("10000")).unwrap();
    let rating =
        Rating { tenant: &tenant, period, currency: "USD".parse().unwrap(), cards: &cards, later: None };
    rate(Sold { units: &[], reported: &reported, recorded: &recorded }, rating).unwrap()
}

fn shown(lines: &[Line]) -> Vec<String> {
    let one = |line: &Line| match &line.key {
        LineKey::Meter(key) => {
            let project = key.project.as_ref().map_or(String::new(), |p| format!("{p}:"));
            format!("{project}{} {} {} {} {}", key.sku, line.quantity, key.unit, key.price.price, line.amount)
        }
        LineKey::Charge(key) => format!("{} {}", key.id, line.amount),
        LineKey::Usage(_) => panic!("{line:?}"),
    };
    lines.iter().map(one).collect()
}

#[test]
fn v13_reported_usage_is_summed_exactly_and_rounded_once_a_line() {
    // The third begins under the next price, which is its price whole; other units and projects are other lines.
    let usage = "
        u-1 0    60   storage-gib 1000.4         gib
        u-2 900  1100 storage-gib 0.000000000001 gib
        u-3 1000 1000 storage-gib 50             gib
        u-4 0    60   storage-gib 7              tib
        u-5 0    60   storage-gib 24.6           gib  vision";
    let expected = "
        storage-gib 1000.400000000001 gib 0.0001 0.10
        storage-gib 7 tib 0.0001 0.00
        storage-gib 50 gib 0.0002 0.01
        vision:storage-gib 24.6 gib 0.0001 0.00";
    let rated = rated(usage, "");
    let (mut found, mut wanted) = (shown(&rated.lines), table(expected));
    found.sort();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    assert_eq!(rated.lines[0].uses.len(), 2, "the line names the facts it is made of");
}

#[test]
fn v13_charges_are_lines_of_their_amount_and_foreign_ones_are_named() {
    let rated = rated("", "c-2 12.504 USD\n c-1 -12.505 USD\n c-3 1.00 EUR");
    assert_eq!(shown(&rated.lines), ["c-1 -12.51", "c-2 12.50"]);
    assert_eq!(rated.lines[0].description.as_deref(), Some("what c-1 is for"));
    assert_eq!(rated.foreign.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["c-3"]);
}

#[test]
fn v11_reported_usage_without_a_price_is_named() {
    // A price of one class is none for what has no class.
    let rated = rated("u-1 0 60 egress 5 gib\n u-2 30 90 egress 7 gib\n u-3 0 1 h100 1 second", "");
    assert_eq!(rated.lines, vec![]);
    let named: Vec<String> =
        rated.unpriced_meters.iter().map(|u| format!("{} {} {}", u.sku, u.quantity, u.unit)).collect();
    assert_eq!(named, ["egress 12 gib", "h100 1 second"]);
    assert_eq!((rated.unpriced_meters[0].start, rated.unpriced_meters[0].end), (at("0"), at("90")));
}
