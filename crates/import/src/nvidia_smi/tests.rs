use super::*;
use crate::testing::{import, listed};
use chrono_tz::Tz;
use gpuledger_domain::geometry::{Geometry, ModelGeometry, Profile};
use serde_json::{Value, json};

const GPU: &str = "GPU-513536b6-7d19-9063-b049-1e69664bb298";

fn profile(name: &str, compute_slices: u8, memory_slices: u8) -> Profile {
    Profile { name: name.to_owned(), compute_slices, memory_slices, starts: vec![0] }
}

fn a100() -> Geometry {
    let profiles = vec![
        profile("1g.10gb", 1, 1),
        profile("1g.10gb+me", 1, 1),
        profile("1g.20gb", 1, 2),
        profile("2g.20gb", 2, 2),
        profile("3g.40gb", 3, 4),
        profile("4g.40gb", 4, 4),
        profile("7g.80gb", 7, 8),
    ];
    let models = vec!["NVIDIA A100-SXM4-80GB".to_owned()];
    Geometry { models: vec![ModelGeometry { models, compute_slices: 7, memory_slices: 8, profiles }] }
}

fn options() -> Options {
    Options { geometry: a100(), ..Options::default() }
}

fn instance(gi: &str, sms: &str, mib: &str, ofa: &str) -> String {
    format!(
        "<mig_device><index>0</index><gpu_instance_id>{gi}</gpu_instance_id><compute_instance_id>0</compute_instance_id>
         <device_attributes><shared><multiprocessor_count>{sms}</multiprocessor_count><ofa_count>{ofa}</ofa_count></shared></device_attributes>
         <fb_memory_usage><total>{mib} MiB</total></fb_memory_usage></mig_device>"
    )
}

fn gpu(id: &str, uuid: &str, model: &str, mig: &str, instances: &str) -> String {
    format!(
        "<gpu id=\"{id}\"><product_name>{model}</product_name><mig_mode><current_mig>{mig}</current_mig></mig_mode>
         <mig_devices>{instances}</mig_devices><uuid>{uuid}</uuid><fb_memory_usage><total>81920 MiB</total></fb_memory_usage></gpu>"
    )
}

fn capture(attached: &str, gpus: &str) -> String {
    format!(
        "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>
         <timestamp>Fri Aug  4 11:44:30 2023</timestamp><attached_gpus>{attached}</attached_gpus>{gpus}</nvidia_smi_log>\n"
    )
}

fn read(text: &str, options: &Options) -> Result<(Vec<Value>, Report), ImportError> {
    import(|i, n, o, s| nvidia_smi(i, n, o, s), text.as_bytes(), "captures/n1.xml", options)
}

#[test]
fn a_capture_gives_an_inventory() {
    let text = capture(
        "1",
        &gpu("00000000:01:00.0", GPU, "NVIDIA A100-SXM4-80GB", "Enabled", &instance("3", "14", "19968", "0")),
    );
    let options = Options { zone: Tz::Europe__Berlin, ..options() };
    let (events, report) = read(&text, &options).unwrap();
    assert_eq!((report.read, report.emitted, report.counts.len()), (1, 1, 0), "{report}");
    assert_eq!(
        events[0],
        json!({
            "specversion": "1.0", "id": "n1@2023-08-04T09:44:30Z", "source": "/importers/nvidia-smi",
            "type": "gpuledger.node.inventory.v1", "time": "2023-08-04T09:44:30Z", "datacontenttype": "application/json",
            "data": {"node": "n1", "boot_id": "unknown", "gpus": [{
                "uuid": GPU, "index": 0, "model": "NVIDIA A100-SXM4-80GB", "memory_bytes": 85_899_345_920_u64,
                "compute_slices": 7, "memory_slices": 8, "mig": true, "state": "ok",
                "instances": [{"uuid": format!("MIG-{GPU}/3/0"), "profile": "1g.20gb", "compute_slices": 1,
                               "gpu_instance_id": 3, "compute_instance_id": 0}]}]}})
    );
}

#[test]
fn options_name_node_time_and_boot() {
    let at = chrono::DateTime::from_timestamp(1_767_225_600, 0);
    let options =
        Options { node: Some("rack-7".to_owned()), boot_id: Some("b9".to_owned()), at, ..options() };
    let (events, _) = read(&capture("0", ""), &options).unwrap();
    assert_eq!(events[0]["id"], "rack-7@2026-01-01T00:00:00Z");
    assert_eq!(events[0]["data"], json!({"node": "rack-7", "boot_id": "b9", "gpus": []}));
}

#[test]
fn profiles_are_told_only_where_one_fits() {
    let instances = [
        instance("1", "42", "40192", "0"),
        instance("2", "14", "9728", "1"),
        instance("5", "28", "19968", "0"),
        instance("7", "16", "9728", "0"),
        instance("8", "98", "81050", "1"),
        instance("9", "14", "19968", "0"),
        instance("9", "14", "19968", "0"),
    ];
    let text = capture("1", &gpu("a", GPU, "NVIDIA A100-SXM4-80GB", "Enabled", &instances.concat()));
    let (events, report) = read(&text, &options()).unwrap();
    let found = events[0]["data"]["gpus"][0]["instances"].as_array().unwrap();
    let profiles: Vec<&str> = found.iter().map(|i| i["profile"].as_str().unwrap()).collect();
    assert_eq!(profiles, ["3g.40gb", "1g.10gb+me", "2g.20gb", "7g.80gb"]);
    assert_eq!(report.count(Reason::ProfileUnsure), 3);
    assert!(listed(&report)[0].contains("16 SMs and 9728 MiB fit 0 profiles"), "{:?}", report.unmapped);
    assert!(
        listed(&report)[1].contains("GPU instance 9 is cut into 2 compute instances"),
        "{:?}",
        report.unmapped
    );
}

#[test]
fn models_without_mig_have_one_slice_and_unknown_geometry_is_said() {
    let text = capture(
        "2",
        &(gpu("a", GPU, "Tesla T4", "N/A", "None")
            + &gpu("b", "GPU-12345678", "NVIDIA B900", "Disabled", "None")),
    );
    let (events, report) = read(&text, &options()).unwrap();
    for gpu in events[0]["data"]["gpus"].as_array().unwrap() {
        assert_eq!(
            (&gpu["compute_slices"], &gpu["memory_slices"], &gpu["mig"]),
            (&json!(1), &json!(1), &json!(false))
        );
    }
    assert_eq!(listed(&report).len(), 1);
    assert!(
        listed(&report)[0].contains("`NVIDIA B900` can do MIG and its geometry is not known"),
        "{:?}",
        report.unmapped
    );
}

#[test]
fn a_model_with_geometry_has_its_slices_with_mig_off() {
    let (events, _) =
        read(&capture("1", &gpu("a", GPU, "NVIDIA A100-SXM4-80GB", "Disabled", "None")), &options()).unwrap();
    let gpu = &events[0]["data"]["gpus"][0];
    assert_eq!(
        (&gpu["compute_slices"], &gpu["memory_slices"], &gpu["instances"]),
        (&json!(7), &json!(8), &json!([]))
    );
}

#[test]
fn absent_repeated_and_placeholder_uuids() {
    let zeros = "GPU-00000000-0000-0000-0000-000000000000";
    let gpus = [
        gpu("a", "N/A", "T", "N/A", ""),
        gpu("b", GPU, "T", "N/A", ""),
        gpu("c", GPU, "T", "N/A", ""),
        gpu("d", zeros, "T", "N/A", ""),
    ];
    let (events, report) = read(&capture("5", &gpus.concat()), &options()).unwrap();
    let uuids: Vec<&str> =
        events[0]["data"]["gpus"].as_array().unwrap().iter().map(|g| g["uuid"].as_str().unwrap()).collect();
    assert_eq!(uuids, ["n1/a", GPU, "n1/c", zeros]);
    assert_eq!((report.count(Reason::UuidUnsure), report.count(Reason::GpuMissing)), (3, 1));
    let texts = listed(&report);
    assert!(texts[1].contains("is there twice; the GPU is named n1/c"), "{texts:?}");
    assert!(texts[2].contains("placeholder"), "{texts:?}");
    assert!(
        texts[3].contains("field attached_gpus: 5 GPUs are attached and 4 are in the capture"),
        "{texts:?}"
    );
}

#[test]
fn several_captures_and_a_last_one_cut_off() {
    let one = capture("0", "");
    let text = format!("{one}{}{}", one.replace("11:44:30", "11:45:30"), &one[..one.len() - 30]);
    let (events, report) = read(&text, &options()).unwrap();
    assert_eq!((events.len(), report.emitted), (2, 2));
    assert_eq!(events[1]["time"], "2023-08-04T11:45:30Z");
    assert!(listed(&report)[0].contains("cut off"), "{:?}", report.unmapped);
}

#[test]
fn what_is_no_capture_is_an_error_with_its_line() {
    let cut = capture("1", &gpu("a", GPU, "T", "N/A", ""));
    let cut = &cut[..cut.len() - 60];
    for (text, wanted) in [
        ("", "n1.xml:1: is empty"),
        ("\n\n<html></html>", "n1.xml:3: the file is `html`; expected nvidia_smi_log"),
        ("<nvidia_smi_log>\n<gpu>\n</nvidia_smi_log>", "n1.xml:3: no well-formed XML"),
        (
            "<nvidia_smi_log><timestamp>NaN</timestamp></nvidia_smi_log>",
            "n1.xml:1: field timestamp: `NaN` is not such as",
        ),
        ("<nvidia_smi_log>&bomb;</nvidia_smi_log>", "the entity `bomb` is not one of XML's own"),
        (&"<nvidia_smi_log>".repeat(100), "nested more than 32 deep"),
        (cut, "cut off"),
    ] {
        let error = read(text, &options()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let bad = b"<nvidia_smi_log>\n<gpu>\xff</gpu></nvidia_smi_log>";
    let error = nvidia_smi(bad.as_slice(), "n1.xml", &options(), &mut |_| Ok(())).unwrap_err().to_string();
    assert!(error.contains("n1.xml:2: no well-formed XML"), "{error}");
}

#[test]
fn a_gpu_without_model_is_left_out_and_one_without_memory_is_not() {
    let no_model = gpu("a", GPU, "N/A", "N/A", "");
    let no_memory = gpu("b", "GPU-12345678", "T &amp; T", "N/A", "").replace("81920 MiB", "N/A");
    let (events, report) = read(&capture("2", &(no_model + &no_memory)), &options()).unwrap();
    let gpus = events[0]["data"]["gpus"].as_array().unwrap();
    assert_eq!((gpus.len(), &gpus[0]["model"], gpus[0].get("memory_bytes")), (1, &json!("T & T"), None));
    assert_eq!(report.count(Reason::BadValue), 1);
}
