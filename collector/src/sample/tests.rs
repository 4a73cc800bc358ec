use super::*;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_nvml::Absent;
use gpuledger_wire::number::{SliceIndex, Slices};
use gpuledger_wire::time::Time;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn qualities(of: &[(&str, &str)]) -> BTreeMap<Name, Name> {
    of.iter().map(|(key, label)| (name(key), name(label))).collect()
}

fn unit(placement: Option<Placement>, sm: Option<i64>, quality: &[(&str, &str)]) -> UnitReading {
    UnitReading {
        gpu: name("GPU-1"),
        placement,
        sm_active_us: sm.and_then(Count::new),
        memory_byte_us: BigCount::new(4_294_967_296 * 1_000_000),
        memory_bytes_max: Count::new(5_368_709_120),
        energy_mj: if placement.is_none() { Count::new(412_340) } else { None },
        covered_us: Count::new(1_000_000).unwrap(),
        coverage: BTreeMap::new(),
        quality: qualities(quality),
    }
}

fn at(second: i64) -> Instant {
    Instant::from_micros(second * 1_000_000)
}

fn window() -> ClosedWindow {
    let placement = Placement { start: SliceIndex::new(4).unwrap(), size: Slices::new(4).unwrap() };
    ClosedWindow {
        node: name("n1"),
        boot_id: name("b1"),
        window: Window::new(at(0), at(1)).unwrap(),
        units: vec![
            unit(None, None, &[("sm_active_us", "unavailable(not_supported)")]),
            unit(Some(placement), Some(0), &[("sm_active_us", "interval_mean")]),
        ],
        processes: vec![ProcessReading {
            gpu: name("GPU-1"),
            placement: Some(placement),
            pid: Count::new(4711).unwrap(),
            started_at: Time(at(0)),
            container: Some(name(&"ab".repeat(32))),
            pod_uid: None,
            slurm_job: None,
            sm_active_us: Count::new(372_000),
            memory_byte_us: None,
            covered_us: Count::new(1_000_000).unwrap(),
            coverage: BTreeMap::new(),
            quality: qualities(&[
                ("sm_active_us", "derived_share(sole_process)"),
                ("memory_byte_us", "unavailable(not_reported)"),
            ]),
        }],
        gaps: vec![Gap { start: Time(at(0)), end: Time(at(1)), reason: name("torn(GPU-1)") }],
    }
}

fn inventory() -> NodeInventory {
    serde_json::from_str(
        r#"{"node":"n1","boot_id":"b1","gpus":[{"uuid":"GPU-1","index":0,"model":"NVIDIA H100 80GB HBM3","compute_slices":7,"memory_slices":8,
        "mig":true,"instances":[{"uuid":"MIG-1","profile":"3g.40gb","placement":{"start":4,"size":4}}]}]}"#,
    )
    .unwrap()
}

fn sampled() -> Sampled {
    Sampled { window: window(), inventory: inventory(), unreadable: vec![(1, Absent::Lost)] }
}

#[test]
fn zero_not_there_and_not_measurable_look_different() {
    let expected = "\
n1: 1.0 s from 1970-01-01T00:00:00Z
  unit                            SM active  by             memory     most   energy  covered
  GPU 0  NVIDIA H100 80GB HBM3  n/a (not_supported)  -  4.0 GiB  5.0 GiB  412.3 J  1.0 s
";
    let text = table(&sampled());
    let squeezed = |text: &str| {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let (lines, expected) = (squeezed(&text), squeezed(expected));
    assert_eq!(lines[..3], expected[..3], "{text}");
    assert_eq!(lines[3], "GPU 0 3g.40gb 4:4 0.0 % interval_mean 4.0 GiB 5.0 GiB - 1.0 s", "{text}");
    let process = lines.iter().find(|line| line.starts_with("4711")).unwrap();
    assert_eq!(
        process,
        "4711 GPU 0 3g.40gb 4:4 37.2 % derived_share(sole_process) n/a (not_reported) 1.0 s container abababababab"
    );
    assert!(text.ends_with("\nGaps\n  1.0 s from 1970-01-01T00:00:00Z: torn(GPU-1)\n"), "{text}");
}

#[test]
fn a_mean_is_over_the_time_that_its_reading_covers_m_8() {
    let mut sampled = sampled();
    let unit = &mut sampled.window.units[1];
    unit.sm_active_us = Count::new(250_000);
    unit.covered_us = Count::new(500_000).unwrap();
    unit.coverage = BTreeMap::from([(name("memory_byte_us"), Count::new(1_000_000).unwrap())]);
    let text = table(&sampled);
    let line = text.lines().find(|line| line.contains("3g.40gb 4:4")).unwrap();
    let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let expected = ["GPU 0", "3g.40gb 4:4", "50.0 %", "interval_mean", "4.0 GiB", "5.0 GiB", "-", "0.5 s"];
    assert_eq!(cells, expected, "{text}");
}

#[test]
fn memory_below_a_gibibyte_is_in_mebibytes() {
    assert_eq!(binary(0), "0.0 MiB");
    assert_eq!(binary(256 << 20), "256.0 MiB");
    assert_eq!(binary(1 << 30), "1.0 GiB");
}

#[test]
fn the_json_has_the_members_of_the_event() {
    let value: serde_json::Value = serde_json::from_str(&json(&sampled()).unwrap()).unwrap();
    assert_eq!(value["units"][1]["sm_active_us"], 0);
    assert_eq!(value["units"][0].get("sm_active_us"), None);
    assert_eq!(value["units"][0]["quality"]["sm_active_us"], "unavailable(not_supported)");
    assert_eq!(value["start"], "1970-01-01T00:00:00Z");
    let members: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members.len(), 8, "{members:?}");
    assert_eq!(value["unreadable"], serde_json::json!([{"index": 1, "why": "lost"}]), "as in the table");
}
