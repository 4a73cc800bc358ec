//! Public formats to events: Slurm accounting dumps, the Alibaba 2023 GPU trace, traces of a served language model, `nvidia-smi -q -x` inventories.
//!
//! Every importer streams: it holds one row (or one node's inventory) at a time, hands each event to a sink as it goes, and
//! returns a [`Report`] of what it read, what it emitted, and what it could not map and why. A bad row never stops the
//! rows behind it; only a file that is something else altogether is an [`ImportError`].
//!
//! Event identities are functions of the row alone, so that importing a file twice, or files that overlap, counts once
//! (rules I-1 and A-5); a request of a trace, which has no name, is known by file and line. Sources are `/importers/openb`,
//! `/importers/sacct/<cluster>`, `/importers/azure-llm/<file>` and `/importers/nvidia-smi`.

mod azure_llm;
mod clock;
mod emit;
mod error;
mod lines;
mod mapping;
mod nvidia_smi;
mod openb;
mod options;
mod report;
mod run;
mod sacct;
#[cfg(test)]
mod shared_data;
mod table;
#[cfg(test)]
mod testing;

pub use azure_llm::azure_llm;
pub use error::ImportError;
pub use mapping::{SkuRule, TenantRule};
pub use nvidia_smi::nvidia_smi;
pub use openb::openb;
pub use options::{Options, Progress};
pub use report::{Reason, Report, Unmapped};
pub use sacct::sacct;

/// Where events go: called once per event, in the order of the file. An error ends the import.
pub type Sink<'a> = dyn FnMut(serde_json::Value) -> std::io::Result<()> + 'a;
