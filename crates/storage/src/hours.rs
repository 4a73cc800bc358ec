//! Packed hours: what telemetry says of each unit and process owner, by hour and minute. Derived from blocks, replaced by node and hour.

mod minutes;
mod series;
mod used;

pub use series::{Amount, MINUTES, Series};
pub use used::{Quality, QualityMap, Used};

use crate::copy::BinaryRows;
use crate::error::{Doing, StorageError};
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

/// Rows of one COPY: their text is held at once, some 2 KiB each.
const COPIED_AT_ONCE: usize = 2_000;

/// What one row is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HourKey {
    /// Begin of the UTC hour, in microseconds.
    pub hour_us: i64,
    /// Node that measured.
    pub node: String,
    /// GPU.
    pub gpu: String,
    /// First memory slice and number of slices; none: the whole GPU.
    pub placement: Option<(u8, u8)>,
    /// `job:ID`, `pod:UID`, `container:ID` or `pid:BOOT/PID/START`; empty: no process was on the unit in this hour.
    pub owner: String,
}

/// One stored row: an owner's readings and, in the first row of a unit, the unit's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedHour {
    /// What it is about.
    pub key: HourKey,
    /// Of the owner's processes; none where there is no owner.
    pub used: Option<Used>,
    /// Of the unit; none in the rows of its other owners, and where a window had processes of it only.
    pub unit: Option<Used>,
}

/// Which rows are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'f> {
    /// Of these GPUs; none: of all.
    pub gpus: Option<&'f [String]>,
    /// Hours that begin here or later, microseconds UTC.
    pub from_us: i64,
    /// Hours that begin before this, microseconds UTC.
    pub to_us: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    hour_us: i64,
    node: String,
    gpu: String,
    placement_start: i16,
    placement_size: i16,
    owner: String,
    unit_memory_bytes_max: Option<String>,
    quality: String,
    minutes: Vec<u8>,
}

#[derive(Default, Deserialize, Serialize)]
struct Qualities {
    #[serde(default, skip_serializing_if = "QualityMap::is_empty")]
    owner: QualityMap,
    #[serde(default, skip_serializing_if = "QualityMap::is_empty")]
    unit: QualityMap,
}

/// The rows of a filter, by key. Hours that are not packed yet are not in them.
///
/// # Errors
/// Driver errors; [`StorageError::Other`] for a row that cannot be read.
pub async fn load(
    connection: &mut PgConnection,
    filter: &Filter<'_>,
) -> Result<Vec<PackedHour>, StorageError> {
    let rows = sqlx::query_as(
        "SELECT hour_us, node, gpu, placement_start, placement_size, owner, unit_memory_bytes_max::TEXT, quality::TEXT, minutes
         FROM packed_hour WHERE hour_us >= $1 AND hour_us < $2 AND ($3::TEXT[] IS NULL OR gpu = ANY($3))
         ORDER BY hour_us, node, gpu, placement_start, placement_size, owner",
    )
    .bind(filter.from_us)
    .bind(filter.to_us)
    .bind(filter.gpus)
    .fetch(connection);
    collect(rows).await
}

/// Begins of the first and the last hour that are packed; none where nothing is.
///
/// # Errors
/// Driver errors.
pub async fn bounds(connection: &mut PgConnection) -> Result<Option<(i64, i64)>, StorageError> {
    let (first, last): (Option<i64>, Option<i64>) =
        sqlx::query_as("SELECT min(hour_us), max(hour_us) FROM packed_hour")
            .fetch_one(connection)
            .await
            .doing("looking for packed hours")?;
    Ok(first.zip(last))
}

/// The rows of some nodes in an hour, by key.
///
/// # Errors
/// As [`load`].
pub async fn load_nodes(
    connection: &mut PgConnection,
    hour_us: i64,
    nodes: &[&str],
) -> Result<Vec<PackedHour>, StorageError> {
    let rows = sqlx::query_as(
        "SELECT hour_us, node, gpu, placement_start, placement_size, owner, unit_memory_bytes_max::TEXT, quality::TEXT, minutes
         FROM packed_hour WHERE hour_us = $1 AND node = ANY($2)
         ORDER BY node, gpu, placement_start, placement_size, owner",
    )
    .bind(hour_us)
    .bind(nodes)
    .fetch(connection);
    collect(rows).await
}

async fn collect(
    mut rows: impl futures_util::Stream<Item = Result<Row, sqlx::Error>> + Unpin,
) -> Result<Vec<PackedHour>, StorageError> {
    let mut hours = Vec::new();
    while let Some(row) = rows.try_next().await.doing("reading packed hours")? {
        hours.push(packed(row)?);
    }
    Ok(hours)
}

fn packed(row: Row) -> Result<PackedHour, StorageError> {
    let unreadable = |message: String| StorageError::Other {
        doing: "reading packed hours",
        message: format!("hour {} of {} on {}: {message}", row.hour_us, row.gpu, row.node),
        source: None,
    };
    let (mut used, mut unit) = minutes::decode(&row.minutes).map_err(unreadable)?;
    let told: Qualities = serde_json::from_str(&row.quality).map_err(|why| unreadable(why.to_string()))?;
    let most = row.unit_memory_bytes_max.as_deref().map(str::parse).transpose();
    let most: Option<u64> = most.map_err(|why| unreadable(format!("unit_memory_bytes_max: {why}")))?;
    if let Some(used) = &mut used {
        used.quality = Quality::from_map(&told.owner);
    }
    if let Some(unit) = &mut unit {
        unit.quality = Quality::from_map(&told.unit);
        unit.memory_bytes_max = most;
    }
    let slices = u8::try_from(row.placement_start).ok().zip(u8::try_from(row.placement_size).ok());
    let key =
        HourKey { hour_us: row.hour_us, node: row.node, gpu: row.gpu, placement: slices, owner: row.owner };
    Ok(PackedHour { key, used, unit })
}

/// Replaces all rows of some nodes in an hour; `were_there` says whether they may have any.
///
/// # Errors
/// Driver errors.
pub async fn replace_nodes(
    tx: &mut PgConnection,
    hour_us: i64,
    nodes: &[&str],
    rows: &[PackedHour],
    were_there: bool,
) -> Result<(), StorageError> {
    if were_there {
        sqlx::query("DELETE FROM packed_hour WHERE hour_us = $1 AND node = ANY($2)")
            .bind(hour_us)
            .bind(nodes)
            .execute(&mut *tx)
            .await
            .doing("replacing packed hours")?;
    }
    sqlx::query("SELECT ensure_telemetry_partition('packed_hour', $1)")
        .bind(hour_us)
        .execute(&mut *tx)
        .await
        .doing("making a partition of packed hours")?;
    let statement = "COPY packed_hour (hour_us, node, gpu, placement_start, placement_size, owner, sm_active_us, memory_byte_us,
                     covered_us, unit_sm_active_us, unit_memory_byte_us, unit_memory_bytes_max, unit_energy_mj, unit_covered_us,
                     quality, minutes) FROM STDIN (FORMAT binary)";
    for part in rows.chunks(COPIED_AT_ONCE) {
        let mut copied = BinaryRows::new(part.len() * 1_024);
        for row in part {
            copy(&mut copied, row)?;
        }
        copied.send(tx, statement, "writing packed hours").await?;
    }
    Ok(())
}

fn copy(rows: &mut BinaryRows, row: &PackedHour) -> Result<(), StorageError> {
    let PackedHour { key, used, unit } = row;
    let (start, size) = key.placement.map_or((-1, 0), |(start, size)| (i16::from(start), i16::from(size)));
    rows.begin(16);
    rows.int8(Some(key.hour_us)).field(key.node.as_bytes())?.field(key.gpu.as_bytes())?;
    rows.field(&start.to_be_bytes())?.field(&size.to_be_bytes())?.field(key.owner.as_bytes())?;
    let owner = used.as_ref();
    rows.numeric(owner.and_then(|used| used.sm_active_us.sum()))
        .numeric(owner.and_then(|used| used.memory_byte_us.sum()))
        .numeric(owner.and_then(|used| used.covered_us.sum()));
    let of_unit = unit.as_ref();
    rows.numeric(of_unit.and_then(|unit| unit.sm_active_us.sum()))
        .numeric(of_unit.and_then(|unit| unit.memory_byte_us.sum()))
        .numeric(of_unit.and_then(|unit| unit.memory_bytes_max).map(u128::from))
        .numeric(of_unit.and_then(|unit| unit.energy_mj.sum()))
        .numeric(of_unit.and_then(|unit| unit.covered_us.sum()));
    let told = |used: Option<&Used>| used.map(|used| used.quality.to_map()).unwrap_or_default();
    let quality = Qualities { owner: told(owner), unit: told(of_unit) };
    let quality = serde_json::to_string(&quality).unwrap_or_else(|_| "{}".to_owned());
    rows.field(quality.as_bytes())?.field(&minutes::encode(owner, of_unit))?;
    Ok(())
}
