//! Foreign readers of our events: the official CloudEvents SDK for Python.

use gpuledger_wire::{Event, Record, decode_binary, decode_structured, encode_binary, encode_structured};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn examples() -> Vec<Event> {
    let text =
        std::fs::read_to_string(root().join("schemas/examples.ndjson")).expect("schemas/examples.ndjson");
    text.lines().map(|line| decode_structured(line.as_bytes()).expect("an example")).collect()
}

/// The record as the script reads it: header texts, value in hex, and the event it must find there.
fn line(mode: &str, (headers, value): &Record, event: &Event) -> String {
    let mut expect: Value = serde_json::from_slice(&event.canonical_bytes()).expect("canonical JSON");
    let protobuf =
        headers.iter().any(|(name, value)| name == "content-type" && value == b"application/protobuf");
    if protobuf {
        expect.as_object_mut().map(|members| members.remove("data"));
    }
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), std::str::from_utf8(value).expect("text")))
        .collect();
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"mode": mode, "headers": headers, "value": hex, "expect": expect}).to_string()
}

fn structured(event: &Event) -> Record {
    (vec![("content-type".to_owned(), b"application/cloudevents+json".to_vec())], encode_structured(event))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn answer(line: &str) -> Record {
    let answer: Value = serde_json::from_str(line).expect("an answer");
    let header = |pair: &Value| (text(&pair[0]).to_owned(), text(&pair[1]).as_bytes().to_vec());
    let headers = answer["headers"].as_array().expect("headers").iter().map(header).collect();
    let hex = text(&answer["value"]);
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
    (headers, (0..hex.len()).step_by(2).map(byte).collect())
}

/// Every example, in binary and in structured mode: the SDK reads what we wrote, and we read what the SDK writes of it.
#[test]
fn the_official_python_sdk_reads_our_records_and_we_read_its() {
    let python = root().join(".local/venv/bin/python");
    if !python.exists() {
        println!("SKIPPED the official CloudEvents SDK: no {}; run deploy/local/python.sh", python.display());
        return;
    }
    let events = examples();
    let lines: Vec<String> = events
        .iter()
        .flat_map(|event| {
            [line("binary", &encode_binary(event), event), line("structured", &structured(event), event)]
        })
        .collect();
    let mut child = Command::new(python)
        .arg(root().join("tests/python/cloudevents_sdk.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all((lines.join("\n") + "\n").as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "the SDK read something else, see above");
    let answers: Vec<Record> = std::str::from_utf8(&output.stdout).unwrap().lines().map(answer).collect();
    assert_eq!(answers.len(), 2 * events.len());
    for (event, records) in events.iter().zip(answers.chunks(2)) {
        for (headers, value) in records {
            assert_eq!(&decode_binary(headers, value).unwrap(), event, "{}", event.type_name());
        }
    }
}
