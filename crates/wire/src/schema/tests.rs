use super::*;
use crate::examples;
use crate::{EVENT_TYPES, decode_structured};
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

/// With `UPDATE_SCHEMAS=1` the files are written anew.
#[test]
fn the_files_are_what_the_types_say() {
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    let mut expected = Vec::new();
    for (name, text) in files() {
        let path = folder().join(&name);
        if update {
            std::fs::write(&path, &text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "schemas/{name} differs from the types: run the test with UPDATE_SCHEMAS=1 and look at the diff"
        );
        expected.extend(name.strip_prefix("events/").map(str::to_owned));
    }
    let mut there: Vec<String> = std::fs::read_dir(folder().join("events"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    there.sort();
    expected.sort();
    assert_eq!(there, expected, "schemas/events holds exactly one file a type");
}

fn validator(type_name: &str) -> jsonschema::Validator {
    let name = format!("events/{type_name}.json");
    let (_, text) = files().into_iter().find(|(file, _)| *file == name).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

#[test]
fn code_and_schema_accept_an_example_of_every_type() {
    let mut seen = Vec::new();
    for example in examples::all() {
        let type_name = example["type"].as_str().unwrap().to_owned();
        let faults: Vec<String> = validator(&type_name)
            .iter_errors(&example)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{type_name}: {faults:?}");
        let event = decode_structured(example.to_string().as_bytes()).unwrap();
        assert_eq!(event.unknown_members(), Vec::<String>::new(), "{type_name}");
        seen.push(type_name);
    }
    for type_name in EVENT_TYPES {
        assert!(seen.iter().any(|seen| seen == type_name), "no example of {type_name}");
    }
}

#[test]
fn code_and_schema_refuse_the_same() {
    for (example, pointer, value) in examples::refused() {
        let mut event = examples::example(example);
        examples::set(&mut event, pointer, value.clone());
        assert!(
            !validator(event["type"].as_str().unwrap()).is_valid(&event),
            "the schema takes {pointer} = {value}"
        );
        let error = decode_structured(event.to_string().as_bytes()).expect_err(pointer);
        let message = error.to_string();
        let field = examples::path(pointer);
        let parent = field.rsplit_once(['.', '[']).map_or(field.as_str(), |(parent, _)| parent);
        assert!(message.contains(&field) || message.contains(parent), "{pointer} = {value}: {message}");
    }
}

#[test]
fn members_no_one_knows_are_ignored_by_both() {
    for mut example in examples::all() {
        examples::set(&mut example, "/data/surprise", json!({"deep": [1]}));
        let type_name = example["type"].as_str().unwrap().to_owned();
        assert!(validator(&type_name).is_valid(&example), "{type_name}");
        let event = decode_structured(example.to_string().as_bytes()).unwrap();
        assert_eq!(event.unknown_members(), ["data.surprise"], "{type_name}");
    }
}

#[test]
fn every_finding_kind_of_the_contract_is_listed_once() {
    let contract = "conflict future not_entitled late_refused waiting unknown_tenant release_without_grant transfer_after_end \
        zero_length end_before_start owner_mismatch contested placement_mismatch oversubscribed unconfirmed lost_node gap \
        clock_skew unattributed foreign_process held_after_release idle_allocation residue_unknown residue_violation \
        scrub_missing scrub_late scrub_failed scrub_incomplete scrub_skipped unpriced";
    let added = ["bad_value", "unknown_profile"];
    let kinds: Vec<&str> =
        FINDINGS.iter().map(|finding| finding.kind).filter(|kind| !added.contains(kind)).collect();
    assert_eq!(kinds, contract.split_whitespace().collect::<Vec<_>>());
}
/// The design stands beside a full checkout only.
#[test]
fn the_first_examples_are_those_of_the_contract() {
    let path = folder().join("../../shared/design/contract.md");
    let Ok(contract) = std::fs::read_to_string(path) else {
        println!("SKIPPED the_first_examples_are_those_of_the_contract: ../shared/design is absent");
        return;
    };
    let block = contract.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let events = serde_json::Deserializer::from_str(block)
        .into_iter::<Value>()
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    assert_eq!(events, examples::all()[..events.len()]);
}

/// Worked examples nobody here wrote; they stand beside a full checkout only.
#[test]
fn every_event_and_object_of_the_shared_scenarios_is_read() {
    let shared = folder().join("../../shared/scenarios");
    let files = ["ledger", "billing"].map(|name| std::fs::read_dir(shared.join(name)));
    let [Ok(ledger), Ok(billing)] = files else {
        println!(
            "SKIPPED every_event_and_object_of_the_shared_scenarios_is_read: ../shared/scenarios is absent"
        );
        return;
    };
    let mut seen = 0;
    for path in ledger
        .chain(billing)
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
    {
        let scenario: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        for event in scenario["events"].as_array().unwrap() {
            decode_structured(event.to_string().as_bytes())
                .unwrap_or_else(|error| panic!("{}: {error}: {event}", path.display()));
            seen += 1;
        }
        let config: Vec<String> =
            scenario["config"].as_array().unwrap().iter().map(Value::to_string).collect();
        let name = path.display().to_string();
        crate::objects::parse_documents(&config.join("\n---\n"), &name)
            .unwrap_or_else(|faults| panic!("{faults:?}"));
    }
    assert!(seen > 100, "{seen} events");
}
