//! `minutes/`: what the windows of a part say, one row a unit, owner and minute. A unit's own readings have no owner. A late
//! part has rows of its own for a minute: readings add up over all parts of an hour.

use crate::columns::{Column, write};
use crate::error::ArchiveError;
use crate::sealed::Sealed;
use gpuledger_domain::time::Instant;

/// Rows of a row group.
const GROUP_ROWS: usize = 100_000;

/// A reading that was not taken is null, which is not zero (M-8).
const SCHEMA: &str = "message minutes {
    required int64 minute (TIMESTAMP(MICROS, true));
    required binary node (STRING);
    required binary gpu (STRING);
    optional int32 placement_start;
    optional int32 placement_size;
    optional binary owner (STRING);
    optional int64 sm_active_us;
    optional fixed_len_byte_array(16) memory_byte_us (DECIMAL(38, 0));
    optional int64 memory_bytes_max;
    optional int64 energy_mj;
    required int64 covered_us;
    required binary quality (JSON);
}";

/// Readings of one unit or owner in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinuteRow {
    /// Begin of the UTC minute.
    pub minute: Instant,
    /// Node that measured.
    pub node: String,
    /// GPU.
    pub gpu: String,
    /// First memory slice and number of slices; none: the whole GPU.
    pub placement: Option<(i32, i32)>,
    /// `job:ID`, `pod:UID`, `container:ID` or `pid:BOOT/PID/START`; none: the unit itself.
    pub owner: Option<String>,
    /// SM-active time in microseconds.
    pub sm_active_us: Option<i64>,
    /// Bytes times microseconds.
    pub memory_byte_us: Option<i128>,
    /// Greatest memory use seen, in bytes.
    pub memory_bytes_max: Option<i64>,
    /// Millijoules.
    pub energy_mj: Option<i64>,
    /// Microseconds the readings cover.
    pub covered_us: i64,
    /// `{reading: {label: covered microseconds}}` as JSON (M-8).
    pub quality: String,
}

/// Makes the file of these minutes, in the order given.
///
/// # Errors
/// [`ArchiveError::Format`]: a fault of ours.
pub fn seal(rows: &[MinuteRow]) -> Result<Sealed, ArchiveError> {
    write(SCHEMA, rows.chunks(GROUP_ROWS).map(columns), rows.iter().map(|row| (row.minute, row.minute)))
}

fn columns(rows: &[MinuteRow]) -> Vec<Column> {
    vec![
        Column::int64(rows.iter().map(|row| row.minute.as_micros())),
        Column::text(rows.iter().map(|row| row.node.as_str())),
        Column::text(rows.iter().map(|row| row.gpu.as_str())),
        Column::int32_or_null(rows.iter().map(|row| row.placement.map(|(start, _)| start))),
        Column::int32_or_null(rows.iter().map(|row| row.placement.map(|(_, size)| size))),
        Column::text_or_null(rows.iter().map(|row| row.owner.as_deref())),
        Column::int64_or_null(rows.iter().map(|row| row.sm_active_us)),
        Column::decimal_or_null(rows.iter().map(|row| row.memory_byte_us)),
        Column::int64_or_null(rows.iter().map(|row| row.memory_bytes_max)),
        Column::int64_or_null(rows.iter().map(|row| row.energy_mj)),
        Column::int64(rows.iter().map(|row| row.covered_us)),
        Column::text(rows.iter().map(|row| row.quality.as_str())),
    ]
}
