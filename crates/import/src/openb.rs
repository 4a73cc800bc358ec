//! The Alibaba 2023 GPU trace (`openb_pod_list_*.csv`): one row a pod, one allocation a pod that was placed and asked for GPUs.
//!
//! The hold is `[scheduled_time, deletion_time)`. The phase is the state in which the pod was last seen, so that a `Running`
//! pod is released at its deletion too. A failed pod held its GPU like any other: who pays for it is a matter of prices.

use crate::emit::{self, Grant, Unit};
use crate::mapping::{self, owner_or_column};
use crate::report::{Reason, Reject, Report};
use crate::run::{Out, RowError, RowFormat, run};
use crate::table::{Columns, Row, fields, labels, name_of, wrong_count};
use crate::{ImportError, Options, Sink, clock};
use chrono::Duration;
use gpuledger_domain::share::parse_share;
use gpuledger_domain::time::Instant;
use std::collections::BTreeSet;
use std::io::BufRead;

const SOURCE: &str = "/importers/openb";
/// What [`TenantRule`](crate::TenantRule) calls this format.
const MAPPING_SOURCE: &str = "openb";
const NEEDED: [&str; 11] = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
];
/// Columns that become labels under their own names; `gpu_spec` and `phase` come beside them.
const LABELS: [&str; 5] = ["cpu_milli", "gpu_milli", "memory_mib", "num_gpu", "qos"];
/// Milli-GPU of a whole GPU.
const WHOLE: u64 = 1000;
/// More GPUs than one pod can have; the largest server holds 16.
const MOST_GPUS: u64 = 1024;

/// Reads the trace's pods and emits their grants and releases. `name` is the file's name for messages.
///
/// # Errors
/// The header is not that of the trace, an option names a column that is not there, or reading or writing failed.
pub fn openb(
    input: impl BufRead,
    name: &str,
    options: &Options,
    sink: &mut Sink<'_>,
) -> Result<Report, ImportError> {
    run(&mut Openb { options, columns: None }, input, name, options, sink)
}

struct Openb<'o> {
    options: &'o Options,
    columns: Option<Columns>,
}

impl RowFormat for Openb<'_> {
    fn header(&mut self, first: &str) -> Result<bool, String> {
        let names = fields(first).ok_or("the header cannot be read as CSV")?;
        let columns = Columns::new(names.iter().map(|n| n.trim().to_owned()).collect())?;
        let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !columns.has(name)).collect();
        if !missing.is_empty() {
            let wanted = NEEDED.join(",");
            return Err(format!(
                "the header lacks {}; a pod list of the trace begins with {wanted}",
                missing.join(", ")
            ));
        }
        for name in [&self.options.tenant_column, &self.options.project_column].into_iter().flatten() {
            if !columns.has(name) {
                return Err(format!("there is no column {name}; the file has {}", columns.listed()));
            }
        }
        mapping::check(&self.options.tenants, MAPPING_SOURCE, &columns)?;
        self.columns = Some(columns);
        Ok(true)
    }

    fn row(&mut self, line: &str, out: &mut Out<'_, '_>) -> Result<(), RowError> {
        let Some(columns) = &self.columns else { return Ok(()) };
        let fields =
            fields(line).ok_or_else(|| Reject::new(Reason::BadLine, None, "cannot be read as CSV"))?;
        if fields.len() != columns.len() {
            return Err(wrong_count(fields.len(), columns.len()).into());
        }
        self.pod(columns.row(&fields), out)
    }

    fn end(&mut self, _: &mut Report, _: &str) {}
}

impl Openb<'_> {
    fn pod(&self, row: Row<'_>, out: &mut Out<'_, '_>) -> Result<(), RowError> {
        let allocation = name_of("name", row.need("name")?)?;
        let count = row.whole("num_gpu", MOST_GPUS)?;
        let milli = row.whole("gpu_milli", WHOLE)?;
        if row.get("scheduled_time").is_none() {
            return Err(Reject::ordinary(Reason::NeverScheduled).into());
        }
        if count == 0 {
            return Err(Reject::ordinary(Reason::NoGpu).into());
        }
        let (start, end) = (self.instant(row, "scheduled_time")?, self.instant(row, "deletion_time")?);
        if end < start {
            let message = format!("the pod ends at {end}, before it starts at {start}");
            return Err(Reject::new(Reason::Contradiction, Some("deletion_time"), message).into());
        }
        let unit = self.unit(row, count, milli)?;
        let owner = owner_or_column(self.options, MAPPING_SOURCE, row, start, || shape(row))?;
        let phase = row.get("pod_phase").unwrap_or("");
        let mut labels = labels(row, &LABELS);
        labels.insert("gpu_spec", row.get("gpu_spec").unwrap_or("ANY").to_owned());
        if !phase.is_empty() {
            labels.insert("phase", phase.to_owned());
        }
        out.event(emit::granted(&Grant {
            source: SOURCE,
            allocation,
            at: start,
            tenant: &owner.tenant,
            project: owner.project.as_deref(),
            units: &[unit],
            slurm_job: None,
            labels,
        }))?;
        let reason = match phase {
            "Succeeded" => Some("completed"),
            "Failed" => Some("failed"),
            _ => None,
        };
        out.event(emit::released(SOURCE, allocation, end, reason))
    }

    fn instant(&self, row: Row<'_>, name: &str) -> Result<Instant, Reject> {
        // More seconds than 10,000 years have; the year is checked below.
        let seconds = row.whole(name, 400_000_000_000)?;
        let after = i64::try_from(seconds).ok().and_then(Duration::try_seconds);
        let at = after.and_then(|d| self.options.trace_start.checked_add_signed(d)).and_then(clock::instant);
        at.ok_or_else(|| {
            Reject::value(
                name,
                format!("{seconds} seconds after the start of the trace is past the year 9999"),
            )
        })
    }

    fn unit(&self, row: Row<'_>, count: u64, milli: u64) -> Result<Unit, Reject> {
        if milli == 0 || (milli < WHOLE && count != 1) {
            let message = format!(
                "{milli} of 1000 with num_gpu {count}; expected 1 to 1000, and 1000 where num_gpu is above 1"
            );
            return Err(Reject::new(Reason::Contradiction, Some("gpu_milli"), message));
        }
        let share = match milli {
            WHOLE => None,
            part => {
                let share = parse_share(&format!("{part}/{WHOLE}"));
                Some(share.map_err(|e| Reject::value("gpu_milli", e.to_string()))?.to_string())
            }
        };
        let count = u32::try_from(count).map_err(|_| Reject::value("num_gpu", "too many GPUs"))?;
        Ok(Unit { sku: self.sku(row)?, count, share })
    }

    /// A single model in lower case, or the product a rule knows it as; `gpu` where any or several would do.
    fn sku(&self, row: Row<'_>) -> Result<String, Reject> {
        let models: BTreeSet<&str> =
            row.get("gpu_spec").unwrap_or("").split('|').filter(|m| !m.is_empty()).collect();
        let (Some(model), 1) = (models.first(), models.len()) else { return Ok("gpu".to_owned()) };
        let model = name_of("gpu_spec", model)?;
        Ok(mapping::sku_of_label(&self.options.skus, model).unwrap_or_else(|| model.to_lowercase()))
    }
}

/// The request shape: the tenant key we make up, since the trace has none.
fn shape(row: Row<'_>) -> Result<String, Reject> {
    let parts: Result<Vec<String>, Reject> = ["cpu_milli", "memory_mib", "num_gpu", "gpu_milli"]
        .into_iter()
        .map(|name| row.whole(name, u64::MAX).map(|n| n.to_string()))
        .collect();
    parts.map(|p| p.join("-"))
}

#[cfg(test)]
mod tests;
