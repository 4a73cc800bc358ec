//! Who held a slice before and after an instant, and what lies between.

use super::{look, scrub_json, word};
use crate::cli::ResidueReport;
use crate::outcome::{Outcome, Usage};
use crate::settings::Settings;
use crate::table;
use anyhow::Result;
use gpuledger_domain::ids::{AllocationId, GpuId, TenantId};
use gpuledger_domain::residue::{Between, History, Rules, Side, between};
use gpuledger_domain::time::Instant;
use gpuledger_telemetry::terminal::say;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a tenant reads in place of another's name.
const ANOTHER: &str = "another tenant";

/// Reports.
pub(super) async fn run(settings: &Settings, args: ResidueReport) -> Result<Outcome> {
    let look = look(settings, args.as_of).await?;
    let wanted = wanted(&look.histories, &args)?;
    let viewer = args.tenant.as_deref().map(TenantId::new);
    let mut rows = Vec::new();
    for (gpu, instants) in &wanted {
        let Some(history) = look.histories.get(gpu) else { continue };
        let rules = look.books.terms.residue_rules(history);
        let verdicts = Verdicts::of(history, &rules);
        for (at, slice) in instants {
            rows.extend(row(history, &verdicts, between(history, *slice, *at), *at, viewer.as_ref()));
        }
    }
    if args.format == "json" {
        let json = json!({"as_of": look.as_of.to_string(), "rows": rows});
        say(&serde_json::to_string_pretty(&json)?);
    } else {
        let headings = ["gpu", "slice", "at", "before", "after", "scrubs between", "verdict"];
        say(&table::render(&headings, &["slice"], &rows.iter().map(cells).collect::<Vec<_>>()));
    }
    Ok(Outcome::Done)
}

type Asked = BTreeMap<GpuId, BTreeSet<(Instant, u8)>>;

/// Instants and slices that are asked for: of a GPU at a time, or of an allocation at its begin and its end.
fn wanted(histories: &BTreeMap<GpuId, History>, args: &ResidueReport) -> Result<Asked> {
    let mut wanted = Asked::new();
    if let Some(allocation) = args.allocation.as_deref().map(AllocationId::new) {
        for history in histories.values() {
            for hold in history.holds.iter().filter(|hold| hold.allocation == allocation) {
                for slice in history.slices(hold.placement).each().filter(|slice| is_asked(args, *slice)) {
                    let of_gpu = wanted.entry(history.gpu.clone()).or_default();
                    of_gpu.insert((hold.start, slice));
                    if !hold.open {
                        of_gpu.insert((hold.end, slice));
                    }
                }
            }
        }
        if let Some(gpu) = args.gpu.as_deref() {
            wanted.retain(|held, _| held.as_str() == gpu);
        }
        if wanted.is_empty() {
            return Err(Usage(format!("--allocation {allocation}: it held no slices of a device")).into());
        }
        return Ok(wanted);
    }
    let (Some(gpu), Some(at)) = (args.gpu.as_deref(), args.at) else {
        return Err(Usage("want --gpu and --at, or --allocation".to_owned()).into());
    };
    let history = histories
        .get(&GpuId::new(gpu))
        .ok_or_else(|| Usage(format!("--gpu {gpu}: no inventory has named it")))?;
    let slices: BTreeSet<(Instant, u8)> =
        history.all().each().filter(|slice| is_asked(args, *slice)).map(|slice| (at, slice)).collect();
    if slices.is_empty() {
        let has = history.memory_slices;
        return Err(Usage(format!("--slice: {gpu} has {has} memory slices, counted from 0")).into());
    }
    wanted.insert(history.gpu.clone(), slices);
    Ok(wanted)
}

fn is_asked(args: &ResidueReport, slice: u8) -> bool {
    args.slice.is_none_or(|asked| asked == slice)
}

/// Verdicts of grants by allocation, begin and slice.
struct Verdicts(BTreeMap<(AllocationId, Instant, u8), &'static str>);

impl Verdicts {
    fn of(history: &History, rules: &Rules) -> Self {
        let mut verdicts = BTreeMap::new();
        for judged in history.judge(rules, Instant::MIN) {
            for (slice, verdict) in &judged.slices {
                let key = (judged.hold.allocation.clone(), judged.hold.start, *slice);
                verdicts.insert(key, word(verdict));
            }
        }
        Self(verdicts)
    }
}

/// One boundary; a tenant is shown those at which it stands on one side.
fn row(
    history: &History,
    verdicts: &Verdicts,
    between: Between<'_>,
    at: Instant,
    viewer: Option<&TenantId>,
) -> Option<Value> {
    let is_own = |side: &Option<Side>| side.as_ref().is_some_and(|side| side.tenant.as_ref() == viewer);
    if viewer.is_some() && !is_own(&between.before) && !is_own(&between.after) {
        return None;
    }
    let verdict = between
        .after
        .as_ref()
        .and_then(|after| verdicts.0.get(&(after.allocation.clone(), after.start, between.slice)));
    let unknown = between.unknowns.iter();
    let unknown: Vec<Value> =
        unknown.map(|unknown| json!({"at": unknown.at.to_string(), "why": unknown.cause.as_str()})).collect();
    Some(json!({
        "gpu": history.gpu.as_str(), "slice": between.slice.to_string(), "at": at.to_string(),
        "before": between.before.as_ref().map(|side| side_json(side, viewer)),
        "after": between.after.as_ref().map(|side| side_json(side, viewer)),
        "scrubs": between.scrubs.iter().map(|scrub| scrub_json(scrub)).collect::<Vec<_>>(),
        "unknown": unknown, "verdict": verdict,
    }))
}

fn side_json(side: &Side, viewer: Option<&TenantId>) -> Value {
    let is_shown = viewer.is_none_or(|viewer| side.tenant.as_ref() == Some(viewer));
    let tenant = side.tenant.as_ref().map(ToString::to_string);
    json!({
        "allocation": is_shown.then(|| side.allocation.to_string()),
        "tenant": if is_shown { tenant } else { Some(ANOTHER.to_owned()) },
        // When another tenant came or went is shown only where it meets the viewer's own time: not at all.
        "start": is_shown.then(|| side.start.to_string()),
        "end": side.end.filter(|_| is_shown).map(|end| end.to_string()),
    })
}

fn cells(row: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("–").to_owned();
    let side = |side: &Value| match (side["tenant"].as_str(), side["allocation"].as_str()) {
        (Some(tenant), Some(allocation)) => format!("{tenant} ({allocation})"),
        (Some(tenant), None) => tenant.to_owned(),
        _ => "–".to_owned(),
    };
    let scrubs = row["scrubs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let scrub = |scrub: &Value| {
        let verified = if scrub["verified"] == true { "verified" } else { "not verified" };
        format!("{} {}, {verified}", text(&scrub["scrub"]), text(&scrub["result"]))
    };
    vec![
        text(&row["gpu"]),
        text(&row["slice"]),
        text(&row["at"]),
        side(&row["before"]),
        side(&row["after"]),
        scrubs.iter().map(scrub).collect::<Vec<_>>().join("; "),
        text(&row["verdict"]),
    ]
}
