//! Rows in the binary format of `COPY … FROM STDIN (FORMAT binary)`: as text the bytes of a BYTEA would be twice as many.

use super::CHUNK_BYTES;
use crate::error::{Doing, StorageError};
use sqlx::PgConnection;

/// Signature, flags, and length of the header's extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Type number of INT8 in the server's catalogue; it is part of an array's format.
const INT8_OID: u32 = 20;

/// Rows in COPY's binary format: a field is its length and its bytes.
#[derive(Debug)]
pub(crate) struct BinaryRows(Vec<u8>);

impl BinaryRows {
    /// No rows yet, with room for so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let mut rows = Vec::with_capacity(bytes + 64);
        rows.extend_from_slice(HEADER);
        Self(rows)
    }

    /// Begins a row.
    pub(crate) fn begin(&mut self, fields: i16) {
        self.0.extend(fields.to_be_bytes());
    }

    /// INT8, or null.
    pub(crate) fn int8(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => {
                self.0.extend(8_i32.to_be_bytes());
                self.0.extend(value.to_be_bytes());
            }
            None => self.null(),
        }
        self
    }

    fn null(&mut self) {
        self.0.extend((-1_i32).to_be_bytes());
    }

    /// INT4.
    pub(crate) fn int4(&mut self, value: i32) -> &mut Self {
        self.0.extend(4_i32.to_be_bytes());
        self.0.extend(value.to_be_bytes());
        self
    }

    /// A whole NUMERIC, or null: groups of four decimal digits, the most significant first.
    pub(crate) fn numeric(&mut self, value: Option<u128>) -> &mut Self {
        let Some(mut rest) = value else {
            self.null();
            return self;
        };
        // 39 decimal digits at most: ten groups.
        let (mut groups, mut count) = ([0_u16; 10], 0_u8);
        while rest != 0 {
            groups[usize::from(count)] = u16::try_from(rest % 10_000).unwrap_or_default();
            rest /= 10_000;
            count += 1;
        }
        let (sign, scale) = (0_u16, 0_u16);
        self.0.extend((8 + 2 * i32::from(count)).to_be_bytes());
        for head in [u16::from(count), u16::from(count.saturating_sub(1)), sign, scale] {
            self.0.extend(head.to_be_bytes());
        }
        for group in groups.iter().take(usize::from(count)).rev() {
            self.0.extend(group.to_be_bytes());
        }
        self
    }

    /// TEXT, JSON or BYTEA by their bytes, and others as they stand in the format.
    pub(crate) fn field(&mut self, bytes: &[u8]) -> Result<&mut Self, StorageError> {
        self.0.extend(length(bytes.len())?);
        self.0.extend_from_slice(bytes);
        Ok(self)
    }

    /// INT8[]: one dimension, from 1 on, without nulls; an empty array has none.
    pub(crate) fn int8_array(&mut self, values: &[i64]) -> Result<(), StorageError> {
        let dimensions: i32 = if values.is_empty() { 0 } else { 1 };
        let mut array = Vec::with_capacity(20 + values.len() * 12);
        array.extend(dimensions.to_be_bytes());
        array.extend(0_i32.to_be_bytes());
        array.extend(INT8_OID.to_be_bytes());
        if !values.is_empty() {
            array.extend(length(values.len())?);
            array.extend(1_i32.to_be_bytes());
        }
        for value in values {
            array.extend(8_i32.to_be_bytes());
            array.extend(value.to_be_bytes());
        }
        self.field(&array)?;
        Ok(())
    }

    /// Sends all rows in one statement.
    pub(crate) async fn send(
        mut self,
        tx: &mut PgConnection,
        statement: &'static str,
        doing: &'static str,
    ) -> Result<(), StorageError> {
        self.0.extend((-1_i16).to_be_bytes());
        let mut copy = tx.copy_in_raw(statement).await.doing(doing)?;
        for chunk in self.0.chunks(CHUNK_BYTES) {
            copy.send(chunk).await.doing(doing)?;
        }
        copy.finish().await.doing(doing)?;
        Ok(())
    }
}

fn length(of: usize) -> Result<[u8; 4], StorageError> {
    let length =
        i32::try_from(of).map_err(|_| StorageError::invalid("a field", "want fewer than 2^31 bytes"))?;
    Ok(length.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::BinaryRows;

    fn numeric(value: Option<u128>) -> Vec<u8> {
        let mut rows = BinaryRows::new(0);
        let before = rows.0.len();
        rows.numeric(value);
        rows.0.split_off(before)
    }

    #[test]
    fn a_whole_number_is_groups_of_four_digits() {
        assert_eq!(numeric(None), [255, 255, 255, 255]);
        assert_eq!(numeric(Some(0)), [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(numeric(Some(9_999)), [0, 0, 0, 10, 0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x0f]);
        assert_eq!(numeric(Some(20_000)), [0, 0, 0, 12, 0, 2, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0]);
        let greatest = numeric(Some(u128::MAX));
        assert_eq!(greatest.len(), 4 + 8 + 20);
        assert_eq!(greatest[12..14], [0x01, 0x54], "340 of 340282366920938463463374607431768211455");
    }
}
