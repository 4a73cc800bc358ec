//! The public reports that the table answers, and those that are looked at elsewhere: `tests/cases/sources.txt`.

use gpuledger_cases::{Case, folder};
use std::collections::{BTreeMap, BTreeSet};

/// Rows of the two lists of public reports, by their numbers: practice of providers, and other meters and billing systems.
const PRACTICE: [u32; 21] = [1, 2, 3, 5, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 20, 22, 23, 24, 25, 27];
const ANCHORS: [u32; 53] = [
    1, 2, 4, 5, 6, 7, 9, 10, 11, 12, 13, 15, 16, 18, 20, 21, 22, 23, 25, 26, 28, 30, 31, 32, 34, 35, 36, 38,
    39, 40, 41, 42, 43, 44, 46, 47, 48, 50, 51, 53, 55, 56, 57, 58, 59, 61, 63, 64, 65, 68, 69, 70, 71,
];

/// Rules that at least one case must name: M-1 to M-5, I-1 to I-6, A-1 to A-21.
pub(super) fn wanted_rules() -> impl Iterator<Item = String> {
    let of = |letter: &'static str, last: u32| (1..=last).map(move |n| format!("{letter}-{n}"));
    of("M", 5).chain(of("I", 6)).chain(of("A", 21))
}

/// Every row is answered by a case, or the file says where else; the cases name rows that exist.
pub(super) fn check(cases: &[Case]) {
    let path = folder().join("sources.txt");
    let text = std::fs::read_to_string(&path).expect("sources.txt is readable");
    let told = read(&text);
    let shown: BTreeSet<&str> = cases.iter().flat_map(|case| case.shows.iter().map(String::as_str)).collect();
    let rows: BTreeSet<String> = rows().collect();
    let mut wrong = Vec::new();
    for row in &rows {
        match told.get(row.as_str()) {
            None => wrong.push(format!("sources.txt does not say what becomes of {row}")),
            Some(Place::Here) if !shown.contains(row.as_str()) => wrong.push(format!("no case shows {row}")),
            Some(Place::Elsewhere) if shown.contains(row.as_str()) => {
                wrong.push(format!("a case shows {row}, which is elsewhere"))
            }
            Some(Place::Here | Place::Elsewhere) => {}
        }
    }
    let unknown = shown.iter().chain(told.keys()).filter(|row| !rows.contains(**row));
    wrong.extend(unknown.map(|row| format!("{row} is no row of the lists")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where a row is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Here,
    Elsewhere,
}

fn rows() -> impl Iterator<Item = String> {
    let anchors = ANCHORS.into_iter().map(|n| format!("anchor-{n}"));
    PRACTICE.into_iter().map(|n| format!("practice-{n}")).chain(anchors)
}

/// Lines `practice-1 here: what it is`, `anchor-48 elsewhere: what it is, and where`.
fn read(text: &str) -> BTreeMap<&str, Place> {
    let mut told = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let (row, rest) = line.split_once(' ').unwrap_or((line, ""));
        let place = match rest.split_once(':') {
            Some(("here", _)) => Place::Here,
            Some(("elsewhere", _)) => Place::Elsewhere,
            _ => panic!("sources.txt: `{line}` says neither `here:` nor `elsewhere:`"),
        };
        assert!(told.insert(row, place).is_none(), "sources.txt says {row} twice");
    }
    told
}
