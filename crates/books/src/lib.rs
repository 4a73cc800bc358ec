//! The books: accepted facts and business objects as the rules want them, and the ledger at any horizon.
//!
//! Ledger, billing, API and command line all read through here, so that there is one way from rows to rules. Nothing here writes.

pub mod closed;
mod error;
pub mod facts;
pub mod findings;
pub mod known;
pub mod measured;
pub mod objects;
pub mod reconcile;
pub mod scope;
pub mod spans;
pub mod standing;
mod terms;
pub mod usage;
pub mod usage_json;
mod whereabouts;

pub use error::BooksError;
pub use terms::Terms;
pub use whereabouts::{grantors, whereabouts};

use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::fact::Fact;
use gpuledger_domain::measured::Rollup;
use gpuledger_domain::time::Instant;
use gpuledger_storage::hours::Filter;
use gpuledger_storage::{PgConnection, state};
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
        let mut terms = Terms::of(&objects);
        terms.measured = all_measured(connection, &terms, &facts).await?;
        let horizon = state::load(connection).await?.horizon_us.map(Instant::from_micros);
        Ok(Self { facts, objects, terms, horizon })
    }

    /// What attribution knew when the object with this `seq` was the last applied; what was measured is as it stands now.
    ///
    /// # Errors
    /// The database, or a row that cannot be read.
    pub async fn terms_at(
        &self,
        connection: &mut PgConnection,
        objects_seq: i64,
    ) -> Result<Terms, BooksError> {
        let mut terms = Terms::of(&objects::load_until(connection, objects_seq).await?);
        terms.measured = all_measured(connection, &terms, &self.facts).await?;
        Ok(terms)
    }

    /// The ledger at `as_of`.
    pub fn attribute(&self, as_of: Instant) -> Attribution {
        self.terms.attribute(&self.facts, as_of)
    }
}

/// What was measured, whenever, where pools divide by it.
async fn all_measured(
    connection: &mut PgConnection,
    terms: &Terms,
    facts: &[Fact],
) -> Result<Vec<Rollup>, BooksError> {
    let gpus: Vec<String> = terms.gpus_measured(facts).iter().map(ToString::to_string).collect();
    if gpus.is_empty() {
        return Ok(Vec::new());
    }
    measured::load(connection, &Filter { gpus: Some(&gpus), from_us: i64::MIN, to_us: i64::MAX }).await
}
