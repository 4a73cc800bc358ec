//! The second evaluator: instant by instant and slice by slice, from the words of. It shares no function with the first one.

use super::{AllocationId, History, Hold, Instant, Rules, SECOND_US, Scrub, ScrubResult, TenantId};
use crate::fact::ReadBack;
use std::collections::BTreeMap;

/// The verdict of each grant, by allocation and slice, in the words of [`super::word`]. Everything lies within `[0, last]` seconds.
pub(super) fn verdicts(history: &History, rules: &Rules, last: i64) -> BTreeMap<(AllocationId, u8), String> {
    let mut verdicts = BTreeMap::new();
    for grant in &history.holds {
        for slice in 0..history.memory_slices {
            if covers(grant, slice) {
                verdicts
                    .insert((grant.allocation.clone(), slice), verdict(history, rules, grant, slice, last));
            }
        }
    }
    verdicts
}

fn covers(hold: &Hold, slice: u8) -> bool {
    match hold.placement {
        None => true,
        Some(place) => (place.start..place.start + place.size).any(|held| held == slice),
    }
}

fn second(at: Instant) -> i64 {
    at.as_micros() / SECOND_US
}

/// Who owned a hold in the second that begins at `t`.
fn owner_in(hold: &Hold, t: i64) -> &TenantId {
    let mut owner = &hold.owners[0].1;
    for (since, tenant) in &hold.owners {
        if second(*since) <= t {
            owner = tenant;
        }
    }
    owner
}

fn friends(rules: &Rules, one: &TenantId, other: &TenantId) -> bool {
    rules.trust_groups.iter().any(|group| group.iter().any(|t| t == one) && group.iter().any(|t| t == other))
}

/// passed, full or sampled, bytes read, no mismatch, covered and reserved are all there is.
fn believed(scrub: &Scrub) -> bool {
    let e = scrub.evidence;
    let read = e.read_back != ReadBack::Nothing && e.bytes_read != 0 && e.mismatches == 0;
    e.result == ScrubResult::Passed && read && e.bytes_total - e.bytes_covered - e.bytes_reserved == 0
}

/// What was left on a slice at an instant.
#[derive(PartialEq)]
enum Dirt {
    None,
    Tenant(TenantId),
    Scrub,
    Unknown,
}

/// What dirtied the slice exactly at second `t`, as the grant `by` looks back on it.
fn dirt_at(history: &History, rules: &Rules, by: &Hold, slice: u8, (t, now): (i64, i64)) -> Dirt {
    if history.unknowns.iter().any(|unknown| second(unknown.at) == t) {
        return Dirt::Unknown;
    }
    let let_out = history
        .lifted
        .iter()
        .any(|lifted| lifted.slices.each().any(|s| s == slice) && (t..=now).any(|u| u == second(lifted.at)));
    for scrub in &history.scrubs {
        let here = scrub.slices.each().any(|s| s == slice) && second(scrub.finished_at) == t;
        if here && !believed(scrub) && scrub.evidence.result != ScrubResult::Skipped && !let_out {
            return Dirt::Scrub;
        }
    }
    let me = owner_in(by, now);
    let mut left: Vec<TenantId> = history
        .holds
        .iter()
        .filter(|hold| hold.allocation != by.allocation && covers(hold, slice) && second(hold.end) == t)
        .map(|hold| owner_in(hold, t - 1).clone())
        .collect();
    left.sort();
    // Of several who left at once: a stranger before a friend before the tenant itself.
    let stranger = left.iter().rfind(|tenant| *tenant != me && !friends(rules, tenant, me));
    let friend = left.iter().rfind(|tenant| *tenant != me);
    stranger.or(friend).or(left.last()).map_or(Dirt::None, |tenant| Dirt::Tenant(tenant.clone()))
}

fn verdict(history: &History, rules: &Rules, grant: &Hold, slice: u8, last: i64) -> String {
    let now = second(grant.start);
    let me = owner_in(grant, now);
    let mut beside = false;
    for other in &history.holds {
        let earlier = (second(other.start), &other.allocation) < (now, &grant.allocation);
        let there = (now..=last).any(|t| t == now && second(other.end) > t);
        if other.allocation == grant.allocation || !earlier || !there || !covers(other, slice) {
            continue;
        }
        let sharing = other.shared && grant.shared && other.placement == grant.placement;
        let tenant = owner_in(other, now);
        if !sharing && tenant != me && !friends(rules, tenant, me) {
            return format!("violation of {tenant} still there");
        }
        beside = true;
    }
    if beside {
        return "beside".to_owned();
    }
    let mut t = now;
    while t >= 0 {
        let dirt = dirt_at(history, rules, grant, slice, (t, now));
        if dirt != Dirt::None {
            return after(history, rules, grant, slice, (t, now), dirt);
        }
        t -= 1;
    }
    let ever = history
        .scrubs
        .iter()
        .any(|s| believed(s) && s.slices.each().any(|x| x == slice) && second(s.finished_at) <= now);
    if ever { "clean".to_owned() } else { "baseline".to_owned() }
}

fn after(
    history: &History,
    rules: &Rules,
    grant: &Hold,
    slice: u8,
    (since, now): (i64, i64),
    dirt: Dirt,
) -> String {
    let here: Vec<&Scrub> = history
        .scrubs
        .iter()
        .filter(|scrub| scrub.slices.each().any(|s| s == slice) && second(scrub.finished_at) <= now)
        .collect();
    if here.iter().any(|scrub| believed(scrub) && second(scrub.started_at) >= since) {
        return "clean".to_owned();
    }
    let me = owner_in(grant, now);
    match dirt {
        Dirt::Tenant(tenant) if tenant == *me => {
            let says_so = |scrub: &&Scrub| {
                scrub.evidence.result == ScrubResult::Skipped && second(scrub.finished_at) >= since
            };
            if here.iter().any(says_so) { "skipped".to_owned() } else { "missing".to_owned() }
        }
        Dirt::Tenant(tenant) if friends(rules, &tenant, me) => "trusted".to_owned(),
        Dirt::Tenant(tenant) => format!("violation of {tenant}"),
        Dirt::Scrub => "violation of a scrub".to_owned(),
        Dirt::Unknown => "violation of unknown".to_owned(),
        Dirt::None => unreachable!("only what dirtied is asked for"),
    }
}
