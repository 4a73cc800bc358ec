//! Traces of a served language model (Azure LLM inference trace): one row a request, one `work.reported` a request.
//!
//! A row has an arrival and two counts of tokens; no tenant, no duration, no name of its own. So the file is the tenant, the work takes no time,
//! and the identity is file and line: two requests that arrive in the same microsecond are two. Arrivals are in ticks of 100 ns and are cut to the
//! microsecond, never rounded up, so that none moves into the next minute.

use crate::report::{Reason, Reject, Report, shown};
use crate::run::{Out, RowError, RowFormat, run};
use crate::table::{Columns, Row, fields, name_of, wrong_count};
use crate::{ImportError, Options, Sink, clock, emit};
use chrono::NaiveDateTime;
use gpuledger_domain::time::Instant;
use std::io::BufRead;
use std::path::Path;

const NEEDED: [&str; 3] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];
/// What the published files begin with; what follows is the service, and becomes the tenant.
const PREFIX: &str = "AzureLLMInferenceTrace_";
/// The pool where none is given.
const POOL: &str = "azure-llm";
/// More tokens than a request can have; a sum of as many as there are rows still fits.
const MOST_TOKENS: u64 = 1_000_000_000;

/// Reads a trace and emits the work of each request. `name` is the file's name: for messages, for identities, and for the tenant where the
/// options give none.
///
/// # Errors
/// The header is not that of a trace, the file's name is no name, or reading or writing failed.
pub fn azure_llm(
    input: impl BufRead,
    name: &str,
    options: &Options,
    sink: &mut Sink<'_>,
) -> Result<Report, ImportError> {
    let mut trace = Trace::new(name, options)?;
    run(&mut trace, input, name, options, sink)
}

struct Trace<'o> {
    options: &'o Options,
    source: String,
    pool: String,
    tenant: String,
    columns: Option<Columns>,
}

impl<'o> Trace<'o> {
    fn new(file: &str, options: &'o Options) -> Result<Self, ImportError> {
        let option = |what: &str, reject: Reject| ImportError::Option {
            file: file.to_owned(),
            message: format!("{what}: {}", reject.message),
        };
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        name_of("file", stem).map_err(|reject| option("the file's name", reject))?;
        let service = stem.strip_prefix(PREFIX).filter(|rest| !rest.is_empty()).unwrap_or(stem);
        let tenant = options.tenant.as_deref().unwrap_or(service);
        let tenant = name_of("tenant", tenant).map_err(|reject| option("tenant", reject))?.to_owned();
        let pool = options.pool.as_deref().unwrap_or(POOL);
        let pool = name_of("pool", pool).map_err(|reject| option("pool", reject))?.to_owned();
        let source = format!("/importers/azure-llm/{}", emit::segment(stem));
        Ok(Self { options, source, pool, tenant, columns: None })
    }

    fn request(&self, row: Row<'_>, out: &mut Out<'_, '_>) -> Result<(), RowError> {
        let at = self.arrival(row, out)?;
        let (input, output) =
            (row.whole("ContextTokens", MOST_TOKENS)?, row.whole("GeneratedTokens", MOST_TOKENS)?);
        let work = emit::Work {
            source: &self.source,
            id: &format!("line-{}", out.line()),
            at,
            pool: &self.pool,
            tenant: &self.tenant,
            input_tokens: input,
            output_tokens: output,
        };
        out.event(emit::worked(&work))
    }

    /// The arrival, cut to the microsecond.
    fn arrival(&self, row: Row<'_>, out: &mut Out<'_, '_>) -> Result<Instant, Reject> {
        let text = row.need("TIMESTAMP")?;
        let read = match NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f") {
            Ok(local) => clock::in_zone(local, text, self.options.zone),
            // Later traces carry an offset.
            Err(_) => clock::read(&text.replacen(' ', "T", 1), self.options.zone),
        };
        match read {
            Ok(clock::Read::One(at)) => Ok(at),
            Ok(clock::Read::Two(earlier, _)) => {
                out.note(Reject::ordinary(Reason::TwiceLocalTime));
                Ok(earlier)
            }
            Err(clock::ClockError::Text(_)) => Err(Reject::value(
                "TIMESTAMP",
                format!("{} is not such as `2023-11-16 18:17:03.9799600`", shown(text)),
            )),
            Err(error @ clock::ClockError::Skipped { .. }) => {
                Err(Reject::new(Reason::NoSuchTime, Some("TIMESTAMP"), error.to_string()))
            }
            Err(error) => Err(Reject::value("TIMESTAMP", error.to_string())),
        }
    }
}

impl RowFormat for Trace<'_> {
    fn header(&mut self, first: &str) -> Result<bool, String> {
        let names = fields(first).ok_or("the header cannot be read as CSV")?;
        let columns = Columns::new(names.iter().map(|n| n.trim().to_owned()).collect())?;
        let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !columns.has(name)).collect();
        if !missing.is_empty() {
            let wanted = NEEDED.join(",");
            return Err(format!("the header lacks {}; a trace begins with {wanted}", missing.join(", ")));
        }
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
        self.request(columns.row(&fields), out)
    }

    fn end(&mut self, _: &mut Report, _: &str) {}
}

#[cfg(test)]
mod tests;
