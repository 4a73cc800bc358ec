use super::*;

const HEAD: &str = "name: t\ngpus:\n- {uuid: GPU-1, model: a100-40, mig: on}\ntimeline:\n";

fn fault(text: &str) -> Fault {
    match read(text, "t.yaml") {
        Err(fault) => fault,
        Ok(scenario) => crate::world::World::new(scenario).expect_err("a fault"),
    }
}

fn of_step(step: &str) -> (u64, String, String) {
    let fault = fault(&format!("{HEAD}- {{at: 0s, create_instance: {{gpu: 0, profile: 1g.5gb}}}}\n{step}\n"));
    (fault.line, fault.field, fault.problem)
}

#[test]
fn a_fault_names_file_line_and_field() {
    let fault = fault("name: t\ngpus:\n- {uuid: GPU-1, model: t4, mib: 3}\n");
    assert_eq!((fault.file.as_str(), fault.line), ("t.yaml", 3));
    assert_eq!(fault.field, "gpus[0].mib");
    assert!(fault.problem.contains("unknown field `mib`"), "{fault}");
    assert!(fault.to_string().starts_with("t.yaml:3: gpus[0].mib: "), "{fault}");
}

#[test]
fn a_wrong_quantity_says_what_would_be_right() {
    let (line, field, problem) = of_step("- {at: 90, lose: {gpu: 0}}");
    assert_eq!((line, field.as_str()), (6, "timeline[1].at"));
    assert_eq!(problem, "`90` is no length of time, expected such as 1m30s, 250ms or 15us");
    let (line, field, problem) = of_step("- {at: 1s, start: {pid: 1, on: [{gpu: 0, gi: 7, sm: 140%}]}}");
    assert_eq!((line, field.as_str()), (6, "timeline[1].start.on[0].sm"));
    assert!(problem.contains("`140%` is no share"), "{problem}");
}

#[test]
fn a_step_is_one_action_after_its_instant() {
    assert!(of_step("- {lose: {gpu: 0}, at: 1s}").2.contains("begins with `at`"));
    assert!(
        of_step("- {at: 1s, lose: {gpu: 0}, recover: {gpu: 0}}").2.contains("`recover` is a second action")
    );
    assert!(of_step("- {at: 1s, loose: {gpu: 0}}").2.contains("unknown variant `loose`"));
}

#[test]
fn a_step_that_cannot_be_names_its_line_and_member() {
    for (step, field, problem) in [
        ("lose: {gpu: 3}", "gpu", "3 is not there, expected 0 to 0"),
        ("create_instance: {gpu: 0, profile: 5g}", "create_instance.profile", "`5g` is no profile"),
        (
            "create_instance: {gpu: 0, profile: 3g.20gb, start: 2}",
            "create_instance.start",
            "expected one of [0, 4]",
        ),
        ("create_instance: {gpu: 0, profile: 3g.20gb, start: 0}", "create_instance.start", "overlaps"),
        ("create_instance: {gpu: 0, profile: 7g.40gb}", "create_instance.profile", "too few compute slices"),
        ("create_instance: {gpu: 0, profile: 1g.5gb, gi: 7}", "create_instance.gi", "expected a free id"),
        ("destroy_instance: {gpu: 0, gi: 8}", "destroy_instance.gi", "those alive: 7"),
        ("start: {pid: 5, on: [{gpu: 0}]}", "start.on[0].gi", "MIG is on there"),
        ("start: {pid: 5, on: [{gpu: 0, gi: 7, memory: 5GiB}]}", "start.on[0].memory", "expected at most"),
        ("start: {pid: 5, started_before: 2h}", "start.started_before", "before boot"),
        ("stop: {pid: 5}", "stop.pid", "5 does not run"),
        ("recover: {gpu: 0}", "recover.gpu", "expected a lost one"),
        ("set_accounting: {gpu: 0, on: true}", "set_accounting.on", "forces accounting off"),
        ("fail: {call: memory, returns: UNKNOWN}", "call", "is no function"),
    ] {
        let fault = of_step(&format!("- {{at: 1s, {step}}}"));
        assert_eq!((fault.0, fault.1), (6, format!("timeline[1].{field}")), "{step}");
        assert!(fault.2.contains(problem), "{step}: {}", fault.2);
    }
}

#[test]
fn steps_stand_in_order_of_time() {
    let text = format!("{HEAD}- {{at: 2s, lose: {{gpu: 0}}}}\n- {{at: 1s, recover: {{gpu: 0}}}}\n");
    assert_eq!((fault(&text).line, fault(&text).field.as_str()), (6, "timeline[1].at"));
}

#[test]
fn a_pid_is_not_reused_within_its_clock_tick() {
    let with = |at| {
        format!(
            "{HEAD}- {{at: 1s, start: {{pid: 5}}}}\n- {{at: 1s9ms, stop: {{pid: 5}}}}\n- {{at: {at}, start: {{pid: 5}}}}\n"
        )
    };
    assert_eq!(fault(&with("1s9ms")).field, "timeline[2].start.pid");
    assert!(crate::world::World::new(read(&with("1s10ms"), "t.yaml").unwrap()).is_ok());
}

#[test]
fn mig_is_refused_where_the_model_cannot_do_it() {
    let fault = fault("name: t\ngpus: [{uuid: GPU-1, model: t4, mig: on}]\n");
    assert_eq!(fault.field, "gpus[0].mig");
}

#[test]
fn the_record_of_process_lists_grew_for_some_releases() {
    let bytes = |version: &str| Driver { version: version.to_owned(), ..Driver::default() }.record_bytes();
    assert_eq!(
        ["535.43.02", "535.86.10", "535.98", "530.30.02", "550.54.15"].map(bytes),
        [32, 32, 24, 24, 24]
    );
}

#[test]
fn codes_are_read_by_name_and_by_number() {
    let codes = ["GPU_IS_LOST", "17"].map(|code| {
        let text = format!("name: t\ngpus:\n- {{uuid: GPU-1, model: t4, unreadable: {{nvmlX: {code}}}}}\n");
        read(&text, "t.yaml").unwrap().gpus[0].unreadable["nvmlX"].0
    });
    assert_eq!(codes, [15, 17]);
    let wrong = fault("name: t\ngpus:\n- {uuid: GPU-1, model: t4, unreadable: {nvmlX: GONE}}\n");
    assert!(wrong.problem.contains("`GONE` is no return code"), "{wrong}");
}
