//! Facts: an inventory of each node, then grants and releases of its units, one after the other on each.

use crate::fleet::{Fleet, GPUS, INSTANCES, UNITS, mix};
use gpuledger_domain::time::{Instant, SECOND_US};
use gpuledger_messaging::Record;
use serde_json::{Value, json};

/// Where facts go, and how many there are.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'f> {
    pub(crate) fleet: &'f Fleet,
    pub(crate) topic: String,
    pub(crate) count: u64,
}

const ALLOCATOR: &str = "/allocators/slurm-1";

impl Facts<'_> {
    /// All of them in the order of their time. Inventories come first, and count.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Instant, Record)> {
        let nodes = self.fleet.nodes.min(self.count);
        // Of an odd number the last hold is not released.
        let holds = (self.count - nodes).div_ceil(2);
        let inventories = (0..nodes).map(|node| self.inventory(node));
        // A grant of each hold, and the release of the one before on the same unit, in the order of time.
        let mut times: Vec<(i64, u64, bool)> = (0..holds)
            .flat_map(|hold| {
                let (begin, end) = self.hold(hold);
                [(begin, hold, true), (end, hold, false)]
            })
            .collect();
        times.sort_unstable();
        times.truncate(usize::try_from(self.count - nodes).unwrap_or(usize::MAX));
        inventories.chain(times.into_iter().map(|(at, hold, is_grant)| {
            let at = Instant::from_micros(at);
            (at, if is_grant { self.grant(hold, at) } else { self.release(hold, at) })
        }))
    }

    /// Begin and end of a hold: units take turns, and a hold is over before the next one of its unit begins.
    fn hold(&self, hold: u64) -> (i64, i64) {
        let units = self.fleet.nodes * UNITS;
        let holds = self.count.saturating_sub(self.fleet.nodes).div_ceil(2);
        let rounds = i64::try_from(holds.div_ceil(units)).unwrap_or(1).max(1);
        let length = self.fleet.end().since(self.fleet.start) / rounds;
        let round = i64::try_from(hold / units).unwrap_or(0);
        let late =
            i64::try_from(mix(&[self.fleet.seed, 20, hold])).unwrap_or(0).rem_euclid((length / 4).max(1));
        let begin = self.fleet.start.as_micros() + round * length + late;
        (begin, begin + length / 2)
    }

    fn inventory(&self, node: u64) -> (Instant, Record) {
        let at = self.fleet.start.plus(-10 * SECOND_US);
        let instance = |slice: u64| {
            json!({"uuid": format!("MIG-{node}-{slice}"), "profile": "1g.10gb", "compute_slices": 1, "gpu_instance_id": 7 + slice,
                   "compute_instance_id": 0, "placement": {"start": slice, "size": 1}})
        };
        let gpu = |index: u64| {
            json!({"uuid": self.fleet.gpu_uuid(node, index), "index": index, "model": "NVIDIA H100 80GB HBM3",
                   "memory_bytes": 85_520_809_984_u64, "compute_slices": 7, "memory_slices": 8, "mig": true, "state": "ok",
                   "instances": (0..INSTANCES).map(instance).collect::<Vec<_>>()})
        };
        let name = self.fleet.node_name(node);
        let data = json!({"node": name, "boot_id": self.fleet.boot(node), "gpus": (0..GPUS).map(gpu).collect::<Vec<_>>()});
        let source = format!("/nodes/{name}/collector");
        (at, self.record((&source, &format!("{name}-inventory"), "node.inventory"), at, &name, &data))
    }

    /// Of an allocation; two fleets share none.
    fn name(&self, hold: u64) -> String {
        format!("h-{}-{hold}", self.fleet.seed)
    }

    fn grant(&self, hold: u64, at: Instant) -> Record {
        let unit = hold % (self.fleet.nodes * UNITS);
        let (node, place) = (unit / UNITS, unit % UNITS);
        let gpu = self.fleet.gpu_uuid(node, place / INSTANCES);
        let id = self.name(hold);
        let data = json!({"allocation": id, "tenant": format!("t-{}", hold % 40), "mode": "exclusive", "class": "on_demand",
            "units": [{"gpu": gpu, "mig": {"profile": "1g.10gb", "placement": {"start": place % INSTANCES, "size": 1}}}]});
        self.record((ALLOCATOR, &format!("{id}-granted"), "allocation.granted"), at, &id, &data)
    }

    fn release(&self, hold: u64, at: Instant) -> Record {
        let id = self.name(hold);
        let data = json!({"allocation": id, "reason": "completed"});
        self.record((ALLOCATOR, &format!("{id}-released"), "allocation.released"), at, &id, &data)
    }

    fn record(&self, (source, id, kind): (&str, &str, &str), at: Instant, key: &str, data: &Value) -> Record {
        Record {
            topic: self.topic.clone(),
            key: key.as_bytes().to_vec(),
            headers: headers(source, id, &format!("gpuledger.{kind}.v1"), at, "application/json"),
            payload: data.to_string().into_bytes(),
        }
    }
}

/// The headers of an event in binary mode.
pub(crate) fn headers(
    source: &str,
    id: &str,
    kind: &str,
    at: Instant,
    content: &str,
) -> Vec<(String, Vec<u8>)> {
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    vec![
        header("ce_specversion", "1.0"),
        header("ce_id", id),
        header("ce_source", source),
        header("ce_type", kind),
        header("ce_time", &at.to_string()),
        header("content-type", content),
    ]
}
