//! The spool as a whole: what it keeps, across restarts, full disks and damage.

mod damage;

use super::testing::{folder, node, window};
use super::{NotKept, Outgoing, Reason, Spool, SpoolError, SpoolSettings, Sync};
use gpuledger_domain::time::Instant;
use gpuledger_wire::bodies::{NodeDecommissioned, TelemetryWindow};
use gpuledger_wire::text::Name;
use gpuledger_wire::{EventData, decode_structured};
use std::fs;
use std::path::Path;

/// Ten seconds.
pub(super) const STEP_US: i64 = 10_000_000;

pub(super) fn settings(folder: &Path) -> SpoolSettings {
    let folder = folder.join("spool");
    SpoolSettings { folder, max_bytes: 256 << 10, segment_bytes: 4 << 10, sync: Sync::Each }
}

pub(super) fn open(folder: &Path) -> Spool {
    Spool::open(settings(folder), node()).unwrap()
}

/// Keeps windows number `from` to `to`, each of ten seconds.
pub(super) fn keep(spool: &Spool, from: i64, to: i64) {
    for n in from..to {
        spool.append_window(window(n * STEP_US, (n + 1) * STEP_US)).unwrap();
    }
}

pub(super) fn everything(spool: &Spool) -> Vec<Outgoing> {
    let mut reader = spool.reader();
    let mut all = Vec::new();
    loop {
        let batch = reader.next(7, 8 << 10).unwrap();
        if batch.is_empty() {
            return all;
        }
        all.extend(batch);
    }
}

/// Id and window of each that is one.
pub(super) fn windows(outgoing: &[Outgoing]) -> Vec<(String, TelemetryWindow)> {
    let read = |outgoing: &Outgoing| {
        let event = decode_structured(&outgoing.event).unwrap();
        match event.data {
            EventData::TelemetryWindow(window) => Some((event.id, window)),
            _ => None,
        }
    };
    outgoing.iter().filter_map(read).collect()
}

fn gaps(window: &TelemetryWindow) -> Vec<(i64, i64, &str)> {
    let plain = |us: i64| us / STEP_US;
    let gap = |gap: &gpuledger_wire::bodies::Gap| {
        (plain(gap.start.get().as_micros()), plain(gap.end.get().as_micros()))
    };
    window.gaps.iter().map(|g| (gap(g).0, gap(g).1, g.reason.as_str())).collect()
}

fn fact() -> EventData {
    EventData::from(NodeDecommissioned::Node(Name::new("n1").unwrap()))
}

#[test]
fn windows_are_numbered_without_holes_across_facts_segments_and_restarts() {
    let folder = folder();
    let spool = open(folder.path());
    keep(&spool, 0, 20);
    let id = spool.append_fact(Instant::from_micros(20 * STEP_US), fact()).unwrap();
    drop(spool);
    let spool = open(folder.path());
    keep(&spool, 20, 40);
    let all = everything(&spool);
    assert_eq!(all.len(), 41);
    assert_eq!(decode_structured(&all[20].event).unwrap().id, id);
    let windows = windows(&all);
    let stream = windows[0].1.stream.clone();
    for (n, (id, window)) in (0_i64..).zip(&windows) {
        assert_eq!(window.sequence.get(), n);
        assert_eq!(window.stream, stream);
        let position = if n < 20 { n } else { n + 1 };
        assert_eq!(*id, format!("{stream}-{position}"));
        assert_eq!(window.gaps, [], "neighbours leave no gap, over a restart too");
    }
    let segments = fs::read_dir(folder.path().join("spool")).unwrap().count();
    assert!(segments > 4, "{segments}: many segments were read");
}

#[test]
fn the_time_without_a_collector_is_a_gap() {
    let folder = folder();
    keep(&open(folder.path()), 0, 2);
    let spool = open(folder.path());
    keep(&spool, 10, 12);
    let windows = windows(&everything(&spool));
    assert_eq!(gaps(&windows[2].1), [(2, 10, "collector_stopped")]);
    assert_eq!(gaps(&windows[3].1), []);
}

#[test]
fn the_gap_is_known_after_everything_was_acknowledged_and_dropped() {
    let folder = folder();
    let spool = open(folder.path());
    keep(&spool, 0, 40);
    spool.acknowledge(everything(&spool).last().unwrap().after);
    drop(spool);
    let spool = open(folder.path());
    assert_eq!(everything(&spool), []);
    keep(&spool, 50, 51);
    let windows = windows(&everything(&spool));
    assert_eq!(windows[0].1.sequence.get(), 40);
    assert_eq!(gaps(&windows[0].1), [(40, 50, "collector_stopped")]);
}

#[test]
fn what_is_acknowledged_goes_and_the_rest_stays() {
    let folder = folder();
    let spool = open(folder.path());
    keep(&spool, 0, 100);
    let before = spool.status();
    assert_eq!(before.waiting, 100);
    spool.acknowledge(everything(&spool)[59].after);
    let after = spool.status();
    assert_eq!(after.waiting, 40);
    assert!(after.bytes < before.bytes / 2, "{} of {}", after.bytes, before.bytes);
    drop(spool);
    let rest = windows(&everything(&open(folder.path())));
    let sequences: Vec<i64> = rest.iter().map(|(_, window)| window.sequence.get()).collect();
    assert_eq!(sequences, (60..100).collect::<Vec<_>>());
}

#[test]
fn a_full_spool_gives_no_sequence_and_tells_the_time_as_a_gap() {
    let folder = folder();
    let mut small = settings(folder.path());
    small.max_bytes = 64 << 10;
    let spool = Spool::open(small, node()).unwrap();
    let mut n = 0;
    let why = loop {
        match spool.append_window(window(n * STEP_US, (n + 1) * STEP_US)) {
            Ok(sequence) => assert_eq!(sequence, u64::try_from(n).unwrap()),
            Err(why) => break why,
        }
        n += 1;
    };
    assert!(matches!(why, NotKept::SpoolFull { .. }), "{why}");
    assert!(spool.append_window(window((n + 1) * STEP_US, (n + 2) * STEP_US)).is_err());
    assert_eq!(spool.status().trouble, Some(Reason::SpoolFull));
    assert!(spool.status().bytes <= 64 << 10);
    spool.append_fact(Instant::from_micros(n * STEP_US), fact()).expect("the last sixteenth is for facts");

    spool.acknowledge(everything(&spool).last().unwrap().after);
    keep(&spool, n + 2, n + 3);
    let last = windows(&everything(&spool)).pop().unwrap().1;
    assert_eq!(last.sequence.get(), n, "no hole");
    assert_eq!(gaps(&last), [(n, n + 2, "spool_full")]);
    assert_eq!(spool.status().trouble, None);
    assert_eq!(spool.status().not_kept[&Reason::SpoolFull], 2);
}

#[test]
fn a_kill_while_the_spool_is_full_loses_the_reason_and_no_time() {
    let folder = folder();
    let mut small = settings(folder.path());
    small.max_bytes = 64 << 10;
    let spool = Spool::open(small, node()).unwrap();
    let full = (0..).find(|n| spool.append_window(window(n * STEP_US, (n + 1) * STEP_US)).is_err()).unwrap();
    drop(spool);
    let spool = open(folder.path());
    keep(&spool, full + 5, full + 6);
    let last = windows(&everything(&spool)).pop().unwrap().1;
    assert_eq!(gaps(&last), [(full, full + 5, "collector_stopped")]);
}

#[test]
fn a_window_that_is_too_long_is_a_gap() {
    let folder = folder();
    let mut large = settings(folder.path());
    large.max_bytes = 16 << 20;
    let spool = Spool::open(large, node()).unwrap();
    keep(&spool, 0, 1);
    let mut long = window(STEP_US, 2 * STEP_US);
    let gap = super::gaps::Missed {
        start: Instant::from_micros(STEP_US),
        end: Instant::from_micros(STEP_US + 1),
        reason: Reason::NotSampled,
    };
    long.gaps = vec![gap.gap().unwrap(); 20_000];
    assert!(matches!(spool.append_window(long), Err(NotKept::TooLarge { .. })));
    keep(&spool, 2, 3);
    assert_eq!(gaps(&windows(&everything(&spool))[1].1), [(1, 2, "too_large")]);
}

#[test]
fn windows_that_do_not_meet_have_a_gap_between_them() {
    let folder = folder();
    let spool = open(folder.path());
    keep(&spool, 0, 1);
    keep(&spool, 5, 6);
    assert_eq!(gaps(&windows(&everything(&spool))[1].1), [(1, 5, "not_sampled")]);
}

#[test]
fn a_second_collector_is_turned_away() {
    let folder = folder();
    let spool = open(folder.path());
    let second = Spool::open(settings(folder.path()), node());
    assert!(matches!(second, Err(SpoolError::InUse { .. })));
    drop(spool);
    open(folder.path());
}

#[test]
fn without_syncing_each_start_is_a_stream_of_its_own() {
    let folder = folder();
    let mut quick = settings(folder.path());
    quick.sync = Sync::Never;
    for n in 0..3 {
        let spool = Spool::open(quick.clone(), node()).unwrap();
        keep(&spool, n * 2, n * 2 + 2);
    }
    let windows = windows(&everything(&Spool::open(quick, node()).unwrap()));
    let sequences: Vec<i64> = windows.iter().map(|(_, window)| window.sequence.get()).collect();
    assert_eq!(sequences, [0, 1, 0, 1, 0, 1]);
    assert_ne!(windows[1].1.stream, windows[2].1.stream);
}

#[test]
fn a_refused_window_is_set_aside_and_its_time_is_told() {
    let folder = folder();
    let spool = open(folder.path());
    keep(&spool, 0, 1);
    keep(&spool, 3, 4);
    spool.append_fact(Instant::from_micros(4 * STEP_US), fact()).unwrap();
    let all = everything(&spool);
    let instead = spool.set_aside(&all[1], "too large for the topic").unwrap();
    let (_, window) = windows(std::slice::from_ref(&instead)).pop().unwrap();
    assert_eq!(window.sequence.get(), 1);
    assert_eq!(gaps(&window), [(1, 4, "refused")], "with the gap that the refused window carried");
    assert_eq!(spool.set_aside(&instead, "that neither"), None);
    assert_eq!(spool.set_aside(&all[2], "a fact leaves nothing behind"), None);
    let aside = folder.path().join("spool/refused/00000000000000000002.json");
    let kept: serde_json::Value = serde_json::from_slice(&fs::read(aside).unwrap()).unwrap();
    assert_eq!(kept["why"], "a fact leaves nothing behind");
    assert_eq!(kept["event"]["data"]["node"], "n1");
    assert_eq!(spool.status().refused, 3);
}

#[test]
fn appended_and_read_at_once_nothing_is_missed() {
    let folder = folder();
    let spool = open(folder.path());
    let writer = std::thread::spawn({
        let spool = spool.clone();
        move || keep(&spool, 0, 300)
    });
    let mut reader = spool.reader();
    let mut seen = Vec::new();
    while seen.len() < 300 {
        let batch = reader.next(16, 1 << 20).unwrap();
        if let Some(last) = batch.last() {
            spool.acknowledge(last.after);
        }
        seen.extend(windows(&batch).into_iter().map(|(_, window)| window.sequence.get()));
    }
    writer.join().unwrap();
    assert_eq!(seen, (0..300).collect::<Vec<_>>());
}
