//! The cases of `tests/cases` that need the program: each on a database of its own, through the command line, as a user would.
//!
//! In the order of the file and, where the order may not matter, each time backwards and twice. `CASE=name` runs those whose names contain it;
//! `CASES=all` runs the whole table so, also those that the rules alone answer.

#![expect(clippy::print_stderr, reason = "helpers of tests are tests too")]

mod answer;
mod product;

use gpuledger_cases::{Case, Said, Step, read_all};
use gpuledger_domain::time::{HOUR_US, Instant};
use product::Product;
use std::sync::Mutex;

/// Cases that run at the same time.
const LANES: usize = 2;

/// How the events of one file are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AsWritten,
    BackwardsAndTwice,
}

#[test]
fn every_case_on_a_database_stands() {
    let wanted = std::env::var("CASE").unwrap_or_default();
    let all = std::env::var("CASES").is_ok_and(|word| word == "all");
    let cases = read_all().unwrap_or_else(|troubles| panic!("the table cannot be read:\n{troubles}"));
    let cases: Vec<Case> =
        cases.into_iter().filter(|case| (case.on_database || all) && case.name.contains(&wanted)).collect();
    if let Err(why) = Product::server() {
        eprintln!("SKIPPED {} cases: {why}", cases.len());
        return;
    }
    let todo = Mutex::new(cases.iter());
    let short = Mutex::new(Vec::new());
    let next = || todo.lock().expect("no lane panics").next();
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(case) = next() {
                    if let Err(fell) = run(case) {
                        let text = format!("{} {}: {}\n{fell}", case.place, case.name, case.title);
                        short.lock().expect("no lane panics").push(text);
                    }
                }
            });
        }
    });
    let short = short.into_inner().expect("no lane panics");
    assert!(short.is_empty(), "{} of {} cases fell short\n{}", short.len(), cases.len(), short.join("\n"));
    eprintln!("{} cases on a database", cases.len());
}

fn run(case: &Case) -> Result<(), String> {
    let orders: &[Order] =
        if case.fixed { &[Order::AsWritten] } else { &[Order::AsWritten, Order::BackwardsAndTwice] };
    let fell = orders
        .iter()
        .filter_map(|order| pass(case, *order).err().map(|fell| format!("  {order:?}:\n{fell}")));
    let fell: Vec<String> = fell.collect();
    if fell.is_empty() { Ok(()) } else { Err(fell.join("\n")) }
}

/// One pass; after a step that falls short the others are still looked at, unless the program itself failed.
fn pass(case: &Case, order: Order) -> Result<(), String> {
    let (first, last) = times(case);
    let mut product = Product::new(first.plus(-24 * HOUR_US))?;
    product.prepare(case)?;
    product.clock = last.plus(24 * HOUR_US);
    let mut said: Vec<&Said> = Vec::new();
    let mut short = Vec::new();
    for (line, step) in &case.steps {
        let stood = match step {
            Step::Clock(at) => {
                product.clock = *at;
                Ok(())
            }
            Step::Said(event) => {
                said.push(event);
                Ok(())
            }
            Step::Horizon(at) => {
                let events = ordered(&std::mem::take(&mut said), order);
                return_on_error(product.replay(&events, *at), *line)?;
                Ok(())
            }
            Step::Apply { yaml, exit } => product.apply(yaml, *exit),
            Step::Do { words, exit } => product.does(words, *exit),
            Step::Expect(expect) => product.stands(expect),
        };
        if let Err(fell) = stood {
            short.push(format!("    line {line}: {fell}"));
        }
    }
    if short.is_empty() { Ok(()) } else { Err(short.join("\n")) }
}

fn return_on_error(result: Result<(), String>, line: usize) -> Result<(), String> {
    result.map_err(|why| format!("    line {line}: {why}"))
}

fn ordered<'c>(said: &[&'c Said], order: Order) -> Vec<&'c Said> {
    match order {
        Order::AsWritten => said.to_vec(),
        Order::BackwardsAndTwice => said.iter().rev().flat_map(|event| [*event, *event]).collect(),
    }
}

/// The earliest and the latest instant that the case names.
fn times(case: &Case) -> (Instant, Instant) {
    let horizons = case.steps.iter().filter_map(|(_, step)| match step {
        Step::Horizon(at) | Step::Clock(at) => Some(*at),
        _ => None,
    });
    // A clock that was never set says 1970, which is not when the case begins.
    let begin = Instant::from_micros(1_577_836_800_000_000);
    let said = case.said().into_iter().map(|said| said.at);
    let all: Vec<Instant> = horizons.chain(said).filter(|at| *at > begin).collect();
    (all.iter().min().copied().unwrap_or(begin), all.iter().max().copied().unwrap_or(begin))
}
