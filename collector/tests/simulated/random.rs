//! Drawn timelines: create and destroy instances, start, stop and reuse PIDs, lose GPUs, reset counters, delay and fail calls.
//!
//! `SOAK_SEEDS=n` runs so many, `SOAK_SEED=n` begins with one that failed.

use crate::checks::{Findings, everything};
use crate::node::Node;
use gpuledger_nvml_sim::random::{Settings, scenario};
use gpuledger_nvml_sim::scenario::Span;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds of `make test`.
const SHARE: u64 = 25;
/// Length of a timeline.
const LENGTH: Span = Span::seconds(240);

fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn drawn_timelines_are_measured_as_they_were() {
    let first = given("SOAK_SEED").unwrap_or(0);
    let seeds = given("SOAK_SEEDS").unwrap_or(SHARE);
    let (next, total) = (AtomicU64::new(first), Mutex::new(Total::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + seeds {
                return;
            }
            let one = measure(seed);
            total.lock().unwrap().add(one);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    let total = total.into_inner().unwrap();
    println!("{} timelines from seed {first}\n{}", seeds, table(&total.cases));
    assert!(
        total.failed.is_empty(),
        "{} of {seeds} timelines\n{}",
        total.failed.len(),
        total.failed.join("\n")
    );
}

#[derive(Default)]
struct Total {
    cases: BTreeMap<&'static str, u64>,
    failed: Vec<String>,
}

impl Total {
    fn add(&mut self, (findings, failed): (Findings, Option<String>)) {
        for (case, times) in findings.cases {
            *self.cases.entry(case).or_default() += times;
        }
        self.failed.extend(failed);
    }
}

/// Runs one; where it fails its scenario is kept as a file.
fn measure(seed: u64) -> (Findings, Option<String>) {
    let gpus = 1 + usize::try_from(seed % 4).unwrap();
    let drawn = scenario(seed, Settings { gpus, length: LENGTH });
    let text = drawn.yaml().unwrap();
    let run = std::panic::catch_unwind(|| everything(&Node::new(&text).measure()));
    let (mut findings, failed) = match run {
        Ok(findings) if findings.faults.is_empty() => (findings, None),
        Ok(findings) => {
            let text = findings.to_string();
            (findings, Some(text))
        }
        Err(_) => (Findings::default(), Some("a panic, above".to_owned())),
    };
    for (case, times) in drawn.cases {
        findings.case(case, times.into());
    }
    let failed = failed.map(|why| format!("seed {seed}, kept as {}: {why}", keep(seed, &text).display()));
    (findings, failed)
}

fn keep(seed: u64, text: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("gpuledger-simulated-{seed}.yaml"));
    std::fs::write(&file, text).unwrap();
    file
}

/// How often each case came up.
pub(crate) fn table(cases: &BTreeMap<&'static str, u64>) -> String {
    let mut text = "how often the hard cases came up:\n".to_owned();
    for (case, times) in cases {
        writeln!(text, "{times:8}  {case}").unwrap();
    }
    text
}
