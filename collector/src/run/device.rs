//! The lane of one GPU.

use crate::clock::Clock;
use crate::cycle::{CycleReport, Sampler};
use crate::lanes::{Answer, Lane};
use crate::process::Processes;
use crate::window::Part;
use gpuledger_nvml::{Absent, Gpu};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// What a GPU's lane does.
enum Order {
    Cycle {
        /// A new handle of the device, after it, or the library, came back.
        handle: Option<Box<dyn Gpu>>,
        /// GPU instances that came or went; none within: which ones was not said.
        changed: Vec<Option<u32>>,
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
    handle: Option<Box<dyn Gpu>>,
    changed: Vec<Option<u32>>,
    /// Its handle answers nothing any more.
    is_suspended: bool,
    /// Its last cycle failed at the first call.
    is_in_trouble: bool,
}

/// What a lane answered.
pub(super) enum Looked {
    /// It looked.
    Cycle(Box<CycleReport>),
    /// It has not come back yet.
    Late,
    /// It had nothing to do.
    Idle,
    /// It waits for a handle.
    Suspended,
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
            changed: Vec::new(),
            is_suspended: false,
            is_in_trouble: false,
        })
    }

    /// The library is loaded anew: the lane waits for a handle.
    pub(super) fn suspend(&mut self) {
        self.is_suspended = true;
    }

    /// The last cycle failed at its first call. The device is asked again with the same handle, and gets a new one when it can be opened.
    pub(super) fn is_in_trouble(&mut self, why: Absent) {
        self.is_in_trouble = why != Absent::TimedOut;
    }

    /// A whole cycle was read: what was wrong passed, and the handle is good.
    pub(super) fn is_well(&mut self) {
        self.is_in_trouble = false;
    }

    /// Whether a new handle would help.
    pub(super) fn wants_handle(&self) -> bool {
        self.is_suspended || self.is_in_trouble
    }

    /// From the next cycle on the lane uses this handle, and every source begins anew.
    pub(super) fn replace(&mut self, handle: Box<dyn Gpu>) {
        self.handle = Some(handle);
        (self.is_suspended, self.is_in_trouble) = (false, false);
    }

    /// MIG instances came or went.
    pub(super) fn mig_changed(&mut self, gpu_instance: Option<u32>) {
        self.changed.push(gpu_instance);
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

    /// Waits for the cycle until an instant.
    pub(super) fn answer(&mut self, until: Instant) -> Looked {
        match self.lane.answer(until) {
            Answer::Done(Report::Cycle(report)) => Looked::Cycle(report),
            Answer::Idle if self.is_suspended => Looked::Suspended,
            Answer::Done(Report::Flushed(_)) | Answer::Idle => Looked::Idle,
            Answer::Late(_) => Looked::Late,
            Answer::Ended => Looked::Ended,
        }
    }

    /// Closes its windows. None: it does not answer by then.
    pub(super) fn flush(&mut self, until: Instant) -> Option<Vec<Part>> {
        self.lane.order(Order::Flush);
        match self.lane.answer(until) {
            Answer::Done(Report::Flushed(parts)) => Some(parts),
            _ => None,
        }
    }
}
