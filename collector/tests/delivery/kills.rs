//! Killed at each step of writing and sending, again and again, on one spool: nothing is lost and nothing counts twice.

use crate::child::Task;
use crate::folder;
use crate::server::{Events, Mood};
use crate::truth::Arrived;
use gpuledger_wire::decode_structured;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Every step at which a child is killed. The numbers are bytes of the record that reach the disk.
const STEPS: [&str; 22] = [
    "spool::before-write=SKIP->return(abort)",
    "spool::torn=SKIP->return(0)",
    "spool::torn=SKIP->return(1)",
    "spool::torn=SKIP->return(75)",
    "spool::torn=SKIP->return(76)",
    "spool::torn=SKIP->return(300)",
    "spool::torn=SKIP->return(100000)",
    "spool::after-write=SKIP->return(abort)",
    "spool::after-sync=SKIP->return(abort)",
    "spool::segment-written=SKIP->return(abort)",
    "spool::segment-named=SKIP->return(abort)",
    "spool::state-written=SKIP->return(abort)",
    "spool::state-named=SKIP->return(abort)",
    "spool::before-remove=SKIP->return(abort)",
    "spool::after-remove=SKIP->return(abort)",
    "spool::refused-written=SKIP->return(abort)",
    "spool::refused-named=SKIP->return(abort)",
    "publish::before-send=SKIP->return(abort)",
    "publish::after-send=SKIP->return(abort)",
    "publish::before-acknowledge=SKIP->return(abort)",
    "sink::before-request=SKIP->return(abort)",
    "sink::after-request=SKIP->return(abort)",
];

fn failpoint(step: &str, skip: usize) -> String {
    step.replace("SKIP", &format!("{skip}*off"))
}

/// Kills children of one spool until there were `kills`, one from the parent after each tenth. What was offered, and the kills
/// by step.
fn kill(
    sink: &str,
    kills: usize,
    steps: &[&str],
    folder: &std::path::Path,
) -> (BTreeSet<i64>, BTreeMap<String, usize>) {
    let mut offered = BTreeSet::new();
    let mut by_step: BTreeMap<String, usize> = BTreeMap::new();
    let mut next = 0;
    for run in 0.. {
        assert!(run < kills * 3, "too few of {run} runs were killed: {by_step:?}");
        let task = Task { folder: folder.join("spool"), sink: sink.to_owned(), from: next, count: 14 };
        let done = by_step.values().sum::<usize>() >= kills;
        let (step, ended) = if done {
            ("none", task.run("", None))
        } else if run % 10 == 9 {
            ("SIGKILL", task.run("", i64::try_from(run / 10 % 14).ok()))
        } else {
            let step = steps[run % steps.len()];
            (step, task.run(&failpoint(step, run / steps.len() % 6), None))
        };
        let last = ended.offered.unwrap_or(next - 1);
        offered.extend(next..=last);
        // Sometimes it is away for a while before the next start.
        next = last + 1 + i64::try_from(run % 3).unwrap();
        if ended.killed() {
            *by_step.entry(step.to_owned()).or_default() += 1;
            continue;
        }
        assert!(ended.status.success(), "{step}: {:?}", ended.status);
        assert_eq!(ended.left, Some(0), "a child that lives sends everything");
        if done {
            break;
        }
    }
    (offered, by_step)
}

#[test]
fn two_hundred_kills_lose_nothing_and_count_nothing_twice() {
    let folder = folder();
    let events = Events::start(Mood::Clumsy);
    let (offered, by_step) = kill(&format!("http {}", events.url()), 200, &STEPS, folder.path());
    events.arrived(|arrived| {
        arrived.assert_exactly_once(&offered);
        assert!(arrived.repeated > 0, "some answers were lost, so some events came again");
        assert!(arrived.gaps().contains_key("refused"), "some windows are refused for ever");
    });
    for step in STEPS {
        assert!(by_step.get(step).is_some_and(|kills| *kills >= 3), "{step}: {by_step:?}");
    }
    println!("kills by step: {by_step:#?}");
}

#[test]
fn a_file_has_every_window_after_kills() {
    let folder = folder();
    let path = folder.path().join("events.ndjson");
    let steps = [
        "sink::file-written=SKIP->return(abort)",
        "publish::after-send=SKIP->return(abort)",
        "spool::after-write=SKIP->return(abort)",
    ];
    let (offered, _) = kill(&format!("file {}", path.display()), 20, &steps, folder.path());
    let mut arrived = Arrived::default();
    for line in fs::read(path).unwrap().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        arrived.take(decode_structured(line).unwrap());
    }
    arrived.assert_exactly_once(&offered);
    assert!(arrived.facts() > 0);
}
