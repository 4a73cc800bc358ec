//! What must stand: balances, usage, findings, parked events, documents.

use super::event::span;
use super::times::{instant, length, micros};
use super::words::Words;
use gpuledger_domain::time::{Instant, Window};
use num_rational::Ratio;
use std::collections::BTreeMap;

/// One thing that must stand; rows are complete, and what is not written must not be there.
#[derive(Clone, Debug)]
pub enum Expect {
    /// What stands in each account of each GPU over a window (all time where none is given).
    Balance {
        /// Over which time.
        over: Option<Window>,
        /// Every row that is not zero.
        rows: Vec<BalanceRow>,
    },
    /// A report of usage.
    Usage {
        /// Over which time.
        over: Option<Window>,
        /// By which weight whole-GPU equivalents count.
        weight: Option<String>,
        /// Words of `--group-by`.
        by: Vec<String>,
        /// Every row.
        rows: Vec<UsageRow>,
    },
    /// Findings of these kinds; of all kinds where none is given.
    Findings {
        /// Kinds looked at.
        of: Vec<String>,
        /// Every finding of these kinds.
        rows: Vec<FindingRow>,
    },
    /// Events kept aside: reason and id (or a word of the detail).
    Parked(Vec<(String, String)>),
    /// The document of a tenant and period.
    Invoice {
        /// Whose.
        tenant: String,
        /// Such as 2026-10.
        period: String,
        /// Its lines and sums.
        rows: Vec<InvoiceRow>,
    },
}

/// What stands in one account of one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceRow {
    /// Which GPU.
    pub gpu: String,
    /// `idle`, `fault`, …, or a tenant.
    pub account: String,
    /// Compute-slice-microseconds.
    pub compute_slice_us: i128,
    /// Memory-slice-microseconds.
    pub memory_slice_us: i128,
}

/// One row of a report; what is not written is not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Values of the group keys, none for `-`.
    pub keys: Vec<Option<String>>,
    /// `held`, in microseconds.
    pub held: Option<i128>,
    /// `billed`, in microseconds.
    pub billed: Option<i128>,
    /// `gpu`, in microseconds of whole GPUs.
    pub gpu: Option<Ratio<i128>>,
    /// `slices`: compute- and memory-slice-microseconds; `slices none` where no unit was placed.
    pub slices: Option<Option<(i128, i128)>>,
    /// `sm`, in microseconds; `sm none` where it was not measured.
    pub sm: Option<Option<i128>>,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingRow {
    /// Which kind.
    pub kind: String,
    /// About what.
    pub subject: String,
    /// Since when, where it is written.
    pub since: Option<Instant>,
    /// Until when: not written, still so, or that instant.
    pub until: Option<Option<Instant>>,
    /// Words that stand in its detail.
    pub names: Vec<String>,
}

/// One row of a document: `line …` or `sum …`, each with members that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvoiceRow {
    /// Whether it is a line, or the document's own members.
    pub line: bool,
    /// Members and values; a path of members is written with dots.
    pub members: BTreeMap<String, String>,
}

/// Kinds that only a section which names them asks for: nearly every story leaves residue.
const RESIDUE: [&str; 7] = [
    "residue_unknown",
    "residue_violation",
    "scrub_missing",
    "scrub_late",
    "scrub_failed",
    "scrub_incomplete",
    "scrub_skipped",
];

/// Whether a section of findings of these kinds (none: of all but residue) asks for findings of `kind`.
pub fn asks_for(of: &[String], kind: &str) -> bool {
    if of.is_empty() { !RESIDUE.contains(&kind) } else { of.iter().any(|one| one == kind) }
}

impl Expect {
    /// Reads the head of a section: `balance 10:00..11:00`, `usage by tenant,sku`, `findings of gap`, `parked`, `invoice acme 2026-10`.
    pub(super) fn head(line: &str, date: &str) -> Result<Self, String> {
        let mut words = Words::new(line, &["weight"]);
        let what = words.next("a section")?;
        let over = |words: &mut Words<'_>| -> Result<Option<Window>, String> {
            if !words.take("over") {
                return Ok(None);
            }
            let (start, end) = span(words.next("a span")?, date)?;
            Window::new(start.at, end.at).map(Some).ok_or_else(|| "the span is empty".to_owned())
        };
        let list = |words: &mut Words<'_>, what: &str| -> Result<Vec<String>, String> {
            Ok(if words.take(what) {
                words.next("a list")?.split(',').map(str::to_owned).collect()
            } else {
                Vec::new()
            })
        };
        let head = match what {
            "balance" => Self::Balance { over: over(&mut words)?, rows: Vec::new() },
            "usage" => {
                let by = list(&mut words, "by")?;
                let by = if by.is_empty() { vec!["tenant".to_owned()] } else { by };
                let weight = words.option("weight").map(str::to_owned);
                Self::Usage { over: over(&mut words)?, weight, by, rows: Vec::new() }
            }
            "findings" => Self::Findings { of: list(&mut words, "of")?, rows: Vec::new() },
            "parked" => Self::Parked(Vec::new()),
            "invoice" => Self::Invoice {
                tenant: words.next("a tenant")?.to_owned(),
                period: words.next("a period")?.to_owned(),
                rows: Vec::new(),
            },
            other => return Err(format!("`{other}` is no section")),
        };
        let _none = words.take("none");
        words.end()?;
        Ok(head)
    }

    /// Reads one row of the section.
    pub(super) fn row(&mut self, line: &str, date: &str) -> Result<(), String> {
        match self {
            Self::Balance { rows, .. } => rows.push(balance_row(line)?),
            Self::Usage { by, rows, .. } => rows.push(usage_row(line, by.len())?),
            Self::Findings { rows, .. } => rows.push(finding_row(line, date)?),
            Self::Parked(rows) => {
                let mut words = Words::new(line, &[]);
                rows.push((words.next("a reason")?.to_owned(), words.next("an event")?.to_owned()));
                words.end()?;
            }
            Self::Invoice { rows, .. } => rows.push(invoice_row(line)?),
        }
        Ok(())
    }
}

/// `G1 acme 7c8m x 00:10:00 + 3c4m x 00:05:00`
fn balance_row(line: &str) -> Result<BalanceRow, String> {
    let mut words = Words::new(line, &[]);
    let (gpu, account) = (words.next("a GPU")?.to_owned(), words.next("an account or tenant")?.to_owned());
    let (compute_slice_us, memory_slice_us) = slice_time(&words.rest().join(" "))?;
    Ok(BalanceRow { gpu, account, compute_slice_us, memory_slice_us })
}

/// `7c8m x 00:10:00 + 3c4m x 00:05:00`
fn slice_time(text: &str) -> Result<(i128, i128), String> {
    let mut sum = (0, 0);
    for term in text.split('+') {
        let wrong = || format!("`{}` is no slice-time, expected such as 7c8m x 00:10:00", term.trim());
        let (slices, time) = term.split_once(" x ").ok_or_else(wrong)?;
        let (compute, memory) =
            slices.trim().strip_suffix('m').and_then(|s| s.split_once('c')).ok_or_else(wrong)?;
        let (compute, memory): (i128, i128) =
            compute.parse().ok().zip(memory.parse().ok()).ok_or_else(wrong)?;
        let time = micros(time.trim())?;
        sum = (sum.0 + compute * time, sum.1 + memory * time);
    }
    Ok(sum)
}

/// `acme held 00:07:00 billed 00:07:00 gpu 00:07:00 slices 7c8m x 00:07:00`
fn usage_row(line: &str, keys: usize) -> Result<UsageRow, String> {
    let mut words = Words::new(line, &[]);
    let mut row = UsageRow { keys: Vec::new(), held: None, billed: None, gpu: None, slices: None, sm: None };
    for _ in 0..keys {
        let key = words.next("a group key")?;
        row.keys.push((key != "-").then(|| key.to_owned()));
    }
    while let Ok(column) = words.next("a column") {
        match column {
            "held" => row.held = Some(micros(words.next("a length")?)?),
            "billed" => row.billed = Some(micros(words.next("a length")?)?),
            "gpu" => row.gpu = Some(length(words.next("a length")?)?),
            "sm" if words.take("none") => row.sm = Some(None),
            "sm" => row.sm = Some(Some(micros(words.next("a length")?)?)),
            "slices" if words.take("none") => row.slices = Some(None),
            "slices" => row.slices = Some(Some(slice_time(&words.rest().join(" "))?)),
            other => {
                return Err(format!(
                    "`{other}` is no column, expected held, billed, gpu, sm or slices (last)"
                ));
            }
        }
    }
    Ok(row)
}

/// `contested b 10:05..10:10 names a`: `10:05..` is still so; without a span the time is not looked at.
fn finding_row(line: &str, date: &str) -> Result<FindingRow, String> {
    let (told, names) = line.split_once(" names ").unwrap_or((line, ""));
    let mut words = Words::new(told, &[]);
    let kind = words.next("a kind")?.to_owned();
    let mut rest = words.rest();
    let times = rest.last().and_then(|word| word.split_once(".."));
    let mut row = FindingRow {
        kind,
        subject: String::new(),
        since: None,
        until: None,
        names: names.split_whitespace().map(str::to_owned).collect(),
    };
    if let Some((since, until)) = times {
        row.since = Some(instant(since, date)?.at);
        row.until = Some(if until.is_empty() { None } else { Some(instant(until, date)?.at) });
        rest.pop();
    }
    row.subject = rest.join(" ");
    if row.subject.is_empty() { Err("a finding has a subject".to_owned()) } else { Ok(row) }
}

/// `line sku=h100-80gb-hbm3 quantity=3600 amount=2.40`, `sum subtotal=2.40 total=2.86`
fn invoice_row(line: &str) -> Result<InvoiceRow, String> {
    let mut words = line.split_whitespace();
    let line = match words.next() {
        Some("line") => true,
        Some("sum") => false,
        _ => return Err("expected `line` or `sum`".to_owned()),
    };
    let members = words.map(|word| {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| format!("`{word}` is no member, expected such as amount=2.40"))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    Ok(InvoiceRow { line, members: members.collect::<Result<_, String>>()? })
}
