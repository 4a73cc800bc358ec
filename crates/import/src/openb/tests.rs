use super::*;
use crate::testing::{import, listed};
use crate::{SkuRule, TenantRule};
use serde_json::{Value, json};

const HEADER: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";

fn read(rows: &str, options: &Options) -> (Vec<Value>, Report) {
    let text = format!("{HEADER}\n{rows}");
    import(|i, n, o, s| openb(i, n, o, s), text.as_bytes(), "pods.csv", options).unwrap()
}

#[test]
fn a_whole_gpu_gives_a_grant_and_a_release() {
    let (events, report) = read("p-1,12000,16384,1,1000,,LS,Succeeded,0,90,60\n", &Options::default());
    assert_eq!((report.read, report.emitted, report.unmapped_total), (1, 2, 0));
    assert_eq!(
        events[0],
        json!({
            "specversion": "1.0", "id": "p-1-granted", "source": "/importers/openb", "type": "gpuledger.allocation.granted.v1",
            "time": "2023-01-01T00:01:00Z", "datacontenttype": "application/json",
            "data": {
                "allocation": "p-1", "tenant": "12000-16384-1-1000", "units": [{"sku": "gpu", "count": 1}],
                "mode": "exclusive", "class": "on_demand",
                "labels": {"cpu_milli": "12000", "gpu_milli": "1000", "memory_mib": "16384", "num_gpu": "1", "qos": "LS",
                           "gpu_spec": "ANY", "phase": "Succeeded"}}})
    );
    assert_eq!(events[1]["id"], "p-1-released");
    assert_eq!(events[1]["time"], "2023-01-01T00:01:30Z");
    assert_eq!(events[1]["data"], json!({"allocation": "p-1", "reason": "completed"}));
}

#[test]
fn fractions_are_reduced_and_shared_and_a_single_model_is_the_sku() {
    let rows = "a,1,1,1,460,T4,BE,Failed,0,9,1\nb,1,1,8,1000,V100M16|V100M32,LS,Running,0,9,1\nc,1,1,1,50,V100M32|V100M32,LS,X,0,9,1\n";
    let (events, _) = read(rows, &Options::default());
    assert_eq!(events[0]["data"]["units"], json!([{"sku": "t4", "count": 1, "share": "23/50"}]));
    assert_eq!(
        (&events[0]["data"]["mode"], &events[1]["data"]["reason"]),
        (&json!("shared"), &json!("failed"))
    );
    assert_eq!(events[2]["data"]["units"], json!([{"sku": "gpu", "count": 8}]));
    assert_eq!(events[3]["data"], json!({"allocation": "b"}), "a running pod's release has no reason");
    assert_eq!(events[4]["data"]["units"], json!([{"sku": "v100m32", "count": 1, "share": "1/20"}]));
}

#[test]
fn pods_without_gpu_and_pods_never_placed_are_counted() {
    let rows = "a,1,1,0,0,,LS,Running,0,9,1\nb,1,1,1,1000,,LS,Pending,0,9,\nc,1,1,0,0,,LS,Pending,0,9,\n";
    let (events, report) = read(rows, &Options::default());
    assert!(events.is_empty());
    assert_eq!(
        (report.count(Reason::NoGpu), report.count(Reason::NeverScheduled), report.unmapped_total),
        (1, 2, 0)
    );
}

#[test]
fn bad_rows_are_named_by_line_and_field_and_the_others_go_on() {
    let rows = [
        "a,1,1,NaN,1000,,LS,Running,0,9,1",
        "b,1,1,-1,1000,,LS,Running,0,9,1",
        "c,1,1,2,500,,LS,Running,0,9,1",
        "d,1,1,1,1000,,LS,Running,0,5,9",
        "e,1,1,1,1000,,LS,Running,0,399999999999,1",
        "f,1,1,1,1001,,LS,Running,0,9,1",
        "ok,1,1,1,1000,,LS,Running,0,9,1",
        "g,1,1,1,10",
    ];
    let (events, report) = read(&rows.join("\n"), &Options::default());
    assert_eq!(events.len(), 2);
    let texts = listed(&report);
    assert_eq!(texts[0], "pods.csv:2: field num_gpu: `NaN` is not a whole number from 0 to 1024 (bad_value)");
    assert!(texts[1].starts_with("pods.csv:3: field num_gpu: `-1`"), "{}", texts[1]);
    assert!(texts[2].starts_with("pods.csv:4: field gpu_milli: 500 of 1000 with num_gpu 2"), "{}", texts[2]);
    assert!(
        texts[3].contains("pods.csv:5: field deletion_time: the pod ends at 2023-01-01T00:00:05Z, before"),
        "{}",
        texts[3]
    );
    assert!(
        texts[4].contains("pods.csv:6: field deletion_time") && texts[4].contains("year 9999"),
        "{}",
        texts[4]
    );
    assert!(texts[5].contains("pods.csv:7: field gpu_milli: `1001`"), "{}", texts[5]);
    assert_eq!(texts[6], "pods.csv:9: 5 fields where 11 are expected; the line may be cut off (bad_line)");
    assert!(texts[7].starts_with("pods.csv:9: the file does not end with a line end"), "{}", texts[7]);
    assert_eq!((report.unmapped_total, texts.len()), (8, 8));
}

#[test]
fn a_line_of_ten_megabytes_is_skipped_and_only_so_many_cases_are_kept() {
    let rows = format!("{}\nok,1,1,1,1000,,LS,Running,0,9,1\nx\ny\n", "z".repeat(10 << 20));
    let options = Options { keep_unmapped: 1, ..Options::default() };
    let (events, report) = read(&rows, &options);
    assert_eq!((events.len(), report.unmapped.len(), report.unmapped_total), (2, 1, 3));
    assert!(listed(&report)[0].contains("pods.csv:2: the line has 10485760 bytes"), "{:?}", report.unmapped);
}

#[test]
fn a_wrong_header_is_an_error_that_says_what_is_missing() {
    for (text, wanted) in [
        ("name,cpu_milli\nx,1\n", "pods.csv:1: the header lacks memory_mib, num_gpu"),
        ("", "pods.csv:1: the header lacks name"),
        (&HEADER.replace("qos", "name"), "column name is there twice"),
    ] {
        let error = import(|i, n, o, s| openb(i, n, o, s), text.as_bytes(), "pods.csv", &Options::default())
            .unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let options = Options { tenant_column: Some("team".to_owned()), ..Options::default() };
    let error = import(|i, n, o, s| openb(i, n, o, s), HEADER.as_bytes(), "pods.csv", &options).unwrap_err();
    assert!(error.to_string().contains("there is no column team"), "{error}");
}

#[test]
fn tenants_by_column_and_by_mapping_and_products_by_label() {
    let options = Options {
        tenant_column: Some("qos".to_owned()),
        project_column: Some("pod_phase".to_owned()),
        tenants: vec![TenantRule {
            source: "openb".to_owned(),
            matches: [("qos".to_owned(), "L*".to_owned())].into(),
            tenant: "latency".to_owned(),
            project: None,
            from: None,
        }],
        skus: vec![SkuRule { sku: "tesla-t4".to_owned(), gres: Vec::new(), labels: vec!["T4".to_owned()] }],
        ..Options::default()
    };
    let (events, _) = read("a,1,1,1,1000,T4,LS,Running,0,9,1\nb,1,1,1,1000,P100,BE,Failed,0,9,1\n", &options);
    assert_eq!(
        (&events[0]["data"]["tenant"], &events[0]["data"]["project"]),
        (&json!("latency"), &json!("Running"))
    );
    assert_eq!(events[0]["data"]["units"][0]["sku"], "tesla-t4");
    assert_eq!(
        (&events[2]["data"]["tenant"], &events[2]["data"]["units"][0]["sku"]),
        (&json!("BE"), &json!("p100"))
    );
}

#[test]
fn a_failing_sink_ends_the_import_and_progress_is_told() {
    let text = format!("{HEADER}\na,1,1,1,1000,,LS,Running,0,9,1\n");
    let error = openb(text.as_bytes(), "pods.csv", &Options::default(), &mut |_| {
        Err(std::io::Error::other("disk full"))
    })
    .unwrap_err();
    assert!(error.to_string().contains("disk full"), "{error}");

    let told = std::sync::Arc::new(std::sync::Mutex::new(crate::Progress::default()));
    let seen = std::sync::Arc::clone(&told);
    let options =
        Options { progress: Some(Box::new(move |p| *seen.lock().unwrap() = p)), ..Options::default() };
    let rows = "a,1,1,1,1000,,LS,Running,0,9,1\n".repeat(1024);
    let (_, report) = read(&rows, &options);
    let told = *told.lock().unwrap();
    assert_eq!((told.rows, told.events), (1024, report.emitted));
    assert_eq!(told.bytes, u64::try_from(HEADER.len() + 1 + rows.len()).unwrap());
}
