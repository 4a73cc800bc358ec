//! i128 as NUMERIC: as text, exactly. `rust_decimal` ends at 2^96, sums of byte-microseconds of a large fleet do not.

use crate::error::StorageError;

/// A NUMERIC column read as text.
pub(crate) fn parse(text: &str, column: &'static str) -> Result<i128, StorageError> {
    text.parse().map_err(|_| StorageError::Other {
        doing: "reading a number",
        message: format!("{column} is {text}, not a whole number of at most 128 bits"),
        source: None,
    })
}
