use super::*;
use crate::share::split_by_largest_remainder;
use crate::time::{Instant, MINUTE_US, SECOND_US};

fn at(micros: i64) -> Instant {
    Instant::from_micros(micros)
}

fn minute(n: i64) -> Window {
    Window::new(at(n * MINUTE_US), at((n + 1) * MINUTE_US)).unwrap()
}

fn work(who: &str, start: i64, end: i64, tokens: i128) -> Work {
    let (tenant, project) =
        who.split_once('/').map_or((who, None), |(tenant, project)| (tenant, Some(project)));
    Work {
        pool: "chat".to_owned(),
        tenant: TenantId::new(tenant),
        project: project.map(ProjectId::new),
        adapter: None,
        start: at(start),
        end: at(end),
        amounts: BTreeMap::from([(WorkKind::InputTokens, Share::from_integer(tokens))]),
    }
}

fn weights() -> BTreeMap<WorkKind, Share> {
    BTreeMap::from([
        (WorkKind::InputTokens, Share::from_integer(1)),
        (WorkKind::OutputTokens, Share::from_integer(4)),
        (WorkKind::CachedTokens, Share::new(1, 10)),
    ])
}

/// `tenant/project part` of each.
fn split(reports: &[Work], window: Window, total: i128) -> Vec<String> {
    let weighed = weigh(reports, &weights(), window);
    let named = |served: Served<'_>| match served.project {
        Some(project) => format!("{}/{project} {}", served.tenant, served.part),
        None => format!("{} {}", served.tenant, served.part),
    };
    weighed.split(total).into_iter().map(named).collect()
}

#[test]
fn a_minute_is_split_by_weight_to_the_microsecond_a_10() {
    // 60,000,000 x 153,490 / 707,204 = 13,022,267.97…: the microsecond that whole parts leave is code's.
    let reports = [work("conv", 5, 5, 553_714), work("code", 9, 9, 153_490)];
    assert_eq!(split(&reports, minute(0), 60_000_000), ["code 13022268", "conv 46977732"]);
    assert_eq!(split(&reports, minute(1), 60_000_000), Vec::<String>::new());
}

#[test]
fn kinds_count_by_their_weight_and_unknown_ones_not_a_10() {
    let mut acme = work("acme", 0, 0, 100);
    acme.amounts.insert(WorkKind::OutputTokens, Share::from_integer(50));
    acme.amounts.insert(WorkKind::CachedTokens, Share::from_integer(7));
    acme.amounts.insert(WorkKind::KvByteUs, Share::from_integer(i128::MAX));
    // 100 + 4 x 50 + 7 / 10 = 3007 / 10.
    let weighed = weigh(&[acme], &weights(), minute(0));
    let (numerator, denominator) = weighed.weight(&TenantId::new("acme"));
    assert_eq!(numerator * BigUint::from(10_u8), denominator * BigUint::from(3007_u16));
}

#[test]
fn a_report_is_spread_evenly_over_its_time_a_10() {
    let long = work("acme", 30 * SECOND_US, 150 * SECOND_US, 120);
    let weight = |n| {
        let weighed = weigh([&long], &weights(), minute(n));
        let (numerator, denominator) = weighed.weight(&TenantId::new("acme"));
        numerator / denominator
    };
    assert_eq!([0, 1, 2, 3].map(weight), [30_u8, 60, 30, 0].map(BigUint::from));
}

#[test]
fn a_report_without_length_lies_wholly_in_the_window_of_its_instant_a_10() {
    let edge = [work("acme", MINUTE_US, MINUTE_US, 1)];
    assert_eq!(split(&edge, minute(0), 5), Vec::<String>::new());
    assert_eq!(split(&edge, minute(1), 5), ["acme 5"]);
}

#[test]
fn ties_go_to_the_smaller_tenant_then_to_no_project_then_to_the_smaller_one_m_3() {
    let reports = [
        work("cora", 0, 0, 1),
        work("acme/q", 0, 0, 1),
        work("acme/p", 0, 0, 1),
        work("acme", 0, 0, 1),
        work("bolt", 0, 0, 3),
    ];
    // Weights 3, 3, 1: of 8 microseconds 3.43, 3.43, 1.14 make 4, 3, 1; of acme's 4 the first project has 2.
    let parts = split(&reports, minute(0), 8);
    assert_eq!(parts, ["acme 2", "acme/p 1", "acme/q 1", "bolt 3", "cora 1"]);
}

#[test]
fn reports_of_many_lengths_stay_exact() {
    // Every length is another prime or nearly so: no 128 bits hold their common measure.
    let lengths = (0..400_i64).map(|n| 60_000_011 + 1_234_567 * n);
    let reports: Vec<Work> = lengths
        .enumerate()
        .map(|(n, length)| {
            work(if n % 2 == 0 { "acme" } else { "bolt" }, 59 * SECOND_US, 59 * SECOND_US + length, 1)
        })
        .collect();
    for window in [minute(0), minute(1)] {
        let weighed = weigh(&reports, &weights(), window);
        let parts = weighed.split(60_000_000);
        assert_eq!(parts.iter().map(|served| served.part).sum::<i128>(), 60_000_000);
    }
    let half = |n: i64| work(if n == 0 { "acme" } else { "bolt" }, 0, 120 * SECOND_US, 3);
    assert_eq!(split(&[half(0), half(1)], minute(1), 60_000_000), ["acme 30000000", "bolt 30000000"]);
}

#[test]
fn whole_weights_split_as_shares_do() {
    for (total, weights) in [(10_000_000, [2_i128, 2, 3]), (7, [1, 1, 5]), (1, [0, 1, 1]), (0, [1, 2, 3])] {
        let shares = weights.map(Share::from_integer);
        let big = weights.map(|n| BigUint::try_from(n).unwrap());
        assert_eq!(split_by_weight(total, &big), split_by_largest_remainder(total, &shares));
    }
}
