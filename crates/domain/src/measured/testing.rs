//! Spans and rollups in text form, for tests.
//!
//! A span is `allocation start end gpu [word …]`, times in seconds of the first hour, fractions exact; words: `+4:4` (memory slices 4 to 7 of 8),
//! `job=5`, `pod=p`, `shared`, `served` (by a pool), `tenant=t`. A rollup is `gpu owner minute reading … [label]`: owner `unit`, `job:5`, `pod:p`,
//! `container:c`, `pid:boot/7/1000000`; minute `3` or `3-7`; readings `sm=` and `covered=` in seconds, `memory=`, `energy=`; `+4:4` and `hour=1`
//! as words.

use super::{Minute, Owner, Rollup, note_telling};
use crate::fact::{Class, Placement, Runtime};
use crate::ids::{AllocationId, GpuId, NodeId, SkuId, TenantId};
use crate::share::Share;
use crate::time::{HOUR_US, Instant, Window};
use crate::usage::{SpanPlace, Split, Telling, UsageSpan};
use std::collections::BTreeMap;

/// Microseconds of `1.5`, `-3` and the like.
pub(crate) fn micros(seconds: &str) -> i64 {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    whole.parse::<i64>().unwrap() * 1_000_000 + format!("{fraction:0<6}").parse::<i64>().unwrap()
}

/// An instant in seconds of the first hour.
pub(crate) fn at(seconds: &str) -> Instant {
    Instant::from_micros(micros(seconds))
}

fn value<'w>(words: &[&'w str], key: &str) -> Option<&'w str> {
    words.iter().find_map(|word| word.strip_prefix(key))
}

fn slices(words: &[&str]) -> Option<Placement> {
    let (start, size) = value(words, "+")?.split_once(':').unwrap();
    Some(Placement { start: start.parse().unwrap(), size: size.parse().unwrap() })
}

/// Spans, one a line, as attribution would give them.
pub(crate) fn spans(text: &str) -> Vec<UsageSpan> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut spans: Vec<UsageSpan> = lines().map(span).collect();
    let grants: Vec<(AllocationId, Runtime)> = lines().map(grant).collect();
    note_telling(&mut spans, grants.iter().map(|(id, runtime)| (id, runtime)));
    spans
}

fn grant(line: &str) -> (AllocationId, Runtime) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = |key| value(&words, key).map(str::to_owned);
    (AllocationId::new(words[0]), Runtime { slurm_job: name("job="), pod_uid: name("pod=") })
}

fn span(line: &str) -> UsageSpan {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (shared, served) = (words.contains(&"shared"), words.contains(&"served"));
    let at_slices = slices(&words).unwrap_or(Placement { start: 0, size: 8 });
    let start = at(words[1]);
    UsageSpan {
        allocation: AllocationId::new(words[0]),
        unit: 0,
        count: 1,
        tenant: TenantId::new(value(&words, "tenant=").unwrap_or("acme")),
        project: None,
        sku: SkuId::new("h100"),
        class: Class::OnDemand,
        place: (words[3] != "nowhere").then(|| SpanPlace {
            gpu: GpuId::new(words[3]),
            node: NodeId::new("n1"),
            memory_start: at_slices.start,
            compute_slices: if at_slices.size == 8 { 7 } else { 3 },
            memory_slices: at_slices.size,
            gpu_compute_slices: 7,
            gpu_memory_slices: 8,
        }),
        weight: Share::from_integer(1),
        window: Window::new(start, at(words[2])).unwrap(),
        split: (shared || served).then(|| Split::new(start, &[Share::new(1, 2), Share::new(1, 2)], 0)),
        held: !served,
        state: None,
        telling: Telling { alone: !shared && !served, ..Telling::default() },
    }
}

/// Rollups, one a line and unit and owner; lines of the same row are put together.
pub(crate) fn rollups(text: &str) -> Vec<Rollup> {
    let mut rows: BTreeMap<(Instant, String, Option<Placement>, Owner), Rollup> = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let hour =
            Instant::from_micros(value(&words, "hour=").map_or(0, |h| h.parse::<i64>().unwrap() * HOUR_US));
        let owner = owner(words[1]);
        let placement = slices(&words);
        let row =
            rows.entry((hour, words[0].to_owned(), placement, owner.clone())).or_insert_with(|| Rollup {
                node: NodeId::new("n1"),
                gpu: GpuId::new(words[0]),
                placement,
                owner,
                hour,
                minutes: BTreeMap::new(),
                memory_bytes_max: None,
                quality: BTreeMap::new(),
            });
        let (first, last) = words[2].split_once('-').unwrap_or((words[2], words[2]));
        let seconds = |key| value(&words, key).map(|s| u64::try_from(micros(s)).unwrap());
        let read = Minute {
            sm_active_us: seconds("sm="),
            memory_byte_us: value(&words, "memory=").map(|n| n.parse().unwrap()),
            energy_mj: value(&words, "energy=").map(|n| n.parse().unwrap()),
            covered_us: seconds("covered=").unwrap_or(60_000_000),
        };
        for minute in first.parse::<u8>().unwrap()..=last.parse().unwrap() {
            row.minutes.insert(minute, read);
        }
        let plain = words[3..].iter().find(|word| !word.contains('=') && !word.starts_with('+'));
        for reading in ["sm_active_us", "memory_byte_us"] {
            let label = plain.copied().unwrap_or("interval_mean").to_owned();
            *row.quality.entry(reading.to_owned()).or_default().entry(label).or_default() += read.covered_us;
        }
    }
    rows.into_values().collect()
}

fn owner(word: &str) -> Owner {
    match word.split_once(':') {
        Some(("job", id)) => Owner::Job(id.to_owned()),
        Some(("pod", id)) => Owner::Pod(id.to_owned()),
        Some(("container", id)) => Owner::Container(id.to_owned()),
        Some((_, id)) => Owner::Process(id.to_owned()),
        None => Owner::Unit,
    }
}
