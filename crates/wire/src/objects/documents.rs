//! Several documents in one text: cut, read, and their faults named by file, line and field.

use super::{Kind, Object};
use serde::Deserialize;
use serde_saphyr::Options;
use std::fmt;

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFault {
    /// Name of the file as it was given.
    pub file: String,
    /// Line in the file, counted from 1.
    pub line: u64,
    /// Path of the member, such as `prices[0].price`; empty where the text as a whole cannot be read.
    pub field: String,
    /// What stands there and what would be right.
    pub problem: String,
}

impl fmt::Display for ObjectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ObjectFault {}

/// Reads every object of a text, in its order.
///
/// # Errors
/// All faults of all documents, so that they can be mended at once.
pub fn parse_documents(text: &str, file_name: &str) -> Result<Vec<Object>, Vec<ObjectFault>> {
    let (mut objects, mut faults) = (Vec::new(), Vec::new());
    for document in split(text, file_name) {
        match document.object() {
            Ok(Some(object)) => objects.push(object),
            Ok(None) => {}
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(objects) } else { Err(faults) }
}

/// One document of a file.
pub(super) struct Document<'a> {
    file: &'a str,
    /// Lines of the file before it.
    offset: u64,
    text: String,
}

/// Cuts at lines that begin with `---`, which YAML reads as a document's begin wherever they stand.
fn split<'a>(text: &str, file: &'a str) -> Vec<Document<'a>> {
    let mut documents = vec![Document { file, offset: 0, text: String::new() }];
    for (number, line) in (0..).zip(text.lines()) {
        let marker =
            line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r']));
        if let Some(rest) = marker {
            documents.push(Document { file, offset: number, text: format!("{rest}\n") });
        } else if let Some(last) = documents.last_mut() {
            last.text.push_str(line);
            last.text.push('\n');
        }
    }
    documents
}

#[derive(Deserialize)]
struct OnlyKind {
    kind: Option<String>,
}

impl Document<'_> {
    pub(super) fn fault(&self, field: &str, problem: impl fmt::Display) -> ObjectFault {
        let blank = self.text.lines().take_while(|line| is_blank(line)).count();
        let line = self.offset + u64::try_from(blank).unwrap_or_default() + 1;
        ObjectFault {
            file: self.file.to_owned(),
            line,
            field: field.to_owned(),
            problem: problem.to_string(),
        }
    }

    fn object(&self) -> Result<Option<Object>, ObjectFault> {
        if self.text.lines().all(is_blank) {
            return Ok(None);
        }
        let only: OnlyKind = serde_saphyr::from_str_with_options(&self.text, options())
            .map_err(|error| self.broken("", &error))?;
        match only.kind {
            Some(kind) => Object::from_document(&kind, self).map(Some),
            None => {
                Err(self
                    .fault("kind", format_args!("is missing, expected one of {}", super::KINDS.join(", "))))
            }
        }
    }

    pub(super) fn read<T: Kind>(&self) -> Result<T, ObjectFault> {
        let mut path = String::new();
        let object: T =
            serde_saphyr::with_deserializer_from_str_with_options(&self.text, options(), |deserializer| {
                serde_path_to_error::deserialize(deserializer).map_err(|error| {
                    path = error.path().to_string();
                    error.into_inner()
                })
            })
            .map_err(|error| self.broken(if path == "." { "" } else { &path }, &error))?;
        object.check().map_err(|problem| self.fault(&problem.member, problem.problem))?;
        Ok(object)
    }

    fn broken(&self, field: &str, error: &serde_saphyr::Error) -> ObjectFault {
        let error = error.without_snippet();
        let message = error.to_string();
        // The reader appends its own line, counted within the document.
        let problem = message
            .rfind(" at line ")
            .or_else(|| message.find(": line "))
            .map_or(&*message, |end| &message[..end]);
        match error.location() {
            Some(place) => ObjectFault {
                file: self.file.to_owned(),
                line: self.offset + place.line(),
                field: field.to_owned(),
                problem: problem.to_owned(),
            },
            None => self.fault(field, problem),
        }
    }
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line == "..."
}

/// Defaults of the reader, which bound size and aliases and refuse a key that stands twice.
fn options() -> Options {
    let mut options = Options::default();
    options.with_snippet = false;
    options
}
