//! What can happen to a fleet: each happening says one or a few facts.

use super::fleet::{Fleet, Layout, layout};
use super::pools::{self, Measure, Report};
use super::{Facts, length, time};
use gpuledger_domain::fact::{
    Cause, Class, FactBody, Grant, GrantUnit, Mode, Placed, PlacedOf, PlacedUnit, Placement, ReadBack,
    Runtime, ScrubEvidence, ScrubResult, State, UnitState,
};
use gpuledger_domain::ids::{AllocationId, NodeId, ProjectId, ScrubId, SkuId, TenantId};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::MINUTE_US;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One happening. Numbers that name GPUs, places and allocations are wishes: they mean what the fleet has.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    /// A tenant gets units and, mostly, gives them back.
    Job(Job),
    /// Allocator facts about an allocation: its state, a transfer, another release.
    Word { allocation: u8, at: i64, word: Word },
    /// Devices of an allocation, by its id or by its job.
    Devices { allocation: u8, by_job: bool, at: i64, units: Vec<Pick> },
    /// A source's complete live list.
    Snapshot { source: u8, node: Option<usize>, live: Vec<u8>, at: i64 },
    /// A node's inventory, cut anew or not.
    Inventory { node: usize, at: i64, layouts: Vec<Layout>, lost: Option<usize>, found: Option<usize> },
    /// Proofs of life, evenly spaced.
    Alive { node: usize, at: i64, every: i64, count: u8 },
    /// Something breaks or is taken, and perhaps is classified or works again.
    Trouble { gpu: usize, place: Option<usize>, by_allocator: bool, at: i64, states: Vec<(State, i64)> },
    /// A scrub that ends or does not.
    Scrub { gpu: usize, place: Option<usize>, at: i64, lasts: Option<i64>, announced: bool, scrub: u8 },
    /// Capacity ends.
    Decommission { gpu: Option<usize>, node: usize, at: i64 },
    /// Work of a pool.
    Work(Report),
    /// A fact that moves nothing.
    Nothing { at: i64 },
}

/// A grant with its release.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    allocation: u8,
    tenant: u8,
    at: i64,
    /// Negative: released before it began.
    lasts: Option<i64>,
    shared: bool,
    units: Vec<Pick>,
    unplaced: Option<(u32, Option<Share>)>,
    /// Whether the release arrives before the grant.
    release_first: bool,
    pool: Option<usize>,
    /// What is measured of it on each of its devices, in hours from its start.
    measured: Vec<Measure>,
    /// What its pool does meanwhile, in times from its start.
    reports: Vec<Report>,
    /// Its billing states, in times from its start.
    states: Vec<(u8, i64)>,
}

/// A wish for a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    gpu: usize,
    /// None: the whole GPU.
    place: Option<usize>,
    uuid_only: bool,
    share: Option<Share>,
}

/// What allocators say beside grants.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    State(u8),
    Transfer(u8, bool),
    Release,
}

pub(crate) fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        13 => job().prop_map(Happening::Job),
        3 => (0_u8..6, time(), word()).prop_map(|(allocation, at, word)| Happening::Word { allocation, at, word }),
        2 => (0_u8..6, any::<bool>(), time(), prop::collection::vec(pick(false), 1..3))
            .prop_map(|(allocation, by_job, at, units)| Happening::Devices { allocation, by_job, at, units }),
        1 => (0_u8..2, prop::option::of(0_usize..2), prop::collection::vec(0_u8..6, 0..4), time())
            .prop_map(|(source, node, live, at)| Happening::Snapshot { source, node, live, at }),
        5 => inventory(),
        4 => (0_usize..2, time(), 1..20 * MINUTE_US, 1_u8..12)
            .prop_map(|(node, at, every, count)| Happening::Alive { node, at, every, count }),
        5 => trouble(),
        2 => (0_usize..3, place(), time(), prop::option::weighted(0.7, length()), any::<bool>(), 0_u8..3).prop_map(
            |(gpu, place, at, lasts, announced, scrub)| Happening::Scrub { gpu, place, at, lasts, announced, scrub }
        ),
        1 => (prop::option::of(0_usize..3), 0_usize..2, time())
            .prop_map(|(gpu, node, at)| Happening::Decommission { gpu, node, at }),
        2 => pools::report().prop_map(Happening::Work),
        1 => time().prop_map(|at| Happening::Nothing { at }),
    ]
}

fn job() -> impl Strategy<Value = Job> {
    let lasts = prop_oneof![6 => length().prop_map(Some), 3 => Just(None), 1 => Just(Some(-1))];
    let unplaced = prop_oneof![3 => Just(None), 1 => (1_u32..4, share()).prop_map(Some)];
    let units =
        any::<bool>().prop_flat_map(|shared| (Just(shared), prop::collection::vec(pick(shared), 1..3)));
    let reports = prop::collection::vec(pools::report(), 0..4);
    let states = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec((0_u8..3, length()), 1..4)];
    let pool = (pools::wish(), pools::measures(), reports, states);
    (0_u8..6, 0_u8..3, time(), lasts, units, unplaced, any::<bool>(), pool).prop_map(
        |(
            allocation,
            tenant,
            at,
            lasts,
            (shared, units),
            unplaced,
            release_first,
            (pool, measured, reports, states),
        )| Job {
            allocation,
            tenant,
            at,
            lasts,
            shared,
            units,
            unplaced,
            release_first,
            pool,
            measured,
            reports,
            states,
        },
    )
}

/// Shared units gather on few places, so that several tenants meet on one.
fn pick(shared: bool) -> impl Strategy<Value = Pick> {
    let gpus = if shared { 2_usize } else { 3 };
    let places = if shared { prop::option::weighted(0.4, 0_usize..2).boxed() } else { place().boxed() };
    let shares = if shared { share().boxed() } else { Just(None).boxed() };
    (0..gpus, places, prop::bool::weighted(0.15), shares).prop_map(|(gpu, place, uuid_only, share)| Pick {
        gpu,
        place,
        uuid_only,
        share,
    })
}

fn place() -> impl Strategy<Value = Option<usize>> {
    prop::option::weighted(0.6, 0_usize..24)
}

fn share() -> impl Strategy<Value = Option<Share>> {
    let some = [(1, 2), (1, 3), (1, 4), (3, 4), (2, 3), (1, 7), (1, 1)].map(|(n, d)| Some(Share::new(n, d)));
    prop_oneof![6 => prop::sample::select(some.to_vec()), 1 => Just(None)]
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        2 => (0_u8..3).prop_map(Word::State),
        1 => (0_u8..3, any::<bool>()).prop_map(|(tenant, project)| Word::Transfer(tenant, project)),
        1 => Just(Word::Release),
    ]
}

fn inventory() -> impl Strategy<Value = Happening> {
    let rare = || prop::option::weighted(0.15, 0_usize..3);
    (0_usize..2, time(), prop::collection::vec(layout(), 0..=3), rare(), rare())
        .prop_map(|(node, at, layouts, lost, found)| Happening::Inventory { node, at, layouts, lost, found })
}

fn trouble() -> impl Strategy<Value = Happening> {
    let state = prop_oneof![
        2 => Just(State::Ok),
        2 => Just(State::Maintenance),
        3 => Just(State::Fault(Cause::Unknown)),
        2 => Just(State::Fault(Cause::Hardware)),
        2 => Just(State::Fault(Cause::Application)),
        1 => Just(State::Fault(Cause::Named("network".to_owned()))),
    ];
    let states = prop::collection::vec((state, length()), 1..4);
    (0_usize..3, place(), any::<bool>(), time(), states).prop_map(|(gpu, place, by_allocator, at, states)| {
        Happening::Trouble { gpu, place, by_allocator, at, states }
    })
}

fn allocation(n: u8) -> AllocationId {
    AllocationId::new(&format!("a-{n}"))
}

fn tenant(n: u8) -> TenantId {
    TenantId::new(["acme", "bolt", "cora"][usize::from(n) % 3])
}

fn node(n: usize) -> NodeId {
    NodeId::new(&format!("n{n}"))
}

fn allocator(n: u8) -> String {
    format!("/allocators/s{}", n % 2)
}

/// Two allocations share a job number, as after the scheduler's counter wrapped.
fn runtime(n: u8) -> Runtime {
    Runtime { slurm_job: Some(format!("{}", n % 4)), pod_uid: None }
}

fn in_state(n: u8, state: u8) -> FactBody {
    let state = ["loading", "ready", "idle"][usize::from(state) % 3].to_owned();
    FactBody::AllocationState { allocation: allocation(n), state }
}

fn placement(fleet: &Fleet, gpu: usize, place: Option<usize>) -> Option<Placement> {
    fleet.instance(gpu, place?)?.placement
}

impl Pick {
    fn unit(self, fleet: &Fleet) -> PlacedUnit {
        let mig = self.place.and_then(|place| fleet.mig_unit(self.gpu, place, self.uuid_only));
        PlacedUnit { gpu: fleet.gpu(self.gpu), mig, share: self.share }
    }
}

impl Job {
    fn say(&self, fleet: &Fleet, facts: &mut Facts) {
        for (pick, measure) in self.units.iter().zip(self.measured.iter().cycle()) {
            let unit = pick.unit(fleet);
            let placement = pick.place.and_then(|place| placement(fleet, pick.gpu, Some(place)));
            let job = runtime(self.allocation).slurm_job.unwrap_or_default();
            facts.measure(measure.rollup(unit.gpu, placement, &job, self.at));
        }
        let mut units: Vec<GrantUnit> = Vec::new();
        match self.unplaced {
            Some((count, share)) => units.push(GrantUnit::Unplaced { sku: SkuId::new("h100"), count, share }),
            None => units.extend(self.units.iter().map(|pick| GrantUnit::Placed(pick.unit(fleet)))),
        }
        let grant = Grant {
            allocation: allocation(self.allocation),
            tenant: tenant(self.tenant),
            project: self.allocation.is_multiple_of(2).then(|| ProjectId::new("p")),
            units,
            mode: if self.shared { Mode::Shared } else { Mode::Exclusive },
            class: Class::OnDemand,
            pool: pools::name(self.pool),
            commitment: None,
            runtime: runtime(self.allocation),
            labels: BTreeMap::new(),
        };
        let source = allocator(self.allocation);
        let release = FactBody::Released { allocation: allocation(self.allocation), reason: None };
        let mut said = vec![(self.at, FactBody::Granted(grant))];
        said.extend(self.lasts.map(|lasts| ((self.at + lasts).max(0), release)));
        if self.release_first {
            said.reverse();
        }
        said.into_iter().for_each(|(at, body)| facts.say(&source, at, body));
        for (state, after) in &self.states {
            facts.say(&source, self.at + after, in_state(self.allocation, *state));
        }
        self.reports.iter().for_each(|report| report.during(self.pool, self.at).say(facts));
    }
}

impl Happening {
    /// Says the facts of the happening, in the order in which they arrive.
    pub(crate) fn say(&self, fleet: &Fleet, facts: &mut Facts) {
        match self {
            Self::Job(job) => job.say(fleet, facts),
            Self::Word { allocation: n, at, word } => {
                let allocation = allocation(*n);
                let body = match word {
                    Word::State(state) => in_state(*n, *state),
                    Word::Release => FactBody::Released { allocation, reason: None },
                    Word::Transfer(to, project) => FactBody::Transferred {
                        allocation,
                        tenant: tenant(*to),
                        project: project.then(|| ProjectId::new("p")),
                    },
                };
                facts.say(&allocator(*n), *at, body);
            }
            Self::Devices { allocation: n, by_job, at, units } => {
                let of = if *by_job {
                    PlacedOf::Runtime(runtime(*n))
                } else {
                    PlacedOf::Allocation(allocation(*n))
                };
                let units = units.iter().map(|pick| Pick { uuid_only: false, ..*pick }.unit(fleet)).collect();
                facts.say("/nodes/n0/collector", *at, FactBody::Placed(Placed { of, units }));
            }
            Self::Snapshot { source, node: scope, live, at } => {
                let nodes = scope.map(|n| vec![node(n)]);
                let allocations = live.iter().copied().map(allocation).collect();
                facts.say(&allocator(*source), *at, FactBody::Snapshot { nodes, allocations });
            }
            Self::Inventory { node, at, layouts, lost, found } => {
                fleet.say_inventory(facts, *node, *at, layouts, *lost, *found);
            }
            Self::Alive { node: n, at, every, count } => {
                for beat in 0..i64::from(*count) {
                    let source = format!("/nodes/n{n}/collector");
                    facts.say(&source, *at + beat * *every, FactBody::NodeAlive(node(*n)));
                }
            }
            Self::Trouble { gpu, place, by_allocator, at, states } => {
                let source = if *by_allocator { "/allocators/s0" } else { "/nodes/n0/health" };
                let mut at = *at;
                for (state, lasts) in states {
                    let placement = placement(fleet, *gpu, *place);
                    let said = UnitState { gpu: fleet.gpu(*gpu), placement, state: state.clone() };
                    facts.say(source, at, FactBody::UnitState(said));
                    at += *lasts;
                }
            }
            Self::Scrub { gpu, place, at, lasts, announced, scrub } => {
                say_scrub(fleet, facts, (*gpu, *place), *at, *lasts, *announced, *scrub);
            }
            Self::Decommission { gpu, node: n, at } => {
                let body = match gpu {
                    Some(gpu) => FactBody::GpuDecommissioned(fleet.gpu(*gpu)),
                    None => FactBody::NodeDecommissioned(node(*n)),
                };
                facts.say("/platform", *at, body);
            }
            Self::Work(report) => report.say(facts),
            Self::Nothing { at } => facts.say("/platform", *at, FactBody::Other),
        }
    }
}

/// Most scrubs pass; attribution asks for nothing of it.
fn evidence(scrub: u8) -> ScrubEvidence {
    let result = match scrub % 5 {
        0 => ScrubResult::Failed,
        1 => ScrubResult::Skipped,
        _ => ScrubResult::Passed,
    };
    ScrubEvidence {
        result,
        read_back: ReadBack::Full,
        bytes_read: 9,
        mismatches: 0,
        bytes_total: 9,
        bytes_covered: 9,
        bytes_reserved: 0,
    }
}

fn say_scrub(
    fleet: &Fleet,
    facts: &mut Facts,
    (gpu, place): (usize, Option<usize>),
    at: i64,
    lasts: Option<i64>,
    announced: bool,
    scrub: u8,
) {
    let (id, placement) = (fleet.gpu(gpu), placement(fleet, gpu, place));
    let number = scrub;
    let scrub = ScrubId::new(&format!("s-{scrub}"));
    let source = if announced { "/nodes/n0/scrubber" } else { "/allocators/s1" };
    if announced || lasts.is_none() {
        let started = FactBody::ScrubStarted { scrub: scrub.clone(), gpu: id.clone(), placement };
        facts.say(source, at, started);
    }
    if let Some(lasts) = lasts {
        let started_at = super::BEGIN.plus(at);
        let finished =
            FactBody::ScrubFinished { scrub, gpu: id, placement, started_at, evidence: evidence(number) };
        facts.say(source, at + lasts, finished);
    }
}
