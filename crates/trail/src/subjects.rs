//! Keys of subjects in memory, until one is destroyed anywhere.

use crate::keys::{KeyError, Seal, Secret, SubjectKey, Vault};
use crate::private::Subject;
use gpuledger_domain::time::Instant;
use gpuledger_storage::subject_keys::{self, NewSubject};
use gpuledger_storage::{PgConnection, StorageError};
use std::collections::{BTreeMap, BTreeSet};

/// Why keys cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SubjectsError {
    /// The database.
    #[error("{0}")]
    Storage(#[from] StorageError),
    /// A key.
    #[error("{0}")]
    Keys(#[from] KeyError),
}

/// Subjects kept at most; then all are let go, which costs one read each.
const KEPT: usize = 200_000;

/// Keys that were met.
#[derive(Debug)]
pub struct Subjects {
    vault: Vault,
    /// How many keys were destroyed when these were read.
    erasures: i64,
    known: BTreeMap<Subject, (i64, SubjectKey)>,
}

impl Subjects {
    /// None met yet. The key of digests is made with the first use of a database.
    ///
    /// # Errors
    /// The database, or its key of digests cannot be unsealed.
    pub async fn load(tx: &mut PgConnection, seal: Seal) -> Result<Self, SubjectsError> {
        let (stored, erasures) = subject_keys::state(tx).await?;
        let pepper = match stored {
            Some(pepper) => pepper,
            None => subject_keys::have_pepper(tx, &seal.seal(&Secret::random()?)?).await?,
        };
        Ok(Self { vault: Vault::new(seal, &pepper)?, erasures, known: BTreeMap::new() })
    }

    /// Lets go of all keys where one was destroyed since.
    ///
    /// # Errors
    /// As [`Subjects::load`].
    pub async fn refresh(&mut self, tx: &mut PgConnection, seal: Seal) -> Result<(), SubjectsError> {
        let (stored, erasures) = subject_keys::state(tx).await?;
        if erasures != self.erasures || stored.is_none() || self.known.len() > KEPT {
            *self = Self::load(tx, seal).await?;
        }
        Ok(())
    }

    /// Number and key of a subject.
    pub fn get(&self, subject: &Subject) -> Option<(i64, &SubjectKey)> {
        self.known.get(subject).map(|(number, key)| (*number, key))
    }

    /// Sees to it that all of them are known; whoever is met for the first time gets a key.
    ///
    /// # Errors
    /// The database, or a key that cannot be unsealed.
    pub async fn have(
        &mut self,
        tx: &mut PgConnection,
        wanted: &BTreeSet<Subject>,
        now: Instant,
    ) -> Result<(), SubjectsError> {
        let unknown: BTreeMap<[u8; 32], &Subject> = wanted
            .iter()
            .filter(|subject| !self.known.contains_key(subject))
            .map(|subject| (self.vault.digest(subject), subject))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let missing = self.read(tx, &unknown).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let new: Result<Vec<NewSubject>, KeyError> =
            missing.iter().map(|(digest, subject)| self.made(*digest, subject)).collect();
        subject_keys::add(tx, &new?, now.as_micros()).await?;
        self.read(tx, &missing).await?;
        Ok(())
    }

    /// Reads those that live; the others are returned.
    async fn read<'s>(
        &mut self,
        tx: &mut PgConnection,
        unknown: &BTreeMap<[u8; 32], &'s Subject>,
    ) -> Result<BTreeMap<[u8; 32], &'s Subject>, SubjectsError> {
        let digests: Vec<[u8; 32]> = unknown.keys().copied().collect();
        let mut missing = unknown.clone();
        for row in subject_keys::by_digests(tx, &digests).await? {
            let digest = <[u8; 32]>::try_from(row.digest.as_slice()).unwrap_or_default();
            if let (Some(subject), Some(key)) = (missing.remove(&digest), &row.key) {
                self.known.insert(subject.clone(), (row.no, self.vault.seal.open(key)?));
            }
        }
        Ok(missing)
    }

    fn made(&self, digest: [u8; 32], subject: &Subject) -> Result<NewSubject, KeyError> {
        Ok(NewSubject {
            digest,
            kind: subject.kind.to_owned(),
            tenant: (subject.kind == "tenant").then(|| subject.name.clone()),
            key: self.vault.seal.seal(&Secret::random()?)?,
        })
    }

    /// How many keys were destroyed when these were read.
    pub fn erasures(&self) -> i64 {
        self.erasures
    }

    /// The digest a subject is found by.
    pub fn digest(&self, subject: &Subject) -> [u8; 32] {
        self.vault.digest(subject)
    }

    /// What makes digests.
    pub fn vault(&self) -> &Vault {
        &self.vault
    }
}
