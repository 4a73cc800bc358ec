//! Whose a reading is, in text form: an answer is `allocation sm covered label`, in seconds, `-` where there is no reading.

use crate::measured::Amounts;
use crate::measured::testing::{at, rollups, spans};
use crate::report::{GroupKey, Report, ReportContext, UsageRow, Weight};
use crate::share::Share;
use crate::time::{HOUR_US, Instant, Window};
use std::collections::BTreeMap;

fn hour() -> Window {
    Window::new(Instant::from_micros(0), Instant::from_micros(HOUR_US)).unwrap()
}

fn report(holds: &str, readings: &str, window: Window, weight: Weight) -> Vec<UsageRow> {
    let (spans, rollups) = (spans(holds), rollups(readings));
    let context = ReportContext { weight, ..ReportContext::default() };
    let mut report = Report::new(spans, window, &[GroupKey::Allocation], &context);
    report.measure(&rollups);
    report.into_rows()
}

fn seconds(us: i128) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Rows of the hour by allocation.
fn answer(holds: &str, readings: &str) -> Vec<String> {
    let rows = report(holds, readings, hour(), Weight::Memory);
    let said = |row: &UsageRow| {
        let sm = row.measured.sm_active_us.map_or_else(|| "-".to_owned(), seconds);
        let covered = seconds(row.measured.covered_us);
        format!("{} {sm} {covered} {}", row.keys[0].as_deref().unwrap(), row.quality)
    };
    rows.iter().map(said).collect()
}

#[test]
fn the_owner_that_the_runtime_names_tells_first_a_13() {
    let readings = "g1 unit 0-4 sm=50\n g1 job:5 0-1 sm=30 driver_counter\n g1 job:5 2 sm=20 driver_counter";
    assert_eq!(
        answer("a 0 300 g1 job=5", readings),
        ["a 180 300 driver_counter"],
        "then the unit where none tells"
    );
    let pods = "g1 pod:p 0-4 sm=6";
    assert_eq!(answer("a 0 300 g1 pod=p", pods), ["a 30 300 interval_mean"]);
}

#[test]
fn the_units_reading_is_its_exclusive_holders_where_no_owner_tells_a_13() {
    assert_eq!(answer("a 0 300 g1", "g1 unit 0-4 sm=7"), ["a 35 300 interval_mean"]);
    let anonymous = "g1 unit 0-4 sm=7\n g1 container:c 0-4 sm=6\n g1 pid:b/7/1 0-4 sm=1";
    assert_eq!(answer("a 0 300 g1 job=5", anonymous), ["a 35 300 interval_mean"]);
}

#[test]
fn what_an_owner_of_another_name_used_is_not_the_holders_a_13() {
    let readings = "g1 unit 0 sm=50\n g1 job:6 0 sm=35";
    assert_eq!(answer("a 0 60 g1 job=5", readings), ["a 15 60 interval_mean"]);
    assert_eq!(
        answer("a 0 60 g1", readings),
        ["a 15 60 interval_mean"],
        "a grant without a name has no processes of job 6 either"
    );
    assert_eq!(answer("a 0 60 g1 job=5", "g1 unit 0 sm=50\n g1 job:6 0 sm=51"), ["a 0 60 interval_mean"]);
    let next = "a 0 30 g1 job=5\n b 30 60 g1";
    let readings = "g1 unit 0 sm=36\n g1 job:5 0 sm=15 covered=30";
    assert_eq!(
        answer(next, readings),
        ["a 15 30 interval_mean", "b 18 30 interval_mean"],
        "the other half was held by job 5"
    );
}

#[test]
fn a_minute_in_which_the_holder_changed_is_divided_by_held_time_a_13() {
    // 1,000,003 us over 20 s and 40 s: 333,334.33 and 666,668.67.
    let readings = "g1 unit 0 sm=1.000003";
    assert_eq!(
        answer("a 0 20 g1\n b 20 60 g1", readings),
        ["a 0.333334 20 interval_mean", "b 0.666669 40 interval_mean"]
    );
    assert_eq!(
        answer("a 0 20 g1\n b 20 40 g1\n c 40 60 g1", readings),
        ["a 0.333334 20 interval_mean", "b 0.333335 20 interval_mean", "c 0.333334 20 interval_mean"],
        "the sum stays"
    );
    assert_eq!(
        answer("a 30 90 g1", "g1 unit 0-1 sm=20"),
        ["a 20 60 interval_mean"],
        "by the part that was held"
    );
}

#[test]
fn an_owner_tells_all_of_a_minute_that_was_held_in_part_a_13() {
    assert_eq!(answer("a 45 60 g1 job=5", "g1 unit 0 sm=9\n g1 job:5 0 sm=8"), ["a 8 15 interval_mean"]);
    let two = "a 0 20 g1 job=5\n b 20 60 g1 job=6";
    let readings = "g1 unit 0 sm=40\n g1 job:5 0 sm=19 covered=20\n g1 job:6 0 sm=1 covered=39";
    assert_eq!(answer(two, readings), ["a 19 20 interval_mean", "b 1 39 interval_mean"]);
}

#[test]
fn one_name_with_several_spans_in_a_minute_is_divided_by_held_time_a_13() {
    // Transferred at 20 s, and taken by a fault from 30 s to 40 s.
    let holds = "a 0 20 g1 job=5 tenant=acme\n a 20 30 g1 job=5 tenant=umbra\n a 40 60 g1 job=5 tenant=umbra";
    let (spans, rollups) = (spans(holds), rollups("g1 job:5 0 sm=10.000001"));
    let mut report = Report::new(spans, hour(), &[GroupKey::Tenant], &ReportContext::default());
    report.measure(&rollups);
    let sums: Vec<_> = report.into_rows().iter().map(|row| row.measured.sm_active_us.unwrap()).collect();
    assert_eq!(sums, [4_000_000, 6_000_001]);
}

#[test]
fn each_tenants_figure_stands_without_the_spans_of_others_a_13() {
    let readings = "g1 unit 0-2 sm=40.000001\n g1 job:6 0 sm=3";
    let all = "a 0 25 g1\n b 25 90 g1 job=6\n c 90 180 g1";
    let together = answer(all, readings);
    let apart: Vec<String> = all.lines().flat_map(|one| answer(one, readings)).collect();
    assert_eq!(together, apart);
}

#[test]
fn shared_units_are_told_by_owners_or_not_measurable_a_13() {
    let holds = "a 0 60 g1 shared job=5\n b 0 60 g1 shared job=6\n c 0 60 g1 shared";
    let readings = "g1 unit 0 sm=50\n g1 job:5 0 sm=30 derived_share(sampled)";
    assert_eq!(
        answer(holds, readings),
        ["a 30 60 derived_share(sampled)", "b - 0 unavailable(shared)", "c - 0 unavailable(shared)"]
    );
}

#[test]
fn a_served_tenant_holds_nothing_and_has_no_reading_a_10() {
    let readings = "g1 unit 0 sm=50";
    assert_eq!(
        answer("a 0 60 g1\n a 0 60 g1 served tenant=umbra", readings)[0],
        "a 50 60 interval_mean",
        "the operator's"
    );
    assert_eq!(answer("a 0 60 g1 served", readings), ["a - 0 unavailable(pool)"]);
}

#[test]
fn zero_and_not_measurable_and_gap_and_unknown_are_four_values_m_8() {
    assert_eq!(answer("a 0 60 g1", "g1 unit 0 sm=0"), ["a 0 60 interval_mean"], "zero");
    let cannot = "g1 unit 0 covered=60 memory=5 unavailable(not_supported)";
    assert_eq!(answer("a 0 60 g1", cannot), ["a - 0 unavailable(not_supported)"], "not measurable");
    assert_eq!(answer("a 0 60 g1", "g1 unit 7 sm=1"), ["a - 0 unavailable(gap)"], "gap");
    assert_eq!(answer("a 0 60 g1", "g2 unit 0 sm=1"), ["a - 0 allocation_only"], "unknown");
    assert_eq!(answer("a 0 60 nowhere", "g1 unit 0 sm=1"), ["a - 0 allocation_only"], "unplaced");
    assert_eq!(answer("a 0 120 g1", "g1 unit 0 sm=1"), ["a 1 60 interval_mean"], "half of it has no reading");
}

#[test]
fn an_instance_has_its_own_row_and_a_whole_gpu_all_of_its() {
    let readings = "g1 unit 0 sm=50 energy=9 unavailable(mig)\n g1 unit 0 sm=7 +4:4\n g1 unit 0 sm=3 +0:4";
    assert_eq!(answer("a 0 60 g1 +4:4", readings), ["a 7 60 interval_mean"]);
    assert_eq!(
        answer("a 0 60 g1 +0:2", readings),
        ["a - 0 unavailable(not_reported)"],
        "no row of this unit"
    );
    assert_eq!(
        answer("a 0 60 g1", "g1 unit 0 sm=7 +0:8"),
        ["a 7 60 interval_mean"],
        "an instance that is the GPU"
    );
    let rows = report("a 0 30 g1", "g1 unit 0 sm=7 energy=9 memory=11", hour(), Weight::Memory);
    assert_eq!((rows[0].measured.energy_mj, rows[0].measured.memory_byte_us), (Some(5), Some(6)));
}

#[test]
fn the_label_is_the_weakest_that_went_in_m_8() {
    let readings = "g1 unit 0 sm=1 interval_mean\n g2 unit 0 sm=1 point_gauge";
    assert_eq!(answer("a 0 60 g1\n a 0 60 g2", readings), ["a 2 120 point_gauge"]);
    let half = "g1 unit 0 sm=1\n g2 unit 0 memory=1 unavailable(no_permission)";
    assert_eq!(
        answer("a 0 60 g1\n a 0 60 g2", half),
        ["a 1 60 interval_mean"],
        "covered_us says that the rest is missing"
    );
}

#[test]
fn readings_add_up_wherever_a_report_is_cut() {
    let (holds, readings) =
        ("a 10 59 g1\n b 59 200 g1 job=5", "g1 unit 0-3 sm=33.333333 memory=1000003\n g1 job:5 1 sm=7");
    let whole = report(holds, readings, hour(), Weight::Sm);
    for cut in ["10.000001", "59.5", "61.234567", "119.999999"] {
        let parts =
            [Window::new(hour().start(), at(cut)).unwrap(), Window::new(at(cut), hour().end()).unwrap()];
        let mut sums: BTreeMap<_, (Amounts, Share)> = BTreeMap::new();
        for row in parts.iter().flat_map(|window| report(holds, readings, *window, Weight::Sm)) {
            let sum = sums.entry(row.keys).or_default();
            sum.0.add(&row.measured);
            sum.1 += row.gpu_us.unwrap_or_default();
        }
        let expected: BTreeMap<_, _> = whole
            .iter()
            .map(|row| (row.keys.clone(), (row.measured, row.gpu_us.unwrap_or_default())))
            .collect();
        assert_eq!(sums, expected, "{cut}");
    }
}

#[test]
fn by_the_weight_sm_an_instance_counts_by_its_compute_slices_and_nothing_unmeasured() {
    let rows = report("a 0 60 g1 +4:4\n b 0 60 g2", "g1 unit 0 sm=7 +4:4", hour(), Weight::Sm);
    assert_eq!(rows[0].gpu_us, Some(Share::from_integer(3_000_000)), "7 s of 3 of 7 slices");
    assert_eq!(rows[1].gpu_us, None);
}
