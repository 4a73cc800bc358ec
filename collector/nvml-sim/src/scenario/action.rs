//! What can happen on the timeline.

use super::load::Load;
use super::text::{Bytes, Jump, Span, Utc};
use super::{ComputeMode, ContextKind};
use crate::code::ReturnCode;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::collections::BTreeMap;
use std::fmt;

/// One thing that happens at an instant: `{at: 1m30s, lose: {gpu: 2}}`.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// When, since the start.
    pub at: Span,
    /// What.
    #[serde(flatten)]
    pub action: Action,
    /// Line of the file, from 1; 0 where there is none.
    #[serde(skip)]
    pub line: u64,
}

/// What happens.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A GPU instance is created, with its compute instances.
    CreateInstance(CreateInstance),
    /// A compute instance is created in a GPU instance.
    CreateCompute(CreateCompute),
    /// A compute instance is destroyed.
    DestroyCompute(DestroyCompute),
    /// A GPU instance is destroyed, its compute instances with it.
    DestroyInstance(DestroyInstance),
    /// The MIG mode changes; off destroys all instances.
    ChangeMig(ChangeMig),
    /// A process begins.
    Start(Start),
    /// A running process opens further contexts.
    Open(Open),
    /// Memory or load of a context changes.
    Change(Change),
    /// A context is closed; the process goes on.
    Close(Close),
    /// A process ends, and its contexts with it.
    Stop(Stop),
    /// What a stopped process left behind goes.
    Reap(Pid),
    /// The GPU falls off the bus: all calls answer `GPU_IS_LOST`; its contexts are gone.
    Lose(AtGpu),
    /// All calls answer `RESET_REQUIRED`; its contexts are gone.
    RequireReset(AtGpu),
    /// A lost GPU, or one that wanted a reset, answers again: without instances and contexts.
    Recover(AtGpu),
    /// The energy counter jumps.
    SetEnergy(SetEnergy),
    /// Accounting is cleared.
    ClearAccounting(AtGpu),
    /// Accounting is switched; off clears it.
    SetAccounting(SetAccounting),
    /// Settings of a GPU change.
    SetGpu(SetGpu),
    /// The driver is unloaded and another one loaded: no contexts, no instances, counters from 0.
    ReloadDriver(ReloadDriver),
    /// A critical error is reported.
    Xid(Xid),
    /// A MIG event without a change.
    MigEvent(AtGpu),
    /// Uncorrectable memory errors.
    DoubleBit(DoubleBit),
    /// Access is revoked: every call answers `UNKNOWN`.
    Revoke(AnyGpu),
    /// Access is back.
    Restore(AnyGpu),
    /// The real-time clock is set forward or back; the timeline goes on.
    JumpClock(JumpClock),
    /// Calls answer a code.
    Fail(Fail),
    /// Calls take long.
    Delay(Delay),
    /// Performance metrics come back under another number than was asked.
    WrongEcho(WrongEcho),
    /// Process utilisation has rows that cannot be true.
    GarbageRows(GarbageRows),
}

/// A GPU by its place in the list.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AtGpu {
    /// Its place.
    pub gpu: usize,
}

/// A GPU, or all of them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AnyGpu {
    /// Its place; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<usize>,
}

/// A process by its number.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pid {
    /// Number in the init namespace.
    pub pid: u32,
}

/// How far the real-time clock jumps.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JumpClock {
    /// `+5m`, `-30s`.
    pub by: Jump,
}

/// See [`Action::CreateInstance`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CreateInstance {
    /// On which GPU.
    pub gpu: usize,
    /// Name of its profile: `3g.40gb`.
    pub profile: String,
    /// First memory slice; absent: the lowest free one that is legal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u32>,
    /// Its id; absent: the lowest free one of its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
    /// Its compute instances; absent: one over all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Vec<ComputeSpec>>,
}

/// A compute instance.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeSpec {
    /// Its id; absent: the lowest free one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci: Option<u32>,
    /// Compute slices; absent: all of its GPU instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<u32>,
    /// UUID of the MIG device; absent: made from GPU, ids and place, so that the same geometry gives the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Place in the list of MIG devices; absent: the lowest free one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
}

/// See [`Action::CreateCompute`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CreateCompute {
    /// On which GPU.
    pub gpu: usize,
    /// In which GPU instance.
    pub gi: u32,
    /// Its id, as in [`ComputeSpec`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci: Option<u32>,
    /// Compute slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<u32>,
    /// UUID of the MIG device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Place in the list of MIG devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
}

/// See [`Action::DestroyCompute`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DestroyCompute {
    /// On which GPU.
    pub gpu: usize,
    /// In which GPU instance.
    pub gi: u32,
    /// Which.
    pub ci: u32,
}

/// See [`Action::DestroyInstance`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DestroyInstance {
    /// On which GPU.
    pub gpu: usize,
    /// Which.
    pub gi: u32,
}

/// See [`Action::ChangeMig`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeMig {
    /// On which GPU.
    pub gpu: usize,
    /// The mode wanted.
    pub on: bool,
    /// It waits for a reset: only the pending mode changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// A context: a process on a GPU, or on a MIG device.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ContextSpec {
    /// On which GPU.
    pub gpu: usize,
    /// In which GPU instance, where MIG is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
    /// In which compute instance; absent: the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci: Option<u32>,
    /// What sort of context.
    #[serde(default)]
    pub kind: ContextKind,
    /// Memory it uses.
    #[serde(default)]
    pub memory: Bytes,
    /// NVML does not know how much: the row says all ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub memory_unknown: bool,
    /// How busy it keeps its unit.
    #[serde(default)]
    pub sm: Load,
    /// No list names it, though its memory is in use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// See [`Action::Start`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Number in the init namespace.
    pub pid: u32,
    /// How long ago it began; its contexts begin now. The same PID needs another clock tick (10 ms).
    #[serde(default)]
    pub started_before: Span,
    /// Name of the program.
    #[serde(default = "python")]
    pub comm: String,
    /// Lines of its cgroup file.
    #[serde(default = "session_scope")]
    pub cgroup: String,
    /// Its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environ: BTreeMap<String, String>,
    /// Number in its container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_pid: Option<u32>,
    /// Its user.
    #[serde(default)]
    pub uid: u32,
    /// `/proc` has no entry for it: it is gone, or in a namespace nobody sees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_proc: bool,
    /// Its contexts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<ContextSpec>,
}

fn python() -> String {
    "python3".to_owned()
}

fn session_scope() -> String {
    "0::/user.slice/user-1000.slice/session-1.scope".to_owned()
}

/// See [`Action::Open`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Which process.
    pub pid: u32,
    /// Its further contexts.
    pub on: Vec<ContextSpec>,
}

/// See [`Action::Change`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Which process.
    pub pid: u32,
    /// Its context on which GPU.
    pub gpu: usize,
    /// In which GPU instance; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
    /// Memory from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Whether NVML knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_unknown: Option<bool>,
    /// Load from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm: Option<Load>,
}

/// See [`Action::Close`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// Which process.
    pub pid: u32,
    /// Its context on which GPU.
    pub gpu: usize,
    /// In which GPU instance; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
}

/// See [`Action::Stop`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Which process.
    pub pid: u32,
    /// What stays until it is reaped.
    #[serde(default)]
    pub leaves: Leaves,
}

/// What an ended process leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Leaves {
    /// Nothing.
    #[default]
    Nothing,
    /// A zombie in `/proc`, its rows and its memory.
    Zombie,
    /// A process that cannot be killed (state D), its rows and its memory.
    Stuck,
    /// Its rows and its memory, and no entry in `/proc`.
    Rows,
}

/// See [`Action::SetEnergy`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SetEnergy {
    /// On which GPU.
    pub gpu: usize,
    /// To this, in millijoules.
    #[serde(default)]
    pub to_mj: u64,
}

/// See [`Action::SetAccounting`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SetAccounting {
    /// On which GPU.
    pub gpu: usize,
    /// The mode wanted.
    pub on: bool,
}

/// See [`Action::SetGpu`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SetGpu {
    /// Which GPU.
    pub gpu: usize,
    /// Compute mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_mode: Option<ComputeMode>,
    /// Persistence mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<bool>,
    /// What the driver wants done: 0 nothing, 1 reset, 2 reboot, 3 drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_action: Option<u32>,
}

/// See [`Action::ReloadDriver`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadDriver {
    /// Another release; absent: the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Another CUDA release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<u32>,
    /// How long no driver is loaded.
    #[serde(default)]
    pub down: Span,
}

/// See [`Action::Xid`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Xid {
    /// On which GPU.
    pub gpu: usize,
    /// Its number.
    pub number: u64,
    /// GPU instance it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
    /// Compute instance it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci: Option<u32>,
}

/// See [`Action::DoubleBit`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DoubleBit {
    /// On which GPU.
    pub gpu: usize,
    /// How many.
    #[serde(default = "one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}

/// See [`Action::Fail`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// C name of the function; `*` at its end stands for any ending, alone for all.
    pub call: String,
    /// On which GPU; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<usize>,
    /// On which GPU instance; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
    /// From which matching call on, counted from 1 at this instant.
    #[serde(default = "one")]
    pub nth: u64,
    /// How many of them; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// For how long; absent: to the end.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// What they answer.
    pub returns: ReturnCode,
}

/// See [`Action::Delay`]. The delay comes before the answer is made, so that it shows the state after it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// C name of the function, as in [`Fail`].
    pub call: String,
    /// On which GPU; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<usize>,
    /// On which GPU instance; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gi: Option<u32>,
    /// From which matching call on, counted from 1 at this instant.
    #[serde(default = "one")]
    pub nth: u64,
    /// How many of them; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// For how long; absent: to the end.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// How long each takes.
    pub by: Span,
}

/// See [`Action::WrongEcho`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WrongEcho {
    /// On which GPU.
    pub gpu: usize,
    /// The number that comes back.
    pub metric: u32,
    /// For how long; absent: to the end.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
}

/// See [`Action::GarbageRows`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GarbageRows {
    /// On which GPU.
    pub gpu: usize,
    /// The rows, as they are answered beside the true ones.
    pub rows: Vec<GarbageRow>,
    /// For how long; absent: to the end.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
}

/// A row that cannot be true.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GarbageRow {
    /// PID.
    pub pid: u32,
    /// SM share in per cent, as large as you like.
    pub sm: u32,
    /// Timestamp; absent: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Utc>,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StepVisitor)
    }
}

struct StepVisitor;

impl<'de> de::Visitor<'de> for StepVisitor {
    type Value = Step;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step such as {at: 1m30s, lose: {gpu: 2}}")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Step, A::Error> {
        match map.next_key::<String>()?.as_deref() {
            Some("at") => {}
            _ => {
                return Err(de::Error::custom(
                    "a step begins with `at`, such as {at: 1m30s, lose: {gpu: 2}}",
                ));
            }
        }
        let at = map.next_value()?;
        let action = Action::deserialize(de::value::MapAccessDeserializer::new(&mut map))?;
        match map.next_key::<String>()? {
            None => Ok(Step { at, action, line: 0 }),
            Some(more) => {
                Err(de::Error::custom(format!("`{more}` is a second action, expected a step of its own")))
            }
        }
    }
}
