//! Worked examples of on one GPU with one slice. Times are seconds from a full hour, sums are microseconds.

use crate::attribution::{Attribution, Context, attribute};
use crate::fact::*;
use crate::geometry::Geometry;
use crate::ids::*;
use crate::journal::journals;
use crate::measured::{Minute, Owner, Rollup};
use crate::pool::{Idle, Policy, Pool, Pools, Work, WorkKind, WorkWindow};
use crate::share::{Share, parse_share};
use crate::sku::SkuBook;
use crate::time::{Instant, SECOND_US};
use std::collections::BTreeMap;

fn at(second: i64) -> Instant {
    Instant::from_micros(second * SECOND_US)
}

/// A GPU, pools, and what happens.
struct Story {
    facts: Vec<Fact>,
    pools: Pools,
    measured: Vec<Rollup>,
}

impl Story {
    fn begin(name: &str, policy: Policy, idle: Idle) -> Self {
        let gpu = InventoryGpu {
            gpu: GpuId::new("GPU-1"),
            model: "Tesla T4".to_owned(),
            compute_slices: 1,
            memory_slices: 1,
            mig: false,
            instances: Vec::new(),
        };
        let inventory = Inventory { node: NodeId::new("n1"), boot_id: "b1".to_owned(), gpus: vec![gpu] };
        let pools = Pools::from([(name.to_owned(), Pool { policy, idle })]);
        let mut story = Self { facts: Vec::new(), pools, measured: Vec::new() };
        story.say(0, FactBody::Inventory(inventory));
        story
    }

    fn say(&mut self, second: i64, body: FactBody) {
        let id = format!("e{}", self.facts.len());
        self.facts.push(Fact { source: Source::new("/allocators/s"), id, at: at(second), body });
    }

    /// `who`: `allocation tenant share`, the share of the GPU, or `-` for a device that nobody names. Its job is its id.
    fn grant(&mut self, who: &str, pool: Option<&str>, second: i64) {
        let words: Vec<&str> = who.split(' ').collect();
        let unit = match words[2] {
            "-" => GrantUnit::Unplaced { sku: SkuId::new("t4"), count: 2, share: None },
            share => {
                let share = Some(parse_share(share).unwrap());
                GrantUnit::Placed(PlacedUnit { gpu: GpuId::new("GPU-1"), mig: None, share })
            }
        };
        self.say(
            second,
            FactBody::Granted(Grant {
                allocation: AllocationId::new(words[0]),
                tenant: TenantId::new(words[1]),
                project: None,
                units: vec![unit],
                mode: Mode::Shared,
                class: Class::OnDemand,
                pool: pool.map(str::to_owned),
                commitment: None,
                runtime: Runtime { slurm_job: Some(words[0].to_owned()), pod_uid: None },
                labels: BTreeMap::new(),
            }),
        );
    }

    fn work(&mut self, tenant: &str, from: i64, to: i64, tokens: i128) {
        let work = Work {
            pool: "chat".to_owned(),
            tenant: TenantId::new(tenant),
            project: None,
            adapter: None,
            start: at(from),
            end: at(to),
            amounts: BTreeMap::from([(WorkKind::InputTokens, Share::from_integer(tokens))]),
        };
        self.say(to, FactBody::Work(work));
    }

    /// So many SM-active seconds in each of the minutes.
    fn measure(&mut self, job: &str, minutes: std::ops::Range<u8>, active_s: u64) {
        let minute = Minute { sm_active_us: Some(active_s * 1_000_000), ..Minute::default() };
        self.measured.push(Rollup {
            node: NodeId::new("n1"),
            gpu: GpuId::new("GPU-1"),
            placement: None,
            owner: Owner::Job(job.to_owned()),
            hour: at(0),
            minutes: minutes.map(|n| (n, minute)).collect(),
            memory_bytes_max: None,
            quality: BTreeMap::new(),
        });
    }

    fn ledger(&self, second: i64) -> Attribution {
        let context = Context {
            geometry: &Geometry { models: Vec::new() },
            skus: &SkuBook::default(),
            settings: Settings::default(),
            pools: &self.pools,
            measured: &self.measured,
        };
        attribute(&self.facts, &context, at(second))
    }

    /// `tenant part`, or `idle part`, of all journals as of `second`.
    fn parts(&self, second: i64) -> Vec<String> {
        let mut parts: BTreeMap<String, i64> = BTreeMap::new();
        for (gpu, timeline) in &self.ledger(second).gpus {
            for entry in journals(gpu, timeline, Instant::MAX).into_iter().flat_map(|j| j.entries) {
                let whose = entry.owner.map_or(entry.account.as_str().to_owned(), |o| o.tenant.to_string());
                *parts.entry(whose).or_default() += entry.part_us;
            }
        }
        parts.into_iter().map(|(whose, part)| format!("{whose} {part}")).collect()
    }

    /// `tenant held billed` of all spans as of `second`.
    fn usage(&self, second: i64) -> Vec<String> {
        let mut usage: BTreeMap<String, (i128, i128)> = BTreeMap::new();
        for span in self.ledger(second).spans {
            let sum = usage.entry(span.tenant.to_string()).or_default();
            *sum = (sum.0 + span.allocated_us(), sum.1 + span.billed_us());
        }
        usage.into_iter().map(|(tenant, (held, billed))| format!("{tenant} {held} {billed}")).collect()
    }
}

fn chat(window: WorkWindow) -> Story {
    let weights = BTreeMap::from([(WorkKind::InputTokens, Share::from_integer(1))]);
    Story::begin("chat", Policy::Work { weights, window }, Idle::Provider)
}

fn measured(idle: Idle) -> Story {
    let mut story = Story::begin("lab", Policy::Measured, idle);
    story.grant("1 acme 1/2", Some("lab"), 0);
    story.grant("2 bolt 1/2", Some("lab"), 0);
    story
}

#[test]
fn each_minute_goes_to_whom_it_served_and_a_minute_without_work_to_the_operator_a_10() {
    let mut story = chat(WorkWindow::One);
    story.grant("1 op 1", Some("chat"), 0);
    story.work("code", 10, 10, 153_490);
    story.work("conv", 20, 20, 553_714);
    story.work("code", 150, 150, 1);
    assert_eq!(story.parts(180), ["code 73022268", "conv 46977732", "op 60000000"]);
    // The operator holds the unit all the time.
    assert_eq!(story.usage(180), ["code 0 73022268", "conv 0 46977732", "op 180000000 60000000"]);
}

#[test]
fn the_length_of_the_window_matters_a_10() {
    let figures = [WorkWindow::One, WorkWindow::Five, WorkWindow::Fifteen].map(|window| {
        let mut story = chat(window);
        story.grant("1 op 1", Some("chat"), 0);
        story.work("acme", 0, 60, 1);
        story.work("bolt", 420, 420, 3);
        story.parts(900)
    });
    assert_eq!(figures[0], ["acme 60000000", "bolt 60000000", "op 780000000"]);
    assert_eq!(figures[1], ["acme 300000000", "bolt 300000000", "op 300000000"]);
    assert_eq!(figures[2], ["acme 225000000", "bolt 675000000"]);
}

#[test]
fn a_share_of_the_operator_is_divided_and_the_free_rest_is_idle_a_10() {
    let mut story = chat(WorkWindow::One);
    story.grant("1 op 1/2", Some("chat"), 0);
    story.grant("2 dune 1/4", None, 0);
    story.work("acme", 0, 60, 1);
    story.work("bolt", 0, 60, 2);
    assert_eq!(story.parts(60), ["acme 10000000", "bolt 20000000", "dune 15000000", "idle 15000000"]);
}

#[test]
fn a_window_is_cut_where_holders_change_and_keeps_its_weights_a_10() {
    let mut story = chat(WorkWindow::One);
    story.grant("1 op 1", Some("chat"), 0);
    // Reported for the first half of the minute only: the weights are the whole minute's.
    story.work("acme", 0, 30, 1);
    story.work("bolt", 0, 30, 1);
    let (allocation, tenant) = (AllocationId::new("1"), TenantId::new("next"));
    story.say(45, FactBody::Transferred { allocation, tenant, project: None });
    assert_eq!(story.usage(60), ["acme 0 30000000", "bolt 0 30000000", "next 15000000 0", "op 45000000 0"]);
}

#[test]
fn more_than_there_is_is_billed_as_granted_and_conserved_scaled_down_a_10() {
    let mut story = chat(WorkWindow::One);
    story.grant("1 op 1", Some("chat"), 0);
    story.grant("2 dune 1/2", None, 0);
    story.work("acme", 0, 60, 1);
    assert_eq!(story.parts(60), ["acme 40000000", "dune 20000000"]);
    assert_eq!(story.usage(60), ["acme 0 60000000", "dune 60000000 30000000", "op 60000000 0"]);
}

#[test]
fn units_that_nobody_placed_are_divided_too_a_17() {
    let mut story = chat(WorkWindow::Five);
    story.grant("1 op -", Some("chat"), 0);
    story.work("acme", 0, 60, 1);
    story.work("bolt", 60, 120, 2);
    assert_eq!(story.usage(600), ["acme 0 200000000", "bolt 0 400000000", "op 1200000000 600000000"]);
}

#[test]
fn measured_time_is_charged_and_the_rest_is_idle_a_10() {
    let mut story = measured(Idle::Provider);
    story.measure("1", 0..15, 20);
    story.measure("2", 0..5, 40);
    story.measure("3", 0..15, 60);
    assert_eq!(story.parts(900), ["acme 300000000", "bolt 200000000", "idle 400000000"]);
    assert_eq!(story.usage(900), ["acme 900000000 300000000", "bolt 900000000 200000000"]);
}

#[test]
fn idle_time_is_handed_out_in_proportion_or_evenly_a_12() {
    for (idle, acme, bolt) in
        [(Idle::Proportional, 540_000_000, 360_000_000), (Idle::Even, 500_000_000, 400_000_000)]
    {
        let mut story = measured(idle);
        story.measure("1", 0..15, 20);
        story.measure("2", 0..5, 40);
        assert_eq!(story.parts(900), [format!("acme {acme}"), format!("bolt {bolt}")]);
    }
}

#[test]
fn who_has_no_part_bears_no_idle_time_and_where_nobody_has_it_stays_with_the_provider_a_12() {
    for idle in [Idle::Proportional, Idle::Even] {
        let mut story = measured(idle);
        assert_eq!(story.parts(900), ["idle 900000000"]);
        story.measure("2", 3..4, 1);
        assert_eq!(story.parts(900), ["bolt 900000000"]);
    }
}

#[test]
fn measured_time_beyond_the_units_is_scaled_to_it_a_10() {
    let mut story = measured(Idle::Provider);
    story.measure("1", 0..15, 60);
    story.measure("2", 0..15, 30);
    assert_eq!(story.parts(900), ["acme 600000000", "bolt 300000000"]);
}

#[test]
fn a_minute_that_is_cut_counts_in_proportion_of_time_rounded_down_a_13() {
    let mut story = measured(Idle::Provider);
    story.measured.clear();
    story.measure("1", 0..1, 0);
    story.measured[0].minutes.insert(0, Minute { sm_active_us: Some(7), ..Minute::default() });
    // 7 x 20 / 60 = 2.33.
    assert_eq!(story.parts(20), ["acme 2", "idle 19999998"]);
}

#[test]
fn what_was_not_measured_is_not_charged_a_10() {
    let mut story = measured(Idle::Provider);
    story.measure("1", 0..1, 0);
    story.measured[0].minutes.insert(0, Minute { sm_active_us: None, ..Minute::default() });
    assert_eq!(story.usage(60), ["acme 60000000 0", "bolt 60000000 0"]);
}

#[test]
fn the_free_rest_of_shares_is_handed_to_the_holders_a_12() {
    let figures = [Idle::Provider, Idle::Proportional, Idle::Even].map(|idle| {
        let mut story = Story::begin("desks", Policy::Entitlement, idle);
        story.grant("1 acme 1/2", Some("desks"), 0);
        story.grant("2 bolt 1/4", Some("desks"), 0);
        story.parts(900)
    });
    assert_eq!(figures[0], ["acme 450000000", "bolt 225000000", "idle 225000000"]);
    assert_eq!(figures[1], ["acme 600000000", "bolt 300000000"]);
    assert_eq!(figures[2], ["acme 562500000", "bolt 337500000"]);
}

#[test]
fn idle_time_beside_a_holder_of_no_pool_stays_with_the_provider_a_12() {
    let mut story = Story::begin("desks", Policy::Entitlement, Idle::Even);
    story.grant("1 acme 1/2", Some("desks"), 0);
    story.grant("2 bolt 1/4", None, 0);
    assert_eq!(story.parts(900), ["acme 450000000", "bolt 225000000", "idle 225000000"]);
}

#[test]
fn spans_are_cut_at_billing_states_and_journals_are_not_a_9() {
    let mut story = chat(WorkWindow::One);
    story.grant("1 op 1", None, 60);
    let state = |state: &str| FactBody::AllocationState {
        allocation: AllocationId::new("1"),
        state: state.to_owned(),
    };
    let before = story.ledger(600);
    for (second, word) in [(120, "loading"), (120, "ready"), (180, "ready"), (200, "idle"), (300, "ready")] {
        story.say(second, state(word));
    }
    let after = story.ledger(600);
    assert_eq!(after.gpus, before.gpus);
    let spans: Vec<String> = after
        .spans
        .iter()
        .map(|s| format!("{} {}", s.state.as_deref().unwrap_or("-"), s.window.micros() / SECOND_US))
        .collect();
    assert_eq!(spans, ["- 60", "ready 80", "idle 100", "ready 300"]);
}
