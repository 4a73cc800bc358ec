//! The written table of cases (`tests/cases`), by the rules alone: each event goes as JSON through the decoder to a fact, attribution and the
//! painter run on the facts in the order of the file, shuffled with half of them twice, and backwards, and every time the same must stand.
//!
//! `CASE=name` runs the cases whose names contain it. Those that need a database run in `services/gpuledger/tests/cases`.

mod compare;
mod layouts;
mod ledger;
mod sources;

use gpuledger_cases::{Case, Said, read_all};
use gpuledger_domain::fact::Fact;
use std::collections::BTreeMap;
use std::io::Write;

/// The least number of cases in the table.
const LEAST: usize = 120;

fn table() -> Vec<Case> {
    read_all().unwrap_or_else(|troubles| panic!("the table cannot be read:\n{troubles}"))
}

#[test]
fn every_case_of_the_table_stands_in_any_order_and_by_both_methods() {
    let wanted = std::env::var("CASE").unwrap_or_default();
    let cases: Vec<Case> = table().into_iter().filter(|case| case.name.contains(&wanted)).collect();
    let mut short = Vec::new();
    let mut ran = 0;
    for case in cases.iter().filter(|case| !case.on_database) {
        ran += 1;
        if let Err(fell) = run(case) {
            short.push(format!("{} {}: {}\n{fell}", case.place, case.name, case.title));
        }
    }
    assert!(short.is_empty(), "{} of {ran} cases fell short\n{}", short.len(), short.join("\n"));
    assert!(ran > 0, "no case is called {wanted}");
}

#[test]
fn the_table_is_long_enough_and_answers_every_report_it_should() {
    let cases = table();
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for rule in cases.iter().flat_map(|case| &case.rules) {
        *rules.entry(rule).or_default() += 1;
    }
    let covered: Vec<String> = rules.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
    let on_database = cases.iter().filter(|case| case.on_database).count();
    let summary =
        format!("{} cases, {on_database} of them on a database; rules: {}", cases.len(), covered.join(", "));
    writeln!(std::io::stderr(), "{summary}").expect("stderr is open");
    let missing: Vec<String> =
        sources::wanted_rules().filter(|rule| !rules.contains_key(rule.as_str())).collect();
    assert!(missing.is_empty(), "no case names {}", missing.join(", "));
    assert!(cases.len() >= LEAST, "{} cases, expected {LEAST}", cases.len());
    sources::check(&cases);
}

/// Runs one case in three orders.
fn run(case: &Case) -> Result<(), String> {
    let horizon = case.horizon().ok_or("no horizon")?;
    let said = case.said();
    let first = ledger::Ledger::of(case, &facts(&said)?, horizon)?;
    let mut short: Vec<String> = Vec::new();
    for (line, expect) in case.expects() {
        if let Err(fell) = first.stands(expect) {
            short.push(format!("  line {line}: {fell}"));
        }
    }
    // Not all of them: what is doubled evenly may come out even.
    let twice: Vec<&Said> = shuffled(said.iter().chain(said.iter().step_by(2)).copied().collect());
    let backwards: Vec<&Said> = said.iter().rev().copied().collect();
    for (order, said) in [("shuffled, half of it twice", twice), ("backwards", backwards)] {
        if let Err(fell) = ledger::Ledger::of(case, &facts(&said)?, horizon)?.equals(&first) {
            short.push(format!("  {order}: {fell}"));
        }
    }
    if short.is_empty() { Ok(()) } else { Err(short.join("\n")) }
}

/// Through the whole path: JSON, decoder, fact.
fn facts(said: &[&Said]) -> Result<Vec<Fact>, String> {
    let fact = |said: &&Said| {
        let bytes = serde_json::to_vec(&said.json).map_err(|why| why.to_string())?;
        let event = gpuledger_wire::decode_structured(&bytes).map_err(|why| format!("{}: {why}", said.id))?;
        let unknown = event.unknown_members();
        if unknown.is_empty() {
            Ok(event.to_fact())
        } else {
            Err(format!("{}: no members {unknown:?}", said.id))
        }
    };
    said.iter().map(fact).collect()
}

/// The same disorder each time.
fn shuffled<T>(mut list: Vec<T>) -> Vec<T> {
    let mut state = 20_261_130_u64;
    for n in (1..list.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list.swap(n, usize::try_from(state >> 33).unwrap_or(0) % (n + 1));
    }
    list
}
