//! Attribution on random fleets: what must hold whatever happens.
//!
//! `SOAK_CASES=10000` draws so many cases instead of as many as 30 seconds allow, `SOAK_SEED=n` begins with case n.

mod capacity;
mod laws;

use crate::generate::{Case, cases};
use gpuledger_domain::fact::{FactBody, InventoryGpu};
use gpuledger_domain::ids::GpuId;
use gpuledger_painter::Met;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant as Clock};

/// Time for the cases where `SOAK_CASES` does not say how many.
const BUDGET: Duration = Duration::from_secs(30);
/// Time for making a failing case small.
const SHRINKING: Duration = Duration::from_secs(60);
/// The least share of cases that must reach each of the harder rules, in percent.
const REACH_PERCENT: u64 = 10;

#[test]
fn attribution_keeps_its_laws_on_random_fleets() {
    let wanted = number("SOAK_CASES");
    let first = number("SOAK_SEED").unwrap_or(0);
    let begun = Clock::now();
    let mut reach = Reach::default();
    let goes_on = |done: u64| wanted.map_or_else(|| begun.elapsed() < BUDGET, |wanted| done < wanted);
    while goes_on(reach.cases) {
        let (case, met) = try_case(first + reach.cases);
        reach.add(&case, met);
    }
    reach.print();
    let short = reach.short();
    assert!(short.is_empty(), "too few cases reach {}", short.join(", "));
}

/// The case of this seed and which rules it met; fails with the smallest case that breaks a law.
fn try_case(seed: u64) -> (Case, Met) {
    let mut tree = draw(seed);
    let case = tree.current();
    match keeps_laws(&case) {
        Ok(met) => (case, met),
        Err(_) => {
            let (small, broken) = shrink(tree.as_mut());
            panic!("SOAK_SEED={seed} breaks a law.\n{broken}\nIt does so with as little as this, {small:?}");
        }
    }
}

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

pub(crate) fn draw(seed: u64) -> Box<dyn ValueTree<Value = Case>> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    Box::new(cases().new_tree(&mut runner).expect("the strategy refuses nothing"))
}

/// Which rules the case met, or which law it broke and how.
fn keeps_laws(case: &Case) -> Result<Met, String> {
    catch_unwind(AssertUnwindSafe(|| laws::check(case))).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", said.unwrap_or_default()))
    })
}

/// The smallest failing case found, and what it breaks.
fn shrink(tree: &mut dyn ValueTree<Value = Case>) -> (Case, String) {
    let begun = Clock::now();
    let mut small = tree.current();
    let mut broken = keeps_laws(&small).expect_err("the case failed before");
    while begun.elapsed() < SHRINKING && tree.simplify() {
        loop {
            let case = tree.current();
            if let Err(text) = keeps_laws(&case) {
                (small, broken) = (case, text);
                break;
            }
            if begun.elapsed() > SHRINKING || !tree.complicate() {
                break;
            }
        }
    }
    // A happening may say several facts; drop those that do not matter, until all do.
    while let Some((less, text)) = (0..small.facts.len()).rev().find_map(|n| {
        let mut less = small.clone();
        less.facts.remove(n);
        keeps_laws(&less).err().map(|text| (less, text))
    }) {
        (small, broken) = (less, text);
    }
    (small, broken)
}

/// How many cases reach the harder rules.
#[derive(Default)]
struct Reach {
    cases: u64,
    by_rule: BTreeMap<&'static str, u64>,
}

impl Reach {
    fn add(&mut self, case: &Case, met: Met) {
        self.cases += 1;
        let rules = [
            ("a contest", met.contest),
            ("a late fact", has_late_fact(case)),
            ("a fault overlap", met.fault_overlap),
            ("a re-partition", is_repartitioned(case)),
            ("shares", met.shares),
            ("work of a pool", met.work),
            ("measured time", met.measured),
            ("idle time handed out", met.handed_out),
            ("a billing state", met.state),
            ("a missing release", met.missing_release),
        ];
        for (rule, reached) in rules {
            *self.by_rule.entry(rule).or_default() += u64::from(reached);
        }
    }

    /// Straight to standard error, past the capture of the test harness: each run shows its reach.
    fn print(&self) {
        let percent = |n: &u64| format!("{} %", n * 100 / self.cases.max(1));
        let rules: Vec<String> =
            self.by_rule.iter().map(|(rule, n)| format!("{rule} {}", percent(n))).collect();
        writeln!(std::io::stderr(), "{} random cases: {}", self.cases, rules.join(", "))
            .expect("stderr is open");
    }

    fn short(&self) -> Vec<&'static str> {
        let too_few = |n: &u64| n * 100 < self.cases * REACH_PERCENT;
        self.by_rule.iter().filter(|(_, n)| too_few(n)).map(|(rule, _)| *rule).collect()
    }
}

/// Whether a fact arrives after one that happened later.
fn has_late_fact(case: &Case) -> bool {
    case.facts.windows(2).any(|pair| pair[1].at < pair[0].at && pair[0].at <= case.as_of)
}

/// Whether a GPU is cut in two ways.
fn is_repartitioned(case: &Case) -> bool {
    let mut seen: BTreeMap<&GpuId, &InventoryGpu> = BTreeMap::new();
    let listed = case.facts.iter().filter(|fact| fact.at <= case.as_of).filter_map(|fact| match &fact.body {
        FactBody::Inventory(inventory) => Some(&inventory.gpus),
        _ => None,
    });
    listed.flatten().any(|gpu| {
        let first = *seen.entry(&gpu.gpu).or_insert(gpu);
        (first.mig, &first.instances) != (gpu.mig, &gpu.instances)
    })
}
