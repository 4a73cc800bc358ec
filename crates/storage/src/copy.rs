//! Rows as text for `COPY … FROM STDIN`, and in its binary format.

mod binary;

pub(crate) use binary::BinaryRows;

use crate::error::{Doing, StorageError};
use sqlx::PgConnection;
use std::fmt::Display;

/// A message to the server stays well below its limit of 1 GiB.
const CHUNK_BYTES: usize = 1 << 20;

/// Rows in COPY's text format: columns by tab, rows by newline, `\N` for null.
#[derive(Debug, Default)]
pub(crate) struct CopyRows {
    text: String,
    in_row: bool,
}

impl CopyRows {
    /// A value whose text needs no escape: numbers, array and range literals.
    pub(crate) fn plain(&mut self, value: impl Display) -> &mut Self {
        self.separate();
        self.text.push_str(&value.to_string());
        self
    }

    /// As [`CopyRows::plain`], or null.
    pub(crate) fn plain_or_null(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.plain(value),
            None => self.null(),
        }
    }

    /// Any text.
    pub(crate) fn text(&mut self, value: &str) -> &mut Self {
        self.separate();
        for character in value.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '\t' => self.text.push_str("\\t"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                other => self.text.push(other),
            }
        }
        self
    }

    /// Any text, or null.
    pub(crate) fn text_or_null(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    /// Bytes of a BYTEA column.
    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.separate();
        self.text.push_str("\\\\x");
        for byte in value {
            for digit in [byte >> 4, byte & 15] {
                self.text.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
            }
        }
        self
    }

    /// Null.
    pub(crate) fn null(&mut self) -> &mut Self {
        self.separate();
        self.text.push_str("\\N");
        self
    }

    /// Ends the row.
    pub(crate) fn end_row(&mut self) {
        self.text.push('\n');
        self.in_row = false;
    }

    fn separate(&mut self) {
        if self.in_row {
            self.text.push('\t');
        }
        self.in_row = true;
    }

    /// Sends all rows in one statement; returns their number. No row, no statement.
    pub(crate) async fn send(
        &self,
        connection: &mut PgConnection,
        statement: &'static str,
        doing: &'static str,
    ) -> Result<u64, StorageError> {
        if self.text.is_empty() {
            return Ok(0);
        }
        let mut copy = connection.copy_in_raw(statement).await.doing(doing)?;
        for chunk in self.text.as_bytes().chunks(CHUNK_BYTES) {
            copy.send(chunk).await.doing(doing)?;
        }
        copy.finish().await.doing(doing)
    }
}

#[cfg(test)]
mod tests {
    use super::CopyRows;

    #[test]
    fn separators_and_nulls_are_escaped() {
        let mut rows = CopyRows::default();
        rows.text("a\tb\\N\n")
            .plain_or_null(None::<i64>)
            .plain(-7)
            .bytes(&[0, 0xaf])
            .text_or_null(None)
            .end_row();
        rows.text("").end_row();
        assert_eq!(rows.text, "a\\tb\\\\N\\n\t\\N\t-7\t\\\\x00af\t\\N\n\n");
    }
}
