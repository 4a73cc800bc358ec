//! The stream of windows: no hole, no overlap, and with its gaps all of the run.

use super::{Findings, PERIOD_US, REASONS, slots};
use crate::node::Outing;
use crate::oracle::{broken, energy_set, revoked};
use gpuledger_domain::time::Instant;
use gpuledger_nvml_sim::scenario::Action;
use gpuledger_wire::bodies::Gap;
use std::collections::BTreeMap;

pub(super) fn check(outing: &Outing, findings: &mut Findings) {
    let node = &outing.world.scenario().node;
    for event in &outing.output.events {
        findings
            .check(event.source == format!("/nodes/{node}/collector"), || format!("{} speaks", event.source));
    }
    sequence(outing, findings);
    cover(outing, findings);
    let has_jumps = outing.world.has_clock_jumps();
    for (slot, window) in slots(outing) {
        findings.check(window.boot_id.as_str() == outing.world.scenario().boot_id, || {
            format!("{}: another boot", slot.name)
        });
        findings.check(has_jumps || slot.is_plain(), || format!("{}: lies outside the timeline", slot.name));
        for gap in &window.gaps {
            self::gap(outing, findings, gap);
        }
        let quiet = (0..outing.world.gpu_count()).all(|gpu| {
            let energy = energy_set(&outing.world, gpu);
            slot.is_quiet(outing, gpu) && !slot.times.widened(0, 10 * PERIOD_US).meets(&energy)
        });
        findings.check(!quiet || window.gaps.is_empty(), || {
            format!("{}: gaps in quiet times: {:?}", slot.name, window.gaps)
        });
    }
    let windows = u64::try_from(outing.output.windows().count()).unwrap_or(0);
    let gaps = outing.output.windows().map(|window| window.gaps.len()).sum::<usize>();
    findings.case("windows", windows);
    findings.case("gaps", u64::try_from(gaps).unwrap_or(0));
}

fn sequence(outing: &Outing, findings: &mut Findings) {
    let mut next: BTreeMap<&str, i64> = BTreeMap::new();
    for window in outing.output.windows() {
        let place = next.entry(window.stream.as_str()).or_insert_with(|| window.sequence.get());
        findings.check(*place == window.sequence.get(), || {
            format!("stream {}: {} comes where {place} is next", window.stream, window.sequence)
        });
        *place = window.sequence.get() + 1;
    }
    findings.check(next.len() == 1, || format!("{} streams of one spool", next.len()));
}

/// Windows do not overlap; where two do not meet a gap of the second one says why; the first begins with the run and the last ends with it.
fn cover(outing: &Outing, findings: &mut Findings) {
    let windows: Vec<_> = outing.output.windows().collect();
    for pair in windows.windows(2) {
        let (end, start) = (pair[0].end.get(), pair[1].start.get());
        findings.check(end <= start, || format!("windows overlap: {end} and {start}"));
        let told = is_told(&pair[1].gaps, end, start);
        findings.check(end == start || told, || format!("nothing tells of {end} .. {start}"));
    }
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return findings.check(false, || format!("no window at all\n{}", outing.log));
    };
    let (begin, end) = (super::instant(outing, 0), super::instant(outing, outing.until_us));
    let late_us = first.start.get().since(begin);
    findings
        .check((0..=2_000_000).contains(&late_us), || format!("the first window begins at {}", first.start));
    findings
        .check(last.end.get() >= end, || format!("the last window ends at {}, the run at {end}", last.end));
}

/// Whether gaps, one after the other, tell of all of a time.
fn is_told(gaps: &[Gap], from: Instant, to: Instant) -> bool {
    let mut gaps: Vec<(Instant, Instant)> = gaps.iter().map(|gap| (gap.start.get(), gap.end.get())).collect();
    gaps.sort_unstable();
    gaps.iter().fold(from, |at, (start, end)| if *start <= at { at.max(*end) } else { at }) >= to
}

fn gap(outing: &Outing, findings: &mut Findings, gap: &Gap) {
    let reason = gap.reason.as_str();
    let (word, of) = reason.split_once('(').unwrap_or((reason, ""));
    findings.check(REASONS.contains(&word), || format!("a gap for the reason {reason}"));
    findings.check(gap.start.get() < gap.end.get(), || format!("an empty gap for the reason {reason}"));
    let Some(uuid) = of.strip_suffix(')') else { return };
    let gpu = outing.gpu(uuid);
    // The last good reading was before it broke; what broke at the very end is why there was no other.
    let times = crate::oracle::times(&outing.world, gap.start.get(), gap.end.get()).widened(0, 1);
    let injected = |code: u32| {
        let fails = |action: &Action| matches!(action, Action::Fail(fail) if fail.returns.0 == code);
        outing.world.scenario().timeline.iter().any(|step| fails(&step.action))
    };
    let reason_holds = match word {
        "lost" => times.meets(&broken(&outing.world, gpu)) || injected(15),
        "reset_required" => times.meets(&broken(&outing.world, gpu)) || injected(16),
        "unknown" => times.meets(&revoked(&outing.world, gpu)) || injected(999),
        "clock_jump" => outing.world.has_clock_jumps(),
        _ => true,
    };
    findings.check(reason_holds, || {
        format!("a gap {} .. {} for the reason {reason}, which is not true", gap.start, gap.end)
    });
}
