//! NVML as the collector wants it: safe calls in, plain values out. Nothing outside this package knows the C library.
//!
//! Every reading is a [`Reading`]: a value, or the reason why there is none. `0`, not measurable, unknown and a gap stay apart from here on
//! (M-8). Binary floating point ends here: shares leave as [`Ppm`].

mod absent;
mod api;
mod values;

pub use absent::{Absent, Reading};
pub use api::{Clock, Driver, Gpu};
pub use values::{
    AccountingCounters, AccountingStats, DeviceEvent, EventKind, GpmMean, Identity, Memory, MigInstance,
    MigMode, Placement, Ppm, ProcessKind, ProcessRow, Scope, UtilizationRow, UtilizationSample, Versions,
};
