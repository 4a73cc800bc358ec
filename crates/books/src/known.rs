//! Facts that were read before. They never change, so they need not be read again.
//!
//! Only what a later transaction reads gets in: it is committed, and its number is never given to another fact.

use crate::error::BooksError;
use crate::facts::decode;
use gpuledger_domain::fact::{Fact, FactBody};
use gpuledger_storage::{PgConnection, Tx, index};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Facts that an earlier transaction accepted.
///
/// # Errors
/// The database, or a fact that cannot be read.
pub async fn accepted_before(tx: &mut Tx, seqs: Vec<i64>) -> Result<BTreeMap<i64, Arc<Fact>>, BooksError> {
    let known: Arc<KnownFacts> = tx.memory().of();
    Ok(known.read(tx, seqs.into_iter().collect()).await?.into_iter().collect())
}

/// How much is kept: about as many facts, of which an inventory counts as one for each GPU and instance it lists. Twice as many fit about 100 MiB.
const KEPT: usize = 100_000;

/// The facts kept for one database.
#[derive(Debug, Default)]
pub(crate) struct KnownFacts(Mutex<Kept>);

/// Two generations: what was used since the younger began, and what was used in the one before.
#[derive(Debug, Default)]
struct Kept {
    young: BTreeMap<i64, Arc<Fact>>,
    old: BTreeMap<i64, Arc<Fact>>,
    weight: usize,
}

impl KnownFacts {
    /// These facts, from what is kept or else from the database.
    pub(crate) async fn read(
        &self,
        connection: &mut PgConnection,
        mut seqs: BTreeSet<i64>,
    ) -> Result<Vec<(i64, Arc<Fact>)>, BooksError> {
        let mut facts = self.take_from(&mut seqs);
        let stored = index::load(connection, &seqs.into_iter().collect::<Vec<_>>()).await?;
        let read = stored.iter().map(|fact| fact.seq).zip(decode(&stored)?.into_iter().map(Arc::new));
        let kept = facts.len();
        facts.extend(read);
        self.keep(facts[kept..].iter().map(|(seq, fact)| (*seq, fact)));
        Ok(facts)
    }

    /// Those of these facts that are kept; they are removed from `seqs`.
    pub(crate) fn take_from(&self, seqs: &mut BTreeSet<i64>) -> Vec<(i64, Arc<Fact>)> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found: Vec<(i64, Arc<Fact>)> =
            seqs.iter().filter_map(|seq| kept.get(*seq).map(|fact| (*seq, fact))).collect();
        seqs.retain(|seq| found.binary_search_by_key(seq, |(found, _)| *found).is_err());
        found
    }

    /// Keeps facts that were read.
    pub(crate) fn keep<'f>(&self, facts: impl IntoIterator<Item = (i64, &'f Arc<Fact>)>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (seq, fact) in facts {
            kept.put(seq, Arc::clone(fact));
        }
    }
}

impl Kept {
    fn get(&mut self, seq: i64) -> Option<Arc<Fact>> {
        if let Some(fact) = self.young.get(&seq) {
            return Some(Arc::clone(fact));
        }
        let fact = self.old.remove(&seq)?;
        self.put(seq, Arc::clone(&fact));
        Some(fact)
    }

    fn put(&mut self, seq: i64, fact: Arc<Fact>) {
        if self.weight > KEPT {
            self.old = std::mem::take(&mut self.young);
            self.weight = 0;
        }
        self.weight += weight(&fact.body);
        self.young.insert(seq, fact);
    }
}

fn weight(body: &FactBody) -> usize {
    match body {
        FactBody::Inventory(inventory) => {
            1 + inventory.gpus.iter().map(|gpu| 1 + gpu.instances.len()).sum::<usize>()
        }
        FactBody::Snapshot { allocations, .. } => 1 + allocations.len() / 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::ids::Source;
    use gpuledger_domain::time::Instant;

    fn fact(id: usize) -> Arc<Fact> {
        let at = Instant::from_micros(0);
        Arc::new(Fact { source: Source::new("/x"), id: id.to_string(), at, body: FactBody::Other })
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let known = KnownFacts::default();
        for n in 0..3 * KEPT {
            let seq = i64::try_from(n).unwrap();
            known.keep([(seq, &fact(n))]);
            known.take_from(&mut BTreeSet::from([7]));
        }
        let mut asked = BTreeSet::from([7, 8, 9_999_999]);
        let found = known.take_from(&mut asked);
        assert_eq!(found.iter().map(|(seq, fact)| (*seq, fact.id.as_str())).collect::<Vec<_>>(), [(7, "7")]);
        assert_eq!(asked, BTreeSet::from([8, 9_999_999]));
    }
}
