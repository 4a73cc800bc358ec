//! The second, naive method on the worked examples of `../shared/scenarios/ledger` (or `SHARED_SCENARIOS`): it finds the balances
//! that their comments work out.

use gpuledger_domain::fact::{Fact, Settings};
use gpuledger_domain::pool::Pools;
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_painter::{Rules, paint};
use gpuledger_wire::geometry::geometry;
use gpuledger_wire::time::parse_time;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// GPU, account, tenant.
type Row = (String, String, Option<String>);

#[test]
fn the_painter_finds_the_balances_of_the_examples() {
    let folder = std::env::var_os("SHARED_SCENARIOS").map(PathBuf::from);
    let folder =
        folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/scenarios/ledger"));
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: the examples are not at {}", folder.display());
        return;
    };
    let mut checks = 0;
    for entry in entries {
        let path = entry.expect("the folder is readable").path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            checks += balances_hold(&path);
        }
    }
    assert!(checks >= 8, "only {checks} balances in {}", folder.display());
}

/// Paints one example and compares every balance in it whose edges are full hours; how many those are.
fn balances_hold(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).expect("the example is readable");
    let example: Value = serde_saphyr::from_str(&text).expect("the example is YAML");
    let events = example["events"].as_array().expect("events");
    let facts: Vec<Fact> = events.iter().map(fact).collect();
    let as_of = time(&example["as_of"]);
    let mut checks = 0;
    for check in example["expect"].as_array().expect("expect") {
        let args = &check["args"];
        if check["command"] != "balance" {
            continue;
        }
        let (from, to) = (time(&args["from"]), time(&args["to"]));
        // A balance up to a horizon inside an hour is one of the whole hour as of then.
        let as_of = as_of.min(to);
        assert_eq!(from, from.floor(HOUR_US), "{}: begins inside an hour", path.display());
        let (geometry, pools) = (geometry(), Pools::new());
        let rules =
            Rules { geometry: &geometry, settings: Settings::default(), pools: &pools, measured: &[] };
        let painted = paint(&facts, &rules, as_of).totals();
        let mut rows: BTreeMap<Row, (i128, i128)> = BTreeMap::new();
        for ((gpu, hour, account, tenant, _), (compute, memory)) in painted {
            let asked = args["gpu"].as_str().is_none_or(|id| id == gpu.as_str());
            if hour >= from && asked {
                let tenant = tenant.map(|id| id.to_string());
                let row = rows.entry((gpu.to_string(), account.as_str().to_owned(), tenant)).or_default();
                *row = (row.0 + compute, row.1 + memory);
            }
        }
        assert_eq!(rows, expected(&check["rows"]), "{} from {from} to {to}", path.display());
        checks += 1;
    }
    checks
}

fn expected(rows: &Value) -> BTreeMap<Row, (i128, i128)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).expect("a number as text");
    let row = |row: &Value| {
        let key =
            (text(&row["gpu"]).expect("gpu"), text(&row["account"]).expect("account"), text(&row["tenant"]));
        (key, (number(&row["compute_slice_us"]), number(&row["memory_slice_us"])))
    };
    rows.as_array().expect("rows").iter().map(row).collect()
}

fn fact(event: &Value) -> Fact {
    let bytes = serde_json::to_vec(event).expect("the event is JSON");
    let event = gpuledger_wire::decode_structured(&bytes);
    event.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes))).to_fact()
}

fn time(value: &Value) -> Instant {
    parse_time(value.as_str().expect("a time")).expect("RFC 3339")
}
