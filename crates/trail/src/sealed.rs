//! Sealed values: what stands in facts, parked events and pending records in place of personal fields (L-3). A value is sealed under the key of the subject it
//! names and says by whose: `$sealed.17.…`, with nonce, ciphertext and tag in base64. It is a text, so that an event with sealed values is still an event, and the rules
//! read it without a key. What is no JSON is sealed whole, as the site's.

use crate::keys::{KeyError, Seal, SubjectKey, Vault};
use crate::personal::{Field, Marked, find, replaced};
use crate::private::Subject;
use crate::subjects::{Subjects, SubjectsError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gpuledger_domain::time::Instant;
use gpuledger_storage::{Db, PgConnection, Tx, subject_keys};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

/// What every sealed value begins with.
const PREFIX: &str = "$sealed.";
/// What is shown in place of a value whose key is destroyed.
pub const ERASED: &str = "erased";
/// What is shown in place of a value whose key the reader may not have.
pub const SEALED: &str = "sealed";

/// How a process seals.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What keys of subjects are sealed by.
    pub seal: Seal,
    /// Labels that name a person, besides those that are called so.
    pub marked: Marked,
}

impl Default for Terms {
    /// Keys are stored as they are, as everywhere without a key-encryption key.
    fn default() -> Self {
        Self { seal: Seal::default(), marked: Marked::Names(BTreeSet::new()) }
    }
}

#[derive(Debug, Default)]
struct Kept(OnceLock<Arc<Terms>>);

/// Says how this process seals beside a database; once, before anything is sealed.
pub fn configure(db: &Db, terms: Terms) {
    db.memory().of::<Kept>().0.get_or_init(|| Arc::new(terms));
}

/// How this process seals.
pub fn terms(tx: &Tx) -> Arc<Terms> {
    tx.memory().of::<Kept>().0.get().cloned().unwrap_or_default()
}

/// Something that is about to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its bytes; with sealed values once it is sealed.
    pub bytes: Vec<u8>,
    /// Digest of its content; keyed once it is sealed.
    pub digest: [u8; 32],
    /// Whether something of it was sealed.
    pub is_sealed: bool,
}

impl Record {
    /// As it came.
    pub fn new(bytes: Vec<u8>, digest: [u8; 32]) -> Self {
        Self { bytes, digest, is_sealed: false }
    }
}

/// Seals what is personal in these records, in the transaction that stores them. What has nothing personal stays, and where none has, the database is not asked.
///
/// # Errors
/// The database, or keys cannot be unsealed: nothing is stored in plain text then.
pub async fn seal(tx: &mut Tx, records: &mut [&mut Record], now: Instant) -> Result<(), SubjectsError> {
    let terms = terms(tx);
    let wanted: BTreeSet<Subject> =
        records.iter().flat_map(|record| Parts::of(&record.bytes, &terms.marked).subjects()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    subject_keys::hold(tx).await?;
    // Not kept for the next transaction: keys that are made here are gone if this one is rolled back.
    let mut subjects = Subjects::load(tx, terms.seal.clone()).await?;
    subjects.have(tx, &wanted, now).await?;
    for record in records {
        if let Some(sealed) = sealed(&Parts::of(&record.bytes, &terms.marked), &record.bytes, &subjects)? {
            record.digest = subjects.vault().content(&record.digest);
            record.bytes = sealed;
            record.is_sealed = true;
        }
    }
    Ok(())
}

/// The keyed digest of a content (I-1); none where nothing was ever sealed in this database.
///
/// # Errors
/// The database, or its key of digests cannot be unsealed.
pub async fn keyed(tx: &mut Tx, digest: &[u8; 32]) -> Result<Option<[u8; 32]>, SubjectsError> {
    let Some(pepper) = subject_keys::state(tx).await?.0 else { return Ok(None) };
    Ok(Some(Vault::new(terms(tx).seal.clone(), &pepper)?.content(digest)))
}

/// Whether this process can seal as this database wants it.
///
/// # Errors
/// The database, or its key of digests cannot be unsealed: the key-encryption key is missing, or is another one.
pub async fn must_seal(tx: &mut Tx) -> Result<(), SubjectsError> {
    keyed(tx, &[0; 32]).await.map(drop)
}

/// What of some bytes is personal.
enum Parts<'b> {
    /// These fields of a JSON text.
    Fields(&'b str, Vec<Field<'b>>),
    /// It cannot be said, so all of it.
    Whole,
}

impl<'b> Parts<'b> {
    fn of(bytes: &'b [u8], marked: &Marked) -> Self {
        if bytes.is_empty() {
            return Self::Fields("", Vec::new());
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return Self::Whole };
        find(text, marked).map_or(Self::Whole, |fields| Self::Fields(text, fields))
    }

    fn subjects(self) -> Vec<Subject> {
        match self {
            Self::Fields(_, fields) => fields.into_iter().map(|field| field.subject).collect(),
            Self::Whole => vec![Subject::site()],
        }
    }
}

/// The bytes with sealed values; none where there is nothing to seal.
fn sealed(parts: &Parts<'_>, bytes: &[u8], subjects: &Subjects) -> Result<Option<Vec<u8>>, SubjectsError> {
    // Every subject was looked up before.
    let one = |subject: &Subject, value: &[u8]| match subjects.get(subject) {
        Some((number, key)) => Ok(format!("{PREFIX}{number}.{}", URL_SAFE_NO_PAD.encode(key.seal(value)?))),
        None => Err(SubjectsError::Keys(KeyError::Unread)),
    };
    match parts {
        Parts::Fields(_, fields) if fields.is_empty() => Ok(None),
        Parts::Fields(text, fields) => {
            let quoted =
                |field: &Field<'_>| Ok(Some(format!("\"{}\"", one(&field.subject, field.value.as_bytes())?)));
            replaced(text, fields, quoted).map(|text| Some(text.into_bytes()))
        }
        Parts::Whole => one(&Subject::site(), bytes).map(|text| Some(text.into_bytes())),
    }
}

/// By whose key a text is sealed, and what was sealed; none where it is no sealed value.
fn token(text: &str) -> Option<(i64, Vec<u8>)> {
    let (number, sealed) = text.strip_prefix(PREFIX)?.split_once('.')?;
    Some((number.parse().ok()?, URL_SAFE_NO_PAD.decode(sealed).ok()?))
}

/// The sealed value that a JSON value is.
fn token_of(value: &str) -> Option<(i64, Vec<u8>)> {
    token(value.strip_prefix('"')?.strip_suffix('"')?)
}

/// The bytes by which a stored value is known to be sealed under a subject's key.
pub fn mark(number: i64) -> Vec<u8> {
    format!("\"{PREFIX}{number}.").into_bytes()
}

/// Whether some bytes have a sealed value, or look so. Most have none, and that is seen at once.
pub(crate) fn may_be_sealed(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| text.contains(PREFIX))
}

/// Whose keys seal something in these bytes.
pub fn numbers(bytes: &[u8]) -> BTreeSet<i64> {
    if !may_be_sealed(bytes) {
        return BTreeSet::new();
    }
    match Parts::of(bytes, &Marked::All) {
        Parts::Fields(_, fields) => {
            fields.iter().filter_map(|field| token_of(field.value)).map(|(number, _)| number).collect()
        }
        Parts::Whole => whole(bytes).map(|(number, _)| number).into_iter().collect(),
    }
}

fn whole(bytes: &[u8]) -> Option<(i64, Vec<u8>)> {
    token(std::str::from_utf8(bytes).ok()?)
}

/// What becomes of a value whose key is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It is shown as [`ERASED`].
    Said,
    /// It stays as it is.
    Kept,
}

/// Keys to open sealed values with.
#[derive(Clone, Debug, Default)]
pub struct Opener(BTreeMap<i64, Option<SubjectKey>>);

impl Opener {
    /// Keys of these subjects, as far as the database shows them.
    ///
    /// # Errors
    /// The database, or a key cannot be unsealed.
    pub async fn of(
        connection: &mut PgConnection,
        seal: &Seal,
        numbers: &BTreeSet<i64>,
    ) -> Result<Self, SubjectsError> {
        if numbers.is_empty() {
            return Ok(Self::default());
        }
        let numbers: Vec<i64> = numbers.iter().copied().collect();
        let mut keys = BTreeMap::new();
        for row in subject_keys::by_numbers(connection, &numbers).await? {
            keys.insert(row.no, row.key.map(|key| seal.open(&key)).transpose()?);
        }
        Ok(Self(keys))
    }

    /// The bytes with what was sealed in its place.
    pub fn opened(&self, bytes: &[u8], gone: Gone) -> Vec<u8> {
        if !may_be_sealed(bytes) {
            return bytes.to_vec();
        }
        match Parts::of(bytes, &Marked::All) {
            Parts::Fields(text, fields) => {
                let value = |field: &Field<'_>| {
                    let found = token_of(field.value).and_then(|token| self.find(&token));
                    Ok::<_, Infallible>(match found {
                        Some(Found::Value(value)) => String::from_utf8(value).ok(),
                        Some(Found::Erased) if gone == Gone::Said => Some(format!("\"{ERASED}\"")),
                        Some(Found::Erased) | None => None,
                    })
                };
                let Ok(text) = replaced(text, &fields, value);
                text.into_bytes()
            }
            Parts::Whole => match whole(bytes).and_then(|token| self.find(&token)) {
                Some(Found::Value(value)) => value,
                Some(Found::Erased) if gone == Gone::Said => ERASED.as_bytes().to_vec(),
                Some(Found::Erased) | None => bytes.to_vec(),
            },
        }
    }

    /// What was sealed; none where it was not sealed here, or the key is not shown.
    fn find(&self, (number, sealed): &(i64, Vec<u8>)) -> Option<Found> {
        match self.0.get(number)? {
            Some(key) => key.open(sealed).map(Found::Value),
            None => Some(Found::Erased),
        }
    }

    /// A label's value for a reader: opened, [`ERASED`], or [`SEALED`] where the key is not shown.
    fn label(&self, text: &str) -> Option<String> {
        let token = token(text)?;
        match self.find(&token) {
            Some(Found::Value(value)) => serde_json::from_slice(&value).ok(),
            Some(Found::Erased) => Some(ERASED.to_owned()),
            None if self.0.contains_key(&token.0) => None,
            None => Some(SEALED.to_owned()),
        }
    }
}

/// What a sealed value says.
enum Found {
    Value(Vec<u8>),
    /// Its key is destroyed.
    Erased,
}

/// Opens what is sealed in these bodies.
///
/// # Errors
/// The database, or a key cannot be unsealed.
pub async fn open(
    connection: &mut PgConnection,
    seal: &Seal,
    bodies: Vec<&mut Vec<u8>>,
    gone: Gone,
) -> Result<(), SubjectsError> {
    let wanted: BTreeSet<i64> = bodies.iter().flat_map(|body| numbers(body)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let opener = Opener::of(connection, seal, &wanted).await?;
    for body in bodies {
        *body = opener.opened(body, gone);
    }
    Ok(())
}

/// Opens labels for a reader.
///
/// # Errors
/// The database, or a key cannot be unsealed.
pub async fn open_labels<'l>(
    connection: &mut PgConnection,
    seal: &Seal,
    labels: impl Iterator<Item = &'l mut BTreeMap<String, String>>,
) -> Result<(), SubjectsError> {
    let sealed: Vec<&mut String> =
        labels.flat_map(BTreeMap::values_mut).filter(|value| value.starts_with(PREFIX)).collect();
    let wanted = sealed.iter().filter_map(|value| token(value)).map(|(number, _)| number).collect();
    let opener = Opener::of(connection, seal, &wanted).await?;
    for value in sealed {
        if let Some(shown) = opener.label(value) {
            *value = shown;
        }
    }
    Ok(())
}

/// Whether something in these bytes is still sealed.
pub fn is_sealed(bytes: &[u8]) -> bool {
    !numbers(bytes).is_empty()
}

#[cfg(test)]
mod tests;
