//! The ledger as it stands, and as all facts now make it by the objects that stood at an earlier close: facts come late, objects do not
//! reach back (V-12, A-6).

use crate::catalogue::Catalogue;
use crate::error::BillingError;
use crate::sold::SoldBook;
use crate::usage::Usage;
use gpuledger_books::{Books, Terms};
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Objects with the usage that facts make by them.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) catalogue: Catalogue,
    pub(crate) usage: Arc<Usage>,
}

/// The ledger now, and by the objects of each close that is asked for.
pub(crate) struct Ledgers {
    /// By the objects that stand.
    pub(crate) now: Ledger,
    /// What is sold besides GPU time.
    pub(crate) sold: SoldBook,
    /// How long a node may be silent before that is a gap, in microseconds.
    pub(crate) gap_us: i64,
    /// Greatest `seq` of the objects that stand.
    pub(crate) objects_seq: i64,
    then: BTreeMap<i64, Ledger>,
}

impl Ledgers {
    /// Loads the ledger at its horizon; `closes` are the `objects_seq` of the closes whose periods will be rated anew.
    pub(crate) async fn load(
        connection: &mut PgConnection,
        closes: &BTreeSet<i64>,
    ) -> Result<Self, BillingError> {
        let books = Books::load(connection).await?;
        let versions = Catalogue::versions(connection).await?;
        let objects_seq = versions.last().map_or(0, |(seq, _)| *seq);
        let of = |terms: &Terms| {
            let usage = books.horizon.map(|at| Usage::new(terms.attribute(&books.facts, at), at));
            Arc::new(usage.unwrap_or_default())
        };
        let now = Ledger { catalogue: Catalogue::as_of(&versions, i64::MAX)?, usage: of(&books.terms) };
        let mut then = BTreeMap::new();
        for seq in closes.iter().filter(|seq| **seq < objects_seq) {
            let terms = books.terms_at(connection, *seq).await?;
            // Prices and names may differ; the far more costly usage does only where names of products or pools do.
            let same = terms.skus == books.terms.skus && terms.pools == books.terms.pools;
            let usage = if same { Arc::clone(&now.usage) } else { of(&terms) };
            then.insert(*seq, Ledger { catalogue: Catalogue::as_of(&versions, *seq)?, usage });
        }
        let sold = SoldBook::load(connection, books.horizon.unwrap_or(Instant::MIN)).await?;
        Ok(Self { now, sold, gap_us: books.terms.settings.observation_gap_us, objects_seq, then })
    }

    /// The ledger by the objects of a close.
    pub(crate) fn at(&self, objects_seq: i64) -> &Ledger {
        self.then.get(&objects_seq).unwrap_or(&self.now)
    }
}
