//! The same rows as 128 bytes of typed columns each, for a binary COPY into a plain table: what storing them and nothing else costs.

use crate::fleet::{Fleet, Owner, Row, WINDOW_US, Window};
use crate::protobuf::memory_byte_us;
use anyhow::{Result, anyhow};
use sqlx::{Connection as _, Executor as _, PgConnection};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const COLUMNS: i16 = 13;
const TABLE: &str = "CREATE TABLE copied (
    node INT4 NOT NULL, gpu UUID NOT NULL, placement_start INT2 NOT NULL, placement_size INT2 NOT NULL, start_us INT8 NOT NULL,
    end_us INT8 NOT NULL, sequence INT8 NOT NULL, owner TEXT NOT NULL, sm_active_us INT8, memory_high INT8 NOT NULL, memory_low INT8 NOT NULL,
    memory_bytes_max INT8 NOT NULL, covered_us INT8 NOT NULL)";
/// Bytes of a message to the server, about.
const CHUNK: usize = 1 << 20;
/// Messages that are made ahead.
const AHEAD: usize = 32;
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

/// Makes the rows of a fleet, each window once, as the parts of a COPY. Ends early where nobody takes them.
fn make(fleet: &Fleet, parts: &SyncSender<Vec<u8>>) {
    let gpus: Vec<Vec<[u8; 16]>> = (0..fleet.nodes)
        .map(|node| (0..crate::fleet::GPUS).map(|gpu| uuid_bytes(&fleet.gpu_uuid(node, gpu))).collect())
        .collect();
    let mut part = SIGNATURE.to_vec();
    for step in 0..fleet.steps {
        for (node, gpus) in (0..fleet.nodes).zip(&gpus) {
            let window = fleet.window(node, step);
            for one in window.units.iter().chain(&window.processes) {
                let gpu = usize::try_from(one.gpu).ok().and_then(|gpu| gpus.get(gpu));
                row(&mut part, gpu.unwrap_or(&[0; 16]), &window, one);
            }
            if part.len() >= CHUNK && parts.send(std::mem::take(&mut part)).is_err() {
                return;
            }
        }
    }
    part.extend((-1_i16).to_be_bytes());
    // Nobody takes it only where the copy failed, which says why.
    parts.send(part).ok();
}

/// What a copy took.
pub(crate) struct Copied {
    pub(crate) rows: u64,
    /// Commit included.
    pub(crate) took_ms: u128,
    /// Of it, how long the client waited for its own rows: what the server cannot be blamed for.
    pub(crate) starved_ms: u128,
}

/// Copies the rows of a fleet into a new, plain table. They are made on a thread of their own, ahead of the server.
pub(crate) async fn copy(url: &str, fleet: Fleet) -> Result<Copied> {
    let mut connection = PgConnection::connect(url).await?;
    connection.execute("DROP TABLE IF EXISTS copied").await?;
    connection.execute(TABLE).await?;
    let (made, parts) = sync_channel(AHEAD);
    let making = std::thread::spawn(move || make(&fleet, &made));
    let (began, mut starved) = (Instant::now(), Duration::ZERO);
    let mut copying = connection.copy_in_raw("COPY copied FROM STDIN (FORMAT binary)").await?;
    loop {
        let waiting = Instant::now();
        let Ok(part) = parts.recv() else { break };
        starved += waiting.elapsed();
        copying.send(part).await?;
    }
    let rows = copying.finish().await?;
    let took_ms = began.elapsed().as_millis();
    making.join().map_err(|_| anyhow!("the rows were not made"))?;
    Ok(Copied { rows, took_ms, starved_ms: starved.as_millis() })
}
