//! The public data in `../shared/data` against the figures its own scripts compute. Skipped, aloud, where the folder is absent.

use crate::testing::accept;
use crate::{ImportError, Options, Reason, Report, Sink, azure_llm, nvidia_smi, openb, sacct};
use chrono::{DateTime, Utc};
use gpuledger_domain::share::{Share, parse_share, split_by_largest_remainder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

fn data(path: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = shared.join("data").join(path);
    if path.exists() {
        return Some(path);
    }
    // Past the test harness, which keeps the output of tests that pass to itself.
    let note = format!("SKIPPED: {} is absent; set SHARED to the folder that holds data/\n", path.display());
    std::io::stderr().write_all(note.as_bytes()).unwrap();
    None
}

fn json(path: &str) -> Option<Value> {
    data(path).map(|p| serde_json::from_reader(BufReader::new(File::open(p).unwrap())).unwrap())
}

type Importer = fn(BufReader<File>, &str, &Options, &mut Sink<'_>) -> Result<Report, ImportError>;

fn import(importer: Importer, path: &str) -> Option<(Vec<Value>, Report)> {
    let path = data(path)?;
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut events = Vec::new();
    let report =
        importer(BufReader::new(File::open(path).unwrap()), &name, &Options::default(), &mut |event| {
            accept(&event);
            events.push(event);
            Ok(())
        });
    Some((events, report.unwrap()))
}

fn instant(event: &Value) -> i64 {
    event["time"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap().timestamp()
}

/// Milli-unit-seconds of each grant with its release, up to `until`.
fn held(events: &[Value], until: i64) -> Vec<(&Value, i128)> {
    let name = |event: &Value| event["data"]["allocation"].as_str().unwrap().to_owned();
    let of = |kind: &str| {
        events.iter().filter(|e| e["type"] == format!("gpuledger.allocation.{kind}.v1")).collect::<Vec<_>>()
    };
    let ends: BTreeMap<String, i64> = of("released").into_iter().map(|e| (name(e), instant(e))).collect();
    of("granted")
        .into_iter()
        .map(|grant| {
            let seconds = (ends[&name(grant)].min(until) - instant(grant)).max(0);
            (&grant["data"], units_milli(&grant["data"]) * i128::from(seconds))
        })
        .collect()
}

fn units_milli(grant: &Value) -> i128 {
    let milli = |unit: &Value| {
        let share = parse_share(unit["share"].as_str().unwrap_or("1")).unwrap();
        assert_eq!(1000 % share.denom(), 0);
        share.numer() * 1000 / share.denom() * i128::from(unit["count"].as_i64().unwrap())
    };
    grant["units"].as_array().unwrap().iter().map(milli).sum()
}

fn totals<'a>(held: &[(&'a Value, i128)], key: impl Fn(&'a Value) -> &'a Value) -> BTreeMap<String, i128> {
    let mut out = BTreeMap::new();
    for (grant, milli) in held {
        *out.entry(key(grant).as_str().unwrap().to_owned()).or_default() += milli;
    }
    out
}

fn expected(map: &Value) -> BTreeMap<String, i128> {
    map.as_object().unwrap().iter().map(|(k, v)| (k.clone(), i128::from(v.as_i64().unwrap()))).collect()
}

#[test]
fn openb_adds_up_to_the_published_unit_seconds() {
    let Some((events, report)) = import(openb, "openb-v2023/openb_pod_list_gpuspec33.csv") else { return };
    let want = json("openb-v2023/expected.json").unwrap();
    let held = held(&events, i64::MAX);
    assert_eq!(held.iter().map(|(_, milli)| milli).sum::<i128>(), 185_294_426_970);
    assert_eq!(totals(&held, |g| &g["labels"]["gpu_spec"]), expected(&want["mgpu_s_by_gpu_spec"]));
    assert_eq!(totals(&held, |g| &g["labels"]["qos"]), expected(&want["mgpu_s_by_qos"]));
    assert_eq!(totals(&held, |g| &g["labels"]["phase"]), expected(&want["mgpu_s_by_phase"]));

    let tenants = totals(&held, |g| &g["tenant"]);
    let mut top: Vec<(String, i128)> = tenants.into_iter().collect();
    top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let wanted = want["mgpu_s_top10_tenant_shape"].as_array().unwrap();
    let wanted: Vec<(String, i128)> = wanted
        .iter()
        .map(|t| (t[0].as_str().unwrap().to_owned(), i128::from(t[1].as_i64().unwrap())))
        .collect();
    assert_eq!(top[..10], wanted[..]);

    let count = |name: &str| want["counts"][name].as_u64().unwrap();
    assert_eq!((report.read, report.emitted), (count("rows"), 2 * count("scheduled_gpu")));
    assert_eq!(report.count(Reason::NeverScheduled), count("never_scheduled"));
    // 36 of the 1,088 pods without GPU were never placed either; each row counts once.
    assert_eq!(report.count(Reason::NoGpu), count("scheduled") - count("scheduled_gpu"));
    assert_eq!(report.unmapped_total, 0, "{:?}", report.unmapped);
}

#[test]
fn phillips_adds_up_to_the_published_gpu_seconds() {
    let Some((events, report)) = import(sacct, "slurm-openstack-xdmod/phillips.log") else { return };
    let sum = |until: i64| held(&events, until).iter().map(|(_, milli)| milli).sum::<i128>();
    let new_year = "2017-01-01T00:00:00Z".parse::<DateTime<Utc>>().unwrap().timestamp();
    assert_eq!((sum(i64::MAX), sum(new_year)), (1_824_886_000, 1_675_774_000));
    assert_eq!(
        totals(&held(&events, i64::MAX), |g| &g["tenant"]),
        BTreeMap::from([("chaff".to_owned(), 1_824_886_000)])
    );
    assert_eq!((report.read, report.emitted, report.count(Reason::NoGpu)), (4285, 4, 4283), "{report}");
    assert_eq!(report.unmapped_total, 0, "{:?}", report.unmapped);
}

#[test]
fn a_dump_that_never_names_gpus_is_unknown() {
    let Some((events, report)) = import(sacct, "slurm-openstack-xdmod/pozidriv-first-6000.log") else {
        return;
    };
    assert!(events.is_empty());
    assert_eq!(
        (report.read, report.count(Reason::GpuUnknown), report.unmapped_total),
        (6000, 6000, 1),
        "{report}"
    );
}

#[test]
fn small_slurm_cases() {
    let path = |name: &str| format!("slurm-openstack-xdmod/parser-{name}.log");
    let Some((events, report)) = import(sacct, &path("accounting-logs")) else { return };
    assert_eq!((events.len(), report.count(Reason::NoGpu)), (2, 3), "{report}");
    assert_eq!(events[0]["data"]["allocation"], "ub-hpc/5692623@1470035049");
    let (events, report) = import(sacct, &path("accounting-logs-with-job-arrays")).unwrap();
    assert!(events.is_empty());
    assert_eq!((report.count(Reason::TresUnknown), report.count(Reason::NeverStarted)), (1, 5), "{report}");
    let (_, report) = import(sacct, &path("non-ended-job-state")).unwrap();
    assert_eq!((report.count(Reason::GpuUnknown), report.count(Reason::NeverStarted)), (1, 1), "{report}");
    let (_, report) = import(sacct, &path("utf8-multibyte-chars")).unwrap();
    assert_eq!((report.read, report.count(Reason::GpuUnknown)), (1, 1), "{report}");
}

#[test]
fn gpus_in_tres_lists_count_as_published() {
    let Some(cases) = json("slurm-openstack-xdmod/alloc-tres-gpu-count.json") else { return };
    let mut counted = 0;
    for case in cases.as_array().unwrap() {
        let (tres, count) = (case[0].as_str().unwrap(), case[1].as_i64().unwrap());
        let text = format!(
            "JobID|Account|State|Start|End|AllocTRES\n1|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:01|{tres}\n"
        );
        let mut events = Vec::new();
        sacct(text.as_bytes(), "case", &Options::default(), &mut |event| {
            events.push(event);
            Ok(())
        })
        .unwrap();
        let found: i128 = held(&events, i64::MAX).iter().map(|(_, milli)| milli).sum();
        assert_eq!(found, i128::from(count) * 1000, "{tres}");
        counted += 1;
    }
    assert_eq!(counted, 9);
}

#[test]
fn captures_hold_the_published_gpus() {
    let Some(want) = json("gpu-inventory/expected.json") else { return };
    let captures = want["nvidia_smi"].as_object().unwrap();
    assert_eq!(captures.len(), 5);
    for (file, facts) in captures {
        let (events, report) = import(nvidia_smi, &format!("gpu-inventory/{file}")).unwrap();
        assert_eq!(events.len(), 1, "{file}");
        let data = &events[0]["data"];
        assert_eq!(data["node"], file.trim_end_matches(".xml"));
        let (found, wanted) = (data["gpus"].as_array().unwrap(), facts["gpus"].as_array().unwrap());
        assert_eq!(found.len(), wanted.len(), "{file}");
        for (gpu, fact) in found.iter().zip(wanted) {
            assert_eq!((&gpu["uuid"], &gpu["model"]), (&fact["uuid"], &fact["name"]), "{file}");
            assert_eq!(
                gpu["memory_bytes"].as_u64().unwrap(),
                fact["fb_total_mib"].as_u64().unwrap() << 20,
                "{file}"
            );
            assert_eq!(gpu["mig"], fact["mig"] == "Enabled", "{file}");
            instances(gpu, fact, &report);
        }
        let missing = facts["attached_gpus"].as_u64() != facts["gpu_elements"].as_u64();
        assert_eq!(report.count(Reason::GpuMissing), u64::from(missing), "{file}: {report}");
    }
}

fn instances(gpu: &Value, fact: &Value, report: &Report) {
    let (found, wanted) = (gpu["instances"].as_array().unwrap(), fact["mig_devices"].as_array().unwrap());
    assert_eq!(found.len(), wanted.len(), "{report}: {:?}", report.unmapped);
    for (instance, device) in found.iter().zip(wanted) {
        assert_eq!(instance["gpu_instance_id"], device["gi"]);
        assert_eq!(instance["compute_instance_id"], device["ci"]);
        assert_eq!(instance["profile"], "1g.20gb", "14 SMs and two memory slices of an A100 80GB");
        assert!(instance.get("placement").is_none(), "a capture tells no placement");
    }
}

/// Tokens of each tenant, weighed as the expectation weighs them, by minute from its first one.
fn minutes(events: &[Value], weights: &Value, first: i64) -> BTreeMap<i64, i128> {
    let weight = |name: &str| i128::from(weights[name].as_i64().unwrap());
    let tokens = |event: &Value, name: &str| i128::from(event["data"][name].as_i64().unwrap());
    let mut minutes = BTreeMap::new();
    for event in events {
        let work = weight("context") * tokens(event, "input_tokens")
            + weight("generated") * tokens(event, "output_tokens");
        *minutes.entry((instant(event) - first).div_euclid(60)).or_default() += work;
    }
    minutes
}

#[test]
fn azure_llm_weighs_each_minute_as_published() {
    let Some(want) = json("azure-llm-2023/expected.json") else { return };
    let first = "2023-11-16T18:15:00Z".parse::<DateTime<Utc>>().unwrap().timestamp();
    let mut found = BTreeMap::new();
    for service in ["code", "conv"] {
        let file = format!("azure-llm-2023/AzureLLMInferenceTrace_{service}.csv");
        let (events, report) = import(azure_llm, &file).unwrap();
        let tenant = &want["tenants"][service];
        assert_eq!(report.read, tenant["requests"].as_u64().unwrap());
        assert_eq!((report.emitted, report.unmapped_total), (report.read, 1), "{report}");
        assert_eq!(report.count(Reason::NoFinalNewline), 1, "the published files end without a line end");
        let sum = |name: &str| events.iter().map(|e| e["data"][name].as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum("input_tokens"), tenant["context_tokens"].as_u64().unwrap());
        assert_eq!(sum("output_tokens"), tenant["generated_tokens"].as_u64().unwrap());
        let ids: std::collections::BTreeSet<&str> =
            events.iter().map(|e| e["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), events.len());
        assert!(events.iter().all(|e| e["data"]["tenant"] == service));
        found.insert(service, minutes(&events, &want["weights"], first));
    }
    let rows = want["per_minute_[minute,w_code,w_conv,bill_code,bill_conv]"].as_array().unwrap();
    assert_eq!(rows.len(), 60);
    let pool = i128::from(want["pool_per_minute"].as_i64().unwrap());
    let mut billed = [0_i128; 2];
    for row in rows {
        let number = |place: usize| i128::from(row[place].as_i64().unwrap());
        let minute = i64::try_from(number(0)).unwrap();
        let weights = ["code", "conv"].map(|s| found[s].get(&minute).copied().unwrap_or(0));
        assert_eq!(weights, [number(1), number(2)], "minute {minute}");
        // Ties go to the first, as they do in a work pool to the smaller tenant.
        let bills = split_by_largest_remainder(pool, &weights.map(Share::from_integer));
        assert_eq!(bills, [number(3), number(4)], "minute {minute}");
        billed = [billed[0] + bills[0], billed[1] + bills[1]];
    }
    let of = |bills: &Value| ["code", "conv"].map(|s| i128::from(bills[s].as_i64().unwrap()));
    assert_eq!(billed, of(&want["billed"]));
    // Split over the hour as one, the same pool charges them otherwise: the window is a part of the price.
    let sums = ["code", "conv"].map(|s| Share::from_integer(found[s].values().sum()));
    let hour = split_by_largest_remainder(pool * 60, &sums);
    let floors = of(&want["whole_hour_split_instead"]);
    // The expectation leaves the remainder out, a bill cannot.
    assert_eq!((hour[0] - floors[0], hour[1] - floors[1]), (1, 0));
    assert_eq!(hour.iter().sum::<i128>(), pool * 60);
    assert_eq!(hour[0] - billed[0], 4_349_968);
}
