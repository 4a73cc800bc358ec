use super::*;
use crate::testing::{import, listed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

fn read(rows: &str, file: &str, options: &Options) -> (Vec<Value>, Report) {
    let text = format!("{HEADER}\r\n{rows}");
    import(|i, n, o, s| azure_llm(i, n, o, s), text.as_bytes(), file, options).unwrap()
}

#[test]
fn a_request_is_work_that_takes_no_time() {
    let (events, report) = read(
        "2023-11-16 18:17:03.9799600,4808,10\r\n",
        "data/AzureLLMInferenceTrace_code.csv",
        &Options::default(),
    );
    assert_eq!((report.read, report.emitted, report.unmapped_total), (1, 1, 0));
    assert_eq!(
        events[0],
        json!({
            "specversion": "1.0", "id": "line-2", "source": "/importers/azure-llm/AzureLLMInferenceTrace_code",
            "type": "gpuledger.work.reported.v1", "time": "2023-11-16T18:17:03.97996Z", "datacontenttype": "application/json",
            "data": {
                "pool": "azure-llm", "tenant": "code", "start": "2023-11-16T18:17:03.97996Z", "end": "2023-11-16T18:17:03.97996Z",
                "input_tokens": 4808, "output_tokens": 10, "requests": 1}})
    );
}

#[test]
fn ticks_are_cut_and_no_two_requests_are_one() {
    let rows =
        "2023-11-16 18:17:59.9999999,1,1\n2023-11-16 18:17:59.9999991,1,1\n2023-11-16 18:17:59.9999991,1,1\n";
    let (events, _) = read(rows, "t.csv", &Options::default());
    assert!(events.iter().all(|event| event["time"] == "2023-11-16T18:17:59.999999Z"), "{events:?}");
    let ids: BTreeSet<&str> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
    assert_eq!(ids, BTreeSet::from(["line-2", "line-3", "line-4"]));
}

#[test]
fn pool_tenant_and_zone_are_options_and_an_offset_is_understood() {
    let options = Options {
        pool: Some("chat".to_owned()),
        tenant: Some("acme".to_owned()),
        zone: chrono_tz::Tz::Europe__Berlin,
        ..Options::default()
    };
    let (events, _) =
        read("2024-05-10 02:00:00.009930,1,2\n2024-05-10 00:00:00.009930+00:00,1,2\n", "x y.csv", &options);
    for event in &events {
        assert_eq!((&event["data"]["pool"], &event["data"]["tenant"]), (&json!("chat"), &json!("acme")));
        assert_eq!(event["time"], "2024-05-10T00:00:00.00993Z");
        assert_eq!(event["source"], "/importers/azure-llm/x%20y");
    }
    let (events, _) = read("2024-05-10 02:00:00,1,2\n", "evening.csv", &Options::default());
    assert_eq!(events[0]["data"]["tenant"], "evening");
}

#[test]
fn bad_rows_are_named_by_line_and_field_and_the_others_go_on() {
    let rows = [
        "yesterday,1,1",
        "2023-11-16 18:17:03,-1,1",
        "2023-11-16 18:17:03,1,",
        "2023-11-16 18:17:03,1",
        "1823-11-16 18:17:03,1,1",
        "2023-11-16 18:17:03,0,0",
    ];
    let (events, report) = read(&(rows.join("\n") + "\n"), "t.csv", &Options::default());
    assert_eq!(events.len(), 1, "a request without tokens is a request");
    let texts = listed(&report);
    assert!(texts[0].starts_with("t.csv:2: field TIMESTAMP: `yesterday` is not such as"), "{}", texts[0]);
    assert!(texts[1].starts_with("t.csv:3: field ContextTokens: `-1` is not a whole number"), "{}", texts[1]);
    assert_eq!(texts[2], "t.csv:4: field GeneratedTokens: is empty (bad_value)");
    assert!(texts[3].starts_with("t.csv:5: 2 fields where 3 are expected"), "{}", texts[3]);
    assert!(
        texts[4].starts_with("t.csv:6: field TIMESTAMP") && texts[4].contains("1970 to 9999"),
        "{}",
        texts[4]
    );
    assert_eq!(report.unmapped_total, 5);
}

#[test]
fn a_wrong_header_or_name_is_an_error_that_says_what_would_be_right() {
    let with = |text: &str, file: &str, options: &Options| {
        import(|i, n, o, s| azure_llm(i, n, o, s), text.as_bytes(), file, options).unwrap_err().to_string()
    };
    let error = with("TIMESTAMP,Tokens\n", "t.csv", &Options::default());
    assert!(
        error.contains("t.csv:1: the header lacks ContextTokens, GeneratedTokens; a trace begins with"),
        "{error}"
    );
    let options = Options { pool: Some(String::new()), ..Options::default() };
    assert!(with(HEADER, "t.csv", &options).contains("pool: `` is no name"));
}
