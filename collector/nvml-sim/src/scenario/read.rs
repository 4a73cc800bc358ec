//! A scenario from its text; faults name file, line and field.

use super::{Scenario, Step};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{Options, Spanned};
use std::fmt;
use std::path::Path;

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// Name of the file.
    pub file: String,
    /// Line, from 1; 0 where it is not known.
    pub line: u64,
    /// Path of the member, such as `timeline[3].start.pid`; empty where the text as a whole cannot be read.
    pub field: String,
    /// What stands there and what would be right.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.problem)
    }
}

/// Reads a scenario from a file.
///
/// # Errors
/// The file cannot be read, or its text is no scenario.
pub fn read_file(path: &Path) -> Result<Scenario, Fault> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Fault {
        file: file.clone(),
        line: 0,
        field: String::new(),
        problem: format!("cannot be read: {error}"),
    })?;
    read(&text, &file)
}

/// Reads a scenario from a text; `file` is its name for faults.
///
/// # Errors
/// The text is no YAML, or a member is missing, unknown or out of its bounds.
pub fn read(text: &str, file: &str) -> Result<Scenario, Fault> {
    let mut path = String::new();
    serde_saphyr::with_deserializer_from_str_with_options(text, Options::default(), |deserializer| {
        serde_path_to_error::deserialize(deserializer).map_err(|error| {
            // Where steps are read with their lines, the path passes a member that the file does not have.
            path = error.path().to_string().replace("].value", "]");
            error.into_inner()
        })
    })
    .map_err(|error| fault(&error, file, if path == "." { "" } else { &path }))
}

fn fault(error: &serde_saphyr::Error, file: &str, field: &str) -> Fault {
    let error = error.without_snippet();
    let message = error.to_string();
    // The reader appends its own line.
    let problem = message
        .rfind(" at line ")
        .or_else(|| message.find(": line "))
        .map_or(&*message, |end| &message[..end]);
    Fault {
        file: file.to_owned(),
        line: error.location().map_or(0, |place| place.line()),
        field: field.to_owned(),
        problem: problem.to_owned(),
    }
}

/// Steps with the lines they stand in.
pub(super) fn steps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Step>, D::Error> {
    let steps = Option::<Vec<Spanned<Step>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(steps.into_iter().map(|step| Step { line: step.referenced.line(), ..step.value }).collect())
}
