//! Every scenario of the simulator, measured from begin to end.

use crate::checks::{Findings, everything};
use crate::node::{Node, scenarios};
use std::collections::BTreeMap;

/// Names of all scenarios.
pub(crate) fn names() -> Vec<String> {
    let files = std::fs::read_dir(scenarios()).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> =
        files.map(|file| file.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_scenario_is_measured_as_it_was() {
    let only = std::env::var("SCENARIO").ok();
    let mut cases: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut failed: Vec<(String, Findings)> = Vec::new();
    for name in names().into_iter().filter(|name| only.as_ref().is_none_or(|only| only == name)) {
        let outing = Node::of(&name).measure();
        let findings = everything(&outing);
        for (case, times) in &findings.cases {
            *cases.entry(case).or_default() += times;
        }
        if !findings.faults.is_empty() {
            failed.push((name, findings));
        }
    }
    println!("{}", crate::random::table(&cases));
    let text: String = failed.iter().map(|(name, findings)| format!("{name}: {findings}")).collect();
    assert!(failed.is_empty(), "{text}");
}
