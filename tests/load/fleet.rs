//! The fleet: nodes of eight GPUs with seven MIG instances each, 56 units, and 64 processes. Everything follows from seed, node, unit and step.

use gpuledger_domain::time::{HOUR_US, Instant, SECOND_US};

/// GPUs of a node.
pub(crate) const GPUS: u64 = 8;
/// Instances of a GPU.
pub(crate) const INSTANCES: u64 = 7;
/// Units of a node.
pub(crate) const UNITS: u64 = GPUS * INSTANCES;
/// Processes of a node: one on each unit, a second one on the first eight.
pub(crate) const PROCESSES: u64 = 64;
/// Rows of a window.
pub(crate) const ROWS: u64 = UNITS + PROCESSES;
/// Length of a window.
pub(crate) const WINDOW_US: i64 = 10 * SECOND_US;
/// One reading of SM-active time in so many cannot be taken.
const UNREADABLE: u64 = 100;
const GIB: u64 = 1 << 30;

/// A fleet over time.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) seed: u64,
    pub(crate) nodes: u64,
    pub(crate) steps: u64,
    pub(crate) start: Instant,
}

/// What one window of one node says.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) node: u64,
    pub(crate) sequence: u64,
    pub(crate) start: Instant,
    pub(crate) units: Vec<Row>,
    pub(crate) processes: Vec<Row>,
}

/// One reading.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) gpu: u64,
    pub(crate) slice: u64,
    pub(crate) owner: Option<Owner>,
    pub(crate) pid: u64,
    pub(crate) sm_active_us: Option<u64>,
    pub(crate) memory_bytes: u64,
    pub(crate) covered_us: u64,
}

/// Whose a process is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Job(String),
    Pod(String),
}

/// A well-mixed number from others (splitmix64).
pub(crate) fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |state, part| {
        let mut z = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

fn uuid(parts: &[u64]) -> String {
    let (a, b) = (mix(parts), mix(&[mix(parts), 1]));
    let (low, mid, high) = (a & 0xffff_ffff, (a >> 32) & 0xffff, a >> 52);
    format!("{low:08x}-{mid:04x}-4{high:03x}-8{:03x}-{:012x}", b & 0xfff, b >> 16)
}

impl Fleet {
    pub(crate) fn node_name(&self, node: u64) -> String {
        format!("gpu-{}-{node:05}", self.seed)
    }

    pub(crate) fn gpu_uuid(&self, node: u64, gpu: u64) -> String {
        format!("GPU-{}", uuid(&[self.seed, 2, node, gpu]))
    }

    pub(crate) fn stream(&self, node: u64) -> String {
        uuid(&[self.seed, 3, node])
    }

    pub(crate) fn boot(&self, node: u64) -> String {
        uuid(&[self.seed, 4, node])
    }

    pub(crate) fn end(&self) -> Instant {
        self.start.plus(i64::try_from(self.steps).unwrap_or(i64::MAX) * WINDOW_US)
    }

    /// The window of a node at a step.
    pub(crate) fn window(&self, node: u64, step: u64) -> Window {
        let start = self.start.plus(i64::try_from(step).unwrap_or(i64::MAX) * WINDOW_US);
        let units = (0..UNITS).map(|unit| self.unit(node, unit, step)).collect();
        let processes = (0..PROCESSES).map(|place| self.process(node, place, step, start)).collect();
        Window { node, sequence: step, start, units, processes }
    }

    fn unit(&self, node: u64, unit: u64, step: u64) -> Row {
        let chance = mix(&[self.seed, 5, node, unit, step]);
        let covered_us = WINDOW_US.unsigned_abs() - chance % 3 * 1_000;
        Row {
            gpu: unit / INSTANCES,
            slice: unit % INSTANCES,
            owner: None,
            pid: 0,
            sm_active_us: (!chance.is_multiple_of(UNREADABLE))
                .then_some(mix(&[chance, 1]) % (covered_us + 1)),
            memory_bytes: self.memory(node, unit, step),
            covered_us,
        }
    }

    fn process(&self, node: u64, place: u64, step: u64, start: Instant) -> Row {
        let unit = place % UNITS;
        let of_unit = self.unit(node, unit, step);
        let chance = mix(&[self.seed, 6, node, place, step]);
        // The only process of a unit has the unit's own time; two have their own.
        let alone = unit >= PROCESSES - UNITS;
        let own = mix(&[chance, 2]) % (of_unit.covered_us + 1);
        Row {
            owner: Some(self.owner(node, place, start)),
            pid: 10_000 + place,
            sm_active_us: of_unit.sm_active_us.map(|sm| if alone { sm } else { own }),
            memory_bytes: if alone { of_unit.memory_bytes } else { of_unit.memory_bytes / 2 },
            ..of_unit
        }
    }

    /// Some GiB that a job keeps, and a little that it does not.
    fn memory(&self, node: u64, unit: u64, step: u64) -> u64 {
        (2 + mix(&[self.seed, 7, node, unit]) % 7) * GIB
            + mix(&[self.seed, 8, node, unit, step / 5]) % 64 * (1 << 20)
    }

    /// A job or pod holds a place for five hours, each from a minute of its own.
    fn owner(&self, node: u64, place: u64, at: Instant) -> Owner {
        let phase = mix(&[self.seed, 9, node, place]);
        let shift_us = i64::try_from(phase % 300).unwrap_or(0) * (HOUR_US / 60);
        let turn = at.plus(shift_us).as_micros().div_euclid(5 * HOUR_US).unsigned_abs();
        match phase % 3 {
            0 => Owner::Pod(uuid(&[self.seed, 10, node, place, turn])),
            _ => Owner::Job(format!("{}", 1_000_000 + mix(&[self.seed, 11, node, place, turn]) % 9_000_000)),
        }
    }
}
