//! What runs: the processes of the holds, how busy they keep their units, and what becomes of them on a GPU that is lost.

use super::allocator::{Hold, Plan, Unit};
use super::fleet::{Gpu, Model};
use super::lost;
use super::requests::{Load, RunsAs};
use gpuledger_domain::time::{HOUR_US, Instant, MINUTE_US, SECOND_US, Window};

/// How long after its grant a process begins.
const STARTING_US: i64 = 20 * SECOND_US;
/// How long before its release a process ends.
const ENDING_US: i64 = 5 * SECOND_US;
/// How long after the return of a lost GPU its process is started again.
const RESTART_US: i64 = MINUTE_US;
/// How long a training runs between two checkpoints, and how long one takes.
const CHECKPOINT_US: (i64, i64) = (2 * HOUR_US, 3 * MINUTE_US);
/// How long a notebook works, and how long its user then thinks.
const NOTEBOOK_US: (i64, i64) = (15 * MINUTE_US, 35 * MINUTE_US);
/// First number of a process.
const FIRST_PID: u32 = 4_100;
/// Per cent of a unit that a service keeps busy, by hour of the day.
const SERVING: [u8; 24] =
    [9, 7, 6, 6, 8, 12, 21, 34, 48, 57, 61, 63, 58, 62, 64, 60, 55, 49, 44, 41, 36, 28, 19, 12];

/// A process on one unit.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// Its number on its node.
    pub(crate) pid: u32,
    /// Where it runs.
    pub(crate) unit: Unit,
    /// Its life.
    pub(crate) window: Window,
    /// What the node knows it by.
    pub(crate) owner: Owner,
    /// Memory it uses, in GiB.
    pub(crate) memory_gib: u32,
    /// Per cent of its unit that it keeps busy, from each instant on; the first is its start.
    pub(crate) busy: Vec<(Instant, u8)>,
}

/// Job or pod of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Number of a Slurm job.
    Job(String),
    /// UID of a pod, and the id of its container.
    Pod {
        /// UID.
        uid: String,
        /// 64 hexadecimal digits.
        container: String,
    },
}

impl Owner {
    /// Of a hold: made from its request's name, so that events and devices agree.
    pub(crate) fn of(hold: &Hold) -> Self {
        let number = super::requests::REQUESTS.iter().position(|one| one.id == hold.request.id);
        let number = number.unwrap_or_default();
        match hold.request.runs_as {
            RunsAs::Job => Self::Job((4711 + number).to_string()),
            RunsAs::Pod => Self::Pod {
                uid: format!("7c1fe2d0-5a1e-4d7b-9c3a-0242ac{number:06}"),
                container: format!("c0ffee{number:058x}"),
            },
        }
    }

    /// The control group a process of it is in.
    pub(crate) fn cgroup(&self) -> String {
        match self {
            Self::Job(number) => {
                format!("0::/system.slice/slurmstepd.scope/job_{number}/step_0/user/task_0")
            }
            Self::Pod { uid, container } => {
                let pod = uid.replace('-', "_");
                format!(
                    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod}.slice/cri-containerd-{container}.scope"
                )
            }
        }
    }
}

/// All processes of a node, in order of their start.
pub(crate) fn processes(plan: &Plan, node: &str) -> Vec<Process> {
    let mut all: Vec<Process> = plan
        .holds
        .iter()
        .flat_map(|hold| hold.units.iter().map(move |unit| (hold, *unit)))
        .filter(|(_, unit)| unit.gpu.node().name == node)
        .flat_map(|(hold, unit)| of_unit(hold, unit))
        .collect();
    all.sort_by_key(|process| (process.window.start(), process.unit.gpu));
    for (pid, process) in (FIRST_PID..).zip(&mut all) {
        process.pid = pid;
    }
    all
}

fn of_unit(hold: &Hold, unit: Unit) -> Vec<Process> {
    let alive = Window::new(hold.window.start().plus(STARTING_US), hold.window.end().plus(-ENDING_US));
    let Some(alive) = alive.filter(|_| hold.request.load != Load::Nothing) else { return Vec::new() };
    let process = |window| Process {
        pid: 0,
        unit,
        window,
        owner: Owner::of(hold),
        memory_gib: memory_gib(unit),
        busy: busy(hold.request.load, window),
    };
    lives(unit.gpu, alive).into_iter().map(process).collect()
}

/// The pieces of a life that a lost GPU leaves.
fn lives(gpu: Gpu, alive: Window) -> Vec<Window> {
    let (lost_gpu, lost) = lost();
    if gpu != lost_gpu || alive.intersect(lost).is_none() {
        return vec![alive];
    }
    let before = Window::new(alive.start(), lost.start());
    let after = Window::new(lost.end().plus(RESTART_US), alive.end());
    before.into_iter().chain(after).collect()
}

fn memory_gib(unit: Unit) -> u32 {
    match (unit.part.map(|part| part.size), unit.share) {
        (Some(1), _) => 7,
        (Some(2), _) => 14,
        (Some(_), _) => 31,
        (None, Some(share)) => u32::try_from(share.numer() * 64 / share.denom()).unwrap_or_default(),
        (None, None) if unit.gpu.node().model == Model::H100 => 71,
        (None, None) => 66,
    }
}

fn busy(load: Load, life: Window) -> Vec<(Instant, u8)> {
    let start = life.start();
    let mut steps = match load {
        Load::Nothing => Vec::new(),
        Load::Training => {
            let mut steps = vec![(start, 5), (start.plus(2 * MINUTE_US), 94)];
            steps.extend(repeated(life, CHECKPOINT_US.0, &[(0, 11), (CHECKPOINT_US.1, 94)]).skip(2));
            steps
        }
        Load::Notebook => {
            repeated(life, NOTEBOOK_US.0 + NOTEBOOK_US.1, &[(0, 58), (NOTEBOOK_US.0, 0)]).collect()
        }
        Load::Serving => {
            let hours = std::iter::successors(Some(start), |at| Some(at.floor(HOUR_US).plus(HOUR_US)));
            hours.take_while(|at| *at < life.end()).map(|at| (at, serving(at))).collect()
        }
    };
    steps.retain(|(at, _)| life.contains(*at));
    steps
}

/// A pattern that is repeated from the start of a life on.
fn repeated(life: Window, every_us: i64, pattern: &[(i64, u8)]) -> impl Iterator<Item = (Instant, u8)> {
    let rounds = std::iter::successors(Some(life.start()), move |at| Some(at.plus(every_us)));
    rounds
        .take_while(move |at| *at < life.end())
        .flat_map(move |round| pattern.iter().map(move |(after_us, busy)| (round.plus(*after_us), *busy)))
}

fn serving(at: Instant) -> u8 {
    let hour = at.as_micros().div_euclid(HOUR_US).rem_euclid(24);
    usize::try_from(hour).ok().and_then(|hour| SERVING.get(hour)).copied().unwrap_or_default()
}
