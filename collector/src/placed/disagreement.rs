//! A process on a device that its pod was not given.

use super::unit::Unit;
use crate::process::ProcessId;
use gpuledger_domain::time::Instant;
use gpuledger_wire::text::Name;
use std::fmt;

/// One process on one unit.
pub(super) type Key = (ProcessId, Unit);

/// Kernel and kubelet contradict each other: something for the audit, never decided in silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// When it was first seen.
    pub since: Instant,
    /// The process.
    pub process: ProcessId,
    /// Its pod, by its control group.
    pub pod_uid: Name,
    /// Its container.
    pub container: Option<Name>,
    /// Where it works.
    pub unit: Unit,
    /// What the kubelet gave its pod.
    pub given: Vec<Unit>,
    /// The pods to which the kubelet gave the unit, `NAMESPACE/NAME`.
    pub holders: Vec<String>,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |parts: Vec<String>| if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
        let given = list(self.given.iter().map(ToString::to_string).collect());
        let holders = if self.holders.is_empty() { "nobody".to_owned() } else { self.holders.join(", ") };
        write!(
            f,
            "process {} of pod {} works on {}, which the kubelet gave to {holders}; the pod was given {given}",
            self.process.pid, self.pod_uid, self.unit
        )
    }
}
