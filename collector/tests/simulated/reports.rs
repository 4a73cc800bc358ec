//! What public failure reports ask for: the right behaviour of each, on the scenario that covers it. The head of `main.rs` lists them.

mod devices;
mod identity;
mod layout;
mod owners;
mod readings;

use crate::checks::everything;
use crate::node::{Node, Outing, scenarios};
use gpuledger_nvml_sim::scenario::read_file;
use std::collections::BTreeMap;

/// Measures a node, with everything that holds of every run.
fn measured(node: Node) -> Outing {
    let outing = node.measure();
    everything(&outing).hold(&outing.world.scenario().name);
    outing
}

/// Reports that make a small scenario each.
const REPORTS: [u32; 40] = [
    1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 32,
    33, 34, 35, 38, 39, 41, 42, 43, 44, 45, 46, 48,
];

#[test]
fn every_report_has_a_scenario_that_covers_it_and_a_test() {
    let sources = [
        include_str!("reports/devices.rs"),
        include_str!("reports/identity.rs"),
        include_str!("reports/layout.rs"),
        include_str!("reports/owners.rs"),
        include_str!("reports/readings.rs"),
    ];
    let mut listed = BTreeMap::new();
    for line in include_str!("main.rs").lines() {
        let Some(row) = line.strip_prefix("//! | ").and_then(|row| row.strip_suffix(" |")) else { continue };
        let cells: Vec<&str> = row.split(" | ").collect();
        let (Ok(number), [_, scenario, test]) = (cells[0].parse::<u32>(), cells.as_slice()) else { continue };
        let file = scenarios().join(format!("{scenario}.yaml"));
        let covers = read_file(&file).unwrap_or_else(|fault| panic!("{fault}")).covers;
        assert!(covers.contains(&number), "{scenario} does not cover {number}");
        assert!(
            sources.iter().any(|source| source.contains(&format!("fn {test}()"))),
            "there is no test {test}"
        );
        listed.insert(number, test.to_owned());
    }
    assert_eq!(listed.keys().copied().collect::<Vec<_>>(), REPORTS);
}
