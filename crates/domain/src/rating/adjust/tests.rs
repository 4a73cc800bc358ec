//! Late facts after a close: adjustments by hand, and the law that documents always add up to what all facts come to.

use super::super::charge::tests::{at, unit};
use super::super::charge::{Rating, Sold, UnitUse, rate};
use super::super::select::tests::cards;
use super::*;
use crate::ids::{AllocationId, TenantId};
use crate::time::Window;

/// The first 10,000 seconds, rated; the price of an l4 changes at 5,000.
fn lines(units: &[UnitUse]) -> Vec<Line> {
    let cards = cards(&["std 0 * l4:-=0.35 h100:-=4.11 h100:spot=1.07", "std 5000 * l4:-=0.37 h100:-=4.11"]);
    let tenant = TenantId::new("acme");
    let period = Window::new(at("0"), at("10000")).unwrap();
    let rating =
        Rating { tenant: &tenant, period, currency: "USD".parse().unwrap(), cards: &cards, later: None };
    rate(Sold { units, ..Sold::default() }, rating).unwrap().lines
}

/// Documents of a tenant: what stands for each line of the period.
#[derive(Default)]
struct Documents {
    stood: BTreeMap<LineKey, Stood>,
    written: usize,
}

impl Documents {
    fn write(&mut self, lines: impl IntoIterator<Item = Line>) {
        for line in lines {
            self.written += 1;
            match self.stood.get_mut(&line.key) {
                Some(stood) => stood.add(&line).unwrap(),
                None => {
                    let stood = Stood { first: format!("line {}", self.written), line: line.clone() };
                    self.stood.insert(line.key, stood);
                }
            }
        }
    }

    /// Books the adjustments; what each says, as `line-it-corrects: quantity amount`.
    fn adjust(&mut self, now: Vec<Line>) -> Vec<String> {
        let adjustments = adjust(now, self.stood.clone()).unwrap();
        let said = adjustments.iter().map(|one| {
            let corrects = one.corrects.as_deref().unwrap_or("no line");
            format!("{corrects}: {} {}", one.line.quantity, one.line.amount)
        });
        let said = said.collect();
        self.write(adjustments.into_iter().map(|one| one.line));
        said
    }

    /// Key, quantity and amount of everything that is not nothing.
    fn sums(&self) -> Vec<(LineKey, Quantity, Money)> {
        let sums = self.stood.values().map(|s| (s.line.key.clone(), s.line.quantity, s.line.amount));
        sums.filter(|(_, quantity, amount)| !quantity.is_zero() || amount.minor() != 0).collect()
    }
}

fn units(texts: &[&str]) -> Vec<UnitUse> {
    texts.iter().map(|text| unit(text)).collect()
}

#[test]
fn a6_the_adjustment_is_the_line_rated_anew_minus_what_stands() {
    let mut documents = Documents::default();
    // 1286 s of an l4 are 0.12502…, so 0.13.
    documents.write(lines(&units(&["a-1 0 1286 acme l4", "a-2 0 3600 acme h100"])));
    // As much again is 0.25 in all: the adjustment is 0.12 and not another 0.13. What is new has no line to name, what is gone is its
    // full negative.
    let later = lines(&units(&["a-1 0 1286 acme l4", "a-3 0 1286 acme l4", "a-4 0 3600 acme h100 spot"]));
    let said = documents.adjust(later.clone());
    assert_eq!(said, ["line 1: -3600 -4.11", "no line: 3600 1.07", "line 2: 1286 0.12"]);
    assert_eq!(documents.adjust(later), Vec::<String>::new(), "what is adjusted stands");
    let none = documents.adjust(Vec::new());
    assert_eq!(none, ["line 4: -3600 -1.07", "line 2: -2572 -0.25"], "the first line that stood is named");
    assert_eq!(documents.sums(), vec![]);
}

#[test]
fn a6_an_adjustment_names_the_parts_that_changed() {
    let mut documents = Documents::default();
    documents.write(lines(&units(&["a-1 0 3600 acme l4", "a-2 0 3600 acme l4", "a-3 0 60 acme l4"])));
    let now = lines(&units(&["a-1 0 1800 acme l4", "a-2 0 3600 acme l4", "a-4 0 60 acme l4"]));
    let adjustments = adjust(now, documents.stood).unwrap();
    let parts = &adjustments[0].line.uses;
    let parts: Vec<(UseOf, i128)> =
        parts.iter().map(|part| (part.of.clone(), part.quantity.micros() / 1_000_000)).collect();
    let named = |allocation: &str| UseOf::Unit(AllocationId::new(allocation), 0);
    assert_eq!(parts, [(named("a-1"), -1800), (named("a-3"), -60), (named("a-4"), 60)]);
    let (now, stood) = (adjustments[0].now, adjustments[0].stood);
    assert_eq!((now.quantity.micros(), stood.quantity.micros()), (5_460_000_000, 7_260_000_000));
}

/// The next number of a fixed sequence (splitmix64).
fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % below
}

/// A hold that is drawn: anywhere around the period, shared or not, in one state or two.
fn drawn(state: &mut u64, number: u64) -> UnitUse {
    let start = draw(state, 11_000);
    let end = start + 1 + draw(state, 4_000);
    let micros = draw(state, 999_999);
    let sku = ["l4", "h100", "h100 spot"][usize::try_from(draw(state, 3)).unwrap()];
    let share = ["", "share=1/3", "share=1/7"][usize::try_from(draw(state, 3)).unwrap()];
    let change = start + 1 + draw(state, end - start);
    let idles = draw(state, 3) == 0 && change < end;
    let states = if idles { format!("states={change}:idle") } else { String::new() };
    unit(&format!("a-{number} {start}.{micros:06} {end}.999999 acme {sku} {share} {states}"))
}

#[test]
fn a6_invoice_and_adjustments_add_up_to_a_rating_from_all_facts_whatever_comes_late() {
    let mut state = 7;
    for round in 0..200 {
        let mut facts: BTreeMap<u64, UnitUse> =
            (0..6).map(|number| (number, drawn(&mut state, number))).collect();
        let now = |facts: &BTreeMap<u64, UnitUse>| lines(&facts.values().cloned().collect::<Vec<_>>());
        let mut documents = Documents::default();
        documents.write(now(&facts));
        for _ in 0..5 {
            // Late facts: a hold that was not known, another end or state of a known one, one that never was.
            for _ in 0..=draw(&mut state, 2) {
                let number = draw(&mut state, 10);
                match draw(&mut state, 4) {
                    0 => drop(facts.remove(&number)),
                    _ => drop(facts.insert(number, drawn(&mut state, number))),
                }
            }
            documents.adjust(now(&facts));
            let expected: Vec<_> =
                now(&facts).into_iter().map(|line| (line.key, line.quantity, line.amount)).collect();
            assert_eq!(documents.sums(), expected, "round {round}");
        }
    }
}
