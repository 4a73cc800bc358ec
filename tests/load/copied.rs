//! The same rows as 128 bytes of typed columns each, for a binary COPY into a plain table: what storing them and nothing else costs.

use crate::fleet::{Fleet, Owner, Row, WINDOW_US, Window};
use crate::protobuf::memory_byte_us;
use anyhow::{Context as _, Result};
use sqlx::{Connection as _, Executor as _, PgConnection};
use std::fs::File;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::time::Instant;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const COLUMNS: i16 = 13;
const TABLE: &str = "CREATE TABLE copied (
    node INT4 NOT NULL, gpu UUID NOT NULL, placement_start INT2 NOT NULL, placement_size INT2 NOT NULL, start_us INT8 NOT NULL,
    end_us INT8 NOT NULL, sequence INT8 NOT NULL, owner TEXT NOT NULL, sm_active_us INT8, memory_high INT8 NOT NULL, memory_low INT8 NOT NULL,
    memory_bytes_max INT8 NOT NULL, covered_us INT8 NOT NULL)";
/// Bytes of a message to the server.
const CHUNK: usize = 1 << 20;
/// Bytes of an owner's text, so that a row has 128: 4 + 16 + 2 + 2 + 8 + 8 + 8 + 40 + 8 + 8 + 8 + 8 + 8.
const OWNER: usize = 40;

fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(i32::try_from(bytes.len()).unwrap_or(0).to_be_bytes());
    out.extend(bytes);
}

fn row(out: &mut Vec<u8>, gpu: &[u8; 16], window: &Window, row: &Row) {
    out.extend(COLUMNS.to_be_bytes());
    field(out, &u32::try_from(window.node).unwrap_or(0).to_be_bytes());
    field(out, gpu);
    field(out, &u16::try_from(row.slice).unwrap_or(0).to_be_bytes());
    field(out, &1_u16.to_be_bytes());
    field(out, &window.start.as_micros().to_be_bytes());
    field(out, &window.start.plus(WINDOW_US).as_micros().to_be_bytes());
    field(out, &window.sequence.to_be_bytes());
    let owner = match &row.owner {
        Some(Owner::Job(name) | Owner::Pod(name)) => name.as_str(),
        None => "",
    };
    field(out, format!("{owner:<OWNER$}").as_bytes());
    field(out, &row.sm_active_us.unwrap_or(0).to_be_bytes());
    let memory = memory_byte_us(row);
    field(out, &u64::try_from(memory >> 64).unwrap_or(0).to_be_bytes());
    field(
        out,
        &i64::from_be_bytes(u64::try_from(memory & u128::from(u64::MAX)).unwrap_or(0).to_be_bytes())
            .to_be_bytes(),
    );
    field(out, &row.memory_bytes.to_be_bytes());
    field(out, &row.covered_us.to_be_bytes());
}

fn uuid_bytes(gpu: &str) -> [u8; 16] {
    let digits: Vec<u32> = gpu.chars().skip(4).filter_map(|c| c.to_digit(16)).collect();
    std::array::from_fn(|at| {
        let nibble = |place: usize| digits.get(place).and_then(|d| u8::try_from(*d).ok()).unwrap_or(0);
        nibble(2 * at) << 4 | nibble(2 * at + 1)
    })
}

/// Writes the rows of a fleet to a file, each window once. Returns their number.
pub(crate) fn write(fleet: &Fleet, path: &Path) -> Result<u64> {
    let mut file = BufWriter::with_capacity(CHUNK, File::create(path)?);
    file.write_all(SIGNATURE)?;
    let gpus: Vec<Vec<[u8; 16]>> = (0..fleet.nodes)
        .map(|node| (0..crate::fleet::GPUS).map(|gpu| uuid_bytes(&fleet.gpu_uuid(node, gpu))).collect())
        .collect();
    let (mut rows, mut buffer) = (0, Vec::new());
    for step in 0..fleet.steps {
        for (node, gpus) in (0..fleet.nodes).zip(&gpus) {
            let window = fleet.window(node, step);
            for one in window.units.iter().chain(&window.processes) {
                let gpu = gpus.get(usize::try_from(one.gpu)?).context("a GPU of the node")?;
                row(&mut buffer, gpu, &window, one);
                rows += 1;
            }
            file.write_all(&buffer)?;
            buffer.clear();
        }
    }
    file.write_all(&(-1_i16).to_be_bytes())?;
    file.flush()?;
    Ok(rows)
}

/// Copies the file into a new, plain table. Returns rows and milliseconds, commit included; the file is read from the page cache.
pub(crate) async fn copy(url: &str, path: &Path) -> Result<(u64, u128)> {
    let mut connection = PgConnection::connect(url).await?;
    connection.execute("DROP TABLE IF EXISTS copied").await?;
    connection.execute(TABLE).await?;
    let mut file = File::open(path)?;
    let mut chunk = vec![0; CHUNK];
    let began = Instant::now();
    let mut copying = connection.copy_in_raw("COPY copied FROM STDIN (FORMAT binary)").await?;
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        copying.send(chunk.get(..read).context("what was read")?).await?;
    }
    let rows = copying.finish().await?;
    Ok((rows, began.elapsed().as_millis()))
}
