//! NVML as the collector wants it: safe calls in, plain values out. Nothing outside this package knows the C library.
//!
//! Every reading is a [`Reading`]: a value, or the reason why there is none. `0`, not measurable, unknown and a gap stay apart from here on
//! (M-8). Binary floating point ends here: shares leave as [`Ppm`].

mod absent;
mod accounting;
mod api;
mod calls;
mod code;
mod device;
mod driver_version;
mod events;
mod gpm;
mod identity;
mod library;
mod list;
mod load_error;
mod memory;
mod mig;
mod nvml;
mod process;
mod sensors;
mod share;
mod utilization;
mod value;
mod values;
mod versions;

pub use absent::{Absent, Reading};
pub use api::{Clock, Driver, Gpu};
pub use load_error::LoadError;
pub use nvml::Nvml;
pub use values::{
    AccountingCounters, AccountingStats, DeviceEvent, EventKind, GpmMean, Identity, Memory, MigInstance,
    MigMode, Placement, Ppm, ProcessKind, ProcessRow, Scope, UtilizationRow, UtilizationSample, Versions,
};
