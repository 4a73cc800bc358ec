//! The built library, called through its C interface.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod events;
mod faults;
mod gpm;
mod memory;
mod mig;
mod processes;
mod real_time;
mod replaying;
mod robust;
mod sim;
mod utilization;
mod versions;
