//! Findings from holds and readings in text form (see [`crate::measured::testing`]); a hold may also be of `scrub`, `fault` or `quarantine`.
//! An answer is `kind subject since until`, in seconds, `-` while it stands.

use super::*;
use crate::attribution::{Holder, Piece, Segment};
use crate::fact::Account;
use crate::finding::Findings;
use crate::ids::NodeId;
use crate::measured::testing::{at, rollups, spans};
use crate::share::Share;
use crate::usage::{AllocationView, End};
use std::collections::{BTreeMap, BTreeSet};

/// Horizon of all tests, in seconds.
const AS_OF: &str = "7200";

fn account(span: &UsageSpan) -> Account {
    match span.allocation.as_str() {
        "scrub" => Account::Scrub,
        "fault" => Account::Fault,
        "quarantine" => Account::Quarantine,
        _ => Account::Tenant,
    }
}

fn mask(span: &UsageSpan) -> u32 {
    let place = span.place.as_ref().unwrap();
    ((1 << place.memory_slices) - 1) << place.memory_start
}

/// The timeline of a GPU of 8 slices on which these spans stand, idle elsewhere.
fn timeline(gpu: &GpuId, spans: &[UsageSpan]) -> GpuTimeline {
    let here: Vec<&UsageSpan> =
        spans.iter().filter(|span| span.place.as_ref().is_some_and(|p| p.gpu == *gpu)).collect();
    let edges: BTreeSet<Instant> =
        here.iter().flat_map(|s| [s.window.start(), s.window.end()]).chain([at("0"), at(AS_OF)]).collect();
    let windows = edges.iter().zip(edges.iter().skip(1)).filter_map(|(from, to)| Window::new(*from, *to));
    GpuTimeline { segments: windows.map(|window| segment(window, &here)).collect() }
}

fn segment(window: Window, spans: &[&UsageSpan]) -> Segment {
    let mut pieces: BTreeMap<u32, Piece> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.window.intersect(window).is_some()) {
        let account = account(span);
        let piece = pieces.entry(mask(span)).or_insert_with(|| Piece {
            account,
            memory_mask: mask(span),
            compute_slices: 7,
            shared: !span.telling.alone,
            holders: Vec::new(),
            since: window.start(),
        });
        if account == Account::Tenant {
            piece.holders.push(Holder {
                allocation: span.allocation.clone(),
                unit: 0,
                tenant: span.tenant.clone(),
                project: None,
                share: Share::from_integer(1),
                held: span.held,
            });
        }
    }
    let free = 255 & !pieces.keys().fold(0, |all, mask| all | mask);
    let mut pieces: Vec<Piece> = pieces.into_values().collect();
    if free != 0 {
        pieces.push(Piece {
            account: Account::Idle,
            memory_mask: free,
            compute_slices: 0,
            shared: false,
            holders: Vec::new(),
            since: window.start(),
        });
    }
    Segment { window, compute_slices: 7, memory_slices: 8, node: NodeId::new("n1"), pieces }
}

/// Allocations of the lines: each ends with its last span, where that is before the horizon.
fn views(text: &str, spans: &[UsageSpan]) -> Vec<AllocationView> {
    let mut views: BTreeMap<AllocationId, AllocationView> = BTreeMap::new();
    for (line, span) in text.lines().map(str::trim).filter(|line| !line.is_empty()).zip(spans) {
        let name = |key: &str| line.split_whitespace().find_map(|w| w.strip_prefix(key)).map(str::to_owned);
        let end = span.window.end();
        let ended = || End::Ended { at: end, provider_took: false };
        let view = views.entry(span.allocation.clone()).or_insert_with(|| AllocationView {
            allocation: span.allocation.clone(),
            start: span.window.start(),
            end: End::Open,
            unit_ends: BTreeMap::new(),
            tenant: span.tenant.clone(),
            project: None,
            class: span.class,
            reason: None,
            source: crate::ids::Source::new("/allocators/t"),
            labels: BTreeMap::new(),
            slurm_job: name("job="),
            pod_uid: name("pod="),
        });
        view.end = if end < at(AS_OF) { ended() } else { End::Open };
    }
    views.into_values().collect()
}

/// What is found on `g1`, by kind and subject.
fn found(holds: &str, readings: &str) -> Vec<Finding> {
    let spans = spans(holds);
    let views = views(holds, &spans);
    let held: Vec<UsageSpan> =
        spans.iter().filter(|span| account(span) == Account::Tenant).cloned().collect();
    let (gpu, fleet) = (GpuId::new("g1"), Fleet::of(&views, &held));
    let timeline = timeline(&gpu, &spans);
    let mut watch = Watch::new(&fleet, &gpu, &timeline, at(AS_OF));
    let mut by_hour: BTreeMap<Instant, Vec<Rollup>> = BTreeMap::new();
    for rollup in rollups(readings) {
        by_hour.entry(rollup.hour).or_default().push(rollup);
    }
    by_hour.values().for_each(|rollups| watch.read(rollups));
    let mut findings = Findings::default();
    findings.extend(watch.finish());
    findings.into_vec()
}

fn answer(holds: &str, readings: &str) -> Vec<String> {
    let seconds = |at: Instant| at.as_micros() / SECOND_US;
    let said = |finding: &Finding| {
        let until = finding.until.map_or_else(|| "-".to_owned(), |until| seconds(until).to_string());
        format!("{} {} {} {until}", finding.kind.as_str(), finding.subject, seconds(finding.since))
    };
    found(holds, readings).iter().map(said).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn use_of_a_free_unit_is_unattributed_from_ten_seconds_on_a_11() {
    let readings = |covered: &str| format!("g1 unit 0-9 sm=1\n g1 container:c 3 sm=1 covered={covered}");
    assert_eq!(answer("", &readings("9.999999")), NONE);
    assert_eq!(
        answer("", &readings("10")),
        ["unattributed g1 180 240"],
        "closed: it was measured later without"
    );
    assert_eq!(
        answer("", "g1 container:c 3-9 sm=1"),
        ["unattributed g1 180 -"],
        "it stands in the newest minute"
    );
    let twice = "g1 unit 0-9 sm=1\n g1 container:c 2 covered=6\n g1 container:c 5 covered=6";
    assert_eq!(answer("", twice), ["unattributed g1 120 360"], "one finding");
}

#[test]
fn an_unattributed_finding_names_node_unit_process_and_container_a_11() {
    let readings = "g1 container:c1 0 +4:4\n g1 pid:boot/77/1000000 0 +4:4";
    let found = found("", readings);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].detail,
        "process 77, started at 1970-01-01T00:00:01Z in boot boot ran on slices 4+4 of g1 of node n1, which no allocation holds; \
         processes of container c1 ran on slices 4+4 of g1 of node n1, which no allocation holds"
    );
}

#[test]
fn a_busy_unit_without_a_process_is_unattributed_a_11() {
    assert_eq!(answer("", "g1 unit 0 sm=9.999999\n g1 unit 1 sm=0"), NONE);
    assert_eq!(answer("", "g1 unit 0 sm=10\n g1 unit 1 sm=0"), ["unattributed g1 0 60"]);
    assert_eq!(answer("a 0 60 g1", "g1 unit 0 sm=10\n g1 unit 1 sm=0"), NONE, "held");
}

#[test]
fn a_minute_that_was_held_in_part_speaks_against_nobody() {
    assert_eq!(answer("a 0 30 g1", "g1 container:c 0"), NONE);
    assert_eq!(answer("a 0 60 g1", "g1 container:c 0-1"), ["unattributed g1 60 -"]);
}

#[test]
fn slices_that_are_cleaned_or_broken_are_not_free() {
    for account in ["scrub", "fault", "quarantine"] {
        assert_eq!(answer(&format!("{account} 0 600 g1"), "g1 container:c 0-9"), NONE, "{account}");
    }
}

#[test]
fn a_job_whose_devices_are_not_known_may_be_there() {
    assert_eq!(answer("a 0 7200 nowhere job=5", "g1 job:5 0-9"), NONE);
    assert_eq!(answer("a 0 7200 nowhere job=5", "g1 job:6 0-9"), ["unattributed g1 0 -"]);
}

#[test]
fn another_jobs_process_on_an_exclusive_unit_is_foreign() {
    let readings = |covered: &str| format!("g1 job:5 0-9\n g1 job:6 2 covered={covered}");
    assert_eq!(answer("a 0 7200 g1 job=5", &readings("9.999999")), NONE);
    assert_eq!(answer("a 0 7200 g1 job=5", &readings("10")), ["foreign_process a 120 180"]);
    assert_eq!(answer("a 0 7200 g1 job=5", "g1 job:6 2-9"), ["foreign_process a 120 -"], "it stands");
    assert_eq!(answer("a 0 7200 g1", "g1 job:6 2-9"), NONE, "the grant names no job");
    assert_eq!(answer("a 0 7200 g1 job=5", "g1 pod:p 2-9"), NONE, "the pod may be where the job runs");
    let pod = "a 0 7200 g1 job=5\n b 0 7200 nowhere pod=p";
    assert_eq!(answer(pod, "g1 pod:p 2-9"), ["foreign_process a 120 -"], "the pod is another allocation's");
}

#[test]
fn a_process_after_its_release_is_found_and_closed() {
    let holds = "a 0 120 g1 job=5";
    let readings = |covered: &str| format!("g1 job:5 0-1\n g1 job:5 2 covered={covered}\n g1 unit 0-9 sm=0");
    assert_eq!(answer(holds, &readings("9.999999")), NONE);
    assert_eq!(answer(holds, &readings("10")), ["unattributed g1 120 180", "held_after_release a 120 180"]);
    assert_eq!(answer("a 0 121 g1 job=5", "g1 job:5 2 covered=59"), NONE, "the minute of the release");
}

#[test]
fn a_process_left_behind_is_after_release_for_one_and_foreign_for_the_next() {
    let holds = "a 0 120 g1 job=5\n b 120 7200 g1 job=6";
    assert_eq!(
        answer(holds, "g1 job:5 0-4\n g1 job:6 2-9"),
        ["foreign_process b 120 300", "held_after_release a 120 300"]
    );
}

#[test]
fn a_job_number_that_came_back_is_not_after_release() {
    let holds = "a 0 120 g1 job=5\n b 240 7200 g1 job=5";
    assert_eq!(answer(holds, "g1 job:5 0-1\n g1 job:5 4-9"), NONE);
    let elsewhere = "a 0 120 g1 job=5\n b 240 7200 g2 job=5";
    assert_eq!(answer(elsewhere, "g1 job:5 4-9"), ["owner_mismatch b 240 -", "unattributed g1 240 -"]);
}

#[test]
fn a_process_where_its_own_allocation_is_not_is_a_mismatch() {
    let holds = "a 0 7200 g1 job=5\n b 0 7200 g2 job=6";
    let readings = |covered: &str| format!("g1 job:5 0-9\n g1 job:6 1 covered={covered}");
    assert_eq!(answer(holds, &readings("9.999999")), NONE);
    assert_eq!(answer(holds, &readings("10")), ["owner_mismatch b 60 120", "foreign_process a 60 120"]);
}

#[test]
fn a_stranger_on_a_shared_unit_is_a_mismatch() {
    let holds = "a 0 7200 g1 shared job=5\n b 0 7200 g1 shared job=6";
    assert_eq!(answer(holds, "g1 job:5 0-9\n g1 job:6 0-9\n g1 job:7 3 covered=9.999999"), NONE);
    assert_eq!(answer(holds, "g1 job:5 0-9\n g1 job:7 3 covered=10"), ["owner_mismatch g1 180 240"]);
    let unnamed = "a 0 7200 g1 shared job=5\n b 0 7200 g1 shared";
    assert_eq!(answer(unnamed, "g1 job:7 3"), NONE, "it may be b's");
}

#[test]
fn an_allocation_is_idle_after_an_hour_of_measured_time() {
    let hour = "g1 unit 0-59 sm=0\n";
    assert_eq!(answer("a 0 7200 g1", "g1 unit 0-58 sm=0\n g1 unit 59 sm=0 covered=59.999999"), NONE);
    assert_eq!(answer("a 0 7200 g1", hour), ["idle_allocation a 0 -"]);
    assert_eq!(answer("a 0.000001 7200 g1", hour), NONE, "held for a microsecond less");
    assert_eq!(answer("a 0 3600 g1", hour), ["idle_allocation a 0 3600"], "its hold ended");
    let active = format!("{hour} g1 unit 3 sm=0.6 hour=1");
    assert_eq!(answer("a 0 7200 g1", &active), ["idle_allocation a 0 3780"], "it became active");
    let almost = format!("{hour} g1 unit 3 sm=0.599999 hour=1");
    assert_eq!(answer("a 0 7200 g1", &almost), ["idle_allocation a 0 -"], "less than one part in a hundred");
    let restarted = "g1 unit 0-58 sm=0\n g1 unit 59 sm=30\n g1 unit 0 sm=0 hour=1";
    assert_eq!(answer("a 0 7200 g1", restarted), NONE, "activity begins the hour anew");
    assert_eq!(
        answer("a 0 7200 g1", "g1 unit 0-59 memory=1 unavailable(not_supported)"),
        NONE,
        "not measured is not idle"
    );
}

#[test]
fn windows_that_overlap_show_a_clock_that_was_put_back() {
    assert_eq!(answer("a 0 7200 g1", "g1 unit 4 sm=30 covered=60"), NONE);
    assert_eq!(
        answer("a 0 7200 g1", "g1 unit 4 sm=30 covered=60.000001\n g1 unit 5 sm=9"),
        ["clock_skew n1 240 300"]
    );
}

#[test]
fn minutes_behind_the_horizon_do_not_act_a_19() {
    assert_eq!(answer("", "g1 container:c 59 hour=1"), ["unattributed g1 7140 -"]);
    assert_eq!(answer("", "g1 container:c 0 hour=2"), NONE);
}
