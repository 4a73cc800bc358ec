//! Keys of subjects. A leaf never names a person or a tenant: it has commitments, salted by a pseudorandom function of the subject's key, the
//! leaf's index and the field (L-3). Without the key nobody can open a commitment, not even by guessing the value.

use crate::private::Subject;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, RandomizedNonceKey, UnboundKey};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};
use std::fmt;

const SALT: &[u8] = b"gpuledger.audit.salt.v1\n";
const COMMITMENT: &[u8] = b"gpuledger.audit.commitment.v1\n";
const SUBJECT: &[u8] = b"gpuledger.audit.subject.v1\n";
const CONTENT: &[u8] = b"gpuledger.content.v1\n";
const SEALING: &[u8] = b"gpuledger.sealed.key.v1\n";
const SEALING_NONCE: &[u8] = b"gpuledger.sealed.nonce.v1\n";
/// Bytes of a nonce of AES-GCM.
const NONCE_BYTES: usize = 12;
/// A sealed key: nonce, ciphertext, tag.
const SEALED_BYTES: usize = NONCE_BYTES + 32 + 16;

/// Why a key cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The file of the key-encryption key.
    #[error("a key-encryption key is 64 hexadecimal digits")]
    Form,
    /// The system gives no random numbers.
    #[error("no random numbers")]
    Random,
    /// A key is sealed and no key-encryption key was given.
    #[error("keys of subjects are sealed: name the file of the key-encryption key (`audit_kek_file`)")]
    Sealed,
    /// The key-encryption key is another one, or the stored key was changed.
    #[error(
        "a key of a subject cannot be unsealed: the key-encryption key is another one, or the stored key was changed"
    )]
    Seal,
    /// A subject's key was not read before it was used.
    #[error("a key of a subject was not read before it was used")]
    Unread,
}

/// 32 secret bytes. They are never shown.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// New random bytes.
    ///
    /// # Errors
    /// The system gives none.
    pub fn random() -> Result<Self, KeyError> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| KeyError::Random)?;
        Ok(Self(bytes))
    }

    /// Reads 64 hexadecimal digits, with white space around them.
    ///
    /// # Errors
    /// They are none.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let bytes = crate::unhex(text.trim()).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(KeyError::Form)
    }

    /// 64 hexadecimal digits, for a file.
    pub fn to_text(&self) -> String {
        crate::hex(&self.0)
    }

    /// A key for keyed digests and salts.
    fn prf(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

/// A subject's key, ready to make salts.
#[derive(Clone, Debug)]
pub struct SubjectKey(hmac::Key);

impl SubjectKey {
    /// Of secret bytes.
    pub fn new(secret: &Secret) -> Self {
        Self(secret.prf())
    }

    /// The salt of a field of a leaf.
    pub fn salt(&self, index: u64, field: &str) -> [u8; 32] {
        let mut mac = hmac::Context::with_key(&self.0);
        mac.update(SALT);
        mac.update(&index.to_be_bytes());
        mac.update(field.as_bytes());
        bytes_of(&mac.sign())
    }

    /// Seals what is said of the subject: nonce, ciphertext, tag (AES-256-GCM). The nonce is a pseudorandom function of the value, so that none serves two values
    /// and equal values are sealed alike: two grants that say the same still say the same.
    ///
    /// # Errors
    /// The cipher refuses, which it does for values of many gigabytes alone.
    pub fn seal(&self, value: &[u8]) -> Result<Vec<u8>, KeyError> {
        let made = self.derived(SEALING_NONCE, value);
        let nonce = made.first_chunk::<NONCE_BYTES>().ok_or(KeyError::Seal)?;
        let mut bytes = value.to_vec();
        self.cipher()?
            .seal_in_place_append_tag(Nonce::from(nonce), Aad::empty(), &mut bytes)
            .map_err(|_| KeyError::Seal)?;
        Ok([nonce.as_slice(), &bytes].concat())
    }

    /// What was sealed; none where it was not sealed by this key, or was changed.
    pub fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let mut bytes = sealed.to_vec();
        let value =
            self.cipher().ok()?.open_in_place(Nonce::from(nonce), Aad::empty(), &mut bytes).ok()?.len();
        bytes.truncate(value);
        Some(bytes)
    }

    fn cipher(&self) -> Result<LessSafeKey, KeyError> {
        let key = UnboundKey::new(&AES_256_GCM, &self.derived(SEALING, &[])).map_err(|_| KeyError::Seal)?;
        Ok(LessSafeKey::new(key))
    }

    fn derived(&self, tag: &[u8], of: &[u8]) -> [u8; 32] {
        let mut mac = hmac::Context::with_key(&self.0);
        mac.update(tag);
        mac.update(of);
        bytes_of(&mac.sign())
    }
}

/// What stands in a leaf instead of a value: SHA-256 over a tag, the salt, and the value's canonical bytes.
pub fn commitment(salt: &[u8; 32], value: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(COMMITMENT).chain_update(salt).chain_update(value).finalize().into()
}

/// Seals and opens stored keys; without a key-encryption key they are stored as they are.
#[derive(Clone, Debug, Default)]
pub struct Seal(Option<Secret>);

impl Seal {
    /// Under a key-encryption key, where there is one.
    pub fn new(kek: Option<Secret>) -> Self {
        Self(kek)
    }

    /// A key as it is stored.
    ///
    /// # Errors
    /// No random numbers.
    pub fn seal(&self, secret: &Secret) -> Result<Vec<u8>, KeyError> {
        seal(self.0.as_ref(), secret)
    }

    /// A stored key.
    ///
    /// # Errors
    /// It cannot be unsealed.
    pub fn open(&self, stored: &[u8]) -> Result<SubjectKey, KeyError> {
        unseal(self.0.as_ref(), stored).map(|secret| SubjectKey::new(&secret))
    }
}

/// Keys of subjects, and how subjects are found without their names.
#[derive(Clone, Debug)]
pub struct Vault {
    /// Seals and opens.
    pub seal: Seal,
    pepper: hmac::Key,
}

impl Vault {
    /// With the stored key of digests.
    ///
    /// # Errors
    /// It cannot be unsealed.
    pub fn new(seal: Seal, pepper: &[u8]) -> Result<Self, KeyError> {
        let pepper = unseal(seal.0.as_ref(), pepper)?.prf();
        Ok(Self { seal, pepper })
    }

    /// The digest a subject is found by.
    pub fn digest(&self, subject: &Subject) -> [u8; 32] {
        let mut mac = hmac::Context::with_key(&self.pepper);
        mac.update(SUBJECT);
        mac.update(subject.kind.as_bytes());
        mac.update(&[0]);
        mac.update(subject.name.as_bytes());
        bytes_of(&mac.sign())
    }

    /// The keyed digest of a content that has personal fields, from its plain one: who has the database cannot try names on it (I-1, L-3).
    pub fn content(&self, plain: &[u8; 32]) -> [u8; 32] {
        let mut mac = hmac::Context::with_key(&self.pepper);
        mac.update(CONTENT);
        mac.update(plain);
        bytes_of(&mac.sign())
    }
}

/// AES-256-GCM.
fn seal(kek: Option<&Secret>, secret: &Secret) -> Result<Vec<u8>, KeyError> {
    let Some(kek) = kek else { return Ok(secret.0.to_vec()) };
    let key = RandomizedNonceKey::new(&AES_256_GCM, &kek.0).map_err(|_| KeyError::Seal)?;
    let mut bytes = secret.0.to_vec();
    let nonce = key.seal_in_place_append_tag(Aad::empty(), &mut bytes).map_err(|_| KeyError::Random)?;
    Ok([nonce.as_ref().as_slice(), &bytes].concat())
}

fn unseal(kek: Option<&Secret>, stored: &[u8]) -> Result<Secret, KeyError> {
    if let Ok(plain) = <[u8; 32]>::try_from(stored) {
        return Ok(Secret(plain));
    }
    let kek = kek.ok_or(KeyError::Sealed)?;
    let (nonce, sealed) = stored.split_first_chunk::<NONCE_BYTES>().ok_or(KeyError::Seal)?;
    if stored.len() != SEALED_BYTES {
        return Err(KeyError::Seal);
    }
    let key = RandomizedNonceKey::new(&AES_256_GCM, &kek.0).map_err(|_| KeyError::Seal)?;
    let mut bytes = sealed.to_vec();
    let plain =
        key.open_in_place(Nonce::from(nonce), Aad::empty(), &mut bytes).map_err(|_| KeyError::Seal)?;
    <[u8; 32]>::try_from(&*plain).map(Secret).map_err(|_| KeyError::Seal)
}

fn bytes_of(tag: &hmac::Tag) -> [u8; 32] {
    // HMAC-SHA-256 has 32 bytes.
    tag.as_ref().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(kek: Option<Secret>) -> (Vault, Vec<u8>) {
        let seal = Seal::new(kek);
        let pepper = seal.seal(&Secret([7; 32])).unwrap();
        (Vault::new(seal, &pepper).unwrap(), pepper)
    }

    #[test]
    fn a_sealed_key_opens_under_its_own_kek_alone_l_3() {
        let (vault, pepper) = vault(Some(Secret([1; 32])));
        let sealed = vault.seal.seal(&Secret([9; 32])).unwrap();
        assert_eq!(sealed.len(), SEALED_BYTES);
        assert!(!sealed.windows(32).any(|window| window == [9; 32]));
        let salt = vault.seal.open(&sealed).unwrap().salt(5, "/data/tenant");
        assert_eq!(salt, SubjectKey::new(&Secret([9; 32])).salt(5, "/data/tenant"));
        assert_eq!(Vault::new(Seal::new(Some(Secret([2; 32]))), &pepper).unwrap_err(), KeyError::Seal);
        assert_eq!(Vault::new(Seal::default(), &pepper).unwrap_err(), KeyError::Sealed);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert_eq!(vault.seal.open(&changed).unwrap_err(), KeyError::Seal, "byte {place}");
        }
    }

    #[test]
    fn salts_differ_by_leaf_and_field_and_commitments_by_salt_l_3() {
        let key = SubjectKey::new(&Secret([3; 32]));
        let salts = [key.salt(0, "/a"), key.salt(1, "/a"), key.salt(0, "/b")];
        assert!(salts[0] != salts[1] && salts[0] != salts[2]);
        let of = |salt| commitment(salt, b"\"acme\"");
        assert!(of(&salts[0]) != of(&salts[1]));
        assert_ne!(of(&salts[0]), commitment(&salts[0], b"\"acne\""));
    }

    #[test]
    fn a_value_opens_under_its_own_key_alone_and_equal_ones_are_sealed_alike_l_3() {
        let (key, other) = (SubjectKey::new(&Secret([3; 32])), SubjectKey::new(&Secret([4; 32])));
        let sealed = key.seal(b"\"alice\"").unwrap();
        assert_eq!(key.open(&sealed).as_deref(), Some(b"\"alice\"".as_slice()));
        assert_eq!(key.seal(b"\"alice\"").unwrap(), sealed);
        assert_ne!(key.seal(b"\"alicf\"").unwrap()[..NONCE_BYTES], sealed[..NONCE_BYTES]);
        assert!(!sealed.windows(5).any(|window| window == b"alice"));
        assert_eq!(other.open(&sealed), None);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert_eq!(key.open(&changed), None, "byte {place}");
        }
        assert_eq!(key.open(b"short"), None);
    }

    #[test]
    fn a_keyed_digest_is_that_of_its_content_and_of_its_database_l_3() {
        let (vault, _) = vault(None);
        let seal = Seal::default();
        let elsewhere = Vault::new(seal.clone(), &seal.seal(&Secret([8; 32])).unwrap()).unwrap();
        assert_eq!(vault.content(&[1; 32]), vault.content(&[1; 32]));
        assert_ne!(vault.content(&[1; 32]), vault.content(&[2; 32]));
        assert_ne!(vault.content(&[1; 32]), elsewhere.content(&[1; 32]));
    }

    #[test]
    fn subjects_of_other_kind_or_name_have_other_digests() {
        let (vault, _) = vault(None);
        let of = |kind, name: &str| vault.digest(&Subject { kind, name: name.to_owned() });
        assert_ne!(of("tenant", "a"), of("person", "a"));
        assert_ne!(of("tenant", "a"), of("tenant", "b"));
        assert_eq!(of("tenant", "a"), of("tenant", "a"));
    }

    #[test]
    fn a_key_file_is_64_digits_and_never_shown() {
        let secret = Secret([0xab; 32]);
        assert_eq!(Secret::parse(&format!(" {}\n", secret.to_text())).unwrap().0, secret.0);
        assert_eq!(Secret::parse("abc").unwrap_err(), KeyError::Form);
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
