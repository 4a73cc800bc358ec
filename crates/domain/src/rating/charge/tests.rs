//! Text tables of usage and the lines it comes to.
//!
//! A unit is `allocation start end tenant sku [word …]`, times in seconds, words: `spot`, `x3` (three unplaced units), `share=1/4`,
//! `project=p`, `open` (still held), `taken` (the provider took it), `then=SECOND:TENANT` (transferred), and `states=SECOND:WORD,…` (in that
//! state from then on). A line is `sku class seconds price amount`, seconds as an exact decimal, with `+state` behind the SKU.

use super::super::select::tests::{card, cards};
use super::*;
use crate::rating::{LineKey, Lock, Term, taxes_on};
use crate::usage::Split;
use num_rational::Ratio;

pub(in crate::rating) fn at(seconds: &str) -> Instant {
    let (whole, micros) = seconds.split_once('.').unwrap_or((seconds, "0"));
    Instant::from_micros(
        whole.parse::<i64>().unwrap() * 1_000_000 + format!("{micros:0<6}").parse::<i64>().unwrap(),
    )
}

pub(in crate::rating) fn unit(text: &str) -> UnitUse {
    let words: Vec<&str> = text.split_whitespace().collect();
    let value = |key: &str| words.iter().find_map(|w| w.strip_prefix(key));
    let (start, end) = (at(words[1]), at(words[2]));
    let span = UsageSpan {
        allocation: AllocationId::new(words[0]),
        unit: 0,
        count: words.iter().find_map(|w| w.strip_prefix('x')?.parse().ok()).unwrap_or(1),
        tenant: TenantId::new(words[3]),
        project: value("project=").map(ProjectId::new),
        sku: SkuId::new(words[4]),
        class: if words.contains(&"spot") { Class::Spot } else { Class::OnDemand },
        place: None,
        weight: Ratio::from_integer(1),
        window: Window::new(start, end).unwrap(),
        split: value("share=").map(|s| Split::new(start, &[crate::share::parse_share(s).unwrap()], 0)),
        held: true,
        state: None,
        telling: crate::usage::Telling::default(),
    };
    let mut spans = vec![span.clone()];
    if let Some((second, tenant)) = value("then=").and_then(|t| t.split_once(':')) {
        let edge = at(second);
        let before = span.cut(Window::new(start, edge).unwrap()).unwrap();
        let mut after = span.cut(Window::new(edge, end).unwrap()).unwrap();
        after.tenant = TenantId::new(tenant);
        spans = vec![before, after];
    }
    let changes = value("states=").into_iter().flat_map(|s| s.split(','));
    for (second, state) in changes.filter_map(|s| s.split_once(':')) {
        let last = spans.pop().unwrap();
        let before = Window::new(last.window.start(), at(second)).and_then(|window| last.cut(window));
        let mut after = last.cut(Window::new(at(second), end).unwrap()).unwrap();
        after.state = Some(state.to_owned());
        spans.extend(before.into_iter().chain([after]));
    }
    let taken = words.contains(&"taken");
    let hold = if words.contains(&"open") { End::Open } else { End::Ended { at: end, provider_took: taken } };
    UnitUse { start, end: hold, spans }
}

pub(in crate::rating) fn table(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|l| !l.is_empty()).collect()
}

fn rated(cards: &RateCards, units: &str, tenant: &str, period: (&str, &str)) -> Result<Rated, RateError> {
    let units: Vec<UnitUse> = table(units).into_iter().map(unit).collect();
    let period = Window::new(at(period.0), at(period.1)).unwrap();
    let tenant = TenantId::new(tenant);
    let rating = Rating { tenant: &tenant, period, currency: "USD".parse().unwrap(), cards, later: None };
    rate(Sold { units: &units, ..Sold::default() }, rating)
}

fn shown(rated: &Rated) -> Vec<String> {
    let one = |line: &Line| {
        let LineKey::Usage(key) = &line.key else { panic!("{line:?}") };
        let project = key.project.as_ref().map_or(String::new(), |p| format!("{p}:"));
        let state = key.state.as_ref().map_or(String::new(), |s| format!("+{s}"));
        let (class, price) = (key.class.as_str(), key.price.price);
        format!("{project}{}{state} {class} {} {price} {}", key.sku, line.quantity, line.amount)
    };
    rated.lines.iter().map(one).collect()
}

fn with_terms(text: &str, minimum_us: i64, granularity_us: i64) -> RateCards {
    let mut card = card(text);
    for price in &mut card.prices {
        (price.minimum_us, price.granularity_us) = (minimum_us * 1_000_000, granularity_us * 1_000_000);
    }
    RateCards::new([card])
}

#[test]
fn m5_a_line_is_rounded_once_over_all_its_allocations() {
    let cards = cards(&["std 0 * a2:-=0.25 l4:-=0.35 a10:-=0.45 l40s:-=2.01 a100:-=2.05 h100:-=4.11"]);
    let units = "
        a-1 0      1800   acme a2
        a-2 0      1800   acme l4
        a-3 0      1800   acme a10
        a-4 86400  88200  acme a10
        a-5 172800 174600 acme a10
        a-6 0      1800   acme l40s
        a-7 0      1800   acme a100
        a-8 0      1800   acme h100";
    let rated = rated(&cards, units, "acme", ("0", "1000000")).unwrap();
    let expected = "
        a10 on_demand 5400 0.45 0.68
        a100 on_demand 1800 2.05 1.03
        a2 on_demand 1800 0.25 0.13
        h100 on_demand 1800 4.11 2.06
        l4 on_demand 1800 0.35 0.18
        l40s on_demand 1800 2.01 1.01";
    assert_eq!(shown(&rated), table(expected));
    let amounts: Vec<_> = rated.lines.iter().map(|l| l.amount).collect();
    let vat = super::super::TaxRate { name: "VAT".to_owned(), rate: "0.19".parse().unwrap() };
    let taxes = taxes_on(&amounts, &[vat], "USD".parse().unwrap()).unwrap();
    assert_eq!(
        (taxes[0].base.to_string(), taxes[0].amount.to_string()),
        ("5.09".to_owned(), "0.97".to_owned())
    );
    assert_eq!(rated.lines[0].uses.len(), 3, "the line names the three allocations it is made of");
}

#[test]
fn v7_prices_change_at_the_event_or_keep_that_of_the_start() {
    let cards = cards(&["std 0 * l40s:-=2.40 a100:-=2.40!", "std 100000 * l40s:-=3.00 a100:-=3.00!"]);
    let units = "
        a-1 56800        121600        acme l40s
        a-2 56800        121600        acme a100
        a-3 99999.999999 103599.999999 acme a100
        a-4 100000       103600        acme a100";
    let expected = "
        a100 on_demand 68400 2.4 45.60
        a100 on_demand 3600 3 3.00
        l40s on_demand 43200 2.4 28.80
        l40s on_demand 21600 3 18.00";
    assert_eq!(shown(&rated(&cards, units, "acme", ("0", "1000000")).unwrap()), table(expected));
}

#[test]
fn v7_a_lock_at_start_reaches_over_period_edges() {
    let cards = cards(&["std 0 * a100:-=2.40!", "std 1000 * a100:-=3.00!"]);
    let rated = rated(&cards, "a-1 0 7200 acme a100", "acme", ("3600", "10000")).unwrap();
    assert_eq!(shown(&rated), ["a100 on_demand 3600 2.4 2.40"]);
}

#[test]
fn v6_minimum_and_granularity_are_added_once_where_the_hold_ended() {
    // usage | line, empty for none
    let cases = [
        ("a-1 0 30 acme l4", "l4 on_demand 120 3.6 0.12"),
        ("a-1 0 120 acme l4", "l4 on_demand 120 3.6 0.12"),
        ("a-1 0 121 acme l4", "l4 on_demand 180 3.6 0.18"),
        ("a-1 0 121 acme l4 open", "l4 on_demand 121 3.6 0.12"),
        ("a-1 0 30 acme l4 taken", "l4 on_demand 30 3.6 0.03"),
        ("a-1 0 30 acme l4 x3", "l4 on_demand 360 3.6 0.36"),
        ("a-1 0 40 acme l4 share=1/4", "l4 on_demand 30 3.6 0.03"),
        // Period edge at 1000: what is added belongs to the last charged microsecond.
        ("a-1 900 1000 acme l4", "l4 on_demand 120 3.6 0.12"),
        ("a-1 900 1001 acme l4", "l4 on_demand 100 3.6 0.10"),
        // Transferred: the last owner pays what is added, the first only what it held.
        ("a-1 0 61 acme l4 then=1:beta", "l4 on_demand 1 3.6 0.00"),
        ("a-1 0 61 beta l4 then=1:acme", "l4 on_demand 119 3.6 0.12"),
    ];
    let cards = with_terms("std 0 * l4:-=3.60", 90, 60);
    for (units, line) in cases {
        assert_eq!(shown(&rated(&cards, units, "acme", ("0", "1000")).unwrap()), table(line), "{units}");
    }
    let next = rated(&cards, "a-1 900 1001 acme l4", "acme", ("1000", "2000")).unwrap();
    assert_eq!(shown(&next), ["l4 on_demand 20 3.6 0.02"], "1 second held, 19 added to the 101 held in all");
    assert_eq!(next.lines[0].uses[0].added.micros(), 19_000_000);
}

fn with_states(text: &str, billed: &[&str], minimum_s: i64) -> RateCards {
    let mut card = card(text);
    for price in &mut card.prices {
        price.billed_states = Some(billed.iter().map(|state| (*state).to_owned()).collect());
        price.minimum_us = minimum_s * 1_000_000;
    }
    RateCards::new([card])
}

#[test]
fn v4_time_in_a_state_that_is_not_billed_is_not_charged_and_each_state_has_its_line() {
    let cases = [
        // usage | lines
        (
            "a-1 0 7200 acme h100 states=0:pulling,60:loading,180:ready,3600:idle,5400:held",
            "h100+idle on_demand 1800 3.6 1.80
            h100+loading on_demand 120 3.6 0.12
            h100+ready on_demand 3420 3.6 3.42",
        ),
        // Time of which no state was said is billed as the allocation is: before the first state, and where there never is one.
        ("a-1 0 7200 acme h100 states=3600:held", "h100 on_demand 3600 3.6 3.60"),
        ("a-1 0 7200 acme h100", "h100 on_demand 7200 3.6 7.20"),
        // Notice of a preemption is a state like others: here it is not billed, and nothing is added to what the provider took.
        ("a-1 0 30 acme h100 spot taken states=0:ready,20:notice", "h100+ready spot 20 3.6 0.02"),
    ];
    let billed = with_states("std 0 * h100:-=3.60", &["loading", "ready", "idle"], 60);
    for (units, lines) in cases {
        assert_eq!(shown(&rated(&billed, units, "acme", ("0", "10000")).unwrap()), table(lines), "{units}");
    }
    let all = cards(&["std 0 * h100:-=3.60"]);
    let noticed = "a-1 0 30 acme h100 spot taken states=20:notice";
    let expected = ["h100 spot 20 3.6 0.02", "h100+notice spot 10 3.6 0.01"];
    let shown = shown(&rated(&all, noticed, "acme", ("0", "10000")).unwrap());
    assert_eq!(shown, expected, "without billed_states all time is billed");
}

#[test]
fn v6_the_minimum_counts_charged_time_and_nothing_is_added_to_none() {
    let cards = with_states("std 0 * h100:-=3.60", &["ready"], 120);
    let cases = [
        // 100 s charged of 400 held: 20 are added, in the state of the last charged microsecond.
        ("a-1 0 400 acme h100 states=0:pulling,200:ready,300:held", "h100+ready on_demand 120 3.6 0.12"),
        ("a-1 0 400 acme h100 states=0:pulling", ""),
        // The hold goes on unbilled over the edge: what is added stays with the last charged microsecond.
        ("a-1 900 1200 acme h100 states=900:ready,950:held", "h100+ready on_demand 120 3.6 0.12"),
    ];
    for (units, lines) in cases {
        assert_eq!(shown(&rated(&cards, units, "acme", ("0", "1000")).unwrap()), table(lines), "{units}");
    }
    let next = rated(&cards, cases[2].0, "acme", ("1000", "2000")).unwrap();
    assert_eq!(next.lines, vec![]);
}

#[test]
fn a10_parts_of_a_work_pool_are_billed_to_those_served_without_minimum() {
    let cards = with_terms("std 0 * h100:-=3.60", 90, 60);
    let part = |tenant: &str, position| {
        let mut part = unit(&format!("p-1 0 30 {tenant} h100")).spans.remove(0);
        let share = |text| crate::share::parse_share(text).unwrap();
        part.split = Some(Split::new(at("0"), &[share("1/2"), share("1/3"), share("1/6")], position));
        part.held = position == 0;
        part
    };
    let view = AllocationView {
        unit_ends: BTreeMap::from([(0, End::Ended { at: at("30"), provider_took: false })]),
        ..view_of("p-1")
    };
    let units = gather_units(&[part("operator", 0), part("acme", 1), part("beta", 2)], &[view], at("0"));
    let period = Window::new(at("0"), at("1000")).unwrap();
    let of = |tenant: &str| {
        let (tenant, currency) = (TenantId::new(tenant), "USD".parse().unwrap());
        let rating = Rating { tenant: &tenant, period, currency, cards: &cards, later: None };
        rate(Sold { units: &units, ..Sold::default() }, rating).unwrap()
    };
    assert_eq!(shown(&of("acme")), ["h100 on_demand 10 3.6 0.01"]);
    assert_eq!(shown(&of("beta")), ["h100 on_demand 5 3.6 0.01"]);
    let operator = shown(&of("operator"));
    assert_eq!(operator, ["h100 on_demand 60 3.6 0.06"], "15 s idle, and half of the 90 s added to the hold");
    let LineKey::Usage(key) = of("acme").lines.remove(0).key else { panic!("usage is expected") };
    assert_eq!(key.basis, Basis::Work);
}

#[test]
fn a6_a_closed_period_takes_later_cards_only_for_what_had_no_price() {
    let (then, since) = (cards(&["std 0 * l40s:-=2.40"]), cards(&["std 0 * l40s:-=9.00 b200:-=5.00"]));
    let units = ["a-1 0 3600 acme l40s", "a-2 0 3600 acme b200"].map(unit);
    let (tenant, currency) = (TenantId::new("acme"), "USD".parse().unwrap());
    let period = Window::new(at("0"), at("10000")).unwrap();
    let rating = Rating { tenant: &tenant, period, currency, cards: &then, later: Some(&since) };
    let rated = rate(Sold { units: &units, ..Sold::default() }, rating).unwrap();
    assert_eq!(shown(&rated), ["b200 on_demand 3600 5 5.00", "l40s on_demand 3600 2.4 2.40"]);
}

#[test]
fn v11_no_price_is_billed_nothing_and_named_and_a_price_of_zero_is_a_price() {
    let cards = cards(&["std 0 * l40s:-=2.40 l4:-=0 */share:-=2.40", "own 1800 gamma b200:-=9.00"]);
    let units = "
        a-1 0 3600 acme l40s
        a-2 0 3600 acme b200
        a-3 0 3600 acme b200 x2
        b-1 0 3600 beta l4
        c-1 0 3600 gamma b200";
    let acme = rated(&cards, units, "acme", ("0", "10000")).unwrap();
    assert_eq!(shown(&acme), ["l40s on_demand 3600 2.4 2.40"]);
    let named: Vec<(&str, i128)> =
        acme.unpriced.iter().map(|u| (u.allocation.as_str(), u.quantity_us)).collect();
    assert_eq!(named, [("a-2", 3_600_000_000), ("a-3", 7_200_000_000)]);
    let beta = rated(&cards, units, "beta", ("0", "10000")).unwrap();
    assert_eq!((shown(&beta), beta.unpriced), (vec!["l4 on_demand 3600 0 0.00".to_owned()], vec![]));
    let gamma = rated(&cards, units, "gamma", ("0", "10000")).unwrap();
    assert_eq!(shown(&gamma), ["b200 on_demand 1800 9 4.50"]);
    assert_eq!(gamma.unpriced[0].window.end(), at("1800"), "unpriced until its price began");
}

#[test]
fn v4_lines_differ_by_project_sku_class_and_price_version() {
    let cards = cards(&["std 0 * l40s:-=2.40 l40s:spot=1.20", "std 7200 * l40s:-=2.40"]);
    let units = "
        a-1 0 3600 acme l40s project=vision
        a-2 0 3600 acme l40s project=speech
        a-3 0 3600 acme l40s
        a-4 0 3600 acme l40s spot
        a-5 7200 10800 acme l40s";
    let expected = "
        l40s on_demand 3600 2.4 2.40
        l40s on_demand 3600 2.4 2.40
        l40s spot 3600 1.2 1.20
        speech:l40s on_demand 3600 2.4 2.40
        vision:l40s on_demand 3600 2.4 2.40";
    assert_eq!(shown(&rated(&cards, units, "acme", ("0", "100000")).unwrap()), table(expected));
}

#[test]
fn a9_period_edges_split_and_the_parts_add_up() {
    let cards = cards(&["std 0 * l4/share:-=1.00"]);
    let units = "a-1 0.000001 3601.7 acme l4/share share=1/3";
    let whole = rated(&cards, units, "acme", ("0", "4000")).unwrap().lines[0].quantity.micros();
    let parts: i128 = [("0", "1000.000003"), ("1000.000003", "1800"), ("1800", "4000")]
        .into_iter()
        .map(|period| rated(&cards, units, "acme", period).unwrap().lines[0].quantity.micros())
        .sum();
    assert_eq!(whole, parts);
}

#[test]
fn terms_that_cannot_be_rated_stop_the_period_and_are_named() {
    let mut card = card("std 0 * l4:-=1.00 h100:-=2.00");
    card.prices[1].unrated.insert(Term::Tiers);
    let cards = RateCards::new([card.clone()]);
    assert!(
        rated(&cards, "a-1 0 3600 acme l4", "acme", ("0", "10000")).is_ok(),
        "a price nobody used stops nothing"
    );
    let error = rated(&cards, "a-1 0 3600 acme h100", "acme", ("0", "10000")).unwrap_err().to_string();
    assert!(error.contains("\"std\"") && error.contains("prices[1].tiers"), "{error}");
    card.unrated.insert(Term::MinimumSpend);
    let cards = RateCards::new([card]);
    let error = rated(&cards, "a-1 0 3600 acme l4", "acme", ("0", "10000")).unwrap_err().to_string();
    assert!(error.contains("minimum_spend"), "{error}");
}

fn cards_of_a_high_price() -> RateCards {
    cards(&["std 0 * l4:-=1000000000000.01"])
}

#[test]
fn lines_without_quantity_do_not_exist_and_huge_ones_are_an_error() {
    let cards = cards(&["std 0 * l4:-=999999999999999.000000000001"]);
    assert_eq!(rated(&cards, "a-1 0 3600 acme l4", "acme", ("7200", "10000")).unwrap().lines, vec![]);
    let absurd = "a-1 0 315359999.999999 acme l4 x4000000000";
    assert!(matches!(rated(&cards, absurd, "acme", ("0", "315360000")), Err(RateError::Money(_))));
    let large = "a-1 0 315360000 acme l4 x1000000";
    assert!(rated(&cards_of_a_high_price(), large, "acme", ("0", "315360000")).is_ok());
}

#[test]
fn gathering_keeps_each_units_end_and_nothing_before_the_books_open() {
    let UnitUse { spans, .. } = unit("a-1 0 3600 acme l4");
    let view = view_of("a-1");
    let units = gather_units(&spans, std::slice::from_ref(&view), at("1000"));
    assert_eq!(units[0].spans[0].window.start(), at("1000"));
    assert_eq!((units[0].start, &units[0].end), (at("0"), &view.unit_ends[&0]));
    assert_eq!(gather_units(&spans, &[view], at("3600")), vec![]);
    assert_eq!(Lock::default(), Lock::AtEvent);
}

/// Open as a whole; its one unit was taken by the provider after an hour.
fn view_of(allocation: &str) -> AllocationView {
    AllocationView {
        allocation: AllocationId::new(allocation),
        start: at("0"),
        end: End::Open,
        unit_ends: BTreeMap::from([(0, End::Ended { at: at("3600"), provider_took: true })]),
        tenant: TenantId::new("acme"),
        project: None,
        class: Class::OnDemand,
        reason: None,
        source: crate::ids::Source::new("/allocators/t"),
        labels: BTreeMap::new(),
        slurm_job: None,
        pod_uid: None,
    }
}
