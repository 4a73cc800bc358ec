//! Whatever the plain reader takes, the reader of events takes too, with the same content.

use super::*;
use crate::arrived::{Arrived, Encoding};
use crate::bodies::TelemetryWindow;
use crate::event::{Event, EventData};
use crate::{decode_binary, decode_structured, encode_binary};
use proptest::prelude::*;

fn event() -> Event {
    let text = include_str!("../../../../schemas/examples.ndjson");
    let windows = text.lines().map(|line| decode_structured(line.as_bytes()).unwrap());
    let mut windows = windows.filter(|event| matches!(event.data, EventData::TelemetryWindow(_)));
    let mut event = windows.next().expect("an example of a window");
    // Some rows like the one before, and some not.
    for list in ["units", "processes"] {
        let rows = event.raw_data[list].as_array_mut().expect("a list");
        let (same, mut other, mut bare) = (rows[0].clone(), rows[0].clone(), rows[0].clone());
        other["quality"]["sm_active_us"] = "unavailable(lost)".into();
        bare["gpu"] = "GPU-other".into();
        bare["quality"] = serde_json::json!({});
        rows.extend([same.clone(), other, same, bare]);
    }
    decode_structured(&event.canonical_bytes()).unwrap()
}

fn typed(event: &Event) -> &TelemetryWindow {
    match &event.data {
        EventData::TelemetryWindow(window) => window,
        other => panic!("{other:?}"),
    }
}

/// What both readers say of a window, in one form.
fn told(bytes: &[u8]) -> Option<(String, Vec<String>)> {
    let mut rows = Vec::new();
    let window = read_window(bytes, |window, reading| {
        let process = reading.process.map(|p| (p.pid, p.started_at_us, p.owner(window.boot_id).to_string()));
        let mut quality = reading.quality.to_vec();
        quality.sort_unstable();
        let coverage: Vec<u64> = quality.iter().map(|(name, _)| reading.covered_us_of(name)).collect();
        rows.push(format!(
            "{} {:?} {process:?} {:?} {:?} {:?} {:?} {} {quality:?} {coverage:?}",
            reading.gpu,
            reading.placement,
            reading.sm_active_us,
            reading.memory_byte_us,
            reading.memory_bytes_max,
            reading.energy_mj,
            reading.covered_us,
        ));
    })?;
    let head = (window.node, window.boot_id, window.stream, window.sequence, window.start, window.end);
    Some((format!("{head:?} {} {} {} {}", window.units, window.processes, window.gaps, window.gap_us), rows))
}

fn judged(window: &TelemetryWindow) -> (String, Vec<String>) {
    let placement = |p: Option<crate::bodies::Placement>| p.map(|p| (p.start.get(), p.size.get()));
    let quality = |map: &std::collections::BTreeMap<crate::text::Name, crate::text::Name>| {
        map.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect::<Vec<_>>()
    };
    let units = window.units.iter().map(|unit| {
        let quality = quality(&unit.quality);
        let coverage: Vec<i64> = quality.iter().map(|(name, _)| unit.covered_us_of(name).get()).collect();
        format!(
            "{} {:?} {:?} {:?} {:?} {:?} {:?} {} {quality:?} {coverage:?}",
            unit.gpu,
            placement(unit.placement),
            None::<u8>,
            unit.sm_active_us.map(|n| n.get()),
            unit.memory_byte_us.map(|n| n.get()),
            unit.memory_bytes_max.map(|n| n.get()),
            unit.energy_mj.map(|n| n.get()),
            unit.covered_us,
        )
    });
    let processes = window.processes.iter().map(|process| {
        let quality = quality(&process.quality);
        let coverage: Vec<i64> = quality.iter().map(|(name, _)| process.covered_us_of(name).get()).collect();
        let name = |n: &Option<crate::text::Name>| n.as_ref().map(ToString::to_string);
        let (job, pod, container) =
            (name(&process.slurm_job), name(&process.pod_uid), name(&process.container));
        let started = process.started_at.get().as_micros();
        let owner = job
            .map(|job| format!("job:{job}"))
            .or_else(|| pod.map(|pod| format!("pod:{pod}")))
            .or_else(|| container.map(|container| format!("container:{container}")))
            .unwrap_or_else(|| format!("pid:{}/{}/{started}", window.boot_id, process.pid));
        format!(
            "{} {:?} {:?} {:?} {:?} {:?} {:?} {} {quality:?} {coverage:?}",
            process.gpu,
            placement(process.placement),
            Some((process.pid.get(), started, owner)),
            process.sm_active_us.map(|n| n.get()),
            process.memory_byte_us.map(|n| n.get()),
            None::<u8>,
            None::<u8>,
            process.covered_us,
        )
    });
    let rows = units.chain(processes).collect();
    let gap_us: i64 = window.gaps.iter().map(|gap| gap.end.get().since(gap.start.get())).sum();
    let head = (
        window.node.as_str(),
        window.boot_id.as_str(),
        window.stream.as_str(),
        window.sequence.get(),
        window.start.get(),
        window.end.get(),
    );
    let counts = (window.units.len(), window.processes.len(), window.gaps.len());
    (format!("{head:?} {} {} {} {gap_us}", counts.0, counts.1, counts.2), rows)
}

#[test]
fn the_plain_form_of_an_example_is_read_with_its_content() {
    let event = event();
    let (_, body) = encode_binary(&event);
    assert_eq!(told(&body), Some(judged(typed(&event))));
    assert!(!typed(&event).processes.is_empty() && !typed(&event).units.is_empty());
}

#[test]
fn a_record_of_our_own_is_taken_as_it_came() {
    let event = event();
    let (headers, body) = encode_binary(&event);
    let arrived = Arrived::from_record(&headers, body.clone()).unwrap();
    assert_eq!((arrived.encoding, &arrived.body), (Encoding::Protobuf, &body));
    assert_eq!(Arrived::from_event(&event).unwrap(), arrived);
    assert_eq!(arrived.staged().to_event().unwrap(), event);
    assert_eq!(arrived.end, event.fact_time());
}

#[test]
fn members_that_protobuf_does_not_know_are_kept_as_json() {
    let mut event = event();
    event.raw_data["clock"] = "drifts".into();
    let arrived = Arrived::from_event(&event).unwrap();
    assert_eq!(arrived.encoding, Encoding::Json);
    assert_eq!(arrived.staged().to_event().unwrap(), event);
}

#[test]
fn an_envelope_that_is_not_ours_is_left_to_the_judge() {
    let (headers, body) = encode_binary(&event());
    for (place, (name, value)) in [
        (2, ("ce_source", "")),
        (4, ("ce_time", "2026-13-01T00:00:00Z")),
        (0, ("ce_specversion", "0.3")),
        (3, ("ce_type", "gpuledger.node.inventory.v1")),
        (5, ("content-type", "application/json")),
        (5, ("Content-Type", "application/protobuf")),
    ] {
        let mut other = headers.clone();
        other[place] = (name.to_owned(), value.as_bytes().to_vec());
        assert_eq!(Arrived::from_record(&other, body.clone()).unwrap_err(), body, "{name} {value}");
    }
    let twice = [&headers[..], &headers[1..2]].concat();
    assert!(Arrived::from_record(&twice, body.clone()).is_err());
    let extended = [&headers[..], &[("ce_dataschema".to_owned(), b"x".to_vec())]].concat();
    assert!(Arrived::from_record(&extended, body).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Bytes of a good window with a few of them changed, cut out or doubled.
    #[test]
    fn what_is_taken_is_what_the_judge_reads(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 0..4)) {
        let (headers, mut body) = encode_binary(&event());
        for (at, byte, kind) in edits {
            let at = at.index(body.len());
            match kind {
                0 => body[at] = byte,
                1 => { body.remove(at); }
                2 => body.insert(at, byte),
                _ => body[at] = body[at].wrapping_add(1),
            }
        }
        if let Some(told) = told(&body) {
            let event = decode_binary(&headers, &body);
            prop_assert!(event.is_ok(), "the judge refuses: {:?}", event.err());
            prop_assert_eq!(told, judged(typed(&event.unwrap())));
        }
    }
}
