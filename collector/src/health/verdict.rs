//! What a signal led to: facts to send, and notes for the log.

use super::recovery::Recovery;
use super::xid::{Class, Xid};
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{Absent, Placement};
use gpuledger_wire::bodies::{State, UnitState};

/// A `unit.state` to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// From when it holds.
    pub at: Instant,
    /// The event's data.
    pub state: UnitState,
}

/// Something for the log that is no fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// An Xid error.
    Xid {
        /// Which.
        xid: Xid,
        /// The instance it concerns, where the driver said.
        placement: Option<Placement>,
        /// The device has MPS clients: an error of one ends all of them.
        mps: bool,
    },
    /// The device can no longer be read.
    Blind(Absent),
    /// The device can be read again.
    Sees,
    /// What the driver wants done has changed.
    Recovery(Recovery),
}

/// What a signal led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Facts, in order. Empty unless a state changed.
    pub changes: Vec<Change>,
    /// Notes, in order.
    pub notes: Vec<Note>,
}

impl Verdict {
    /// Writes changes and notes to the log.
    pub fn log(&self, gpu: &str) {
        for note in &self.notes {
            note.log(gpu);
        }
        for change in &self.changes {
            change.log(gpu);
        }
    }
}

impl Change {
    fn log(&self, gpu: &str) {
        let Self { at, state } = self;
        let detail = state.detail.as_deref().unwrap_or_default();
        let placement = state.placement.map(|p| format!("{}:{}", p.start, p.size));
        match state.state {
            State::Ok => tracing::info!(gpu, placement, %at, "the GPU is sound again"),
            State::Fault | State::Maintenance => {
                tracing::warn!(gpu, placement, cause = state.cause.as_deref(), %at, "the GPU is in fault: {detail}");
            }
        }
    }
}

impl Note {
    fn log(&self, gpu: &str) {
        match self {
            Self::Xid { xid, placement, mps } => {
                let placement = placement.map(|placement| placement.to_string());
                let class = xid.class().as_str();
                let ends_all_clients = *mps && xid.class() != Class::Informative;
                tracing::warn!(gpu, placement, class, ends_all_clients, "{xid}");
            }
            Self::Blind(why) => {
                tracing::warn!(gpu, reason = %why, "the GPU can no longer be read; its allocations run on");
            }
            Self::Sees => tracing::info!(gpu, "the GPU can be read again"),
            Self::Recovery(action) => tracing::warn!(gpu, "{}", action.words()),
        }
    }
}
