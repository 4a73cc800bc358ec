//! Whose processes are.

use super::measured;
use crate::node::Node;
use gpuledger_wire::text::Name;

#[test]
fn nobody_is_named_as_owner_from_a_pid_namespace_of_its_own() {
    for name in ["container-open-modules", "container-closed-modules"] {
        let outing = measured(Node::of(name));
        outing.assert_undisturbed();
        assert!(outing.output.windows().all(|window| window.processes.is_empty()), "{name}");
        assert_eq!(outing.placed(), [""; 0], "{name}");
        assert!(outing.log.contains("no process is attributed"), "it says so: {}", outing.log);
        assert_eq!(outing.unit(35, 0, None).covered_us.get(), 10_000_000, "the GPU is read all the same");
    }
}

#[test]
fn a_pod_that_ended_is_not_placed_again() {
    let outing = measured(Node::of("finished-pods"));
    let gpu = outing.uuid(0);
    let (first, second) = ("34362dfd-afed-4de5-894c-a69aaa1dc8f2", "94b211e4-09a4-43fa-8437-a7046edbfa0e");
    assert_eq!(outing.placed(), [format!("{first} {gpu}"), format!("{second} {gpu}")]);
    assert_eq!(outing.window(33).processes.len(), 1, "it ended within this window");
    let live: Vec<&str> =
        outing.window(55).processes.iter().filter_map(|row| row.pod_uid.as_ref()).map(Name::as_str).collect();
    assert_eq!(live, [second]);
}

/// PID, beginning of the container, pod, job.
const OWNERS: [(i64, &str, &str, &str); 16] = [
    (4101, "54cfe5ab", "cae4a2bb-8b02-4428-8158-935d518df821", ""),
    (4102, "28556053", "190e5404-c0d1-423c-894f-c857f8a07d31", ""),
    (4103, "0287cccf", "cfb8845c-23e0-490d-8248-aa07fefc9644", ""),
    (4104, "055b01b1", "dde60b23-a423-4cbf-8598-0e780277c80a", ""),
    (4105, "c4f6af64", "a0c59e10-0958-4fa1-8668-1dcc2c3eeafa", ""),
    (4106, "b5f06472", "e24ffaea-09fd-4901-899f-ce029127257b", ""),
    (4107, "6e21c40f", "465cfff0-6358-46aa-8117-8c077d7ce981", ""),
    (4108, "6876cd7b", "472b8940-5a33-4113-8bfd-181364deafe1", ""),
    (4109, "5fff5026", "", ""),
    (4110, "b2e24334", "", ""),
    (4111, "", "", "3385"),
    (4112, "", "", "3386"),
    (4113, "", "", "3387"),
    (4114, "", "", "42"),
    (4115, "6d4648cf", "a81259cef8e959c624df1d456e5d3297", ""),
    (4116, "", "", ""),
];

#[test]
fn owners_are_read_from_every_shape_of_a_control_group() {
    let outing = measured(Node::of("cgroup-shapes"));
    let text = |name: &Option<Name>| name.as_ref().map(ToString::to_string).unwrap_or_default();
    for (pid, container, pod, job) in OWNERS {
        let row = outing.process(35, pid);
        assert!(text(&row.container).starts_with(container), "PID {pid}: {:?}", row.container);
        assert_eq!(row.container.is_some(), !container.is_empty(), "PID {pid}: {:?}", row.container);
        assert_eq!((text(&row.pod_uid).as_str(), text(&row.slurm_job).as_str()), (pod, job), "PID {pid}");
    }
}

#[test]
fn a_job_under_the_new_keys_of_slurm_is_declared_by_itself() {
    let outing = measured(Node::of("cgroup-shapes"));
    let row = outing.process(35, 4113);
    assert_eq!(crate::view::label(&row.quality, "owner"), "self_declared", "{:?}", row.quality);
    assert!(!outing.placed().iter().any(|placed| placed.starts_with("3387 ")), "it places nothing");
    assert!(outing.placed().iter().any(|placed| placed.starts_with("3386 ")), "a daemon of several does");
}
