//! Pools of every policy, work that they report, and what is measured of jobs.

use super::{BEGIN, Facts, length, time};
use gpuledger_domain::fact::{FactBody, Placement};
use gpuledger_domain::ids::{GpuId, NodeId, ProjectId, TenantId};
use gpuledger_domain::measured::{Minute, Owner, Rollup};
use gpuledger_domain::pool::{Idle, Policy, Pool, Pools, Work, WorkKind, WorkWindow};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{HOUR_US, MINUTE_US};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What a grant may name: two pools of work, two of measured time, two by share, and one that nobody applied.
const NAMES: [&str; 7] = ["work-1", "work-2", "measured-1", "measured-2", "shares-1", "shares-2", "nobody"];

/// A wish for a pool.
pub(crate) fn wish() -> impl Strategy<Value = Option<usize>> {
    prop::option::weighted(
        0.85,
        prop_oneof![3 => 0_usize..2, 3 => 2_usize..4, 3 => 4_usize..6, 1 => Just(6_usize)],
    )
}

/// The name that a wish means.
pub(crate) fn name(wish: Option<usize>) -> Option<String> {
    wish.map(|n| NAMES[n % NAMES.len()].to_owned())
}

/// The pools of a case.
pub(crate) fn pools() -> impl Strategy<Value = Pools> {
    let work = || (work_policy(), idle()).prop_map(|(policy, idle)| Pool { policy, idle });
    let by = |policy: Policy| idle().prop_map(move |idle| Pool { policy: policy.clone(), idle });
    let all = (
        [work(), work()],
        [by(Policy::Measured), by(Policy::Measured)],
        [by(Policy::Entitlement), by(Policy::Entitlement)],
    );
    all.prop_map(|(work, measured, shares)| {
        let named = NAMES.map(str::to_owned);
        named.into_iter().zip(work.into_iter().chain(measured).chain(shares)).collect()
    })
}

fn idle() -> impl Strategy<Value = Idle> {
    prop_oneof![Just(Idle::Provider), Just(Idle::Proportional), Just(Idle::Even)]
}

fn work_policy() -> impl Strategy<Value = Policy> {
    let window = prop_oneof![Just(WorkWindow::One), Just(WorkWindow::Five), Just(WorkWindow::Fifteen)];
    let weight =
        prop_oneof![Just(Share::from_integer(0)), Just(Share::from_integer(4)), Just(Share::new(1, 7))];
    (window, [weight.clone(), weight]).prop_map(|(window, [requests, units])| {
        let weights = BTreeMap::from([
            (WorkKind::InputTokens, Share::from_integer(1)),
            (WorkKind::Requests, requests),
            (WorkKind::Units, units),
        ]);
        Policy::Work { weights, window }
    })
}

/// A report of work. Several overlap, and some take no time.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pool: usize,
    tenant: u8,
    project: Option<u8>,
    at: i64,
    lasts: i64,
    /// Whether it is said while the work still goes on.
    early: bool,
    amounts: [Option<u64>; 4],
}

pub(crate) fn report() -> impl Strategy<Value = Report> {
    let lasts = prop_oneof![1 => Just(0_i64), 2 => 1..3 * MINUTE_US, 1 => Just(MINUTE_US), 2 => length()];
    let amount = || {
        prop::option::weighted(0.7, prop_oneof![2 => 0_u64..5, 1 => 0..1_000_000_u64, 1 => Just(u64::MAX)])
    };
    let who = (0_u8..4, prop::option::of(0_u8..2));
    (0_usize..2, who, time(), lasts, any::<bool>(), [amount(), amount(), amount(), amount()]).prop_map(
        |(pool, (tenant, project), at, lasts, early, amounts)| Report {
            pool,
            tenant,
            project,
            at,
            lasts,
            early,
            amounts,
        },
    )
}

impl Report {
    /// The same in another pool (the first where none is wished for), and later by `at`.
    pub(crate) fn during(&self, pool: Option<usize>, at: i64) -> Self {
        let within = self.at % HOUR_US;
        Self { pool: pool.unwrap_or_default(), at: at + within, ..self.clone() }
    }

    pub(crate) fn say(&self, facts: &mut Facts) {
        let kinds = [WorkKind::InputTokens, WorkKind::Requests, WorkKind::Units, WorkKind::KvByteUs];
        let amount = |(kind, amount): (WorkKind, Option<u64>)| {
            let divisor = if kind == WorkKind::Units { 10 } else { 1 };
            Some((kind, Share::new(i128::from(amount?), divisor)))
        };
        let work = Work {
            pool: NAMES[self.pool % NAMES.len()].to_owned(),
            tenant: TenantId::new(["acme", "bolt", "cora", "dune"][usize::from(self.tenant) % 4]),
            project: self.project.map(|n| ProjectId::new(["p", "q"][usize::from(n) % 2])),
            adapter: None,
            start: BEGIN.plus(self.at),
            end: BEGIN.plus(self.at + self.lasts),
            amounts: kinds.into_iter().zip(self.amounts).filter_map(amount).collect(),
        };
        let said = if self.early { self.at } else { self.at + self.lasts };
        facts.say("/gateways/g0", said, FactBody::Work(work));
    }
}

/// What is measured of a job on one of its units in one hour.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    hour: i64,
    /// Minute and SM-active microseconds; none: not measurable.
    minutes: BTreeMap<u8, Option<u64>>,
}

pub(crate) fn measures() -> impl Strategy<Value = Vec<Measure>> {
    let active = prop::option::weighted(0.9, prop_oneof![Just(0), Just(60_000_000), 0_u64..60_000_000]);
    let minutes = prop::collection::btree_map(0_u8..60, active, 0..60);
    let measure = (0_i64..2, minutes).prop_map(|(hour, minutes)| Measure { hour, minutes });
    prop::collection::vec(measure, 0..4)
}

impl Measure {
    pub(crate) fn rollup(&self, gpu: GpuId, placement: Option<Placement>, job: &str, from: i64) -> Rollup {
        let minute = |active: Option<u64>| Minute {
            sm_active_us: active,
            covered_us: 60_000_000,
            ..Minute::default()
        };
        Rollup {
            node: NodeId::new("n0"),
            gpu,
            placement,
            owner: Owner::Job(job.to_owned()),
            hour: BEGIN.plus(from).floor(HOUR_US).plus(self.hour * HOUR_US),
            minutes: self.minutes.iter().map(|(n, active)| (*n, minute(*active))).collect(),
            memory_bytes_max: None,
            quality: BTreeMap::new(),
        }
    }
}
