//! Random small fleets and what happens to them, as facts in the order of their arrival.
//!
//! A case is a list of independent happenings over a few hours of one or two nodes with up to three GPUs. Times gather at the
//! edges of quarters and hours, and a microsecond beside them, because that is where attribution goes wrong. Shrinking
//! drops happenings one by one, so a failing case ends as the few facts that matter.

mod fleet;
mod happenings;
mod pools;

use fleet::Fleet;
use gpuledger_domain::fact::{Fact, FactBody};
use gpuledger_domain::ids::Source;
use gpuledger_domain::measured::Rollup;
use gpuledger_domain::pool::Pools;
use gpuledger_domain::time::{CELL_US, HOUR_US, Instant, MINUTE_US, SECOND_US};
use happenings::Happening;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt;

/// Every case begins at this hour: 2026-10-01T00:00:00Z.
pub(crate) const BEGIN: Instant = Instant::from_micros(1_790_812_800 * SECOND_US);

/// Facts in order of arrival, and the horizon.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) facts: Vec<Fact>,
    pub(crate) as_of: Instant,
    /// By what pools are divided.
    pub(crate) pools: Pools,
    /// What was measured of jobs in measured pools.
    pub(crate) measured: Vec<Rollup>,
    /// For what a property draws by itself: an order, an instant.
    pub(crate) salt: u64,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: BTreeSet<&str> = self.facts.iter().filter_map(|fact| pool_of(&fact.body)).collect();
        for (name, pool) in self.pools.iter().filter(|(name, _)| named.contains(name.as_str())) {
            writeln!(f, "  pool {name}: {pool:?}")?;
        }
        self.measured.iter().try_for_each(|rollup| writeln!(f, "  measured {rollup:?}"))?;
        writeln!(f, "as of {}, {} facts:", self.as_of, self.facts.len())?;
        let mut facts: Vec<&Fact> = self.facts.iter().collect();
        facts.sort_by_key(|fact| fact.at);
        facts
            .iter()
            .try_for_each(|fact| writeln!(f, "  {} {} {} {:?}", fact.at, fact.source, fact.id, fact.body))
    }
}

fn pool_of(body: &FactBody) -> Option<&str> {
    match body {
        FactBody::Granted(grant) => grant.pool.as_deref(),
        FactBody::Work(work) => Some(&work.pool),
        _ => None,
    }
}

/// Facts under construction: gives each its id, which says nothing about its time or arrival.
#[derive(Default)]
pub(crate) struct Facts(Vec<Fact>, Vec<Rollup>);

impl Facts {
    pub(crate) fn say(&mut self, source: &str, at: i64, body: FactBody) {
        let id = format!("e{:04}", (self.0.len() * 379) % 1009);
        self.0.push(Fact { source: Source::new(source), id, at: BEGIN.plus(at), body });
    }

    pub(crate) fn measure(&mut self, rollup: Rollup) {
        self.1.push(rollup);
    }
}

/// Cases of all kinds.
pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let happenings = prop::collection::vec(happenings::happening(), 4..22);
    let horizon = prop_oneof![3 => Just(None), 1 => time().prop_map(Some)];
    let after = prop_oneof![Just(0), Just(1), 0..2 * HOUR_US];
    (fleet::fleet(), happenings, horizon, after, pools::pools(), any::<u64>().no_shrink()).prop_map(
        |(fleet, happenings, horizon, after, pools, salt)| Case {
            pools,
            salt,
            ..case(&fleet, &happenings, horizon, after)
        },
    )
}

fn case(fleet: &Fleet, happenings: &[Happening], horizon: Option<i64>, after: i64) -> Case {
    let mut facts = Facts::default();
    fleet.say_first_inventories(&mut facts);
    happenings.iter().for_each(|happening| happening.say(fleet, &mut facts));
    let last = facts.0.iter().map(|fact| fact.at).max().unwrap_or(BEGIN);
    let as_of = horizon.map_or(last.plus(after), |at| BEGIN.plus(at));
    Case { facts: facts.0, as_of, pools: Pools::new(), measured: facts.1, salt: 0 }
}

/// Microseconds since the beginning, within four hours, with a liking for edges.
pub(crate) fn time() -> impl Strategy<Value = i64> {
    let beside = prop_oneof![
        4 => Just(0_i64),
        2 => prop_oneof![Just(-1_i64), Just(1), Just(2)],
        2 => -SECOND_US..SECOND_US,
        1 => -MINUTE_US..MINUTE_US,
    ];
    let edge = prop_oneof![
        3 => (0_i64..=16).prop_map(|cell| cell * CELL_US),
        2 => (0_i64..=4).prop_map(|hour| hour * HOUR_US),
        4 => (0_i64..=48).prop_map(|step| step * 5 * MINUTE_US),
    ];
    (edge, beside).prop_map(|(edge, beside)| (edge + beside).max(0))
}

/// How long something lasts, in microseconds: from nothing to a few hours.
pub(crate) fn length() -> impl Strategy<Value = i64> {
    prop_oneof![
        1 => Just(0_i64),
        1 => 1_i64..10,
        1 => 1..SECOND_US,
        3 => 1..20 * MINUTE_US,
        2 => (1_i64..=8).prop_map(|cells| cells * CELL_US),
        2 => 1..3 * HOUR_US,
    ]
}
