//! Telemetry: received sequences, staged windows, packed hours.

use crate::copy::CopyRows;
use crate::error::{Doing, StorageError};
use crate::numeric;
use sqlx::PgConnection;
use std::collections::BTreeMap;

/// Identity of a telemetry window (I-2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowId {
    /// Node.
    pub node: String,
    /// Random id of the node's spool.
    pub stream: String,
    /// From 0, without holes; below `i64::MAX`.
    pub sequence: i64,
}

/// A hole in a stream's sequences.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct SequenceGap {
    /// Node.
    pub node: String,
    /// Stream.
    pub stream: String,
    /// First missing sequence.
    pub first: i64,
    /// Last missing sequence.
    pub last: i64,
}

/// A window to stage until it is archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedWindow {
    /// Its identity.
    pub id: WindowId,
    /// Its end.
    pub end_us: i64,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// What a row of hours is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HourKey {
    /// Node.
    pub node: String,
    /// GPU.
    pub gpu: String,
    /// First memory slice and number of slices; -1 and the GPU's slices: the whole GPU.
    pub placement: (i16, i16),
    /// Empty: the unit itself; else `job:ID`, `pod:UID`, `container:ID` or `pid:BOOT/PID/START`.
    pub owner: String,
    /// Begin of the UTC hour.
    pub hour_us: i64,
}

/// What was measured. Absent values were not measured, which is not zero (M-8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HourValues {
    /// Time with an active SM, weighted.
    pub sm_active_us: Option<i128>,
    /// Bytes times microseconds.
    pub memory_byte_us: Option<i128>,
    /// Greatest memory use seen.
    pub memory_bytes_max: Option<i128>,
    /// Millijoules.
    pub energy_mj: Option<i128>,
    /// Time the windows cover.
    pub covered_us: i64,
    /// Reading, label, covered microseconds.
    pub quality: BTreeMap<String, BTreeMap<String, i64>>,
}

impl HourValues {
    /// Adds another window's values to these.
    pub fn add(&mut self, other: &Self) {
        self.sm_active_us = add(self.sm_active_us, other.sm_active_us);
        self.memory_byte_us = add(self.memory_byte_us, other.memory_byte_us);
        self.memory_bytes_max = self.memory_bytes_max.max(other.memory_bytes_max);
        self.energy_mj = add(self.energy_mj, other.energy_mj);
        self.covered_us = self.covered_us.saturating_add(other.covered_us);
        for (reading, labels) in &other.quality {
            let mine = self.quality.entry(reading.clone()).or_default();
            for (label, covered) in labels {
                let sum = mine.entry(label.clone()).or_default();
                *sum = sum.saturating_add(*covered);
            }
        }
    }
}

fn add(a: Option<i128>, b: Option<i128>) -> Option<i128> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// Records sequences as received and tells, in order, which of them are new. A sequence that stands twice in `ids` is new
/// once, at its first place. The streams stay locked until commit.
///
/// # Errors
/// [`StorageError::Invalid`] for a negative sequence or `i64::MAX`; [`StorageError::Contention`]: try again.
pub async fn accept(tx: &mut PgConnection, ids: &[WindowId]) -> Result<Vec<bool>, StorageError> {
    if let Some(bad) = ids.iter().find(|id| id.sequence < 0 || id.sequence == i64::MAX) {
        return Err(StorageError::invalid(format!("sequence {}", bad.sequence), "want 0 to 2^63 - 2"));
    }
    let nodes: Vec<&str> = ids.iter().map(|id| id.node.as_str()).collect();
    let streams: Vec<&str> = ids.iter().map(|id| id.stream.as_str()).collect();
    lock_streams(tx, &nodes, &streams).await?;
    let fresh: Vec<i64> = sqlx::query_scalar(
        "WITH fresh AS (
            SELECT node, stream, sequence, min(place) AS place
            FROM UNNEST($1::TEXT[], $2::TEXT[], $3::INT8[]) WITH ORDINALITY AS given (node, stream, sequence, place)
            JOIN telemetry_stream USING (node, stream)
            WHERE NOT ranges @> sequence
            GROUP BY node, stream, sequence
         ), recorded AS (
            UPDATE telemetry_stream AS s SET ranges = s.ranges + added.ranges
            FROM (SELECT node, stream, range_agg(int8range(sequence, sequence + 1)) AS ranges FROM fresh GROUP BY node, stream) AS added
            WHERE s.node = added.node AND s.stream = added.stream
         )
         SELECT place - 1 FROM fresh",
    )
    .bind(&nodes)
    .bind(&streams)
    .bind(ids.iter().map(|id| id.sequence).collect::<Vec<_>>())
    .fetch_all(tx)
    .await
    .doing("recording sequences")?;
    let mut is_new = vec![false; ids.len()];
    for place in fresh {
        if let Some(flag) = usize::try_from(place).ok().and_then(|place| is_new.get_mut(place)) {
            *flag = true;
        }
    }
    Ok(is_new)
}

/// Registers unknown streams and locks all of them, in one order.
async fn lock_streams(tx: &mut PgConnection, nodes: &[&str], streams: &[&str]) -> Result<(), StorageError> {
    sqlx::query(
        r#"INSERT INTO telemetry_stream (node, stream)
           SELECT DISTINCT node COLLATE "C", stream COLLATE "C" FROM UNNEST($1::TEXT[], $2::TEXT[]) AS given (node, stream)
           ORDER BY 1, 2 ON CONFLICT DO NOTHING"#,
    )
    .bind(nodes)
    .bind(streams)
    .execute(&mut *tx)
    .await
    .doing("registering streams")?;
    sqlx::query(
        r#"SELECT FROM telemetry_stream
           WHERE (node, stream) IN (SELECT * FROM UNNEST($1::TEXT[], $2::TEXT[]))
           ORDER BY node COLLATE "C", stream COLLATE "C" FOR UPDATE"#,
    )
    .bind(nodes)
    .bind(streams)
    .execute(tx)
    .await
    .doing("locking streams")?;
    Ok(())
}

/// Up to `limit` staged windows after `after` (none: from the first), by node, stream and sequence.
///
/// # Errors
/// Driver errors.
pub async fn load_staged(
    connection: &mut PgConnection,
    after: Option<&WindowId>,
    limit: i64,
) -> Result<Vec<StagedWindow>, StorageError> {
    let rows: Vec<(String, String, i64, i64, Vec<u8>)> = sqlx::query_as(
        r#"SELECT node, stream, sequence, end_us, body FROM telemetry_window
           WHERE $1::TEXT IS NULL OR (node COLLATE "C", stream COLLATE "C", sequence) > ($1, $2, $3)
           ORDER BY node COLLATE "C", stream COLLATE "C", sequence LIMIT $4"#,
    )
    .bind(after.map(|id| id.node.as_str()))
    .bind(after.map(|id| id.stream.as_str()))
    .bind(after.map(|id| id.sequence))
    .bind(limit)
    .fetch_all(connection)
    .await
    .doing("reading staged windows")?;
    let staged = |(node, stream, sequence, end_us, body)| StagedWindow {
        id: WindowId { node, stream, sequence },
        end_us,
        body,
    };
    Ok(rows.into_iter().map(staged).collect())
}

/// Holes between the received sequences of each stream, and before its first: what a node still owes.
///
/// # Errors
/// Driver errors.
pub async fn gaps(connection: &mut PgConnection) -> Result<Vec<SequenceGap>, StorageError> {
    sqlx::query_as(
        r#"SELECT node, stream, lower(hole) AS first, upper(hole) - 1 AS last
           FROM telemetry_stream,
                UNNEST(int8multirange(int8range(0, upper(ranges))) - ranges) AS hole
           WHERE NOT isempty(ranges)
           ORDER BY node COLLATE "C", stream COLLATE "C", first"#,
    )
    .fetch_all(connection)
    .await
    .doing("reading gaps")
}

/// Stages windows, by COPY. The caller has found them new by [`accept`].
///
/// # Errors
/// Driver errors.
pub async fn stage(tx: &mut PgConnection, windows: &[StagedWindow]) -> Result<u64, StorageError> {
    let mut rows = CopyRows::default();
    for window in windows {
        rows.text(&window.id.node).text(&window.id.stream).plain(window.id.sequence);
        rows.plain(window.end_us).bytes(&window.body).end_row();
    }
    let statement = "COPY telemetry_window (node, stream, sequence, end_us, body) FROM STDIN";
    rows.send(tx, statement, "staging windows").await
}

/// Number of staged windows.
///
/// # Errors
/// Driver errors.
pub async fn count_staged(connection: &mut PgConnection) -> Result<i64, StorageError> {
    sqlx::query_scalar("SELECT count(*) FROM telemetry_window")
        .fetch_one(connection)
        .await
        .doing("counting windows")
}

/// Adds measured values to the stored hours.
///
/// # Errors
/// [`StorageError::Contention`]: try again.
pub async fn add_hours(
    tx: &mut PgConnection,
    hours: &BTreeMap<HourKey, HourValues>,
) -> Result<(), StorageError> {
    let numbers = |field: fn(&HourValues) -> Option<i128>| -> Vec<Option<String>> {
        hours.values().map(|values| field(values).map(|number| number.to_string())).collect()
    };
    sqlx::query(
        "INSERT INTO telemetry_hour AS t (node, gpu, placement_start, placement_size, owner, hour_us, sm_active_us,
                                          memory_byte_us, memory_bytes_max, energy_mj, covered_us, quality)
         SELECT node, gpu, placement_start, placement_size, owner, hour_us, sm::NUMERIC, bytes::NUMERIC, most::NUMERIC,
                energy::NUMERIC, covered_us, quality::JSONB
         FROM UNNEST($1::TEXT[], $2::TEXT[], $3::INT2[], $4::INT2[], $5::TEXT[], $6::INT8[], $7::TEXT[], $8::TEXT[], $9::TEXT[],
                     $10::TEXT[], $11::INT8[], $12::TEXT[])
              AS g (node, gpu, placement_start, placement_size, owner, hour_us, sm, bytes, most, energy, covered_us, quality)
         ON CONFLICT (node, gpu, placement_start, placement_size, owner, hour_us) DO UPDATE SET
             sm_active_us = COALESCE(t.sm_active_us + EXCLUDED.sm_active_us, t.sm_active_us, EXCLUDED.sm_active_us),
             memory_byte_us = COALESCE(t.memory_byte_us + EXCLUDED.memory_byte_us, t.memory_byte_us, EXCLUDED.memory_byte_us),
             memory_bytes_max = GREATEST(t.memory_bytes_max, EXCLUDED.memory_bytes_max),
             energy_mj = COALESCE(t.energy_mj + EXCLUDED.energy_mj, t.energy_mj, EXCLUDED.energy_mj),
             covered_us = t.covered_us + EXCLUDED.covered_us,
             quality = add_quality(t.quality, EXCLUDED.quality)",
    )
    .bind(hours.keys().map(|key| key.node.as_str()).collect::<Vec<_>>())
    .bind(hours.keys().map(|key| key.gpu.as_str()).collect::<Vec<_>>())
    .bind(hours.keys().map(|key| key.placement.0).collect::<Vec<_>>())
    .bind(hours.keys().map(|key| key.placement.1).collect::<Vec<_>>())
    .bind(hours.keys().map(|key| key.owner.as_str()).collect::<Vec<_>>())
    .bind(hours.keys().map(|key| key.hour_us).collect::<Vec<_>>())
    .bind(numbers(|values| values.sm_active_us))
    .bind(numbers(|values| values.memory_byte_us))
    .bind(numbers(|values| values.memory_bytes_max))
    .bind(numbers(|values| values.energy_mj))
    .bind(hours.values().map(|values| values.covered_us).collect::<Vec<_>>())
    .bind(hours.values().map(|values| serde_json::json!(values.quality).to_string()).collect::<Vec<_>>())
    .execute(tx)
    .await
    .doing("adding measured hours")?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct HourRow {
    node: String,
    gpu: String,
    placement_start: i16,
    placement_size: i16,
    owner: String,
    hour_us: i64,
    sm_active_us: Option<String>,
    memory_byte_us: Option<String>,
    memory_bytes_max: Option<String>,
    energy_mj: Option<String>,
    covered_us: i64,
    quality: String,
}

/// The stored hours that begin in `[from_us, to_us)`, of one GPU or of all, by key.
///
/// # Errors
/// Driver errors.
pub async fn load_hours(
    connection: &mut PgConnection,
    gpu: Option<&str>,
    from_us: i64,
    to_us: i64,
) -> Result<BTreeMap<HourKey, HourValues>, StorageError> {
    let rows: Vec<HourRow> = sqlx::query_as(
        "SELECT node, gpu, placement_start, placement_size, owner, hour_us, sm_active_us::TEXT, memory_byte_us::TEXT,
                memory_bytes_max::TEXT, energy_mj::TEXT, covered_us, quality::TEXT
         FROM telemetry_hour WHERE hour_us >= $1 AND hour_us < $2 AND ($3::TEXT IS NULL OR gpu = $3)",
    )
    .bind(from_us)
    .bind(to_us)
    .bind(gpu)
    .fetch_all(connection)
    .await
    .doing("reading measured hours")?;
    rows.into_iter().map(hour).collect()
}

fn hour(row: HourRow) -> Result<(HourKey, HourValues), StorageError> {
    let quality: BTreeMap<String, BTreeMap<String, i64>> =
        serde_json::from_str(&row.quality).map_err(|cause| StorageError::Other {
            doing: "reading measured hours",
            message: format!("quality {}: {cause}", row.quality),
            source: None,
        })?;
    let key = HourKey {
        node: row.node,
        gpu: row.gpu,
        placement: (row.placement_start, row.placement_size),
        owner: row.owner,
        hour_us: row.hour_us,
    };
    let values = HourValues {
        sm_active_us: numeric::parse_or_null(row.sm_active_us.as_deref(), "sm_active_us")?,
        memory_byte_us: numeric::parse_or_null(row.memory_byte_us.as_deref(), "memory_byte_us")?,
        memory_bytes_max: numeric::parse_or_null(row.memory_bytes_max.as_deref(), "memory_bytes_max")?,
        energy_mj: numeric::parse_or_null(row.energy_mj.as_deref(), "energy_mj")?,
        covered_us: row.covered_us,
        quality,
    };
    Ok((key, values))
}
