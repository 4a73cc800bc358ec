//! Columns of a row group, written and read by type. No column here repeats or nests: a value is there, or it is null.

use crate::error::ArchiveError;
use crate::sealed::Sealed;
use bytes::Bytes;
use gpuledger_domain::time::Instant;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// Greatest value of DECIMAL(38, 0).
const DECIMAL_MAX: i128 = 10_i128.pow(38) - 1;

/// Values of a column, and for one that may be null whether each row has one.
pub(crate) enum Column {
    Int32(Vec<i32>, Option<Vec<i16>>),
    Int64(Vec<i64>, Option<Vec<i16>>),
    Bytes(Vec<ByteArray>, Option<Vec<i16>>),
    Decimal(Vec<FixedLenByteArray>, Option<Vec<i16>>),
}

impl Column {
    pub(crate) fn int32(values: impl Iterator<Item = i32>) -> Self {
        Self::Int32(values.collect(), None)
    }

    pub(crate) fn int32_or_null(values: impl Iterator<Item = Option<i32>>) -> Self {
        let (values, levels) = split(values);
        Self::Int32(values, Some(levels))
    }

    pub(crate) fn int64(values: impl Iterator<Item = i64>) -> Self {
        Self::Int64(values.collect(), None)
    }

    pub(crate) fn int64_or_null(values: impl Iterator<Item = Option<i64>>) -> Self {
        let (values, levels) = split(values);
        Self::Int64(values, Some(levels))
    }

    pub(crate) fn bytes<'r>(values: impl Iterator<Item = &'r [u8]>) -> Self {
        Self::Bytes(values.map(ByteArray::from).collect(), None)
    }

    pub(crate) fn text<'r>(values: impl Iterator<Item = &'r str>) -> Self {
        Self::bytes(values.map(str::as_bytes))
    }

    pub(crate) fn text_or_null<'r>(values: impl Iterator<Item = Option<&'r str>>) -> Self {
        let (values, levels) = split(values.map(|value| value.map(ByteArray::from)));
        Self::Bytes(values, Some(levels))
    }

    /// DECIMAL(38, 0). Readings end at 10^36, so a minute of them does not reach the end of it.
    pub(crate) fn decimal_or_null(values: impl Iterator<Item = Option<i128>>) -> Self {
        let fixed = |value: i128| {
            FixedLenByteArray::from(value.clamp(-DECIMAL_MAX, DECIMAL_MAX).to_be_bytes().to_vec())
        };
        let (values, levels) = split(values.map(|value| value.map(fixed)));
        Self::Decimal(values, Some(levels))
    }
}

/// The values that are there, and per row whether it has one.
fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let mut levels = Vec::new();
    let present = values.inspect(|value| levels.push(i16::from(value.is_some()))).flatten().collect();
    (present, levels)
}

/// Writes a whole file: `groups` are its row groups, each with all columns of `schema` in its order. The same rows give the
/// same bytes: nothing of the machine or of the clock stands in a file.
pub(crate) fn write(
    schema: &str,
    groups: impl Iterator<Item = Vec<Column>>,
    instants: impl Iterator<Item = (Instant, Instant)>,
) -> std::result::Result<Sealed, ArchiveError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by("gpuledger".to_owned())
        .build();
    let schema = Arc::new(parse_message_type(schema)?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    for columns in groups {
        let mut group = file.next_row_group()?;
        for column in &columns {
            write_column(&mut group, column)?;
        }
        group.close()?;
    }
    Ok(Sealed::new(file.into_inner()?, instants))
}

fn write_column(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, column: &Column) -> Result<()> {
    match column {
        Column::Int32(values, levels) => write_typed::<Int32Type>(group, values, levels.as_deref()),
        Column::Int64(values, levels) => write_typed::<Int64Type>(group, values, levels.as_deref()),
        Column::Bytes(values, levels) => write_typed::<ByteArrayType>(group, values, levels.as_deref()),
        Column::Decimal(values, levels) => {
            write_typed::<FixedLenByteArrayType>(group, values, levels.as_deref())
        }
    }
}

fn write_typed<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let missing = || ParquetError::General("more columns than the schema has".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// A file's row groups, one after the other.
pub(crate) struct Groups {
    file: SerializedFileReader<Bytes>,
    next: usize,
}

impl Groups {
    pub(crate) fn open(bytes: Bytes) -> Result<Self> {
        Ok(Self { file: SerializedFileReader::new(bytes)?, next: 0 })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Group<'_>>> {
        if self.next >= self.file.num_row_groups() {
            return Ok(None);
        }
        let group = self.file.get_row_group(self.next)?;
        self.next += 1;
        Ok(Some(Group(group)))
    }
}

/// One row group of columns that are never null.
pub(crate) struct Group<'f>(Box<dyn RowGroupReader + 'f>);

impl Group<'_> {
    pub(crate) fn int32(&self, name: &str) -> Result<Vec<i32>> {
        self.column::<Int32Type>(name)
    }

    pub(crate) fn int64(&self, name: &str) -> Result<Vec<i64>> {
        self.column::<Int64Type>(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<Vec<u8>>> {
        let values = self.column::<ByteArrayType>(name)?;
        Ok(values.iter().map(|value| value.data().to_vec()).collect())
    }

    pub(crate) fn text(&self, name: &str) -> Result<Vec<String>> {
        let values = self.column::<ByteArrayType>(name)?;
        values.iter().map(|value| value.as_utf8().map(str::to_owned)).collect()
    }

    /// By name, so that a later version may add columns. The type is looked at first: the reader panics on another one.
    fn column<T: DataType>(&self, name: &str) -> Result<Vec<T::T>> {
        let metadata = self.0.metadata();
        let place = metadata.columns().iter().position(|column| column.column_path().string() == name);
        let place = place.ok_or_else(|| ParquetError::General(format!("no column {name}")))?;
        let found = metadata.column(place).column_type();
        let nullable = metadata.column(place).column_descr().max_def_level() > 0;
        if found != T::get_physical_type() || nullable {
            return Err(ParquetError::General(format!("column {name} is of another type: {found}")));
        }
        let rows = usize::try_from(metadata.num_rows()).unwrap_or(0);
        let mut reader = get_typed_column_reader::<T>(self.0.get_column_reader(place)?);
        let mut values = Vec::new();
        while values.len() < rows {
            let (records, ..) = reader.read_records(rows - values.len(), None, None, &mut values)?;
            if records == 0 {
                return Err(ParquetError::General(format!(
                    "column {name} ends after {} of {rows} rows",
                    values.len()
                )));
            }
        }
        Ok(values)
    }
}
