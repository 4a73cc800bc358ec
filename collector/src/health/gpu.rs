//! The state machine of one GPU: signals in, changes of state out.

use super::fault::{Evidence, Fault, Trouble};
use super::recovery::Recovery;
use super::verdict::{Change, Note, Verdict};
use super::xid::{Class, Xid};
use crate::clock::Stamp;
use crate::topology::wire_placement;
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{Absent, Placement};
use gpuledger_wire::bodies::{State, UnitState};
use gpuledger_wire::text::{Name, Text};
use std::collections::BTreeMap;

/// Microseconds after the last trouble before a good cycle proves anything: the cycle may have begun before the event.
const SETTLE_US: u64 = 2_000_000;
/// Microseconds after the last trouble before the recovery action proves anything: it is read every ten seconds, and the event can be
/// ahead of it.
const RECOVERY_SETTLE_US: u64 = 15_000_000;

/// Something that was learned about a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The driver reported an Xid error.
    Xid {
        /// Which.
        xid: Xid,
        /// The MIG instance it concerns, where the driver said and its placement is known.
        placement: Option<Placement>,
        /// The device has MPS clients.
        mps: bool,
    },
    /// The driver reported an uncorrectable memory error.
    DoubleBitError,
    /// A call that any sound GPU answers failed. Not for readings that a GPU may lack.
    Failed(Absent),
    /// A whole cycle was read.
    Read {
        /// What the driver wants done, where it says.
        recovery: Option<Recovery>,
        /// The energy counter, where there is one.
        energy_mj: Option<u64>,
    },
    /// The driver was loaded anew, or the node booted: what was wrong before may be over.
    Reloaded,
}

/// Why a GPU cannot be seen, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blind {
    /// The error of the call that failed first.
    pub why: Absent,
    /// Since when.
    pub since: Instant,
}

/// Health of one GPU and its MIG instances. Pure: time and news come in, facts go out; each change of state comes out once.
#[derive(Clone, Debug)]
pub struct GpuHealth {
    gpu: Name,
    device: Option<Fault>,
    instances: BTreeMap<Placement, Fault>,
    blind: Option<Blind>,
    recovery: Option<Recovery>,
    energy_mj: Option<u64>,
    reloaded: bool,
    /// Monotonic instant of the last trouble.
    trouble_us: u64,
}

impl GpuHealth {
    /// A GPU of which nothing bad is known. Says nothing by itself: an `ok` of ours would end a maintenance that an operator declared.
    pub fn new(gpu: Name) -> Self {
        Self::restored(gpu, None, BTreeMap::new())
    }

    /// A GPU as an earlier run left it.
    pub(super) fn restored(gpu: Name, device: Option<Fault>, instances: BTreeMap<Placement, Fault>) -> Self {
        let (blind, recovery, energy_mj) = (None, None, None);
        Self { gpu, device, instances, blind, recovery, energy_mj, reloaded: false, trouble_us: 0 }
    }

    /// Its UUID.
    pub const fn gpu(&self) -> &Name {
        &self.gpu
    }

    /// The fault of the whole device, while one runs.
    pub const fn fault(&self) -> Option<&Fault> {
        self.device.as_ref()
    }

    /// Faults of single MIG instances, by placement.
    pub const fn instance_faults(&self) -> &BTreeMap<Placement, Fault> {
        &self.instances
    }

    /// Why it cannot be seen, while it cannot.
    pub const fn blind(&self) -> Option<Blind> {
        self.blind
    }

    /// The word for `inventory.state` (evidence only, A-16).
    pub const fn word(&self) -> &'static str {
        if self.device.is_some() { "fault" } else { "ok" }
    }

    /// Takes a signal.
    pub fn on(&mut self, signal: Signal, at: Stamp) -> Verdict {
        let mut verdict = Verdict::default();
        match signal {
            Signal::Xid { xid, placement, mps } => self.xid(xid, placement, mps, at, &mut verdict),
            Signal::DoubleBitError => self.broken(Trouble::DoubleBitError, false, at, &mut verdict),
            Signal::Failed(Absent::Lost) => self.broken(Trouble::Lost, false, at, &mut verdict),
            Signal::Failed(Absent::ResetRequired) => {
                self.broken(Trouble::ResetRequired, false, at, &mut verdict);
            }
            Signal::Failed(why) => self.went_blind(why, at, &mut verdict),
            Signal::Read { recovery, energy_mj } => self.read(recovery, energy_mj, at, &mut verdict),
            Signal::Reloaded => self.reloaded = true,
        }
        verdict
    }

    fn xid(&mut self, xid: Xid, placement: Option<Placement>, mps: bool, at: Stamp, verdict: &mut Verdict) {
        verdict.notes.push(Note::Xid { xid, placement, mps });
        let trouble = Trouble::Xid(xid.0);
        match (xid.class(), placement) {
            // No fault, and no classification of one that runs: the error of a program says nothing about the device.
            (Class::Application | Class::Survived | Class::Informative, _) => {}
            (Class::Unknown, Some(placement)) => self.instance_broken(placement, trouble, mps, at, verdict),
            (Class::Unknown, None) | (Class::Hardware, _) => self.broken(trouble, mps, at, verdict),
        }
    }

    fn broken(&mut self, trouble: Trouble, mps: bool, at: Stamp, verdict: &mut Verdict) {
        self.trouble_us = at.monotonic_us;
        let changed = match &mut self.device {
            Some(fault) => fault.add(trouble),
            None => {
                self.device = Some(Fault::new(trouble, at.real, self.energy_mj));
                true
            }
        };
        if let (true, Some(fault)) = (changed, &self.device) {
            verdict.changes.push(fault_change(&self.gpu, None, fault, trouble, mps, at.real));
        }
    }

    fn instance_broken(
        &mut self,
        placement: Placement,
        trouble: Trouble,
        mps: bool,
        at: Stamp,
        verdict: &mut Verdict,
    ) {
        self.trouble_us = at.monotonic_us;
        // The fault of the device covers its instances, and its end clears them.
        if self.device.is_some() {
            return;
        }
        if let Some(fault) = self.instances.get_mut(&placement) {
            fault.add(trouble);
            return;
        }
        let fault = Fault::new(trouble, at.real, self.energy_mj);
        verdict.changes.push(fault_change(&self.gpu, Some(placement), &fault, trouble, mps, at.real));
        self.instances.insert(placement, fault);
    }

    fn went_blind(&mut self, why: Absent, at: Stamp, verdict: &mut Verdict) {
        if self.blind.is_none() {
            self.blind = Some(Blind { why, since: at.real });
            verdict.notes.push(Note::Blind(why));
        }
    }

    fn read(&mut self, recovery: Option<Recovery>, energy_mj: Option<u64>, at: Stamp, verdict: &mut Verdict) {
        if self.blind.take().is_some() {
            verdict.notes.push(Note::Sees);
        }
        let age_us = at.monotonic_us.saturating_sub(self.trouble_us);
        let sound = recovery == Some(Recovery::Nothing) && age_us >= RECOVERY_SETTLE_US;
        let evidence =
            Evidence { recovery, energy_mj, reloaded: self.reloaded, sound, settled: age_us >= SETTLE_US };
        self.wanted(recovery, at, verdict);
        self.energy_mj = energy_mj.or(self.energy_mj);
        self.heal(evidence, at.real, verdict);
        self.reloaded = false;
    }

    /// Notes what the driver wants, and takes it as a trouble where the GPU cannot be used before.
    fn wanted(&mut self, recovery: Option<Recovery>, at: Stamp, verdict: &mut Verdict) {
        let Some(action) = recovery else { return };
        let before = self.recovery.replace(action).unwrap_or(Recovery::Nothing);
        if action == before {
            return;
        }
        verdict.notes.push(Note::Recovery(action));
        if action.stops_work() {
            self.broken(Trouble::Recovery(action), false, at, verdict);
        }
    }

    fn heal(&mut self, evidence: Evidence, at: Instant, verdict: &mut Verdict) {
        if let Some(fault) = &mut self.device {
            if fault.heal(evidence) {
                self.device = None;
                // A GPU-wide `ok` clears all states of the GPU.
                self.instances.clear();
                verdict.changes.push(ok_change(&self.gpu, None, at));
            }
            return;
        }
        let over: Vec<Placement> = self
            .instances
            .iter_mut()
            .filter_map(|(placement, fault)| fault.heal(evidence).then_some(*placement))
            .collect();
        for placement in over {
            self.instances.remove(&placement);
            verdict.changes.push(ok_change(&self.gpu, Some(placement), at));
        }
    }
}

fn fault_change(
    gpu: &Name,
    placement: Option<Placement>,
    fault: &Fault,
    trouble: Trouble,
    mps: bool,
    at: Instant,
) -> Change {
    let mut detail = trouble.to_string();
    if mps {
        detail.push_str("; it ended every client of the MPS server");
    }
    let cause = Name::new(fault.cause().as_str()).ok();
    let state = UnitState {
        gpu: gpu.clone(),
        placement: placement.and_then(wire_placement),
        state: State::Fault,
        cause,
        detail: Text::new(&detail).ok(),
    };
    Change { at, state }
}

fn ok_change(gpu: &Name, placement: Option<Placement>, at: Instant) -> Change {
    let placement = placement.and_then(wire_placement);
    let detail = Text::new("it can be read, and nothing is wrong any more").ok();
    Change { at, state: UnitState { gpu: gpu.clone(), placement, state: State::Ok, cause: None, detail } }
}

#[cfg(test)]
mod tests;
