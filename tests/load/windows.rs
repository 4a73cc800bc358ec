//! Windows on their way to Kafka: in the order of time, some of them late, some of them twice.

use crate::facts::headers;
use crate::fleet::{Fleet, WINDOW_US, Window, mix};
use crate::protobuf::encode;
use crate::truth::Truth;
use gpuledger_messaging::Record;
use std::collections::BTreeMap;

/// One window in so many comes late, and one in so many comes twice.
const ODD: u64 = 100;
/// How many steps a late one, and the second of two, comes behind its time: five minutes.
const LATE_STEPS: u64 = 30;

/// Makes the windows of a fleet, step by step.
pub(crate) struct Windows<'f> {
    fleet: &'f Fleet,
    topic: String,
    gpus: Vec<Vec<String>>,
    held_back: BTreeMap<u64, Vec<(u64, u64)>>,
    /// Counts each window once.
    pub(crate) truth: Truth,
    /// Records made.
    pub(crate) records: u64,
    /// Those of them that repeat one.
    pub(crate) doubled: u64,
}

impl<'f> Windows<'f> {
    pub(crate) fn new(fleet: &'f Fleet, topic: String) -> Self {
        let gpus = (0..fleet.nodes)
            .map(|node| (0..crate::fleet::GPUS).map(|gpu| fleet.gpu_uuid(node, gpu)).collect());
        Self {
            fleet,
            topic,
            gpus: gpus.collect(),
            held_back: BTreeMap::new(),
            truth: Truth::default(),
            records: 0,
            doubled: 0,
        }
    }

    /// Records of the nodes `chosen` at a step, and those held back for it. Behind the last step everything that is still held back comes.
    pub(crate) fn step(&mut self, step: u64, chosen: impl Fn(u64) -> bool) -> Vec<Record> {
        let mut records = Vec::new();
        if step < self.fleet.steps {
            for node in (0..self.fleet.nodes).filter(|node| chosen(*node)) {
                self.one(node, step, &mut records);
            }
        }
        let is_last = step >= self.fleet.steps;
        while let Some(due) = self.held_back.first_entry().filter(|due| is_last || *due.key() <= step) {
            for (node, step) in due.remove() {
                let window = self.fleet.window(node, step);
                records.push(self.record(&window));
            }
        }
        records
    }

    fn one(&mut self, node: u64, step: u64, records: &mut Vec<Record>) {
        let window = self.fleet.window(node, step);
        self.truth.add(&window);
        let chance = mix(&[self.fleet.seed, 30, node, step]) % ODD;
        if chance < 2 {
            self.held_back.entry(step + LATE_STEPS).or_default().push((node, step));
        }
        if chance != 0 {
            records.push(self.record(&window));
            self.doubled += u64::from(chance == 1);
        }
    }

    fn record(&mut self, window: &Window) -> Record {
        self.records += 1;
        let name = self.fleet.node_name(window.node);
        let id = format!("{}-{}", self.fleet.stream(window.node), window.sequence);
        let source = format!("/nodes/{name}/collector");
        let gpus = usize::try_from(window.node).ok().and_then(|node| self.gpus.get(node));
        Record {
            topic: self.topic.clone(),
            key: name.into_bytes(),
            headers: headers(
                &source,
                &id,
                "gpuledger.telemetry.window.v1",
                window.start.plus(WINDOW_US),
                "application/protobuf",
            ),
            payload: encode(self.fleet, window, gpus.map_or(&[], Vec::as_slice)),
        }
    }
}
