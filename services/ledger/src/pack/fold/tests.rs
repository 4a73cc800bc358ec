use super::*;
use gpuledger_storage::hours::Used;
use gpuledger_wire::arrived::Arrived;
use gpuledger_wire::decode_structured;
use serde_json::{Value, json};

const HOUR: &str = "2026-10-01T08:";

/// A window of a node with one unit and these processes, from second to second of the hour.
fn window(node: &str, sequence: u32, (from, to): (u32, u32), units: Value, processes: Value) -> Arrived {
    let at = |second: u32| format!("{HOUR}{:02}:{:02}Z", second / 60, second % 60);
    let event = json!({
        "specversion": "1.0", "type": "gpuledger.telemetry.window.v1", "source": format!("/nodes/{node}"),
        "id": format!("{node}-{sequence}"), "time": at(to),
        "data": {"node": node, "boot_id": "b", "stream": "s", "sequence": sequence, "start": at(from), "end": at(to),
                 "units": units, "processes": processes, "gaps": []},
    });
    Arrived::from_event(&decode_structured(event.to_string().as_bytes()).unwrap()).unwrap()
}

fn unit(gpu: &str, sm: u64, covered: u64) -> Value {
    json!({"gpu": gpu, "placement": {"start": 0, "size": 1}, "sm_active_us": sm, "memory_byte_us": 7, "memory_bytes_max": sm,
           "covered_us": covered, "quality": {"sm_active_us": "interval_mean"}})
}

fn process(gpu: &str, pid: u32, job: Option<&str>, sm: Option<u64>) -> Value {
    let mut process = json!({"gpu": gpu, "placement": {"start": 0, "size": 1}, "pid": pid,
        "started_at": "2026-10-01T00:00:00Z", "covered_us": 5_000_000, "quality": {"sm_active_us": "derived_share(equal)"}});
    if let Some(job) = job {
        process["slurm_job"] = job.into();
    }
    if let Some(sm) = sm {
        process["sm_active_us"] = sm.into();
    }
    process
}

fn rows(fold: Fold) -> Vec<PackedHour> {
    fold.by_hour().into_iter().flat_map(|(hour_us, nodes)| rows_with(hour_us, nodes, &[])).collect()
}

fn folded(windows: &[Arrived]) -> Vec<PackedHour> {
    let mut fold = Fold::new(1_000_000);
    windows.iter().for_each(|window| fold.take(&window.staged()).unwrap());
    rows(fold)
}

fn sums(used: &Used) -> (Option<u128>, Option<u128>, Option<u128>) {
    (used.sm_active_us.sum(), used.memory_byte_us.sum(), used.covered_us.sum())
}

#[test]
fn a_units_readings_stand_in_the_row_of_its_first_owner_a_13() {
    let both = json!([process("G", 9, None, None), process("G", 8, Some("47"), Some(4))]);
    let windows = [
        window("n", 0, (0, 10), json!([unit("G", 5, 10_000_000)]), both.clone()),
        window("n", 1, (10, 20), json!([unit("G", 6, 9_000_000)]), both),
        window("n", 2, (60, 70), json!([unit("H", 0, 10_000_000)]), json!([])),
    ];
    let rows = folded(&windows);
    let owners: Vec<(&str, &str)> = rows.iter().map(|row| (&*row.key.gpu, &*row.key.owner)).collect();
    assert_eq!(owners, [("G", "job:47"), ("G", "pid:b/9/1790812800000000"), ("H", "")]);
    let first = &rows[0];
    assert_eq!(sums(first.unit.as_ref().unwrap()), (Some(11), Some(14), Some(19_000_000)));
    assert_eq!(sums(first.used.as_ref().unwrap()), (Some(8), None, Some(10_000_000)));
    assert_eq!(first.unit.as_ref().unwrap().memory_bytes_max, Some(6));
    let labels = first.unit.as_ref().unwrap().quality.to_map();
    assert_eq!(labels["sm_active_us"]["interval_mean"], 19_000_000);
    assert_eq!((&rows[1].unit, rows[1].used.as_ref().unwrap().sm_active_us.sum()), (&None, None));
    assert_eq!(rows[2].used, None);
    assert_eq!(rows[2].unit.as_ref().unwrap().sm_active_us.iter().collect::<Vec<_>>(), [(1, 0)]);
}

#[test]
fn order_and_division_into_chunks_change_nothing_a_5() {
    let at = |n: u32| (n * 20, n * 20 + 20);
    let windows: Vec<Arrived> = (0..40)
        .map(|n| {
            let job = format!("{}", n % 3);
            let node = ["a", "b", "c"][usize::try_from(n % 3).unwrap()];
            window(
                node,
                n,
                at(n),
                json!([unit("G", u64::from(n), 20_000_000)]),
                json!([process("G", n % 5, Some(&job), Some(1))]),
            )
        })
        .collect();
    let together = folded(&windows);
    let mut backwards = windows.clone();
    backwards.reverse();
    assert_eq!(folded(&backwards), together);
    let mut stood: Vec<PackedHour> = Vec::new();
    for chunk in windows.chunks(7) {
        let mut fold = Fold::new(1_000_000);
        chunk.iter().for_each(|window| fold.take(&window.staged()).unwrap());
        let (hour_us, nodes) = fold.by_hour().pop_first().unwrap();
        let touched: Vec<String> = nodes.keys().cloned().collect();
        let new = rows_with(hour_us, nodes, &stood);
        stood.retain(|row| !touched.contains(&row.key.node));
        stood.extend(new);
        stood.sort_by(|a, b| a.key.cmp(&b.key));
    }
    assert_eq!(stood, together);
}

#[test]
fn beyond_the_limit_the_last_nodes_are_left_whole_for_the_next_time() {
    let nodes = ["a", "b", "c", "d", "e"];
    let windows: Vec<Arrived> = (0..20)
        .map(|n| {
            let node = nodes[usize::try_from(n % 5).unwrap()];
            window(node, n, (n * 60, n * 60 + 10), json!([unit("G", 1, 1), unit("H", 1, 1)]), json!([]))
        })
        .collect();
    let mut from = String::new();
    let mut all = Vec::new();
    loop {
        let mut fold = Fold::new(4);
        let later = windows.iter().filter(|window| window.node >= from);
        later.for_each(|window| fold.take(&window.staged()).unwrap());
        let until = fold.until().map(str::to_owned);
        let part = rows(fold);
        assert!(part.len() <= 4 && !part.is_empty());
        all.extend(part);
        match until {
            Some(until) => from = until,
            None => break,
        }
    }
    assert_eq!(all, folded(&windows));
}

#[test]
fn folds_of_parts_join_to_the_fold_of_all_up_to_the_first_node_one_has_left() {
    let windows: Vec<Arrived> = (0..40)
        .map(|n| {
            let node = ["a", "b", "c", "d"][usize::try_from(n % 4).unwrap()];
            window(
                node,
                n,
                (n * 60, n * 60 + 10),
                json!([unit("G", 1, 1)]),
                json!([process("G", 1, None, Some(2))]),
            )
        })
        .collect();
    let all = folded(&windows);
    for (limits, nodes) in [((100, 100), 4), ((4, 100), 2), ((100, 4), 2), ((6, 4), 2)] {
        let mut parts = [Fold::new(limits.0), Fold::new(limits.1)];
        for (place, window) in windows.iter().enumerate() {
            parts[place / 20].take(&window.staged()).unwrap();
        }
        let [one, other] = parts;
        let joined = one.join(other);
        assert_eq!(joined.until(), (nodes < 4).then_some("c"));
        let wanted: Vec<_> = all.iter().filter(|row| nodes == 4 || *row.key.node < *"c").cloned().collect();
        assert_eq!(rows(joined), wanted);
    }
}

#[test]
fn a_long_window_is_divided_over_its_minutes_and_hours_and_adds_up() {
    let hour = |start: &str, end: &str, sm: u64| {
        let mut long = window("n", 0, (0, 10), json!([unit("G", sm, 10)]), json!([]));
        let mut event = long.staged().to_event().unwrap();
        event.raw_data["start"] = start.into();
        event.raw_data["end"] = end.into();
        event.raw_data["units"][0]["covered_us"] = 3_600_000_000_u64.into();
        let text = String::from_utf8(event.canonical_bytes()).unwrap();
        long = Arrived::from_event(&decode_structured(text.as_bytes()).unwrap()).unwrap();
        folded(&[long])
    };
    let rows = hour("2026-10-01T08:30:30Z", "2026-10-01T09:30:30Z", 1_000_003);
    assert_eq!(rows.len(), 2);
    let sm = |row: &PackedHour| row.unit.as_ref().unwrap().sm_active_us.clone();
    assert_eq!(sm(&rows[0]).sum().unwrap() + sm(&rows[1]).sum().unwrap(), 1_000_003);
    assert_eq!((sm(&rows[0]).iter().count(), sm(&rows[1]).iter().count()), (30, 31));
    let covered = |row: &PackedHour| row.unit.as_ref().unwrap().covered_us.clone();
    assert_eq!((covered(&rows[0]).get(30), covered(&rows[1]).get(29)), (Some(30_000_000), Some(60_000_000)));
    assert_eq!(covered(&rows[1]).get(30), Some(30_000_000));
}

#[test]
fn a_window_with_members_of_its_own_counts_too() {
    let arrived = window("n", 0, (0, 10), json!([unit("G", 5, 10)]), json!([]));
    let mut event = arrived.staged().to_event().unwrap();
    event.raw_data["clock"] = "drifts".into();
    let kept = Arrived::from_event(&event).unwrap();
    assert_eq!(folded(&[kept]), folded(&[arrived]));
}

#[test]
fn labels_add_up_however_their_lists_change_m_8() {
    let lists = [
        json!({"sm_active_us": "interval_mean", "memory_byte_us": "driver_counter"}),
        json!({"sm_active_us": "interval_mean", "memory_byte_us": "driver_counter"}),
        json!({"memory_byte_us": "driver_counter", "sm_active_us": "unavailable(lost)"}),
        json!({}),
        json!({"sm_active_us": "interval_mean"}),
        json!({"sm_active_us": "interval_mean", "memory_byte_us": "driver_counter"}),
    ];
    let mut wanted = std::collections::BTreeMap::new();
    let windows: Vec<Arrived> = (0..)
        .zip(&lists)
        .map(|(sequence, list)| {
            let mut unit = unit("G", 1, 1_000 + u64::from(sequence));
            unit["quality"] = list.clone();
            for (name, label) in list.as_object().unwrap() {
                *wanted.entry((name.clone(), label.as_str().unwrap().to_owned())).or_insert(0) +=
                    1_000 + u64::from(sequence);
            }
            // A neighbour with lists of its own goes between.
            let mut other = unit.clone();
            other["gpu"] = "H".into();
            other["quality"] = json!({"sm_active_us": "gauge"});
            window("n", sequence, (sequence * 10, sequence * 10 + 10), json!([other, unit]), json!([]))
        })
        .collect();
    let rows = folded(&windows);
    let of = |gpu: &str| {
        rows.iter().find(|row| row.key.gpu == gpu).unwrap().unit.clone().unwrap().quality.to_map()
    };
    let flat: std::collections::BTreeMap<(String, String), u64> = of("G")
        .into_iter()
        .flat_map(|(name, labels)| labels.into_iter().map(move |(label, us)| ((name.clone(), label), us)))
        .collect();
    assert_eq!(flat, wanted);
    assert_eq!(of("H")["sm_active_us"]["gauge"], (0..6).map(|n| 1_000 + n).sum::<u64>());
}
