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
pub use whereabouts::{grantors, whereabouts};

use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::fact::Fact;
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_storage::{PgConnection, closes, state};
use objects::Objects;
use std::collections::BTreeMap;

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

/// Periods that are closed for every applied tenant, in the seller's zone, with when the last of them was: a fact of such a period changes
/// nothing that is open any more.
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
    let mut by_period: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for close in closes::all(connection).await? {
        // Closes come in their order, so the last of a tenant stays.
        by_period.entry(close.period).or_default().insert(close.tenant, close.closed_at_us);
    }
    let closed = by_period.into_iter().filter_map(|(period, tenants)| {
        let all = objects.tenants.keys().all(|tenant| tenants.contains_key(tenant));
        let window = period.parse::<Period>().ok()?.window(zone).ok().filter(|_| all)?;
        Some((window, Instant::from_micros(*tenants.values().max()?)))
    });
    Ok(closed.collect())
}
