//! Slurm accounting dumps (`sacct --parsable2`): one allocation a job that held GPUs, from its own `[start, end)`.
//!
//! - **Amount**: `AllocTRES`, never `ReqTRES`; see [`tres`].
//! - **Identity**: `<cluster>/<job id>@<start>`. Job ids come back when Slurm's counter wraps, and a requeued job runs again
//!   under its own id; both differ in their start. Identical rows make identical events, which count once (I-1).
//! - **Suspends**: Slurm's `elapsed` leaves suspended time out, but a suspended job keeps its GPUs from everyone else and the dump
//!   does not say when it was suspended. The hold is `[start, end)`; the report counts such jobs, and the label `suspended_seconds` tells how long.
//! - **Arrays and heterogeneous jobs**: tasks `N_3` and components `N+1` are jobs with GPUs of their own. `N_[1-3]` are tasks that never started.
//! - **Steps** (`N.batch`, `N.0`) use their job's GPUs and are left out.

mod columns;
mod job;
mod span;
mod state;
mod tres;

use crate::report::{Reason, Reject, Report, Unmapped};
use crate::run::{Out, RowError, RowFormat, run};
use crate::table::{Row, wrong_count};
use crate::{ImportError, Options, Sink, mapping};
use columns::Layout;
use std::io::BufRead;

/// What [`TenantRule`](crate::TenantRule) calls this format.
const MAPPING_SOURCE: &str = "slurm";

/// Reads a dump and emits the grants and releases of its jobs with GPUs. The first line may name the columns (in any order);
/// else they are those of [`Options::columns`]. `name` is the file's name for messages.
///
/// # Errors
/// Needed columns are missing, an option names a column that is not there, or reading or writing failed.
pub fn sacct(
    input: impl BufRead,
    name: &str,
    options: &Options,
    sink: &mut Sink<'_>,
) -> Result<Report, ImportError> {
    run(
        &mut Sacct { options, layout: None, previous: String::new(), names_gpus: false },
        input,
        name,
        options,
        sink,
    )
}

struct Sacct<'o> {
    options: &'o Options,
    layout: Option<Layout>,
    previous: String,
    /// Whether any TRES so far names a GPU: whether this Slurm accounts for GPUs at all.
    names_gpus: bool,
}

impl RowFormat for Sacct<'_> {
    fn header(&mut self, first: &str) -> Result<bool, String> {
        let layout = columns::of_first_line(first, self.options)?;
        mapping::check(&self.options.tenants, MAPPING_SOURCE, &layout.columns)?;
        let has_header = layout.has_header;
        self.layout = Some(layout);
        Ok(has_header)
    }

    fn row(&mut self, line: &str, out: &mut Out<'_, '_>) -> Result<(), RowError> {
        let Some(layout) = &self.layout else { return Ok(()) };
        if line == self.previous {
            return Err(Reject::ordinary(Reason::Repeated).into());
        }
        line.clone_into(&mut self.previous);
        let fields = layout.fields(line);
        if fields.len() != layout.columns.len() {
            return Err(wrong_count(fields.len(), layout.columns.len()).into());
        }
        let row = layout.columns.row(&fields);
        self.names_gpus |= names_gpus(row);
        job::job(self.options, row, out)
    }

    fn end(&mut self, report: &mut Report, file: &str) {
        let jobs = report.count(Reason::NoGpu);
        if self.names_gpus || jobs == 0 {
            return;
        }
        report.counts.remove(&Reason::NoGpu);
        report.counts.insert(Reason::GpuUnknown, jobs);
        let message = format!(
            "no TRES of the dump ever names gres/gpu, so it is unknown whether its {jobs} jobs held GPUs; \
             Slurm records them where AccountingStorageTRES lists gres/gpu"
        );
        let field = Some("alloctres".to_owned());
        let case = Unmapped { file: file.to_owned(), line: 1, field, reason: Reason::GpuUnknown, message };
        report.list(self.options.keep_unmapped.max(1), case);
    }
}

fn names_gpus(row: Row<'_>) -> bool {
    ["alloctres", "reqtres"].into_iter().any(|name| row.get(name).is_some_and(tres::names_gpus))
}

#[cfg(test)]
mod tests;
