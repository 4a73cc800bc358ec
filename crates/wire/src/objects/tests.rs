use super::*;

/// The examples of contract.md, section 2, word for word where they are YAML.
const CONTRACT: &str = include_str!("contract_examples.yaml");

#[test]
fn every_example_of_the_contract_is_read_and_survives_storage() {
    let objects = parse_documents(CONTRACT, "contract.yaml").unwrap();
    let kinds: Vec<&str> = objects.iter().map(Object::kind).collect();
    assert_eq!(kinds, KINDS);
    for object in objects {
        assert_eq!(Object::from_json(&object.to_json().unwrap()).unwrap(), object);
    }
}

#[test]
fn json_documents_are_read_too() {
    let objects = parse_documents(CONTRACT, "contract.yaml").unwrap();
    let lines: Vec<String> = objects.iter().map(|object| object.to_json().unwrap().to_string()).collect();
    assert_eq!(parse_documents(&lines.join("\n---\n"), "contract.json").unwrap(), objects);
}

#[test]
fn decimals_keep_every_digit() {
    let text = "kind: FleetCost\nsku: a30\nper: hour\ncost: \"123456789012345678.0123456789\"\n";
    let [Object::FleetCost(cost)] = &parse_documents(text, "f").unwrap()[..] else {
        panic!("one fleet cost")
    };
    assert_eq!(cost.cost.to_string(), "123456789012345678.0123456789");
    let whole = parse_documents("{kind: FleetCost, sku: a30, per: hour, cost: 2}", "f").unwrap();
    assert_eq!(whole[0].to_json().unwrap()["cost"], "2");
}

#[test]
fn faults_name_file_line_and_field_and_all_come_at_once() {
    let text = "\
kind: Tenant
id: acme
colour: blue
---
# a comment
kind: FleetCost
sku: a30
per: hour
cost: 1.45
---
kind: Spaceship
---
kind: Credit
id: c
tenant: acme
type: prepaid
amount: \"5\"
currency: eur
priority: 1
from: 2026-10-01T00:00:00Z
---
kind: Commitment
id: k
tenant: acme
sku: a30
quantity: 0
from: 2026-10-01T00:00:00Z
to: 2027-10-01
price: \"1\"
---
id: nobody
---
kind: Seller
  id: [
";
    let faults: Vec<String> =
        parse_documents(text, "f.yaml").unwrap_err().iter().map(ToString::to_string).collect();
    let expected = [
        "f.yaml:3: colour: unknown field `colour`, expected one of",
        "f.yaml:9: cost: ",
        "f.yaml:11: kind: `Spaceship` is unknown, expected one of Seller, Customer",
        "f.yaml:18: currency: is `eur`, expected an ISO 4217 code such as EUR",
        "f.yaml:26: quantity: is 0, expected a whole number from 1 to 65536",
        "f.yaml:31: kind: is missing",
        "f.yaml:34: ",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.starts_with(expected), "{fault}\nshould begin with\n{expected}");
    }
    assert!(faults[1].contains("put it in quotes: \"1.45\""), "{}", faults[1]);
}

#[test]
fn members_that_do_not_go_together_are_refused() {
    for (text, field) in [
        ("{kind: Tenant, id: a, customer: c, currency: EUR}", "currency"),
        ("{kind: Tenant, id: a, projects: [{id: p, parent: q}]}", "projects[0].parent"),
        ("{kind: Tenant, id: a, projects: [{id: p, parent: q}, {id: q, parent: p}]}", "projects[0].parent"),
        ("{kind: Tenant, id: a, projects: [{id: p}, {id: p}]}", "projects[1].id"),
        ("{kind: Tenant, id: a, tax: [{name: VAT, rate: 19}]}", "tax[0].rate"),
        ("{kind: Tenant, id: a, time_zone: Europe/Bonn}", "time_zone"),
        ("{kind: Mapping, source: slurm, match: {}, tenant: a}", "match"),
        ("{kind: Pool, id: p, policy: work, weights: {requests: 1}, window: 2m}", "window"),
        ("{kind: Quota, tenant: a, limits: [{resource: spend, hard: 5}]}", "limits[0].period"),
        ("{kind: Quota, tenant: a, limits: [{resource: spend, period: month}]}", "limits[0].hard"),
        (
            "{kind: Commitment, id: c, tenant: a, sku: s, quantity: 1, from: \"2026-10-02T00:00:00Z\", to: \"2026-10-01T00:00:00Z\", price: 1}",
            "to",
        ),
    ] {
        let faults = parse_documents(text, "f").unwrap_err();
        assert_eq!(faults[0].field, field, "{text}: {}", faults[0]);
    }
}

#[test]
fn a_rate_card_says_each_price_once_and_in_order() {
    let card = |prices: &str| {
        let text = format!(
            "{{kind: RateCard, id: c, currency: EUR, effective_from: \"2026-10-01T00:00:00Z\", tenants: [\"*\"], prices: [{prices}]}}"
        );
        parse_documents(&text, "f").map_err(|faults| faults[0].field.clone())
    };
    assert!(card("{sku: a, per: hour, price: 0}, {sku: a, class: spot, per: hour, price: 1}").is_ok());
    for (prices, field) in [
        ("{sku: a, per: hour, price: 1}, {sku: a, per: hour, price: 2}", "prices[1].sku"),
        ("{sku: a, per: hour}", "prices[0].price"),
        ("{sku: a, per: day, price: 1}", "prices[0].per"),
        ("{sku: a, per: hour, price: \"-1\"}", "prices[0].price"),
        ("{sku: a, per: hour, price: 1, granularity: 0s}", "prices[0].granularity"),
        ("{sku: a, per: hour, price: 1, minimum: 60}", "prices[0].minimum"),
        ("{sku: a, per: hour, tiers: {mode: volume, steps: []}}", "prices[0].tiers.steps"),
        (
            "{sku: a, per: hour, tiers: {mode: volume, steps: [{up_to: 1, price: 1}]}}",
            "prices[0].tiers.steps[0].up_to",
        ),
        (
            "{sku: a, per: hour, tiers: {mode: volume, steps: [{up_to: 2, price: 1}, {up_to: 2, price: 1}, {price: 1}]}}",
            "prices[0].tiers.steps[1].up_to",
        ),
    ] {
        assert_eq!(card(prices), Err(field.to_owned()), "{prices}");
    }
}
