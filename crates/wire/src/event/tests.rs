use super::*;
use crate::examples::{self, example, set};
use crate::{Fault, decode_batch, decode_binary, decode_structured, encode_binary, encode_structured};
use serde_json::json;

fn read(value: &Value) -> Event {
    decode_structured(value.to_string().as_bytes()).unwrap()
}

fn refusal(bytes: &[u8]) -> String {
    decode_structured(bytes).unwrap_err().to_string()
}

#[test]
fn every_type_survives_structured_and_binary_mode() {
    for example in examples::all() {
        let event = read(&example);
        assert_eq!(decode_structured(&encode_structured(&event)).unwrap(), event);
        let (headers, value) = encode_binary(&event);
        let received = decode_binary(&headers, &value).unwrap();
        assert_eq!(received.data, event.data, "{}", event.type_name());
        assert_eq!((&received.source, &received.id, received.time), (&event.source, &event.id, event.time));
    }
}

#[test]
fn what_is_sent_is_checked_as_a_receiver_would() {
    let event = read(&example("allocation.granted"));
    let again = Event::new(&event.source, &event.id, event.time, event.data.clone()).unwrap();
    assert_eq!(decode_structured(&again.canonical_bytes()).unwrap(), again);
    let error = Event::new("", "1", event.time, event.data.clone()).unwrap_err();
    assert_eq!(error.to_string(), "source: is empty, expected at least one character");
    let EventData::AllocationGranted(mut grant) = event.data else { panic!("a grant") };
    grant.units.clear();
    let error = Event::new("/s", "1", event.time, grant.into()).unwrap_err();
    assert_eq!(error.to_string(), "data.units: is empty, expected at least one");
}

#[test]
fn same_content_has_one_digest_i_1() {
    let plain = example("node.inventory");
    let digest = |event: &Value| read(event).content_digest();
    let mut same = plain.clone();
    set(&mut same, "/time", json!("2026-10-01T02:00:00.000000+02:00"));
    set(&mut same, "/traceparent", json!("00-1-2-3"));
    set(&mut same, "/id", json!("another id"));
    assert_eq!(digest(&plain), digest(&same));
    let reordered = plain.to_string().replace("\"memory_slices\":8", "\"memory_slices\":8.0");
    assert_ne!(reordered, plain.to_string());
    assert_eq!(decode_structured(reordered.as_bytes()).unwrap().content_digest(), digest(&plain));
    for (pointer, value) in [
        ("/time", json!("2026-10-01T00:00:00.000001Z")),
        ("/data/boot_id", json!("b8")),
        ("/data/surprise", json!(true)),
        ("/data/gpus/0/memory_bytes", json!(9_007_199_254_740_993_u64)),
        ("/data/gpus/0/memory_bytes", json!(9_007_199_254_740_992_u64)),
    ] {
        let mut other = plain.clone();
        set(&mut other, pointer, value);
        assert_ne!(digest(&other), digest(&plain), "{pointer}");
    }
    let with = |bytes: u64| {
        let mut event = plain.clone();
        set(&mut event, "/data/gpus/0/memory_bytes", json!(bytes));
        digest(&event)
    };
    assert_ne!(with(9_007_199_254_740_992), with(9_007_199_254_740_993), "a float would make them one");
}

#[test]
fn hostile_input_is_refused_with_the_field_and_never_panics() {
    let grant = example("allocation.granted").to_string();
    let with = |from: &str, to: &str| {
        let changed = grant.replace(from, to);
        assert_ne!(changed, grant, "{from}");
        changed
    };
    for (text, field) in [
        (with("\"count\":2", "\"count\":-2"), "data.units[1].count: is -2"),
        (with("\"count\":2", "\"count\":184467440737095516160"), "data.units[1].count: "),
        (with("\"count\":2", "\"count\":1e999"), "malformed at data.units[1].count: number out of range"),
        (with("\"count\":2", "\"count\":NaN"), "malformed at data.units[1].count: expected value"),
        (with("\"count\":2", "\"count\":Infinity"), "malformed at data.units[1].count: "),
        (with("\"count\":2", "\"count\":true"), "data.units[1].count: invalid type: boolean `true`"),
        (
            with("\"count\":2", "\"count\":2,\"count\":2"),
            "malformed at data.units[1].count: the member stands twice",
        ),
        (with("\"1/4\"", "\"5/4\""), "data.units[0].share: is `5/4`: a share lies above 0 and is at most 1"),
        (with("\"acme\"", "\"\""), "data.tenant: is empty"),
        (with("\"acme\"", "\"a\\u0000b\""), "malformed at data.tenant: text holds the character U+0000"),
        (with("\"acme\"", "\"\\ud800\""), "malformed at data.tenant: "),
        (with("\"acme\"", "null"), "data.tenant: invalid type: null"),
        (
            with("allocation.granted", "allocation.grunted"),
            "type: `gpuledger.allocation.grunted.v1` is unknown",
        ),
        (
            with("2026-10-01T03:00:00.25+02:00", "10000-01-01T00:00:00Z"),
            "time: `10000-01-01T00:00:00Z` is no RFC 3339 time",
        ),
        (
            with("2026-10-01T03:00:00.25+02:00", "9999-12-31T23:59:59-23:59"),
            "time: `9999-12-31T23:59:59-23:59` lies outside",
        ),
        ("[1,2]".to_owned(), "malformed at event: is no JSON object"),
        (String::new(), "malformed at event: EOF while parsing a value"),
        ("{\"a\":".repeat(200), "malformed at a.a.a"),
    ] {
        let message = refusal(text.as_bytes());
        assert!(message.starts_with(field), "{message}\nshould begin with\n{field}");
    }
    assert!(refusal(&[b'{', b'"', 0xff, b'"', b':', b'1', b'}']).starts_with("malformed at event: "));
    for end in 0..grant.len() {
        let error = decode_structured(&grant.as_bytes()[..end]).unwrap_err();
        assert!(matches!(error.fault, Fault::Malformed { .. }), "{error}");
    }
}

#[test]
fn a_line_of_10_mb_is_refused_unread() {
    let line = format!("{{\"id\":\"{}\"}}", "x".repeat(10 << 20));
    assert_eq!(refusal(line.as_bytes()), "the event has 10485769 bytes, the limit is 1048576");
    let mut headers = encode_binary(&read(&example("unit.state"))).0;
    let error = decode_binary(&headers, line.as_bytes()).unwrap_err();
    assert_eq!(error.about.id.as_deref(), Some("e-unit.state"));
    headers.push(("ce_id".to_owned(), b"2".to_vec()));
    assert_eq!(decode_binary(&headers, b"{}").unwrap_err().to_string(), "ce_id: stands twice, expected once");
}

#[test]
fn year_9999_is_a_time_like_any_other() {
    let mut event = example("unit.state");
    set(&mut event, "/time", json!("9999-12-31T23:59:59.999999Z"));
    assert_eq!(read(&event).time.to_string(), "9999-12-31T23:59:59.999999Z");
}

#[test]
fn members_that_do_not_go_together_are_refused_though_each_fits_the_schema() {
    for (name, pointer, value, message) in [
        (
            "unit.state",
            "/data/placement/start",
            json!(13),
            "data.placement: reaches past the 16th memory slice",
        ),
        (
            "telemetry.window",
            "/data/end",
            json!("2026-10-01T00:59:49Z"),
            "data.end: 2026-10-01T00:59:49Z is before start",
        ),
        ("telemetry.window", "/data/gaps/0/end", json!("2026-10-01T00:59:50Z"), "data.gaps[0].end: "),
        (
            "telemetry.window",
            "/data/units/0/coverage/energy_mj",
            json!(10_000_001),
            "data.units[0].coverage.energy_mj: is 10000001, the window has 10000000 us",
        ),
        (
            "telemetry.window",
            "/data/processes/0/coverage/memory_byte_us",
            json!(10_000_001),
            "data.processes[0].coverage.memory_byte_us: is 10000001, the window has 10000000 us",
        ),
        (
            "telemetry.window",
            "/data/processes/0/covered_us",
            json!(10_000_001),
            "data.processes[0].covered_us: is 10000001, the window has 10000000 us",
        ),
        (
            "node.inventory",
            "/data/gpus/1/uuid",
            json!("GPU-aaaaaaaa-0000-0000-0000-000000000001"),
            "data.gpus[1].uuid: ",
        ),
        ("scrub.finished", "/data/started_at", json!("2026-10-01T01:00:01Z"), "data.started_at: "),
        ("work.reported", "/data/end", json!("2026-09-30T00:00:00Z"), "data.end: "),
        ("usage.reported", "/data/end", json!("2026-09-30T00:00:00Z"), "data.end: "),
        ("allocation.placed", "/data/runtime", json!({}), "data.runtime: names nothing"),
    ] {
        let mut event = example(name);
        set(&mut event, pointer, value);
        let refused = refusal(event.to_string().as_bytes());
        assert!(refused.starts_with(message), "{refused}\nshould begin with\n{message}");
    }
}

#[test]
fn a_refused_event_keeps_its_name_for_parking() {
    let event = example("allocation.granted").to_string();
    let bad = decode_structured(event.replace("\"count\":2", "\"count\":0").as_bytes()).unwrap_err();
    let cut = decode_structured(&event.as_bytes()[..event.find("\"units\"").unwrap()]).unwrap_err();
    assert_eq!(bad.about.source.as_deref(), Some("/nodes/n1/collector"));
    assert_eq!(bad.about.id.as_deref(), Some("e-allocation.granted"));
    assert_eq!(bad.about.time.map(|time| time.to_string()).as_deref(), Some("2026-10-01T01:00:00.25Z"));
    assert_eq!((bad.subject().as_str(), bad.reason()), ("a-2", "bad_value"));
    assert_eq!((cut.subject().as_str(), cut.reason()), ("a-2", "malformed"));
    assert_eq!(decode_structured(b"{").unwrap_err().subject(), "unknown");
}

#[test]
fn one_bad_event_does_not_spoil_a_batch() {
    let good = example("unit.state").to_string();
    let batch = format!("[{good}, {{\"id\":\"x\",\"source\":\"/s\"}}, 7, {good}]");
    let items = decode_batch(batch.as_bytes()).unwrap();
    assert_eq!(items.iter().map(|item| item.event.is_ok()).collect::<Vec<_>>(), [true, false, false, true]);
    assert_eq!(items[1].text, "{\"id\":\"x\",\"source\":\"/s\"}");
    assert_eq!(items[1].event.as_ref().unwrap_err().subject(), "/s x");
    assert!(decode_batch(b"{}").unwrap_err().to_string().starts_with("malformed at batch: "));
    assert!(decode_batch(&vec![b' '; MAX_BATCH_BYTES + 1]).is_err());
}

#[test]
fn binary_mode_reads_what_its_content_type_says() {
    let event = read(&example("telemetry.window"));
    let (mut headers, protobuf) = encode_binary(&event);
    let content_type =
        |headers: &mut Vec<(String, Vec<u8>)>, value: &str| headers[5].1 = value.as_bytes().to_vec();
    assert_eq!(headers[5].1, b"application/protobuf");
    assert_eq!(decode_binary(&headers, &protobuf).unwrap().data, event.data);
    let broken = decode_binary(&headers, &protobuf[..protobuf.len() - 3]).unwrap_err();
    assert!(
        broken.to_string().starts_with("malformed at data: is no telemetry window in protobuf"),
        "{broken}"
    );
    content_type(&mut headers, "application/json; charset=utf-8");
    let json = event.raw_data.to_string();
    assert_eq!(decode_binary(&headers, json.as_bytes()).unwrap(), event);
    content_type(&mut headers, "application/cloudevents+json");
    assert_eq!(decode_binary(&headers, &encode_structured(&event)).unwrap(), event);
    content_type(&mut headers, "text/xml");
    assert!(
        decode_binary(&headers, b"")
            .unwrap_err()
            .to_string()
            .starts_with("content-type: `text/xml` is not read")
    );
    headers.pop();
    assert_eq!(decode_binary(&headers, json.as_bytes()).unwrap(), event, "without a content type it is JSON");
    let cut = decode_binary(&headers, b"{\"node\":\"n1\",\"units\":[{").unwrap_err();
    assert!(cut.to_string().starts_with("malformed at data.units[0]: "), "{cut}");
    assert_eq!(cut.subject(), "n1");
}

#[test]
fn protobuf_keeps_absent_apart_from_zero_m_8() {
    let event = read(&example("telemetry.window"));
    let (headers, value) = encode_binary(&event);
    let received = decode_binary(&headers, &value).unwrap().raw_data;
    assert_eq!(received["units"][0]["sm_active_us"], 0);
    assert_eq!(received["units"][0]["memory_byte_us"], "855208098400000000000");
    assert_eq!(received["units"][1].get("sm_active_us"), None);
    assert_eq!(received, event.raw_data, "JSON to protobuf to JSON is the same value");
}

#[test]
fn each_reading_carries_the_time_it_covers_m_8() {
    let event = read(&example("telemetry.window"));
    let (headers, value) = encode_binary(&event);
    let received = decode_binary(&headers, &value).unwrap();
    let EventData::TelemetryWindow(window) = received.data else { panic!("another type") };
    let covered = |reading| window.units[0].covered_us_of(reading).get();
    assert_eq!((covered("sm_active_us"), covered("memory_byte_us")), (9_000_000, 10_000_000));
    assert_eq!(window.processes[0].covered_us_of("memory_byte_us").get(), 10_000_000);
    assert_eq!(window.units[1].covered_us_of("memory_byte_us"), window.units[1].covered_us);
    let raw = received.raw_data;
    assert_eq!(raw["units"][0]["coverage"], json!({"energy_mj": 10_000_000, "memory_byte_us": 10_000_000}));
    assert_eq!(raw["units"][1].get("coverage"), None, "all the same: the member is left out");
}

#[test]
fn telemetry_with_members_protobuf_does_not_know_travels_as_json() {
    let mut window = example("telemetry.window");
    set(&mut window, "/data/units/0/surprise", json!(1));
    let event = read(&window);
    assert_eq!(event.unknown_members(), ["data.units[0].surprise"]);
    let (headers, value) = encode_binary(&event);
    assert_eq!(decode_binary(&headers, &value).unwrap(), event);
}

proptest::proptest! {
    /// Whatever becomes of the bytes, reading them ends in an event or in a message that names a field.
    #[test]
    fn mangled_events_never_panic(which in 0_usize..21, at in 0_usize..4096, byte in 0_u8..=255, cut in 0_usize..4096) {
        let events = examples::all();
        let event = &events[which % events.len()];
        let mut bytes = event.to_string().into_bytes();
        let length = bytes.len();
        bytes[at % length] = byte;
        bytes.truncate(length.saturating_sub(cut % 64));
        if let Err(error) = decode_structured(&bytes) {
            let message = error.to_string();
            proptest::prop_assert!(message.contains(": "), "{}", message);
        }
    }

    #[test]
    fn mangled_protobuf_never_panics(at in 0_usize..4096, byte in 0_u8..=255, cut in 0_usize..32) {
        let (headers, mut value) = encode_binary(&read(&example("telemetry.window")));
        let length = value.len();
        value[at % length] = byte;
        value.truncate(length - cut);
        if let Err(error) = decode_binary(&headers, &value) {
            proptest::prop_assert!(error.to_string().contains("data"), "{}", error);
        }
    }
}
