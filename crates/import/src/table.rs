//! Rows by column name.

use crate::report::{Reason, Reject, shown};
use std::collections::BTreeMap;

/// The columns of a file.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
}

impl Columns {
    /// Columns of these names, in order.
    ///
    /// # Errors
    /// Names a column that is there twice.
    pub(crate) fn new(names: Vec<String>) -> Result<Self, String> {
        let mut places = BTreeMap::new();
        for (place, name) in names.iter().enumerate() {
            if places.insert(name.clone(), place).is_some() {
                return Err(format!("column {name} is there twice"));
            }
        }
        Ok(Self { names, places })
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// All names, for messages.
    pub(crate) fn listed(&self) -> String {
        self.names.join(", ")
    }

    /// This row under these columns. Fields beyond the columns are not seen.
    pub(crate) const fn row<'a>(&'a self, fields: &'a [String]) -> Row<'a> {
        Row { columns: self, fields }
    }
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    columns: &'a Columns,
    fields: &'a [String],
}

impl<'a> Row<'a> {
    /// The field of this column; none where the column or its text is missing.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let text = self.fields.get(self.columns.place(name)?)?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// The field of this column, which the row needs.
    pub(crate) fn need(&self, name: &str) -> Result<&'a str, Reject> {
        self.get(name).ok_or_else(|| Reject::value(name, "is empty"))
    }

    /// The whole number in this column, at most `most`.
    pub(crate) fn whole(&self, name: &str, most: u64) -> Result<u64, Reject> {
        let text = self.need(name)?;
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|n| digits && *n <= most);
        number.ok_or_else(|| {
            Reject::value(name, format!("{} is not a whole number from 0 to {most}", shown(text)))
        })
    }
}

/// Characters an id may have here; events allow 512, and ids of events append a word.
const MAX_NAME: usize = 480;
/// Characters a label's value may have in an event.
const MAX_LABEL: usize = 8192;

/// The text as an id, such as a tenant's: printable and not too long.
pub(crate) fn name_of<'t>(field: &str, text: &'t str) -> Result<&'t str, Reject> {
    if text.chars().nth(MAX_NAME).is_some() {
        return Err(Reject::value(field, format!("{} is longer than {MAX_NAME} characters", shown(text))));
    }
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(Reject::value(field, format!("{} is no name: give printable text", shown(text))));
    }
    Ok(text)
}

/// The labels of a row: the named columns that are not empty, cut to what an event may carry.
pub(crate) fn labels<'n>(row: Row<'_>, names: &[&'n str]) -> BTreeMap<&'n str, String> {
    names
        .iter()
        .filter_map(|name| row.get(name).map(|text| (*name, text.chars().take(MAX_LABEL).collect())))
        .collect()
}

/// A row with another number of fields than the columns ask for.
pub(crate) fn wrong_count(found: usize, wanted: usize) -> Reject {
    let hint = if found < wanted { "; the line may be cut off" } else { "" };
    Reject::new(Reason::BadLine, None, format!("{found} fields where {wanted} are expected{hint}"))
}

/// The fields of one line of CSV.
pub(crate) fn fields(line: &str) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(line.len().clamp(64, 8192))
        .from_reader(line.as_bytes());
    let mut record = csv::StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(_) => Some(record.iter().map(str::to_owned).collect()),
        Err(_) => None,
    }
}
