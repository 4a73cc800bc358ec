//! Every rule by example.

use super::*;
use crate::finding::Kind;
use crate::residue::{Limits, Set, Sets, Why, between, findings, lifted_at, orders};
use std::collections::BTreeSet;

/// `kind subject since until` in seconds, at `as_of` seconds.
fn found(history: &History, rules: &Rules, as_of: i64) -> Vec<String> {
    let mut found: Vec<String> = findings(history, rules, at(as_of))
        .into_iter()
        .filter(|finding| finding.kind != Kind::ScrubLate)
        .map(|f| {
            let second = |at: Instant| at.as_micros() / SECOND_US;
            let until = f.until.map_or("-".to_owned(), |until| second(until).to_string());
            format!("{} {} {} {until}", f.kind.as_str(), f.subject, second(f.since))
        })
        .collect();
    found.sort();
    found
}

fn two_tenants() -> History {
    let mut history = bare(8);
    history.holds = vec![hold("a", "acme", place(0, 4), 0, 10), hold("b", "bolt", place(0, 4), 20, 30)];
    history
}

fn with(mut history: History, scrubs: Vec<Scrub>) -> History {
    history.scrubs.extend(scrubs);
    in_order(history)
}

#[test]
fn another_tenant_needs_a_scrub_after_the_end_and_before_the_start_r_2() {
    let rules = Rules::default();
    let second = |scrubs| told(&with(two_tenants(), scrubs), &rules)[1].clone();
    assert_eq!(second(vec![]), "b 0-3 violation of acme");
    assert_eq!(second(vec![scrub("s", place(0, 4), 10, 20)]), "b 0-3 clean", "the edges count");
    assert_eq!(second(vec![scrub("s", place(0, 4), 9, 20)]), "b 0-3 violation of acme", "overlaps the hold");
    assert_eq!(second(vec![scrub("s", place(0, 4), 10, 21)]), "b 0-3 violation of acme", "ends too late");
    assert_eq!(second(vec![scrub("s", None, 10, 20)]), "b 0-3 clean", "a whole GPU is all its slices");
    let parts = vec![scrub("s", place(0, 2), 10, 12), scrub("t", place(2, 2), 12, 14)];
    assert_eq!(second(parts), "b 0-3 clean", "several cover together");
}

#[test]
fn a_scrub_of_a_part_leaves_the_rest_r_2() {
    let history = with(two_tenants(), vec![scrub("s", place(0, 3), 10, 12)]);
    assert_eq!(told(&history, &Rules::default())[1..], ["b 0-2 clean", "b 3 violation of acme"]);
}

#[test]
fn a_new_layout_alters_no_holder_r_1() {
    let mut history = two_tenants();
    history.holds[1].placement = place(3, 2);
    let judged = told(&history, &Rules::default());
    assert_eq!(judged[1..], ["b 4 baseline", "b 3 violation of acme"]);
}

#[test]
fn a_whole_gpu_is_all_of_its_slices_with_mig_off_r_1() {
    let mut history = two_tenants();
    history.holds[1].placement = None;
    assert_eq!(
        told(&history, &Rules::default())[1..],
        ["b 4-7 baseline", "b 0-3 violation of acme"],
        "by the words of the verdict"
    );
}

#[test]
fn unknown_counts_as_another_tenant_r_1() {
    let mut history = two_tenants();
    history.holds[1] = hold("a-2", "acme", place(0, 4), 20, 30);
    history.unknowns = vec![Unknown { at: at(15), cause: Cause::Boot }];
    let before = with(history.clone(), vec![scrub("s", None, 11, 14)]);
    assert_eq!(told(&before, &Rules::default())[1], "a-2 0-3 violation of unknown");
    let after = with(history, vec![scrub("s", None, 15, 16)]);
    assert_eq!(told(&after, &Rules::default())[1], "a-2 0-3 clean");
}

#[test]
fn first_sight_is_one_finding_and_no_violation_r_1() {
    let mut history = bare(8);
    history.holds = vec![hold("a", "acme", None, 5, 10)];
    assert_eq!(found(&history, &Rules::default(), 9), ["residue_unknown GPU-1 0 -"]);
    let cleaned = with(history, vec![scrub("s", place(0, 4), 11, 12), scrub("t", place(4, 4), 13, 14)]);
    assert_eq!(found(&cleaned, &Rules::default(), 20), ["residue_unknown GPU-1 0 14"]);
}

#[test]
fn after_a_transfer_the_last_owner_is_the_holder_r_1() {
    let mut history = two_tenants();
    history.holds[0].owners.push((at(5), TenantId::new("bolt")));
    assert_eq!(told(&history, &Rules::default())[1], "b 0-3 missing", "bolt was there last");
    history.holds[1].owners[0].1 = TenantId::new("acme");
    assert_eq!(told(&history, &Rules::default())[1], "b 0-3 violation of bolt");
}

#[test]
fn verified_is_what_r_3_says() {
    let good = evidence(ScrubResult::Passed, true);
    let bad = [
        ScrubEvidence { result: ScrubResult::Failed, ..good },
        ScrubEvidence { read_back: ReadBack::Nothing, ..good },
        ScrubEvidence { bytes_read: 0, ..good },
        ScrubEvidence { mismatches: 1, ..good },
        ScrubEvidence { bytes_covered: 5, ..good },
        ScrubEvidence { bytes_reserved: 3, ..good },
    ];
    let second = |evidence| {
        let scrub = Scrub { evidence, ..scrub("s", None, 11, 12) };
        told(&with(two_tenants(), vec![scrub]), &Rules::default())[1].clone()
    };
    assert_eq!(second(good), "b 0-3 clean");
    assert_eq!(second(ScrubEvidence { read_back: ReadBack::Sampled, ..good }), "b 0-3 clean");
    for evidence in bad {
        assert_eq!(second(evidence), "b 0-3 violation of a scrub", "{evidence:?}");
    }
}

#[test]
fn a_failed_scrub_dirties_until_a_later_one_passes_or_somebody_answers_for_it_r_3() {
    let failed = Scrub { evidence: evidence(ScrubResult::Failed, true), ..scrub("f", place(0, 4), 14, 15) };
    let history = with(two_tenants(), vec![scrub("s", None, 11, 12), failed]);
    assert_eq!(told(&history, &Rules::default())[1], "b 0-3 violation of a scrub");
    assert!(found(&history, &Rules::default(), 40).contains(&"scrub_failed GPU-1 15 -".to_owned()));
    let mut lifted = history.clone();
    lifted.lifted = vec![Lifted { at: at(16), slices: Slices::of(place(0, 4), 8) }];
    assert_eq!(told(&lifted, &Rules::default())[1], "b 0-3 clean", "as it was before the scrub");
    assert!(found(&lifted, &Rules::default(), 40).contains(&"scrub_failed GPU-1 15 16".to_owned()));
    let again = with(history, vec![scrub("t", None, 16, 18)]);
    assert_eq!(told(&again, &Rules::default())[1], "b 0-3 clean");
}

#[test]
fn passed_without_proof_is_incomplete_r_3() {
    let scrub = Scrub { evidence: evidence(ScrubResult::Passed, false), ..scrub("s", None, 11, 12) };
    let found = found(&with(two_tenants(), vec![scrub]), &Rules::default(), 40);
    assert!(found.contains(&"scrub_incomplete GPU-1 12 -".to_owned()), "{found:?}");
}

#[test]
fn a_skip_needs_one_tenant_and_a_record_r_4() {
    let skip = Scrub { evidence: evidence(ScrubResult::Skipped, false), ..scrub("s", None, 12, 12) };
    let other = with(two_tenants(), vec![skip.clone()]);
    assert_eq!(told(&other, &Rules::default())[1], "b 0-3 violation of acme");
    let mut same = two_tenants();
    same.holds[1] = hold("a-2", "acme", place(0, 4), 20, 30);
    assert_eq!(told(&same, &Rules::default())[1], "a-2 0-3 missing");
    assert!(found(&same, &Rules::default(), 40).contains(&"scrub_missing a-2 20 30".to_owned()));
    let same = with(same, vec![skip]);
    assert_eq!(told(&same, &Rules::default())[1], "a-2 0-3 skipped");
    assert!(found(&same, &Rules::default(), 40).contains(&"scrub_skipped a 12 12".to_owned()));
}

#[test]
fn a_trust_group_needs_no_scrub_r_2() {
    let group = BTreeSet::from([TenantId::new("acme"), TenantId::new("bolt")]);
    let rules = Rules { trust_groups: vec![group], ..Rules::default() };
    assert_eq!(told(&two_tenants(), &rules)[1], "b 0-3 trusted");
    assert_eq!(found(&two_tenants(), &rules, 40), ["residue_unknown GPU-1 0 -"]);
}

#[test]
fn releases_are_measured_against_both_limits_r_5() {
    let late = |scrubs: Vec<Scrub>, as_of: i64| -> Vec<String> {
        let mut history = bare(8);
        history.holds = vec![hold("a", "acme", None, 0, 100)];
        let said = super::super::lateness(&with(history, scrubs), Limits::default(), at(as_of));
        let second = |at: Instant| at.as_micros() / SECOND_US;
        said.iter().map(|f| format!("{} {:?}", second(f.since), f.until.map(second))).collect()
    };
    assert_eq!(late(vec![], 160), [""; 0], "exactly a minute is in time");
    assert_eq!(late(vec![], 161), ["160 None"]);
    assert_eq!(late(vec![], 701), ["160 None", "700 None"]);
    assert_eq!(late(vec![scrub("s", None, 160, 700)], 900), [""; 0], "exactly the limits");
    assert_eq!(late(vec![scrub("s", None, 161, 701)], 900), ["160 Some(161)", "700 Some(701)"]);
    let skip = Scrub { evidence: evidence(ScrubResult::Skipped, false), ..scrub("s", None, 130, 130) };
    assert_eq!(late(vec![skip], 900), [""; 0], "a record that it was skipped ends the waiting");
}

#[test]
fn somebody_else_ends_the_waiting_r_5() {
    let mut history = bare(8);
    history.holds = vec![hold("a", "acme", None, 0, 100), hold("b", "bolt", None, 150, 900)];
    assert_eq!(super::super::lateness(&history, Limits::default(), at(800)), []);
}

#[test]
fn shared_holders_of_one_unit_are_no_residue_to_each_other_r_2() {
    let mut history = bare(8);
    history.holds = vec![hold("a", "acme", None, 0, 30), hold("b", "bolt", None, 10, 40)];
    assert_eq!(told(&history, &Rules::default())[1], "b 0-7 violation of acme still there");
    history.holds.iter_mut().for_each(|hold| hold.shared = true);
    assert_eq!(told(&history, &Rules::default())[1], "b 0-7 beside");
}

#[test]
fn only_enforce_orders_quarantine_and_once_for_each_cause_r_2_r_3() {
    let failed = Scrub { evidence: evidence(ScrubResult::Failed, true), ..scrub("f", place(4, 4), 14, 15) };
    let history = with(two_tenants(), vec![failed]);
    assert_eq!(orders(&history, &Rules::default(), Instant::MIN), []);
    let enforce = Rules { mode: Mode::Enforce, ..Rules::default() };
    let orders = orders(&history, &enforce, Instant::MIN);
    let whys: Vec<&Why> = orders.iter().map(|order| &order.why).collect();
    let grant = Why::Violation { allocation: AllocationId::new("b"), unit: 0 };
    assert_eq!(whys, [&grant, &Why::Scrub(ScrubId::new("f"))]);
    assert_eq!((orders[0].placement, orders[1].placement), (place(0, 4), place(4, 4)));
    assert_eq!(orders[0].tenant, Some(TenantId::new("bolt")));
}

#[test]
fn quarantine_is_left_by_a_later_passed_scrub_or_a_named_person_r_3() {
    let slices = Slices::of(place(0, 4), 8);
    let history = with(bare(8), vec![scrub("s", place(0, 2), 16, 18), scrub("t", place(2, 2), 14, 16)]);
    assert_eq!(lifted_at(&history, slices, at(15)), None, "t began before");
    assert_eq!(lifted_at(&history, slices, at(14)), Some(at(18)));
    let mut history = history;
    history.lifted = vec![Lifted { at: at(20), slices: Slices::of(None, 8) }];
    assert_eq!(lifted_at(&history, slices, at(15)), Some(at(20)));
}

#[test]
fn the_closest_set_rules_a_gpu() {
    let set = |id: &str, gpus: &[&str], mode| Set {
        id: id.to_owned(),
        gpus: gpus.iter().map(|name| (*name).to_owned()).collect(),
        rules: Rules { mode, ..Rules::default() },
    };
    let sets = Sets(vec![
        set("all", &["*"], Mode::Off),
        set("model", &["h100-80gb-hbm3"], Mode::Observe),
        set("node", &["n1"], Mode::Enforce),
        set("one", &["GPU-2"], Mode::Off),
    ]);
    let of = |gpu: &str, node: &str, model: &str| sets.of(&gpu.into(), &node.into(), model).mode;
    assert_eq!(of("GPU-2", "n1", "NVIDIA H100 80GB HBM3"), Mode::Off);
    assert_eq!(of("GPU-1", "n1", "NVIDIA H100 80GB HBM3"), Mode::Enforce);
    assert_eq!(of("GPU-1", "n2", "NVIDIA H100 80GB HBM3"), Mode::Observe);
    assert_eq!(of("GPU-1", "n2", "NVIDIA A30"), Mode::Off);
    assert_eq!(Sets::default().of(&"GPU-1".into(), &"n1".into(), "x").mode, Mode::Observe);
}

#[test]
fn who_was_there_before_and_after_and_what_lies_between() {
    let history = with(two_tenants(), vec![scrub("s", None, 11, 12), scrub("t", None, 31, 32)]);
    let between = between(&history, 2, at(20));
    assert_eq!(between.before.map(|side| side.allocation), Some(AllocationId::new("a")));
    assert_eq!(between.after.map(|side| side.allocation), Some(AllocationId::new("b")));
    assert_eq!(between.scrubs.iter().map(|scrub| scrub.scrub.as_str()).collect::<Vec<_>>(), ["s"]);
}
