//! The laws, each a function from a case to what it breaks.

use super::capacity;
use crate::generate::{BEGIN, Case};
use gpuledger_domain::attribution::{Attribution, Context, Segment, attribute, attribute_gpus};
use gpuledger_domain::fact::{Fact, Settings};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::journal::journals;
use gpuledger_domain::sku::SkuBook;
use gpuledger_domain::time::{HOUR_US, Instant, Window};
use gpuledger_domain::usage::UsageSpan;
use gpuledger_painter::{Met, Owned, Rules, Totals, UnplacedTime, paint, unplaced};
use gpuledger_wire::geometry::geometry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::LazyLock;

static GEOMETRY: LazyLock<Geometry> = LazyLock::new(geometry);
static SKUS: LazyLock<SkuBook> = LazyLock::new(SkuBook::default);

/// Checks every law; which of the harder rules were met.
pub(super) fn check(case: &Case) -> Result<Met, String> {
    let truth = ledger(case, &case.facts);
    slices_are_conserved(case, &truth)?;
    segments_tile(&truth)?;
    order_changes_nothing(case, &truth)?;
    repetition_changes_nothing(case, &truth)?;
    a_late_fact_is_the_same_fact(case, &truth)?;
    gpus_stand_for_themselves(case, &truth)?;
    reads_add_up(case, &truth)?;
    usage_is_what_stands_in_the_balance(&truth)?;
    equals_the_painter(case, &truth)
}

fn context(case: &Case) -> Context<'_> {
    Context {
        geometry: &GEOMETRY,
        skus: &SKUS,
        settings: Settings::default(),
        pools: &case.pools,
        measured: &case.measured,
    }
}

/// The ledger of the case from `facts`, which say the same in another way.
fn ledger(case: &Case, facts: &[Fact]) -> Attribution {
    attribute(facts, &context(case), case.as_of)
}

/// Numbers drawn from the salt of the case: the law of a failing case stays the same while it shrinks.
struct Draw(u64);

impl Draw {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }

    fn shuffled(&mut self, facts: &[Fact]) -> Vec<Fact> {
        let mut facts = facts.to_vec();
        for n in (1..facts.len()).rev() {
            facts.swap(n, self.below(n + 1));
        }
        facts
    }
}

fn same<T: PartialEq + Debug>(law: &str, one: &T, other: &T) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{law}:\n  {one:?}\nbut\n  {other:?}")) }
}

/// in each hour the accounts of a GPU add up to its capacity in both dimensions.
fn slices_are_conserved(case: &Case, truth: &Attribution) -> Result<(), String> {
    let mut capacity: BTreeMap<_, (i128, i128)> = BTreeMap::new();
    for (gpu, (windows, compute, memory)) in capacity::windows(&case.facts, case.as_of) {
        for part in windows.into_iter().flat_map(|window| window.split(HOUR_US)) {
            let hour = capacity.entry((gpu.clone(), part.start().floor(HOUR_US))).or_default();
            hour.0 += i128::from(part.micros()) * compute;
            hour.1 += i128::from(part.micros()) * memory;
        }
    }
    let mut posted: BTreeMap<_, (i128, i128)> = BTreeMap::new();
    for ((gpu, hour, ..), (compute, memory)) in totals(truth) {
        let sum = posted.entry((gpu, hour)).or_default();
        *sum = (sum.0 + compute, sum.1 + memory);
    }
    same("the accounts of each hour add up to the capacity", &capacity, &posted)
}

/// at each instant each slice is in exactly one account.
fn segments_tile(truth: &Attribution) -> Result<(), String> {
    for (gpu, timeline) in &truth.gpus {
        let mut last: Option<Window> = None;
        for segment in &timeline.segments {
            if last.is_some_and(|last| segment.window.start() < last.end()) {
                return Err(format!("segments of {gpu} overlap at {}", segment.window));
            }
            last = Some(segment.window);
            let mut mask = 0_u32;
            for piece in &segment.pieces {
                if mask & piece.memory_mask != 0 {
                    return Err(format!("a slice of {gpu} is in two accounts: {segment:?}"));
                }
                mask |= piece.memory_mask;
            }
            let compute: u32 = segment.pieces.iter().map(|piece| u32::from(piece.compute_slices)).sum();
            let whole = (1_u32 << segment.memory_slices) - 1;
            if mask != whole || compute != u32::from(segment.compute_slices) {
                return Err(format!("slices of {gpu} are in no account: {segment:?}"));
            }
        }
    }
    Ok(())
}

/// the order of arrival changes nothing.
fn order_changes_nothing(case: &Case, truth: &Attribution) -> Result<(), String> {
    let shuffled = Draw(case.salt).shuffled(&case.facts);
    same("order changes nothing", truth, &ledger(case, &shuffled))
}

/// A-5, I-1: the same fact again changes nothing.
fn repetition_changes_nothing(case: &Case, truth: &Attribution) -> Result<(), String> {
    let mut draw = Draw(case.salt);
    let mut facts = case.facts.clone();
    let again: Vec<Fact> = case.facts.iter().filter(|_| draw.below(3) == 0).cloned().collect();
    facts.extend(again);
    same("repetition changes nothing", truth, &ledger(case, &facts))
}

/// what all facts give in order of time is what they give when one of them comes last.
fn a_late_fact_is_the_same_fact(case: &Case, truth: &Attribution) -> Result<(), String> {
    let mut facts = case.facts.clone();
    facts.sort_by_key(|fact| fact.at);
    same("facts in time give the same", truth, &ledger(case, &facts))?;
    if facts.is_empty() {
        return Ok(());
    }
    let late = facts.remove(Draw(case.salt).below(facts.len()));
    facts.push(late);
    same("a late fact is the same fact", truth, &ledger(case, &facts))
}

/// I-3: re-posting one GPU gives what the whole ledger gives for it.
fn gpus_stand_for_themselves(case: &Case, truth: &Attribution) -> Result<(), String> {
    let context = context(case);
    for (gpu, timeline) in &truth.gpus {
        let only = BTreeSet::from([gpu.clone()]);
        let alone = attribute_gpus(&case.facts, &context, case.as_of, Some(&only));
        same("a GPU alone gives the same", &Some(timeline), &alone.gpus.get(gpu))?;
    }
    Ok(())
}

/// M-3: a read over a window is the sum of the reads over its two parts, wherever it is cut.
fn reads_add_up(case: &Case, truth: &Attribution) -> Result<(), String> {
    let mut draw = Draw(case.salt);
    let length = usize::try_from(case.as_of.since(BEGIN)).unwrap_or(0);
    let mut edges = [0; 3].map(|_| BEGIN.plus(i64::try_from(draw.below(length + 1)).unwrap_or(0)));
    edges.sort();
    let [start, middle, end] = edges;
    for span in &truth.spans {
        let read = |start, end| {
            let part = Window::new(start, end).and_then(|window| span.cut(window));
            part.map_or([0; 5], |part| {
                let slices = [part.compute_slice_us(), part.memory_slice_us()].map(Option::unwrap_or_default);
                [part.allocated_us(), part.billed_us(), part.conserved_us(), slices[0], slices[1]]
            })
        };
        let (whole, first, second) = (read(start, end), read(start, middle), read(middle, end));
        let sum: Vec<i128> = first.iter().zip(second).map(|(a, b)| a + b).collect();
        same(&format!("reads of {span:?} add up at {middle}"), &whole.to_vec(), &sum)?;
    }
    Ok(())
}

/// M-4: the slice columns of usage are what stands in account `tenant`.
fn usage_is_what_stands_in_the_balance(truth: &Attribution) -> Result<(), String> {
    let mut used: BTreeMap<_, (i128, i128)> = BTreeMap::new();
    for span in &truth.spans {
        let Some(place) = &span.place else { continue };
        let sum = used.entry((place.gpu.clone(), span.tenant.clone(), span.allocation.clone())).or_default();
        sum.0 += span.compute_slice_us().unwrap_or_default();
        sum.1 += span.memory_slice_us().unwrap_or_default();
    }
    used.retain(|_, sum| *sum != (0, 0));
    let mut posted: BTreeMap<_, (i128, i128)> = BTreeMap::new();
    for ((gpu, _, _, tenant, allocation), (compute, memory)) in totals(truth) {
        let (Some(tenant), Some(allocation)) = (tenant, allocation) else { continue };
        let sum = posted.entry((gpu, tenant, allocation)).or_default();
        *sum = (sum.0 + compute, sum.1 + memory);
    }
    same("usage is what stands in the balance", &used, &posted)
}

/// The second method finds the same as attribution and as the journals, hour by hour, the same parts and times for each owner, and the same
/// for units outside the balance.
fn equals_the_painter(case: &Case, truth: &Attribution) -> Result<Met, String> {
    let rules = Rules {
        geometry: &GEOMETRY,
        settings: Settings::default(),
        pools: &case.pools,
        measured: &case.measured,
    };
    let painting = paint(&case.facts, &rules, case.as_of);
    let painted = painting.totals();
    differences("the two methods differ", &totals(truth), &painted)?;
    differences("the journals differ from the painter", &journal_totals(truth), &painted)?;
    let placed = owned(truth, |span| span.place.is_some());
    let mut parts: BTreeMap<Owned, i128> =
        placed.iter().map(|(owner, time)| (owner.clone(), time.billed_us)).collect();
    parts.retain(|_, part| *part != 0);
    same("parts of owners equal the painter's", &parts, &painting.parts)?;
    let states = placed.into_iter().flat_map(|(owner, time)| {
        time.held_us.into_iter().map(move |(state, held)| ((owner.clone(), state), held))
    });
    same("held time by state equals the painter's", &states.collect(), &painting.held)?;
    let painted = unplaced(&case.facts, &rules, case.as_of);
    same("unplaced time equals the painter's", &owned(truth, |span| span.place.is_none()), &painted)?;
    Ok(painting.met)
}

/// Time of each owner: held, by state, and conserved.
fn owned(truth: &Attribution, which: impl Fn(&UsageSpan) -> bool) -> BTreeMap<Owned, UnplacedTime> {
    let mut times: BTreeMap<Owned, UnplacedTime> = BTreeMap::new();
    for span in truth.spans.iter().filter(|span| which(span)) {
        let owner = (span.allocation.clone(), span.tenant.clone(), span.project.clone());
        let time = times.entry(owner).or_default();
        if span.held {
            *time.held_us.entry(span.state.clone()).or_default() += span.allocated_us();
        }
        time.billed_us += span.conserved_us();
    }
    times.retain(|_, time| *time != UnplacedTime::default());
    times
}

/// Sums of the postings of each hour. A segment that crosses hours is read hour by hour.
fn totals(truth: &Attribution) -> Totals {
    let mut totals = Totals::new();
    for (gpu, timeline) in &truth.gpus {
        for segment in &timeline.segments {
            for window in segment.window.split(HOUR_US) {
                for posting in (Segment { window, ..segment.clone() }).postings() {
                    let hour = window.start().floor(HOUR_US);
                    let key = (gpu.clone(), hour, posting.account, posting.tenant, posting.allocation);
                    let sum = totals.entry(key).or_default();
                    *sum = (sum.0 + posting.compute_slice_us, sum.1 + posting.memory_slice_us);
                }
            }
        }
    }
    totals.retain(|_, sum| *sum != (0, 0));
    totals
}

/// Sums of the entries of the journals.
fn journal_totals(truth: &Attribution) -> Totals {
    let mut totals = Totals::new();
    for (gpu, timeline) in &truth.gpus {
        for journal in journals(gpu, timeline, Instant::MAX) {
            for entry in journal.entries {
                let owner = entry.owner.map(|owner| (owner.tenant, owner.allocation)).unzip();
                let sum =
                    totals.entry((gpu.clone(), journal.hour, entry.account, owner.0, owner.1)).or_default();
                sum.0 += i128::from(entry.part_us) * i128::from(entry.compute_slices);
                sum.1 += i128::from(entry.part_us) * i128::from(entry.memory_mask.count_ones());
            }
        }
    }
    totals.retain(|_, sum| *sum != (0, 0));
    totals
}

fn differences(law: &str, ledger: &Totals, painter: &Totals) -> Result<(), String> {
    let keys: BTreeSet<_> = ledger.keys().chain(painter.keys()).collect();
    let differing = keys.into_iter().filter(|key| ledger.get(key) != painter.get(key));
    let lines: Vec<String> = differing
        .map(|key| {
            let ((gpu, hour, account, ..), who) = (key, key.4.as_ref().map_or("", |id| id.as_str()));
            format!(
                "  {gpu} {hour} {account:?} {who}: {:?} but painted {:?}",
                ledger.get(key),
                painter.get(key)
            )
        })
        .collect();
    if lines.is_empty() { Ok(()) } else { Err(format!("{law}:\n{}", lines.join("\n"))) }
}
