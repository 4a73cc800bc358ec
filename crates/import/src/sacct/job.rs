//! One row of a dump.

use super::span::{self, Span};
use super::state::{Hold, hold, parts};
use super::{MAPPING_SOURCE, tres};
use crate::Options;
use crate::emit::{self, Grant, Unit};
use crate::mapping::{column_tenant, owner_or_column};
use crate::report::{Reason, Reject, shown};
use crate::run::{Out, RowError};
use crate::table::{Row, labels, name_of};
use gpuledger_domain::time::SECOND_US;

/// Columns that become labels under their own names; `job`, `state` and more come beside them.
const LABELS: [&str; 11] = [
    "account",
    "cluster",
    "exitcode",
    "group",
    "jobname",
    "nodelist",
    "partition",
    "qos",
    "reservation",
    "user",
    "wckey",
];

/// Emits a job's grant and release, or says why it has none.
pub(super) fn job(options: &Options, row: Row<'_>, out: &mut Out<'_, '_>) -> Result<(), RowError> {
    let id = id(row)?;
    if id.contains('.') {
        return Err(Reject::ordinary(Reason::JobStep).into());
    }
    let (word, _) = parts(row.need("state")?);
    let state = hold(word);
    let list = row.get("alloctres");
    if state == Hold::Never || span::is_unknown(row.get("start")) {
        return Err(Reject::ordinary(Reason::NeverStarted).into());
    }
    let units = list.map(|list| tres::units(list, &options.skus)).transpose()?;
    if id.contains('[') {
        return Err(range(units.as_deref()).into());
    }
    if units.as_ref().is_some_and(Vec::is_empty) {
        return Err(Reject::ordinary(Reason::NoGpu).into());
    }
    if state == Hold::Open && !options.open_jobs {
        return Err(Reject::ordinary(Reason::StillRunning).into());
    }
    let span = match state {
        Hold::Open => span::open(row, options.zone)?,
        Hold::Never | Hold::Over(_) | Hold::Unknown => span::over(row, options.zone)?,
    };
    let units = units.ok_or_else(|| silent(&span))?;
    let job = Job { options, row, id, units, span, state };
    job.emit(out)
}

fn id(row: Row<'_>) -> Result<&str, Reject> {
    let (field, id) = match row.get("jobid") {
        Some(id) => ("jobid", id),
        None => ("jobidraw", row.need("jobidraw")?),
    };
    if !id.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Reject::value(
            field,
            format!("{} is no job id; expected such as 4711, 4711_3, 4711+1", shown(id)),
        ));
    }
    name_of(field, id)
}

/// A range of array tasks: they wait together, and none of them holds anything.
fn range(units: Option<&[Unit]>) -> Reject {
    if units.is_some_and(|u| !u.is_empty()) {
        let message = "a range of array tasks holds GPUs; give each task its row (sacct --array)";
        return Reject::new(Reason::Contradiction, Some("jobid"), message);
    }
    Reject::ordinary(Reason::NeverStarted)
}

/// No TRES at all: a job cancelled before it started has none; of one that ran nothing is known.
fn silent(span: &Span) -> Reject {
    if span.end == Some(span.start) {
        return Reject::ordinary(Reason::NeverStarted);
    }
    Reject::new(
        Reason::TresUnknown,
        Some("alloctres"),
        "is empty for a job that ran: what it held is unknown",
    )
}

struct Job<'a> {
    options: &'a Options,
    row: Row<'a>,
    id: &'a str,
    units: Vec<Unit>,
    span: Span,
    state: Hold,
}

impl Job<'_> {
    fn emit(&self, out: &mut Out<'_, '_>) -> Result<(), RowError> {
        let cluster = self.row.get("cluster").or(self.options.cluster.as_deref()).unwrap_or("slurm");
        let cluster = name_of("cluster", cluster)?;
        let source = format!("/importers/sacct/{}", emit::segment(cluster));
        let start_seconds = self.span.start.as_micros() / SECOND_US;
        let allocation = format!("{cluster}/{}@{start_seconds}", self.id);
        name_of("jobid", &allocation)?;
        let row = self.row;
        let owner = owner_or_column(self.options, MAPPING_SOURCE, row, self.span.start, || {
            column_tenant(row, "account")
        })?;
        self.note(out);
        out.event(emit::granted(&Grant {
            source: &source,
            allocation: &allocation,
            at: self.span.start,
            tenant: &owner.tenant,
            project: owner.project.as_deref(),
            units: &self.units,
            slurm_job: self.raw_id(),
            labels: self.labels(),
        }))?;
        let Some(end) = self.span.end else { return Ok(()) };
        let reason = match self.state {
            Hold::Over(reason) => Some(reason),
            Hold::Never | Hold::Open | Hold::Unknown => None,
        };
        out.event(emit::released(&source, &allocation, end, reason))
    }

    /// The number under which the node knows the job: tasks and components have one of their own.
    fn raw_id(&self) -> Option<&str> {
        let plain = |id: &&str| id.bytes().all(|b| b.is_ascii_digit());
        self.row.get("jobidraw").filter(plain).or(Some(self.id).filter(plain))
    }

    fn labels(&self) -> std::collections::BTreeMap<&str, String> {
        let mut labels = labels(self.row, &LABELS);
        labels.insert("job", self.id.to_owned());
        let (word, who) = parts(self.row.get("state").unwrap_or(""));
        labels.insert("state", word.to_owned());
        if let Some(who) = who {
            labels.insert("cancelled_by", who.to_owned());
        }
        if self.span.suspended > 0 {
            labels.insert("suspended_seconds", self.span.suspended.to_string());
        }
        labels
    }

    fn note(&self, out: &mut Out<'_, '_>) {
        if self.span.chosen {
            out.note(Reject::ordinary(Reason::TwiceLocalTime));
        }
        if self.span.suspended > 0 {
            out.note(Reject::ordinary(Reason::Suspended));
        }
        if self.state == Hold::Unknown {
            let state = shown(self.row.get("state").unwrap_or(""));
            let message =
                format!("{state} is no state Slurm documents; the job counts from its start to its end");
            out.note(Reject::new(Reason::StateUnknown, Some("state"), message));
        }
    }
}
