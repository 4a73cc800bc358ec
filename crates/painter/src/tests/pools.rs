//! Pools worked out by hand.

use super::*;
use gpuledger_domain::measured::{Minute, Owner};
use gpuledger_domain::pool::{Idle, Policy, Pool, Work, WorkKind, WorkWindow};

fn pools(policy: Policy, idle: Idle) -> Pools {
    Pools::from([("chat".to_owned(), Pool { policy, idle })])
}

fn by_work(window: WorkWindow) -> Pools {
    let weights = BTreeMap::from([
        (WorkKind::InputTokens, Share::from_integer(1)),
        (WorkKind::Units, Share::new(1, 3)),
    ]);
    pools(Policy::Work { weights, window }, Idle::Provider)
}

/// A grant of the whole GPU, or a share of it, in the pool; its job is its id.
fn in_pool(allocation: &str, tenant: &str, share: (i128, i128)) -> Fact {
    let mut fact = grant(allocation, 0, vec![unit(None, Some(Share::new(share.0, share.1)))], Mode::Shared);
    if let FactBody::Granted(grant) = &mut fact.body {
        grant.pool = Some("chat".to_owned());
        grant.tenant = TenantId::new(tenant);
        grant.runtime.slurm_job = Some(allocation.to_owned());
    }
    fact
}

fn work(tenant: &str, from: i64, to: i64, amounts: &[(WorkKind, Share)]) -> Fact {
    let work = Work {
        pool: "chat".to_owned(),
        tenant: TenantId::new(tenant),
        project: None,
        adapter: None,
        start: at(from),
        end: at(to),
        amounts: amounts.iter().copied().collect(),
    };
    fact(&format!("{tenant}-{from}"), "/gateways/g", to, FactBody::Work(work))
}

fn tokens(n: i128) -> [(WorkKind, Share); 1] {
    [(WorkKind::InputTokens, Share::from_integer(n))]
}

fn measured(job: &str, minutes: std::ops::Range<u8>, active_s: u64) -> Rollup {
    let minute = Minute { sm_active_us: Some(active_s * 1_000_000), ..Minute::default() };
    Rollup {
        node: NodeId::new("n1"),
        gpu: GpuId::new("GPU-1"),
        placement: None,
        owner: Owner::Job(job.to_owned()),
        hour: at(0),
        minutes: minutes.map(|n| (n, minute)).collect(),
        memory_bytes_max: None,
        quality: BTreeMap::new(),
    }
}

/// Parts of tenants in microseconds, as of `second`.
fn parts(facts: &[Fact], pools: &Pools, measured: &[Rollup], second: i64) -> Vec<(String, i128)> {
    let painting = paint(facts, &rules(&geometry(), pools, measured), at(second));
    let mut parts: BTreeMap<String, i128> = BTreeMap::new();
    for ((_, tenant, _), part) in painting.parts {
        *parts.entry(tenant.to_string()).or_default() += part;
    }
    parts.into_iter().collect()
}

fn named(parts: &[(&str, i128)]) -> Vec<(String, i128)> {
    parts.iter().map(|(tenant, part)| ((*tenant).to_owned(), *part)).collect()
}

#[test]
fn a_report_reaches_into_each_window_by_its_time_there() {
    // Ninety seconds from second 30: a third in the first minute, two thirds in the second.
    let facts = [
        inventory("n1", 0),
        in_pool("a", "op", (1, 1)),
        work("acme", 30, 120, &tokens(90)),
        work("bolt", 0, 60, &tokens(10)),
        work("cora", 60, 60, &[(WorkKind::Units, Share::from_integer(180))]),
    ];
    let found = parts(&facts, &by_work(WorkWindow::One), &[], 180);
    // 30 to 10 of the first minute, 60 to 60 of the second, the third is the operator's.
    let wanted = [("acme", 75_000_000), ("bolt", 15_000_000), ("cora", 30_000_000), ("op", 60_000_000)];
    assert_eq!(found, named(&wanted));
}

#[test]
fn the_operators_share_is_what_is_divided() {
    let facts = [inventory("n1", 0), in_pool("a", "op", (1, 3)), work("acme", 0, 0, &tokens(1))];
    let painting = paint(&facts, &rules(&geometry(), &by_work(WorkWindow::Five), &[]), at(300));
    let idle: i128 = painting.totals().iter().filter(|(k, _)| k.2 == Account::Idle).map(|(_, v)| v.1).sum();
    assert_eq!(idle, 4 * 200 * i128::from(SECOND_US));
    assert_eq!(parts(&facts, &by_work(WorkWindow::Five), &[], 300), named(&[("acme", 100_000_000)]));
}

#[test]
fn measured_parts_and_what_is_left_of_the_unit() {
    let facts = [inventory("n1", 0), in_pool("a", "acme", (1, 2)), in_pool("b", "bolt", (1, 2))];
    let rollups = [measured("a", 0..15, 10), measured("b", 0..15, 20)];
    for (idle, acme, bolt) in [
        (Idle::Provider, 150_000_000, 300_000_000),
        (Idle::Proportional, 300_000_000, 600_000_000),
        (Idle::Even, 375_000_000, 525_000_000),
    ] {
        let found = parts(&facts, &pools(Policy::Measured, idle), &rollups, 900);
        assert_eq!(found, named(&[("acme", acme), ("bolt", bolt)]));
    }
}

#[test]
fn held_time_is_told_by_state() {
    let state = |state: &str| FactBody::AllocationState {
        allocation: AllocationId::new("a"),
        state: state.to_owned(),
    };
    let facts = [
        inventory("n1", 0),
        in_pool("a", "op", (1, 1)),
        fact("s1", "/allocators/s", 10, state("loading")),
        fact("s2", "/allocators/s", 30, state("ready")),
    ];
    let painting = paint(&facts, &rules(&geometry(), &Pools::new(), &[]), at(70));
    let held: Vec<(Option<String>, i128)> =
        painting.held.into_iter().map(|((_, state), held)| (state, held / i128::from(SECOND_US))).collect();
    assert_eq!(held, [(None, 10), (Some("loading".to_owned()), 20), (Some("ready".to_owned()), 40)]);
}
