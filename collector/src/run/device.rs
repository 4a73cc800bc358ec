//! The lane of one GPU.

use crate::clock::Clock;
use crate::cycle::{CycleReport, Sampler};
use crate::lanes::{Answer, Lane};
use crate::process::Processes;
use crate::window::Part;
use gpuledger_nvml::{Absent, Gpu};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a GPU's lane does.
enum Order {
    Cycle {
        /// A new handle of the device, after it, or the library, came back.
        handle: Option<Box<dyn Gpu>>,
        /// GPU instances that came or went; none within: which ones was not said.
        changed: BTreeSet<Option<u32>>,
    },
    Flush,
}

/// What came of it.
enum Report {
    Cycle(Box<CycleReport>),
    Flushed(Vec<Part>),
}

/// A GPU and its lane, as the leader sees them.
pub(super) struct DeviceLane {
    lane: Lane<Order, Report>,
    /// A new handle that the lane does not have yet.
    handle: Option<Box<dyn Gpu>>,
    /// What came or went since its last order.
    changed: BTreeSet<Option<u32>>,
    /// Its handle answers nothing any more.
    is_suspended: bool,
    /// How its last cycle by the handle it has now went; none: there was none yet.
    last: Option<Result<(), Absent>>,
    /// Its cycle passed the deadline.
    is_late: bool,
}

/// What a lane answered.
pub(super) enum Looked {
    /// It looked.
    Cycle(Box<CycleReport>),
    /// Its cycle has just passed the deadline. This is said once a cycle.
    Late,
    /// It has nothing to say.
    Nothing,
    /// Its thread is gone.
    Ended,
}

impl DeviceLane {
    /// Starts the lane of an opened device.
    pub(super) fn start(
        index: u32,
        mut gpu: Box<dyn Gpu>,
        mut sampler: Sampler,
        processes: Arc<dyn Processes>,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        let work = move |order| match order {
            Order::Cycle { handle, changed } => {
                if let Some(handle) = handle {
                    gpu = handle;
                    sampler.reloaded();
                }
                for gpu_instance in changed {
                    sampler.mig_changed(gpu_instance);
                }
                Report::Cycle(Box::new(sampler.cycle(gpu.as_mut(), processes.as_ref(), clock.as_ref())))
            }
            Order::Flush => Report::Flushed(sampler.flush()),
        };
        Ok(Self {
            lane: Lane::start(&format!("gpu-{index}"), work)?,
            handle: None,
            changed: BTreeSet::new(),
            is_suspended: false,
            last: None,
            is_late: false,
        })
    }

    /// The library is loaded anew: the lane waits for a handle.
    pub(super) fn suspend(&mut self) {
        (self.is_suspended, self.last) = (true, None);
    }

    /// What its last cycle failed with.
    pub(super) fn trouble(&self) -> Option<Absent> {
        self.last.and_then(Result::err)
    }

    /// Whether its last cycle was whole.
    pub(super) fn is_well(&self) -> bool {
        self.last == Some(Ok(()))
    }

    /// Whether a new handle would help. A device in trouble is asked again with the one it has, and gets a new one when it can be opened.
    pub(super) fn wants_handle(&self) -> bool {
        self.is_suspended || self.trouble().is_some_and(|why| why != Absent::TimedOut)
    }

    /// From the next cycle on the lane uses this handle, and every source begins anew.
    pub(super) fn replace(&mut self, handle: Box<dyn Gpu>) {
        self.handle = Some(handle);
        (self.is_suspended, self.last) = (false, None);
    }

    /// MIG instances came or went. A lane that hangs hears of it with its next order.
    pub(super) fn mig_changed(&mut self, gpu_instance: Option<u32>) {
        self.changed.insert(gpu_instance);
    }

    /// Orders a cycle, unless the last one has not come back.
    pub(super) fn order_cycle(&mut self) {
        if !self.lane.is_busy() && !self.is_suspended {
            self.lane.order(Order::Cycle {
                handle: self.handle.take(),
                changed: std::mem::take(&mut self.changed),
            });
        }
    }

    /// Waits for the cycle until an instant. One that is late already is not waited for: the other lanes shall not be late with it.
    pub(super) fn answer(&mut self, until: Instant, deadline: Duration) -> Looked {
        match self.lane.answer(if self.is_late { Instant::now() } else { until }) {
            Answer::Done(Report::Cycle(report)) => {
                self.is_late = false;
                self.note(report.trouble);
                Looked::Cycle(report)
            }
            Answer::Late(age) if age >= deadline && !self.is_late => {
                self.is_late = true;
                Looked::Late
            }
            Answer::Done(Report::Flushed(_)) | Answer::Idle | Answer::Late(_) => Looked::Nothing,
            Answer::Ended => Looked::Ended,
        }
    }

    /// A cycle that began before the handle was replaced says nothing about the new one: taken at its word it would have the library loaded
    /// anew once more.
    fn note(&mut self, trouble: Option<Absent>) {
        let is_outdated = self.is_suspended || self.handle.is_some();
        self.last = (!is_outdated).then_some(trouble.map_or(Ok(()), Err));
    }

    /// Closes its windows. None: it does not answer by then, or is still looking.
    pub(super) fn flush(&mut self, until: Instant) -> Option<Vec<Part>> {
        if self.lane.is_busy() {
            return None;
        }
        self.lane.order(Order::Flush);
        match self.lane.answer(until) {
            Answer::Done(Report::Flushed(parts)) => Some(parts),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
