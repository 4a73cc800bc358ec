//! The invoice of half cents: six lines, tax on their rounded sum.

use super::*;
use crate::account::Party;
use gpuledger_domain::ids::{AllocationId, TenantId};
use gpuledger_domain::rating::{Basis, Charge, Lock, Per, Price, PriceRef, RateCard, TaxRate, lines_of};
use gpuledger_domain::time::Instant;
use std::collections::BTreeSet;

const HALF_HOUR_US: i128 = 1_800_000_000;

fn card() -> RateCard {
    let price = |(sku, price): (&str, &str)| Price {
        sku: sku.to_owned(),
        class: None,
        per: Per::Hour,
        price: price.parse().unwrap(),
        granularity_us: 1_000_000,
        minimum_us: 0,
        lock: Lock::AtEvent,
        billed_states: None,
        unrated: BTreeSet::new(),
    };
    let prices = [
        ("a2", "0.25"),
        ("l4", "0.35"),
        ("a10", "0.45"),
        ("l40s", "2.01"),
        ("a100-80gb-pcie", "2.05"),
        ("h100-80gb-hbm3", "4.11"),
    ];
    RateCard {
        id: "standard".to_owned(),
        currency: "EUR".parse().unwrap(),
        effective_from: Instant::from_micros(1_767_225_600_000_000),
        tenants: vec!["*".to_owned()],
        prices: prices.into_iter().map(price).collect(),
        unrated: BTreeSet::new(),
    }
}

fn charge<'a>(card: &'a RateCard, index: usize, allocation: &str, day: i64) -> Charge<'a> {
    let start = Instant::from_micros(1_791_194_400_000_000).plus(day * 86_400_000_000);
    Charge {
        allocation: AllocationId::new(allocation),
        unit: 0,
        project: None,
        sku: SkuId::new(&card.prices[index].sku),
        class: gpuledger_domain::fact::Class::OnDemand,
        state: None,
        basis: Basis::Allocation,
        window: Window::new(start, start.plus(1_800_000_000)).unwrap(),
        quantity_us: HALF_HOUR_US,
        added: false,
        price: PriceRef { card, index, price: &card.prices[index] },
    }
}

pub(crate) fn account() -> Account {
    let party = |id: &str, name: &str| Party { id: id.to_owned(), name: name.to_owned(), ..Party::default() };
    Account {
        tenant: TenantId::new("acme"),
        tenant_name: "Acme".to_owned(),
        seller: Party {
            address: vec!["Hauptstraße 1".to_owned(), "10115 Berlin".to_owned()],
            country: Some("DE".to_owned()),
            vat_id: Some("DE123456789".to_owned()),
            time_zone: Some("UTC".to_owned()),
            bank: Some("IBAN DE02 1203 0000 0000 2020 51".to_owned()),
            ..party("gpu-cloud", "GPU Cloud GmbH")
        },
        series: None,
        seller_zone: chrono_tz::UTC,
        books_open: None,
        customer: Party {
            country: Some("DE".to_owned()),
            payment_terms: Some("30 days net".to_owned()),
            ..party("acme-robotics", "Acme Robotics AG")
        },
        currency: "EUR".parse().unwrap(),
        taxes: vec![TaxRate { name: "VAT".to_owned(), rate: "0.19".parse().unwrap() }],
        period_zone: chrono_tz::UTC,
    }
}

pub(crate) fn sample() -> Document {
    let card = card();
    let uses = [
        ("a-1", 0, 0),
        ("a-2", 1, 0),
        ("a-3", 2, 0),
        ("a-4", 2, 1),
        ("a-5", 2, 2),
        ("a-6", 3, 0),
        ("a-7", 4, 0),
        ("a-8", 5, 0),
    ];
    let charges =
        uses.into_iter().map(|(allocation, index, day)| charge(&card, index, allocation, day)).collect();
    let account = account();
    let rated = Rated { lines: lines_of(charges, account.currency).unwrap(), ..Rated::default() };
    let names = BTreeMap::from([(SkuId::new("h100-80gb-hbm3"), "NVIDIA H100 80 GB".to_owned())]);
    let frozen = Frozen { rule_set: "1".to_owned(), facts_count: 16, facts_digest: vec![0xab; 32] };
    let period: Period = "2026-10".parse().unwrap();
    let window = period.window(chrono_tz::UTC).unwrap();
    let carried_in = Money::zero(account.currency);
    let contents = Contents {
        account: &account,
        period,
        window,
        attempt: 1,
        rated: &rated,
        corrections: &[],
        carried_in,
        names: &names,
        frozen: &frozen,
    };
    draft(&contents).unwrap()
}

#[test]
fn m5_half_cents_tax_and_total() {
    let document = sample();
    let amounts: Vec<(&str, &str)> =
        document.lines.iter().map(|l| (l.sku.as_deref().unwrap(), l.amount.as_str())).collect();
    let expected = [
        ("a10", "0.68"),
        ("a100-80gb-pcie", "1.03"),
        ("a2", "0.13"),
        ("h100-80gb-hbm3", "2.06"),
        ("l4", "0.18"),
        ("l40s", "1.01"),
    ];
    assert_eq!(amounts, expected);
    assert_eq!((&*document.subtotal, &*document.taxes[0].amount, &*document.total), ("5.09", "0.97", "6.06"));
}

#[test]
fn v3_the_json_is_this_and_the_same_again() {
    let text = crate::render::json(&sample()).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/draft/golden.json");
    if std::env::var_os("GPULEDGER_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap(), "GPULEDGER_BLESS=1 writes the file anew");
    let back: Document = serde_json::from_str(&text).unwrap();
    assert_eq!(crate::render::json(&back).unwrap(), text);
}

#[test]
fn m6_every_number_of_the_json_is_text() {
    fn walk(value: &serde_json::Value) {
        match value {
            serde_json::Value::Number(n) => panic!("{n} is no text"),
            serde_json::Value::Array(items) => items.iter().for_each(walk),
            serde_json::Value::Object(members) => members.values().for_each(walk),
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::String(_) => {}
        }
    }
    walk(&serde_json::to_value(sample()).unwrap());
}

#[test]
fn the_contracts_members_are_there() {
    let value = serde_json::to_value(sample()).unwrap();
    for member in "id number kind status seller customer tenant period currency lines subtotal taxes total credits carried_in carried_out \
                   amount_due rule_set facts"
        .split_whitespace()
    {
        assert!(value.get(member).is_some(), "{member}");
    }
    for member in
        "id kind project sku class quantity unit unit_price per amount basis details".split_whitespace()
    {
        assert!(value["lines"][0].get(member).is_some(), "lines[].{member}");
    }
}

#[test]
fn v11_a_negative_total_is_due_nothing_and_carried_until_it_is_used_up() {
    // total | carried in | due | carried out, in cents
    for (total, carried_in, due, carried_out) in [
        (606, 0, 606, 0),
        (-606, 0, 0, 606),
        (500, 606, 0, 106),
        (606, 106, 500, 0),
        (-100, 106, 0, 206),
        (106, 106, 0, 0),
    ] {
        let money = |minor| Money::from_minor(minor, account().currency);
        let settled = settled(money(total), money(carried_in)).unwrap();
        assert_eq!(settled, (money(due), money(carried_out)), "{total} {carried_in}");
    }
}

#[test]
fn parts_of_a_product_carry_its_name() {
    let names = BTreeMap::from([(SkuId::new("h100"), "NVIDIA H100".to_owned())]);
    for (sku, text) in [
        ("h100", "NVIDIA H100"),
        ("h100/3g.40gb", "NVIDIA H100, 3g.40gb"),
        ("h100/3g.40gb/share", "NVIDIA H100, 3g.40gb, share"),
        ("l4", "l4"),
        ("h100x", "h100x"),
    ] {
        assert_eq!(views::described(&SkuId::new(sku), &names), text);
    }
}
