//! Query parameters: read strictly, all faults at once.

use crate::problem::{FieldProblem, Problem};
use gpuledger_domain::time::{Instant, Window};
use gpuledger_wire::time::parse_time;

/// Longest name that is looked for.
const MAX_NAME: usize = 512;

/// Collects what is wrong with the parameters of one request.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<FieldProblem>);

impl Faults {
    /// Notes a fault.
    pub(crate) fn add(&mut self, parameter: &str, detail: impl ToString) {
        let parameter = Some(parameter.to_owned());
        self.0.push(FieldProblem { parameter, field: None, detail: detail.to_string() });
    }

    /// An instant, where one is given.
    pub(crate) fn time(&mut self, parameter: &str, text: Option<&str>) -> Option<Instant> {
        match parse_time(text?) {
            Ok(at) => Some(at),
            Err(why) => {
                self.add(parameter, why);
                None
            }
        }
    }

    /// An instant that must be given.
    pub(crate) fn needed_time(&mut self, parameter: &str, text: Option<&str>) -> Option<Instant> {
        if text.is_none() {
            self.add(parameter, "is missing, expected an RFC 3339 time such as 2026-10-01T00:00:00Z");
        }
        self.time(parameter, text)
    }

    /// A window of time, where both ends are there.
    pub(crate) fn window(&mut self, from: Option<Instant>, to: Option<Instant>) -> Option<Window> {
        let window = Window::new(from?, to?);
        if window.is_none() {
            self.add("to", "is not after `from`");
        }
        window
    }

    /// The size of a page.
    pub(crate) fn limit(&mut self, text: Option<&str>, default: u32, most: u32) -> usize {
        let limit = match text {
            None => default,
            Some(text) => match text.parse::<u32>() {
                Ok(limit) if (1..=most).contains(&limit) => limit,
                _ => {
                    self.add("limit", format_args!("expected a whole number from 1 to {most}"));
                    default
                }
            },
        };
        usize::try_from(limit).unwrap_or(usize::MAX)
    }

    /// A name that rows may carry.
    pub(crate) fn name<'a>(&mut self, parameter: &str, text: Option<&'a str>) -> Option<&'a str> {
        let text = text?;
        if text.is_empty() || text.chars().count() > MAX_NAME || text.chars().any(char::is_control) {
            self.add(
                parameter,
                format_args!("expected 1 to {MAX_NAME} characters, none of them a control character"),
            );
            return None;
        }
        Some(text)
    }

    /// Checks the name of a tenant.
    pub(crate) fn tenant(&mut self, text: Option<&str>) {
        if self.name("tenant", text) == Some("*") {
            self.add("tenant", "expected one tenant's id; leave it out for all");
        }
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// 400 with all faults.
    pub(crate) fn done(self) -> Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(Problem::parameters(self.0)) }
    }
}

/// Rows as asked for, and one more: whether there is a next page.
pub(crate) fn one_more(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}
