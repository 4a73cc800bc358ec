use super::*;
use crate::TenantRule;
use crate::testing::{import, listed};
use chrono_tz::Tz;
use gpuledger_domain::time::Instant;
use serde_json::{Value, json};

/// A row of the 26 columns; `changes` replaces fields by name.
fn row(changes: &[(&str, &str)]) -> String {
    let fields = [
        ("jobid", "4711"),
        ("jobidraw", "4711"),
        ("cluster", "c1"),
        ("partition", "a100"),
        ("qos", "normal"),
        ("account", "robotics"),
        ("group", "g"),
        ("gid", "1"),
        ("user", "ann"),
        ("uid", "2"),
        ("submit", "2026-01-01T00:00:00"),
        ("eligible", "2026-01-01T00:00:00"),
        ("start", "2026-01-01T00:00:00"),
        ("end", "2026-01-01T01:00:00"),
        ("elapsed", "01:00:00"),
        ("exitcode", "0:0"),
        ("state", "COMPLETED"),
        ("nnodes", "1"),
        ("ncpus", "1"),
        ("reqcpus", "1"),
        ("reqmem", "1Gn"),
        ("reqtres", "cpu=1"),
        ("alloctres", "cpu=1,gres/gpu=2"),
        ("timelimit", "1-00:00:00"),
        ("nodelist", "n1"),
        ("jobname", "train"),
    ];
    for (name, _) in changes {
        assert!(fields.iter().any(|(known, _)| known == name), "no column {name}");
    }
    let field = |(name, text): &(&str, &str)| {
        changes.iter().find(|(n, _)| n == name).map_or(*text, |(_, t)| *t).to_owned()
    };
    fields.iter().map(field).collect::<Vec<_>>().join("|") + "\n"
}

fn read_with(text: &str, options: &Options) -> (Vec<Value>, Report) {
    import(|i, n, o, s| sacct(i, n, o, s), text.as_bytes(), "jobs.log", options).unwrap()
}

fn read(rows: &[String]) -> (Vec<Value>, Report) {
    read_with(&rows.concat(), &Options::default())
}

/// The reason why a single row gives no event.
fn refused(changes: &[(&str, &str)]) -> Reason {
    let (events, report) = read(&[row(changes), row(&[("jobid", "1")])]);
    assert_eq!(events.len(), 2, "the row is refused and the next goes on");
    assert_eq!(report.counts.len(), 1, "{report}");
    *report.counts.keys().next().unwrap()
}

#[test]
fn a_job_gives_a_grant_and_a_release() {
    let (events, report) = read(&[row(&[("state", "CANCELLED by 1000")])]);
    assert_eq!((report.read, report.emitted, report.counts.len()), (1, 2, 0));
    assert_eq!(
        events[0],
        json!({
            "specversion": "1.0", "id": "c1/4711@1767225600-granted", "source": "/importers/sacct/c1",
            "type": "gpuledger.allocation.granted.v1", "time": "2026-01-01T00:00:00Z", "datacontenttype": "application/json",
            "data": {
                "allocation": "c1/4711@1767225600", "tenant": "robotics", "units": [{"sku": "gpu", "count": 2}],
                "mode": "exclusive", "class": "on_demand", "runtime": {"slurm_job": "4711"},
                "labels": {"account": "robotics", "cluster": "c1", "exitcode": "0:0", "group": "g", "jobname": "train",
                           "nodelist": "n1", "partition": "a100", "qos": "normal", "user": "ann", "job": "4711",
                           "state": "CANCELLED", "cancelled_by": "1000"}}})
    );
    assert_eq!(events[1]["time"], "2026-01-01T01:00:00Z");
    assert_eq!(events[1]["data"], json!({"allocation": "c1/4711@1767225600", "reason": "cancelled"}));
}

#[test]
fn reasons_of_release() {
    for (state, reason) in [
        ("COMPLETED", "completed"),
        ("FAILED", "failed"),
        ("TIMEOUT", "failed"),
        ("OUT_OF_MEMORY", "failed"),
        ("NODE_FAIL", "failed"),
        ("CANCELLED+", "cancelled"),
        ("PREEMPTED", "preempted"),
        ("REQUEUED", "requeued"),
    ] {
        assert_eq!(read(&[row(&[("state", state)])]).0[1]["data"]["reason"], reason, "{state}");
    }
}

#[test]
fn jobs_that_run_are_granted_without_release_and_jobs_that_wait_are_not() {
    let running = row(&[("state", "RUNNING"), ("end", "2026-01-01T00:00:00"), ("elapsed", "22:32:22")]);
    let (events, report) = read(std::slice::from_ref(&running));
    assert_eq!((events.len(), report.counts.len()), (1, 0));
    let options = Options { open_jobs: false, ..Options::default() };
    assert_eq!(read_with(&running, &options).1.count(Reason::StillRunning), 1);

    assert_eq!(
        refused(&[("state", "PENDING"), ("start", "Unknown"), ("alloctres", "")]),
        Reason::NeverStarted
    );
    assert_eq!(
        refused(&[("state", "CANCELLED by 1"), ("start", "None"), ("alloctres", "")]),
        Reason::NeverStarted
    );
    let same = "2026-01-01T00:00:00";
    assert_eq!(refused(&[("end", same), ("elapsed", "00:00:00"), ("alloctres", "")]), Reason::NeverStarted);
}

#[test]
fn a_job_of_no_time_is_emitted_for_the_ledger_to_name() {
    let (events, _) = read(&[row(&[("end", "2026-01-01T00:00:00"), ("elapsed", "00:00:00")])]);
    assert_eq!((events.len(), &events[0]["time"]), (2, &events[1]["time"]));
}

#[test]
fn steps_arrays_and_heterogeneous_jobs() {
    let (events, report) = read(&[
        row(&[("jobid", "7_3"), ("jobidraw", "19")]),
        row(&[("jobid", "8+1"), ("jobidraw", "21")]),
        row(&[("jobid", "8+0.batch")]),
        row(&[("jobid", "7_3.0")]),
        row(&[("jobid", "7_[4-9]"), ("state", "PENDING"), ("start", "Unknown"), ("alloctres", "")]),
        row(&[("jobid", "7_[10-11]"), ("alloctres", "cpu=1,gres/gpu=2")]),
    ]);
    assert_eq!(events.len(), 4);
    assert_eq!(events[0]["data"]["allocation"], "c1/7_3@1767225600");
    assert_eq!(events[0]["data"]["runtime"], json!({"slurm_job": "19"}));
    assert_eq!(events[2]["data"]["allocation"], "c1/8+1@1767225600");
    assert_eq!((report.count(Reason::JobStep), report.count(Reason::NeverStarted)), (2, 1));
    assert_eq!(report.count(Reason::Contradiction), 1, "a range that holds GPUs is listed, not lost");
}

#[test]
fn job_ids_that_come_back_are_other_allocations_and_a_repeated_row_is_the_same() {
    let again = row(&[("start", "2026-01-02T00:00:00"), ("end", "2026-01-02T01:00:00")]);
    let (events, report) = read(&[row(&[]), row(&[]), again.clone(), row(&[])]);
    assert_eq!(report.count(Reason::Repeated), 1);
    assert_eq!(events[2]["data"]["allocation"], "c1/4711@1767312000");
    assert_eq!(events[4], events[0], "a row that comes again later makes the identical event");
}

#[test]
fn no_gpu_is_not_unknown() {
    let none = row(&[("alloctres", "billing=1,cpu=1,node=1")]);
    let (_, report) = read(&[row(&[]), none.clone()]);
    assert_eq!((report.count(Reason::NoGpu), report.count(Reason::GpuUnknown)), (1, 0));

    let (_, report) = read(&[none.clone(), row(&[("jobid", "2"), ("alloctres", "cpu=1")])]);
    assert_eq!(
        (report.count(Reason::NoGpu), report.count(Reason::GpuUnknown), report.unmapped_total),
        (0, 2, 1)
    );
    assert!(listed(&report)[0].contains("its 2 jobs held GPUs"), "{:?}", report.unmapped);

    let asked = row(&[("jobid", "3"), ("reqtres", "gres/gpu=1"), ("alloctres", "cpu=1")]);
    let (events, report) = read(&[none, asked]);
    assert!(events.is_empty(), "ReqTRES gives no amount");
    assert_eq!(report.count(Reason::NoGpu), 2, "but shows that this Slurm accounts for GPUs");
}

#[test]
fn rows_that_cannot_be_mapped() {
    assert_eq!(refused(&[("alloctres", "")]), Reason::TresUnknown);
    assert_eq!(refused(&[("alloctres", "gres/shard=2")]), Reason::ShareUnknown);
    assert_eq!(refused(&[("alloctres", "gres/gpu=NaN")]), Reason::BadValue);
    assert_eq!(refused(&[("alloctres", "gres/gpu=-1")]), Reason::BadValue);
    assert_eq!(refused(&[("end", "2025-12-31T00:00:00")]), Reason::Contradiction);
    assert_eq!(refused(&[("elapsed", "09:00:00")]), Reason::Contradiction);
    assert_eq!(refused(&[("end", "Unknown")]), Reason::NoEnd);
    assert_eq!(refused(&[("start", "tomorrow")]), Reason::BadValue);
    assert_eq!(refused(&[("end", "12026-01-01T00:00:00")]), Reason::BadValue);
    assert_eq!(refused(&[("account", "")]), Reason::NoTenant);
    assert_eq!(refused(&[("jobid", "NaN")]), Reason::BadValue);
    assert_eq!(refused(&[("state", "")]), Reason::BadValue);
}

#[test]
fn unknown_states_and_suspends_are_noted_beside_their_events() {
    let (events, report) = read(&[row(&[("state", "FOO")])]);
    assert_eq!((events.len(), report.count(Reason::StateUnknown)), (2, 1));
    assert_eq!(events[1]["data"], json!({"allocation": "c1/4711@1767225600"}));

    let (events, report) = read(&[row(&[("elapsed", "00:40:00")])]);
    assert_eq!(report.count(Reason::Suspended), 1);
    assert_eq!(events[0]["data"]["labels"]["suspended_seconds"], "1200");
    assert_eq!(events[1]["time"], "2026-01-01T01:00:00Z", "a suspended job keeps its GPUs");
}

#[test]
fn several_types_are_several_units() {
    let (events, _) = read(&[row(&[("alloctres", "gres/gpu=4,gres/gpu:a100=1,gres/gpu:h100=2")])]);
    let units = json!([{"sku": "a100", "count": 1}, {"sku": "gpu", "count": 1}, {"sku": "h100", "count": 2}]);
    assert_eq!(events[0]["data"]["units"], units);
}

#[test]
fn a_dump_with_a_header_may_have_any_columns_in_any_order() {
    let text = "State|JobID|AllocTRES|End|Start|Account|JobName|\n\
                COMPLETED|9|gres/gpu=1|2026-01-01T01:00:00|2026-01-01T00:00:00|lab|a|b|\n\
                COMPLETED|10|gres/gpu=1|2026-01-01T01:00:00\n";
    let options = Options { cluster: Some("big one".to_owned()), ..Options::default() };
    let (events, report) = read_with(text, &options);
    assert_eq!(events[0]["source"], "/importers/sacct/big%20one");
    assert_eq!(events[0]["data"]["allocation"], "big one/9@1767225600");
    assert_eq!(events[0]["data"]["labels"]["jobname"], "a|b", "a job name may hold the separator");
    assert_eq!(
        listed(&report),
        ["jobs.log:3: 4 fields where 7 are expected; the line may be cut off (bad_line)"]
    );
}

#[test]
fn lines_that_end_with_the_separator_and_names_that_hold_it() {
    let closed = format!("{}|\n{}||\n", row(&[]).trim(), row(&[("jobid", "5"), ("jobname", "a|b")]).trim());
    let (events, report) = read_with(&closed, &Options::default());
    assert_eq!((events.len(), report.counts.len()), (4, 0));
    assert_eq!(events[0]["data"]["labels"]["jobname"], "train");
    assert_eq!(events[2]["data"]["labels"]["jobname"], "a|b|");
    let (events, _) = read(&[row(&[("jobname", "")]), row(&[("jobid", "5"), ("jobname", "a|b|")])]);
    assert_eq!(events[0]["data"]["labels"].get("jobname"), None);
    assert_eq!(events[2]["data"]["labels"]["jobname"], "a|b|");
}

#[test]
fn missing_columns_are_an_error() {
    let read = |text: &str, options: &Options| {
        import(|i, n, o, s| sacct(i, n, o, s), text.as_bytes(), "jobs.log", options)
    };
    let error = read("JobID|Start|End|Account\n1|a|b|c\n", &Options::default()).unwrap_err();
    assert!(error.to_string().contains("jobs.log:1: the columns lack state, alloctres"), "{error}");
    let options = Options { columns: Some(vec!["Start".to_owned()]), ..Options::default() };
    let error = read("x\n", &options).unwrap_err();
    assert!(error.to_string().contains("lack end, state, alloctres, jobidraw, account"), "{error}");
    assert_eq!(read("", &Options::default()).unwrap().1, Report::default(), "no jobs is an answer");
}

#[test]
fn zones_and_the_hour_that_comes_twice() {
    let text =
        row(&[("start", "2026-10-25T02:30:00"), ("end", "2026-10-25T03:30:00"), ("elapsed", "01:00:00")]);
    let options = Options { zone: Tz::Europe__Berlin, ..Options::default() };
    let (events, report) = read_with(&text, &options);
    assert_eq!(
        (&events[0]["time"], &events[1]["time"]),
        (&json!("2026-10-25T01:30:00Z"), &json!("2026-10-25T02:30:00Z"))
    );
    assert_eq!(report.count(Reason::TwiceLocalTime), 1);

    let skipped =
        row(&[("start", "2026-03-29T02:30:00"), ("end", "2026-03-29T04:30:00"), ("elapsed", "01:00:00")]);
    let (_, report) = read_with(&skipped, &options);
    assert!(
        listed(&report)[0].contains("jobs.log:1: field start: `2026-03-29T02:30:00` did not occur"),
        "{:?}",
        report.unmapped
    );
}

#[test]
fn mappings_by_account_and_partition_from_their_date() {
    let from = Instant::from_micros(1_767_225_600_000_000);
    let rule = |source: &str, from| TenantRule {
        source: source.to_owned(),
        matches: [("account".to_owned(), "robo*".to_owned()), ("partition".to_owned(), "*".to_owned())]
            .into(),
        tenant: "acme".to_owned(),
        project: Some("vision".to_owned()),
        from,
    };
    let tenant = |rules: Vec<TenantRule>| {
        let options = Options { tenants: rules, ..Options::default() };
        read_with(&row(&[]), &options).0[0]["data"]["tenant"].clone()
    };
    assert_eq!(tenant(vec![rule("slurm", Some(from))]), "acme");
    assert_eq!(tenant(vec![rule("slurm", Some(from.plus(1)))]), "robotics");
    assert_eq!(tenant(vec![rule("kubernetes", None)]), "robotics");
}

#[test]
fn names_beyond_ascii_pass_and_bytes_that_are_no_text_are_listed() {
    let mut text = row(&[("jobname", "aàb"), ("user", "zoë")]).into_bytes();
    text.extend_from_slice(b"12|\xff\n");
    let (events, report) =
        import(|i, n, o, s| sacct(i, n, o, s), &text, "jobs.log", &Options::default()).unwrap();
    assert_eq!(events[0]["data"]["labels"]["jobname"], "aàb");
    assert_eq!(
        listed(&report),
        ["jobs.log:2: not UTF-8 at byte 4 of the line; convert the file to UTF-8 (bad_line)"]
    );
}
