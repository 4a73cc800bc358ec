//! The books: accepted facts and business objects as the rules want them, and the ledger at any horizon.
//!
//! Ledger, billing, API and command line all read through here, so that there is one way from rows to rules. Nothing here writes.

mod error;
pub mod facts;
pub mod findings;
pub mod objects;
pub mod scope;
pub mod spans;
mod terms;
pub mod usage_json;
mod whereabouts;

pub use error::BooksError;
pub use terms::Terms;
pub use whereabouts::whereabouts;

use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::fact::Fact;
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_storage::{PgConnection, closes, state};
use objects::Objects;

/// Everything that stands.
#[derive(Clone, Debug)]
pub struct Books {
    /// All accepted facts.
    pub facts: Vec<Fact>,
    /// Business objects.
    pub objects: Objects,
    /// What attribution knows besides facts.
    pub terms: Terms,
    /// How far the ledger has come; none before anything was settled.
    pub horizon: Option<Instant>,
}

impl Books {
    /// Loads everything; use a snapshot.
    ///
    /// # Errors
    /// The database, or a row that cannot be read.
    pub async fn load(connection: &mut PgConnection) -> Result<Self, BooksError> {
        let facts = facts::load_all(connection).await?;
        let objects = objects::load(connection).await?;
        let terms = Terms { skus: objects.sku_book(), ..Terms::default() };
        let horizon = state::load(connection).await?.horizon_us.map(Instant::from_micros);
        Ok(Self { facts, objects, terms, horizon })
    }

    /// The ledger at `as_of`.
    pub fn attribute(&self, as_of: Instant) -> Attribution {
        self.terms.attribute(&self.facts, as_of)
    }
}

/// Periods that were closed for any tenant, in the seller's zone, with when.
///
/// # Errors
/// The database.
pub async fn closed_periods(
    connection: &mut PgConnection,
    objects: &Objects,
) -> Result<Vec<(Window, Instant)>, BooksError> {
    let zone = objects
        .sellers
        .values()
        .find_map(|seller| seller.time_zone)
        .map_or(chrono_tz::Tz::UTC, |zone| zone.0);
    let closed = closes::all(connection).await?.into_iter().filter_map(|close| {
        let window = close.period.parse::<Period>().ok()?.window(zone).ok()?;
        Some((window, Instant::from_micros(close.closed_at_us)))
    });
    Ok(closed.collect())
}
