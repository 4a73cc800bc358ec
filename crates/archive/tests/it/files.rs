//! What is written is read back, and by an outside reader's rules.

use bytes::Bytes;
use gpuledger_archive::minutes::{self, MinuteRow};
use gpuledger_archive::windows::{self, Encoding, WindowReader, WindowRow};
use gpuledger_archive::{ArchiveError, Kind};
use gpuledger_domain::time::Instant;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;

/// 2026-10-01T07:00:00Z.
pub(crate) const HOUR: Instant = Instant::from_micros(1_790_838_000_000_000);

/// The `n`th window of a node, of ten seconds; every third came as JSON and has a gap.
pub(crate) fn window(n: i64, body_bytes: usize) -> WindowRow {
    let start = HOUR.plus(n % 360 * 10_000_000);
    let json = n % 3 == 0;
    WindowRow {
        source: "/nodes/n1/collector".to_owned(),
        id: format!("s-{n}"),
        time: start.plus(10_000_000),
        node: "n1".to_owned(),
        stream: "s".to_owned(),
        sequence: n,
        start,
        end: start.plus(10_000_000),
        units: 8,
        processes: 3,
        gaps: i32::from(json),
        gap_us: if json { 7 } else { 0 },
        encoding: if json { Encoding::Json } else { Encoding::Protobuf },
        body: n.to_be_bytes().into_iter().cycle().take(body_bytes).collect(),
    }
}

#[test]
fn windows_are_read_back_to_the_byte_over_several_row_groups() -> Result<(), ArchiveError> {
    let rows: Vec<WindowRow> = (0..1_000).map(|n| window(n, 10_000)).collect();
    let sealed = windows::seal(&rows)?;
    assert_eq!(sealed.rows, 1_000);
    assert_eq!((sealed.first, sealed.last), (HOUR, HOUR.plus(3_600_000_000)));
    let key = sealed.key(Kind::Windows, HOUR, 0);
    let groups = WindowReader::new(&key, Bytes::from(sealed.bytes))?.collect::<Result<Vec<_>, _>>()?;
    assert!(groups.len() > 1, "{} row groups", groups.len());
    assert_eq!(groups.concat(), rows);
    Ok(())
}

#[test]
fn the_same_rows_give_the_same_bytes() -> Result<(), ArchiveError> {
    let rows: Vec<WindowRow> = (0..50).map(|n| window(n, 300)).collect();
    assert_eq!(windows::seal(&rows)?, windows::seal(&rows)?);
    assert_ne!(windows::seal(&rows)?.digest, windows::seal(&rows[1..])?.digest);
    Ok(())
}

#[test]
fn bytes_that_are_no_such_file_are_damaged() -> Result<(), ArchiveError> {
    let sealed = windows::seal(&[window(0, 10)])?;
    let key = sealed.key(Kind::Windows, HOUR, 0);
    let cut = Bytes::from(sealed.bytes).slice(..40);
    assert!(matches!(WindowReader::new(&key, cut), Err(ArchiveError::Damaged { .. })));
    // A Parquet file, but of minutes.
    let other = Bytes::from(minutes::seal(&[minute(Some(1))])?.bytes);
    let error = WindowReader::new(&key, other)?.next().unwrap().unwrap_err();
    assert!(error.to_string().contains("no column source"), "{error}");
    Ok(())
}

fn minute(sm_active_us: Option<i64>) -> MinuteRow {
    MinuteRow {
        minute: HOUR,
        node: "n1".to_owned(),
        gpu: "GPU-1".to_owned(),
        placement: None,
        owner: sm_active_us.map(|_| "job:7".to_owned()),
        sm_active_us,
        memory_byte_us: sm_active_us.map(|us| i128::from(us) * 85_520_809_984 * 60_000_000),
        memory_bytes_max: None,
        energy_mj: None,
        covered_us: 60_000_000,
        quality: "{}".to_owned(),
    }
}

#[test]
fn a_reading_of_zero_and_none_are_two_values_m_8() -> Result<(), Box<dyn std::error::Error>> {
    let sealed = minutes::seal(&[minute(Some(0)), minute(None), minute(Some(30_000_000))])?;
    let file = SerializedFileReader::new(Bytes::from(sealed.bytes))?;
    let rows = file.get_row_iter(None)?.collect::<Result<Vec<_>, _>>()?;
    // Columns in their order: minute, node, gpu, placement_start, placement_size, owner, sm_active_us, memory_byte_us, …
    assert_eq!(rows[0].get_long(6)?, 0);
    assert!(rows[1].get_long(6).is_err(), "{:?}", rows[1]);
    assert_eq!(rows[0].get_string(5)?, "job:7");
    assert!(rows[1].get_string(5).is_err(), "the unit itself has no owner");
    // 30,000,000 times 85,520,809,984 times 60,000,000 passes 2^63 (M-6).
    let product = i128::from_be_bytes(rows[2].get_decimal(7)?.data().try_into()?);
    assert_eq!(product, 30_000_000 * 85_520_809_984 * 60_000_000);
    assert!(product > i128::from(i64::MAX));
    Ok(())
}
