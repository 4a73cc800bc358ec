//! A report's readings from packed hours, in portions that bound the memory.

use crate::error::BooksError;
use crate::measured;
use gpuledger_domain::measured::Rollup;
use gpuledger_domain::report::Report;
use gpuledger_domain::time::{HOUR_US, Instant, Window};
use gpuledger_storage::PgConnection;
use gpuledger_storage::hours::{self, Filter};

/// GPUs read at once.
const GPUS: usize = 16;
/// Hours read at once: with one row a unit and hour, at some 8 KiB a rollup, a portion of whole GPUs is 40 MiB.
const HOURS: i64 = 14 * 24;

/// Packed hours to be read at once: all of some GPUs over some hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Of these GPUs.
    pub gpus: Vec<String>,
    /// Hours that begin here or later, microseconds UTC.
    pub from_us: i64,
    /// Hours that begin before this, microseconds UTC.
    pub to_us: i64,
}

/// What is to be read for a report: nothing where no hour is packed.
///
/// # Errors
/// The database.
pub async fn portions(connection: &mut PgConnection, report: &Report) -> Result<Vec<Portion>, BooksError> {
    portions_of(connection, &report.gpus(), report.window()).await
}

/// What is to be read of some GPUs over a time: each hour of a GPU is in one portion, and hours come in order of time for each GPU.
///
/// # Errors
/// The database.
pub(crate) async fn portions_of<G: ToString>(
    connection: &mut PgConnection,
    gpus: &[G],
    window: Window,
) -> Result<Vec<Portion>, BooksError> {
    let Some((first_us, last_us)) = hours::bounds(connection).await? else { return Ok(Vec::new()) };
    let from = window.start().floor(HOUR_US).max(Instant::from_micros(first_us));
    let to = window.end().ceil(HOUR_US).min(Instant::from_micros(last_us).plus(HOUR_US));
    let mut portions = Vec::new();
    for some in gpus.chunks(GPUS) {
        let gpus: Vec<String> = some.iter().map(ToString::to_string).collect();
        let mut at = from;
        while at < to {
            let next = at.plus(HOURS * HOUR_US).min(to);
            portions.push(Portion { gpus: gpus.clone(), from_us: at.as_micros(), to_us: next.as_micros() });
            at = next;
        }
    }
    Ok(portions)
}

impl Portion {
    /// Its rollups.
    ///
    /// # Errors
    /// The database, or a row that cannot be read.
    pub async fn load(&self, connection: &mut PgConnection) -> Result<Vec<Rollup>, BooksError> {
        let filter = Filter { gpus: Some(&self.gpus), from_us: self.from_us, to_us: self.to_us };
        measured::load(connection, &filter).await
    }
}

/// Adds all that was measured to a report.
///
/// # Errors
/// The database, or a row that cannot be read.
pub async fn measure(connection: &mut PgConnection, report: &mut Report) -> Result<(), BooksError> {
    for portion in portions(connection, report).await? {
        report.measure(&portion.load(connection).await?);
    }
    Ok(())
}
