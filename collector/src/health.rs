//! Which state each GPU is in, as far as the node can tell: the source of `unit.state`.
//!
//! Two questions are kept apart. *Is the GPU broken?* becomes a fact, because broken time is not the tenant's. *Can we see it?* does not: a
//! driver call that hangs, a library that no longer fits its driver, or a device cgroup that was taken away say nothing about the tenant's work,
//! which goes on. Blindness shows as a gap in telemetry, in the log, in the metrics and in `/readyz`.

mod backoff;
mod book;
mod fault;
mod gpu;
mod recovery;
mod verdict;
mod xid;

pub use backoff::Backoff;
pub use book::{Book, BookError};
pub use fault::{Cause, Fault, Trouble};
pub use gpu::{GpuHealth, Signal};
pub use recovery::Recovery;
pub use verdict::{Change, Note, Verdict};
pub use xid::{Class, Xid};
