//! A fault that runs: what it consists of, and what ends it.

use super::recovery::Recovery;
use super::xid::Xid;
use gpuledger_domain::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Who is to blame for a fault, in the words of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Not told yet; counts as a fault until a later fact classifies it.
    Unknown,
    /// The device. Definite: it is not taken back while the fault runs.
    Hardware,
}

impl Cause {
    /// The word in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Hardware => "hardware",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// It is off the bus: nothing answers.
    Lost,
    /// It says that it wants a reset before anything else.
    ResetRequired,
    /// An uncorrectable memory error.
    DoubleBitError,
    /// The driver wants it reset or the node rebooted.
    Recovery(Recovery),
    /// An Xid error, by number.
    Xid(u64),
}

impl Trouble {
    /// Who is to blame.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Lost | Self::DoubleBitError => Cause::Hardware,
            Self::Xid(number) if matches!(Xid(number).class(), super::Class::Hardware) => Cause::Hardware,
            Self::Xid(_) | Self::ResetRequired | Self::Recovery(_) => Cause::Unknown,
        }
    }

    /// Whether an answer to a call proves that it is over.
    const fn ends_with_an_answer(self) -> bool {
        matches!(self, Self::Lost | Self::ResetRequired)
    }

    /// Whether the device may answer and the trouble go on.
    const fn needs_repair(self) -> bool {
        match self {
            Self::Lost | Self::ResetRequired => false,
            Self::DoubleBitError | Self::Recovery(_) => true,
            Self::Xid(_) => matches!(self.cause(), Cause::Hardware),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the GPU is lost"),
            Self::ResetRequired => f.write_str("the GPU requires a reset"),
            Self::DoubleBitError => f.write_str("uncorrectable memory error"),
            Self::Recovery(action) => f.write_str(&action.words()),
            Self::Xid(number) => Xid(*number).fmt(f),
        }
    }
}

/// What a complete cycle tells about repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// What the driver wants; none where it does not say.
    pub(super) recovery: Option<Recovery>,
    /// The energy counter, which starts anew with a reset; none where it does not say.
    pub(super) energy_mj: Option<u64>,
    /// The driver was loaded anew, or the node booted, since the fault began.
    pub(super) reloaded: bool,
    /// The driver wants nothing, and has said so long enough after the last trouble to know of it.
    pub(super) sound: bool,
    /// The cycle is far enough behind the last trouble to have been read after it.
    pub(super) settled: bool,
}

/// A fault that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Since when, in Unix microseconds.
    since_us: i64,
    cause: Cause,
    troubles: BTreeSet<Trouble>,
    /// The energy counter when it began.
    energy_mj: Option<u64>,
}

impl Fault {
    pub(super) fn new(trouble: Trouble, at: Instant, energy_mj: Option<u64>) -> Self {
        let troubles = BTreeSet::from([trouble]);
        Self { since_us: at.as_micros(), cause: trouble.cause(), troubles, energy_mj }
    }

    /// Since when.
    pub const fn since(&self) -> Instant {
        Instant::from_micros(self.since_us)
    }

    /// Who is to blame, as last said.
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// What is wrong, in a fixed order.
    pub fn troubles(&self) -> impl Iterator<Item = Trouble> {
        self.troubles.iter().copied()
    }

    /// Whether the device does not answer at all, so that nothing can be read from it.
    pub fn is_away(&self) -> bool {
        self.troubles.iter().any(|trouble| trouble.ends_with_an_answer())
    }

    /// Adds a trouble. True: it made the cause definite, which is to be said.
    pub(super) fn add(&mut self, trouble: Trouble) -> bool {
        self.troubles.insert(trouble);
        let before = self.cause;
        self.cause = before.max(trouble.cause());
        self.cause != before
    }

    /// Takes out what a complete cycle proves to be over. True: nothing is left.
    pub(super) fn heal(&mut self, evidence: Evidence) -> bool {
        let was_reset = matches!((evidence.energy_mj, self.energy_mj), (Some(now), Some(then)) if now < then);
        // A device that was away and answers has been reset: what was wrong before went with it.
        let came_back = self.is_away();
        let repaired = evidence.reloaded || was_reset || came_back || evidence.sound;
        self.troubles.retain(|trouble| match trouble {
            Trouble::Lost | Trouble::ResetRequired => false,
            Trouble::Recovery(_) => evidence.recovery.map_or(!repaired, Recovery::stops_work),
            Trouble::DoubleBitError | Trouble::Xid(_) if trouble.needs_repair() => !repaired,
            Trouble::DoubleBitError | Trouble::Xid(_) => !(repaired || evidence.settled),
        });
        self.troubles.is_empty()
    }
}
