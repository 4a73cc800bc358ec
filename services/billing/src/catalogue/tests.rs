use super::*;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_wire::objects::parse_documents;

fn catalogue(yaml: &str) -> Catalogue {
    Catalogue::new(parse_documents(yaml, "test.yaml").unwrap()).unwrap()
}

const SELLER: &str =
    "{kind: Seller, id: gpu-cloud, name: GPU Cloud GmbH, country: DE, time_zone: Europe/Berlin}\n---\n";

#[test]
fn a_tenant_pays_for_itself_or_its_customer_does() {
    let catalogue = catalogue(&format!(
        "{SELLER}{}",
        "{kind: Customer, id: big, name: Big AG, country: DE, currency: EUR, tax: [{name: VAT, rate: \"0.19\"}], period_zone: tenant}\n---\n\
         {kind: Tenant, id: acme, customer: big, time_zone: America/New_York}\n---\n\
         {kind: Tenant, id: free}\n---\n{kind: Tenant, id: solo, name: Solo, currency: USD}\n"
    ));
    let acme = catalogue.account(&TenantId::new("acme")).unwrap();
    assert_eq!(
        (acme.customer.name.as_str(), acme.currency.code(), acme.period_zone.name()),
        ("Big AG", "EUR", "America/New_York")
    );
    assert_eq!(acme.taxes[0].rate.to_string(), "0.19");
    let solo = catalogue.account(&TenantId::new("solo")).unwrap();
    assert_eq!(
        (solo.customer.id.as_str(), solo.currency.code(), solo.period_zone.name()),
        ("solo", "USD", "Europe/Berlin")
    );
    assert_eq!(catalogue.tenants().collect::<Vec<_>>(), ["acme", "solo"]);
}

#[test]
fn what_is_missing_is_named() {
    let two = "{kind: Seller, id: other, name: Other, country: DE}\n---\n";
    for (yaml, word) in [
        ("{kind: Tenant, id: beta, currency: USD}", "nobody sells"),
        (&format!("{SELLER}{{kind: Tenant, id: acme, currency: USD}}"), "tenant beta is unknown"),
        (&format!("{SELLER}{{kind: Tenant, id: beta}}"), "neither a `customer` nor a `currency`"),
        (&format!("{SELLER}{{kind: Tenant, id: beta, customer: big}}"), "customer big"),
        (&format!("{SELLER}{two}{{kind: Tenant, id: beta, currency: USD}}"), "gpu-cloud, other"),
        (&format!("{SELLER}{{kind: Tenant, id: beta, currency: USD, seller: nobody}}"), "seller nobody"),
        (&format!("{SELLER}{{kind: Tenant, id: beta, currency: QQQ}}"), "\"QQQ\" is no currency"),
    ] {
        let error = catalogue(yaml).account(&TenantId::new("beta")).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

fn card(extra: &str, price: &str) -> String {
    format!(
        "{{kind: RateCard, id: standard, currency: EUR, effective_from: \"2026-01-01T00:00:00Z\", tenants: [\"*\"], \
         prices: [{{sku: a, per: hour, {price}}}]{extra}}}"
    )
}

#[test]
fn prices_keep_every_digit_and_unrated_terms_are_noted() {
    for (extra, price, terms) in [
        ("", "price: \"2.40\", granularity: 1m, minimum: 60s, lock: at_start", ""),
        ("", "price: \"2.40\", free: \"0\"", ""),
        ("", "price: \"2.40\", free: \"10\"", "free"),
        ("", "tiers: {mode: volume, steps: [{price: \"1\"}]}", "tiers"),
        ("", "price: \"2.40\", billed_states: [ready]", ""),
        (", minimum_spend: \"0\"", "price: \"2.40\"", ""),
        (", minimum_spend: \"100\"", "price: \"2.40\"", "minimum_spend"),
        (", service_credits: {fault: \"1\"}", "price: \"2.40\"", "service_credits"),
        (", service_credits: {fault: \"0\"}", "price: \"2.40\"", ""),
    ] {
        let catalogue = catalogue(&card(extra, price));
        let (card, _) = catalogue.cards.iter().next().unwrap();
        let found: Vec<&str> =
            card.unrated.iter().chain(&card.prices[0].unrated).map(|t| t.as_str()).collect();
        assert_eq!(found.join(" "), terms, "{extra} {price}");
    }
    let catalogue = catalogue(&card(
        "",
        "price: \"0.0000000001\", granularity: 1m, minimum: 90s, billed_states: [ready, idle]",
    ));
    let (card, _) = catalogue.cards.iter().next().unwrap();
    let price = &card.prices[0];
    assert_eq!(
        (price.price.to_string().as_str(), price.granularity_us, price.minimum_us),
        ("0.0000000001", 60_000_000, 90_000_000)
    );
    let states: Vec<&str> = price.billed_states.iter().flatten().map(String::as_str).collect();
    assert_eq!(states, ["idle", "ready"]);
}

#[test]
fn v12_conflicts_between_cards_are_said_in_words() {
    let other = card("", "price: \"3\"").replace("standard", "other");
    let catalogue = catalogue(&format!("{}\n---\n{other}", card("", "price: \"2\"")));
    let conflicts = catalogue.conflicts();
    assert_eq!(conflicts.len(), 1);
    assert!(conflicts[0].contains("\"other\"") && conflicts[0].contains("\"standard\""), "{conflicts:?}");
}

#[test]
fn commitments_and_credits_of_the_period_are_noted() {
    let catalogue = catalogue(
        "{kind: Commitment, id: c, tenant: acme, sku: a, quantity: 1, from: \"2026-10-01T00:00:00Z\", to: \"2026-10-02T00:00:00Z\", price: \"1\"}\n---\n\
         {kind: Credit, id: w, tenant: acme, type: prepaid, amount: \"5\", currency: EUR, priority: 1, from: \"2026-10-01T00:00:00Z\"}",
    );
    let day = |day: i64| Instant::from_micros(1_790_812_800_000_000).plus(day * 86_400_000_000);
    let count = |tenant: &str, from, to| {
        catalogue.unrated(&TenantId::new(tenant), Window::new(day(from), day(to)).unwrap()).len()
    };
    assert_eq!(
        (count("acme", 0, 1), count("acme", 5, 6), count("acme", -5, 0), count("beta", 0, 1)),
        (2, 1, 0, 0)
    );
}
