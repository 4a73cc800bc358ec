//! Damage: cut files, flipped bits, lost segments, a lost state.

use super::{STEP_US, everything, folder, gaps, keep, open, windows};
use gpuledger_wire::bodies::TelemetryWindow;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("spool")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|s| s == "seg")).collect();
    found.sort();
    found
}

fn spool_with(windows: i64) -> tempfile::TempDir {
    let folder = folder();
    keep(&open(folder.path()), 0, windows);
    folder
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = folder();
    fs::create_dir(to.path().join("spool")).unwrap();
    for entry in fs::read_dir(from.join("spool")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.path().join("spool").join(path.file_name().unwrap())).unwrap();
    }
    to
}

fn flip(path: &Path, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

/// Windows by stream, each stream without a hole from 0 on, and each sequence once. Gives back all windows.
fn no_holes(found: &[(String, TelemetryWindow)]) -> BTreeMap<String, usize> {
    let mut streams: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (_, window) in found {
        streams.entry(window.stream.to_string()).or_default().push(window.sequence.get());
    }
    for (stream, sequences) in &streams {
        let count = i64::try_from(sequences.len()).unwrap();
        assert_eq!(*sequences, (0..count).collect::<Vec<_>>(), "{stream}");
    }
    streams.into_iter().map(|(stream, sequences)| (stream, sequences.len())).collect()
}

/// Whether each of the first `count` steps is a window with its own start and end, or lies in gaps.
fn all_told(found: &[(String, TelemetryWindow)], count: i64) {
    for n in 0..count {
        let (start, end) = (n * STEP_US, (n + 1) * STEP_US);
        let measured = found.iter().any(|(id, window)| {
            !id.contains("lost")
                && window.start.get().as_micros() == start
                && window.end.get().as_micros() == end
        });
        assert!(measured || covered(found, start, end), "window {n} is neither there nor a gap");
    }
}

/// Whether gaps cover `[start, end)`.
fn covered(found: &[(String, TelemetryWindow)], start: i64, end: i64) -> bool {
    let all = found.iter().flat_map(|(_, window)| &window.gaps);
    let mut gaps: Vec<(i64, i64)> =
        all.map(|gap| (gap.start.get().as_micros(), gap.end.get().as_micros())).collect();
    gaps.sort_unstable();
    let mut at = start;
    for (from, to) in gaps {
        if from <= at {
            at = at.max(to);
        }
    }
    at >= end
}

#[test]
fn a_spool_cut_at_any_byte_of_its_last_segment_goes_on_without_a_hole() {
    let folder = spool_with(25);
    let last = segments(folder.path()).pop().unwrap();
    let name = last.file_name().unwrap().to_owned();
    let length = fs::metadata(&last).unwrap().len();
    let whole = windows(&everything(&open(copy(folder.path()).path())));
    for cut in (84..=length).step_by(3).chain([length - 1]) {
        let copied = copy(folder.path());
        let file = copied.path().join("spool").join(&name);
        fs::File::options().write(true).open(&file).unwrap().set_len(cut).unwrap();
        let spool = open(copied.path());
        keep(&spool, 30, 32);
        let found = windows(&everything(&spool));
        assert_eq!(no_holes(&found).len(), 1, "cut at {cut}: nobody saw the cut record, the stream goes on");
        let kept = found.iter().take_while(|(id, window)| whole.iter().any(|w| w.0 == *id && w.1 == *window));
        let kept = i64::try_from(kept.count()).unwrap();
        assert_eq!(gaps(&found[usize::try_from(kept).unwrap()].1), [(kept, 30, "collector_stopped")]);
        all_told(&found, 25);
    }
}

#[test]
fn a_damaged_end_begins_a_new_stream_and_is_a_gap() {
    let folder = spool_with(25);
    let last = segments(folder.path()).pop().unwrap();
    let bits = usize::try_from(fs::metadata(&last).unwrap().len()).unwrap() * 8;
    flip(&last, bits - 20);
    for opening in 0..2 {
        let spool = open(folder.path());
        if opening == 1 {
            keep(&spool, 30, 32);
        }
        let found = windows(&everything(&spool));
        assert_eq!(found.len(), if opening == 0 { 24 } else { 26 }, "a kill in between changes nothing");
        if opening == 1 {
            assert_eq!(no_holes(&found).len(), 2);
            assert!(covered(&found, 24 * STEP_US, 30 * STEP_US));
        }
    }
}

#[test]
fn a_removed_segment_is_replaced_by_gaps() {
    let folder = spool_with(60);
    let all = segments(folder.path());
    fs::remove_file(&all[1]).unwrap();
    let spool = open(folder.path());
    let found = windows(&everything(&spool));
    assert_eq!(no_holes(&found).into_values().collect::<Vec<_>>(), [60]);
    all_told(&found, 60);
    let replaced = found.iter().filter(|(id, _)| id.contains("lost")).count();
    assert_eq!(spool.status().damaged_windows, u64::try_from(replaced).unwrap());
    assert!(replaced > 3);
}

#[test]
fn a_spool_that_lacks_its_newest_records_uses_no_number_twice() {
    let folder = spool_with(60);
    let spool = open(folder.path());
    let all = windows(&everything(&spool));
    spool.acknowledge(spool.acknowledged());
    drop(spool);
    fs::remove_file(segments(folder.path()).pop().unwrap()).unwrap();
    let spool = open(folder.path());
    keep(&spool, 60, 61);
    let found = windows(&everything(&spool));
    assert_eq!(no_holes(&found).len(), 2);
    all_told(&found, 60);
    let new = &found.last().unwrap().0;
    assert!(all.iter().all(|(id, _)| id != new), "{new} stood for another window");
}

#[test]
fn an_emptied_spool_uses_no_number_twice_and_tells_what_is_lost() {
    let folder = spool_with(20);
    let spool = open(folder.path());
    let all = everything(&spool);
    spool.acknowledge(all[9].after);
    drop(spool);
    segments(folder.path()).iter().for_each(|path| fs::remove_file(path).unwrap());
    let spool = open(folder.path());
    keep(&spool, 25, 26);
    let found = windows(&everything(&spool));
    assert_eq!(gaps(&found[0].1), [(10, 25, "spool_damaged")]);
}

#[test]
fn without_its_state_everything_that_is_left_is_sent_again() {
    let folder = spool_with(20);
    let spool = open(folder.path());
    spool.acknowledge(everything(&spool)[9].after);
    drop(spool);
    for content in [None, Some("{")] {
        let state = folder.path().join("spool/state.json");
        match content {
            None => fs::remove_file(&state).unwrap(),
            Some(content) => fs::write(&state, content).unwrap(),
        }
        let spool = open(folder.path());
        let found = windows(&everything(&spool));
        assert!(found.len() >= 10, "{}", found.len());
        assert_eq!(found.last().unwrap().1.sequence.get(), 19);
    }
}

#[test]
fn an_acknowledged_gap_is_not_told_again() {
    let folder = spool_with(40);
    let first = &segments(folder.path())[0];
    // Damages two records in the middle of the segment.
    flip(first, 1_000 * 8);
    flip(first, 1_500 * 8);
    let spool = open(folder.path());
    let all = everything(&spool);
    let at = all.iter().position(|o| windows(std::slice::from_ref(o))[0].0.contains("lost")).unwrap();
    let from = windows(&all)[at].1.sequence.get();
    spool.acknowledge(all[at].after);
    drop(spool);
    let rest = windows(&everything(&open(folder.path())));
    assert_eq!(rest[0].1.sequence.get(), from + 1);
}

/// The begin of the oldest segment and the first window in it are both damaged: what is acknowledged still lies before them.
#[test]
fn damage_of_the_begin_and_the_first_window_is_told() {
    let folder = spool_with(40);
    let file = &segments(folder.path())[0];
    let bytes = fs::read(file).unwrap();
    let kind = b"telemetry.window";
    let first = bytes.windows(kind.len()).position(|part| part == kind).unwrap();
    flip(file, (first + 1) * 8);
    // Behind the magic of the file: the magic of the record that tells where the segment begins.
    flip(file, 8 * 8);
    let found = windows(&everything(&open(folder.path())));
    no_holes(&found);
    all_told(&found, 40);
    assert!(found[0].0.contains("lost"), "{}", found[0].0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn flipped_bits_are_seen_and_every_window_is_there_or_told(
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
    ) {
        let folder = spool_with(40);
        let before = windows(&everything(&open(folder.path())));
        let files = segments(folder.path());
        for (file, bit) in &hits {
            let file = &files[file.index(files.len())];
            flip(file, bit.index(usize::try_from(fs::metadata(file).unwrap().len()).unwrap() * 8));
        }
        let spool = open(folder.path());
        keep(&spool, 45, 47);
        let found = windows(&everything(&spool));
        no_holes(&found);
        all_told(&found, 45);
        for (id, window) in &found {
            let same = before.iter().find(|(other, _)| other == id);
            prop_assert!(same.is_none_or(|(_, before)| before == window), "{} has another content", id);
        }
    }
}
