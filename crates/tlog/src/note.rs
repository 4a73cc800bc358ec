//! Signed notes (`c2sp.org/signed-note`): a text and signatures under it.

use crate::cosignature;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt;

/// Type byte of a plain Ed25519 key.
const ED25519_KEY: u8 = 1;
/// Type byte of an Ed25519 key of a cosigner, whose signatures carry their time.
const COSIGNER_KEY: u8 = 4;
/// A note may have witnesses; no more signatures than this are looked at.
const SIGNATURES_MAX: usize = 64;
/// No note is larger; a checkpoint with 64 signatures is a tenth of this.
const NOTE_BYTES_MAX: usize = 1 << 20;
/// An em dash and a space begin a signature line.
const DASH: &str = "\u{2014} ";

/// How a key signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The text, by Ed25519.
    Ed25519,
    /// The text with a time, by Ed25519: a witness.
    Cosigner,
}

impl Kind {
    const fn byte(self) -> u8 {
        match self {
            Self::Ed25519 => ED25519_KEY,
            Self::Cosigner => COSIGNER_KEY,
        }
    }
}

/// A public key with its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Verifier {
    name: String,
    kind: Kind,
    key: [u8; 32],
}

/// What is wrong with a key or a note.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// Not `NAME+HASH+KEY`.
    #[error("the key is not of the form NAME+HASH+KEY, {0}")]
    Key(&'static str),
    /// The text cannot be signed.
    #[error("the note is malformed: {0}")]
    Note(&'static str),
    /// A known key's signature does not verify.
    #[error("the signature of {0} does not verify")]
    Signature(String),
    /// No known key signed.
    #[error("no known key signed")]
    Unsigned,
    /// The signer did not sign.
    #[error("signing failed")]
    Signing,
}

impl Verifier {
    /// A key under a name; none where the name cannot stand in a note: empty, with a space or a plus.
    pub fn new(name: &str, kind: Kind, key: [u8; 32]) -> Option<Self> {
        is_name(name).then(|| Self { name: name.to_owned(), kind, key })
    }

    /// Reads `NAME+HASH+KEY`.
    ///
    /// # Errors
    /// Says which part is wrong.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(hash), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoteError::Key("three parts with a plus between them are right"));
        };
        let key = STANDARD.decode(key).map_err(|_| NoteError::Key("KEY is base64"))?;
        let (kind, key) = match key.split_first() {
            Some((&ED25519_KEY, key)) => (Kind::Ed25519, key),
            Some((&COSIGNER_KEY, key)) => (Kind::Cosigner, key),
            _ => return Err(NoteError::Key("its type is 1 (Ed25519) or 4 (cosigner)")),
        };
        let key = key.try_into().map_err(|_| NoteError::Key("KEY is a type byte and 32 bytes"))?;
        let verifier = Self::new(name, kind, key).ok_or(NoteError::Key("NAME has no space and no plus"))?;
        if hash != format!("{:08x}", verifier.id()) {
            return Err(NoteError::Key("HASH is not that of name and key"));
        }
        Ok(verifier)
    }

    /// The key's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it signs.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The public key's bytes.
    pub fn key(&self) -> [u8; 32] {
        self.key
    }

    /// The key's short hash, which stands before each of its signatures.
    pub fn id(&self) -> u32 {
        let digest = Sha256::new()
            .chain_update(&self.name)
            .chain_update([b'\n', self.kind.byte()])
            .chain_update(self.key)
            .finalize();
        digest.first_chunk().map_or(0, |first| u32::from_be_bytes(*first))
    }

    /// Whether these bytes, which follow the id on a signature line, are its signature of the text.
    fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        match self.kind {
            Kind::Ed25519 => self.verifies_bytes(text.as_bytes(), signature),
            Kind::Cosigner => cosignature::split(signature).is_some_and(|(time_s, signature)| {
                self.verifies_bytes(cosignature::message(text, time_s).as_bytes(), signature)
            }),
        }
    }

    fn verifies_bytes(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.key).verify(message, signature).is_ok()
    }
}

impl fmt::Display for Verifier {
    /// `NAME+HASH+KEY`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [&[self.kind.byte()], self.key.as_slice()].concat();
        write!(f, "{}+{:08x}+{}", self.name, self.id(), STANDARD.encode(key))
    }
}

/// A private key with its name. It is never shown.
pub struct Signer {
    verifier: Verifier,
    pair: Ed25519KeyPair,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("verifier", &self.verifier).finish_non_exhaustive()
    }
}

impl Signer {
    /// A key made of a 32-byte seed.
    ///
    /// # Errors
    /// The name cannot stand in a note, or the seed is not 32 bytes.
    pub fn from_seed(name: &str, kind: Kind, seed: &[u8]) -> Result<Self, NoteError> {
        let pair =
            Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| NoteError::Key("a seed is 32 bytes"))?;
        let key = pair.public_key().as_ref().try_into().map_err(|_| NoteError::Key("KEY is 32 bytes"))?;
        let verifier =
            Verifier::new(name, kind, key).ok_or(NoteError::Key("NAME has no space and no plus"))?;
        Ok(Self { verifier, pair })
    }

    /// A seed by the system's random numbers.
    ///
    /// # Errors
    /// The system gives none.
    pub fn new_seed() -> Result<[u8; 32], NoteError> {
        let mut seed = [0; 32];
        aws_lc_rs::rand::SecureRandom::fill(&SystemRandom::new(), &mut seed)
            .map_err(|_| NoteError::Signing)?;
        Ok(seed)
    }

    /// Its public side.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// A signature line for the text; a cosigner signs as at `time_s` seconds after 1970, others take no time.
    pub fn sign(&self, text: &str, time_s: u64) -> String {
        let signature = match self.verifier.kind {
            Kind::Ed25519 => self.pair.sign(text.as_bytes()).as_ref().to_vec(),
            Kind::Cosigner => {
                let signed = self.pair.sign(cosignature::message(text, time_s).as_bytes());
                [time_s.to_be_bytes().as_slice(), signed.as_ref()].concat()
            }
        };
        let bytes = [self.verifier.id().to_be_bytes().as_slice(), &signature].concat();
        format!("{DASH}{} {}\n", self.verifier.name, STANDARD.encode(bytes))
    }
}

/// A signature line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature<'n> {
    /// Name of the key.
    pub name: &'n str,
    /// Short hash of the key.
    pub id: u32,
    /// What follows it.
    pub bytes: Vec<u8>,
}

/// A note taken apart; nothing is verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note<'n> {
    /// What is signed, with its last line end.
    pub text: &'n str,
    /// Signature lines, in their order.
    pub signatures: Vec<Signature<'n>>,
}

impl<'n> Note<'n> {
    /// Takes a note apart.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(note: &'n [u8]) -> Result<Self, NoteError> {
        if note.len() > NOTE_BYTES_MAX {
            return Err(NoteError::Note("it is larger than a mebibyte"));
        }
        let note = str::from_utf8(note).map_err(|_| NoteError::Note("it is not UTF-8"))?;
        if note.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
            return Err(NoteError::Note("it has control characters"));
        }
        let blank =
            note.rfind("\n\n").ok_or(NoteError::Note("no blank line stands before its signatures"))?;
        let (text, lines) = note.split_at(blank + 1);
        let lines = lines.strip_prefix('\n').and_then(|l| l.strip_suffix('\n'));
        let lines = lines.ok_or(NoteError::Note("its last line does not end"))?;
        let signatures: Vec<_> = lines
            .split('\n')
            .take(SIGNATURES_MAX + 1)
            .map(signature)
            .collect::<Option<_>>()
            .ok_or(NoteError::Note("a signature line is not a dash, a name and base64"))?;
        if signatures.len() > SIGNATURES_MAX {
            return Err(NoteError::Note("it has more than 64 signatures"));
        }
        Ok(Self { text, signatures })
    }

    /// Those of `known` that signed. Signatures of others are left aside.
    ///
    /// # Errors
    /// A signature under the name and hash of a known key does not verify, or no known key signed.
    pub fn verify<'k>(&self, known: &'k [Verifier]) -> Result<Vec<&'k Verifier>, NoteError> {
        let mut signed: Vec<&Verifier> = Vec::new();
        for signature in &self.signatures {
            let key = known.iter().find(|key| key.name == signature.name && key.id() == signature.id);
            let Some(key) = key else { continue };
            if !key.verifies(self.text, &signature.bytes) {
                return Err(NoteError::Signature(key.name.clone()));
            }
            if !signed.contains(&key) {
                signed.push(key);
            }
        }
        if signed.is_empty() { Err(NoteError::Unsigned) } else { Ok(signed) }
    }
}

/// The text with signature lines under it.
///
/// # Errors
/// The text does not end with a line end.
pub fn compose(text: &str, signatures: &[String]) -> Result<String, NoteError> {
    if !text.ends_with('\n') {
        return Err(NoteError::Note("its text does not end with a line end"));
    }
    Ok(format!("{text}\n{}", signatures.concat()))
}

fn signature(line: &str) -> Option<Signature<'_>> {
    let (name, encoded) = line.strip_prefix(DASH)?.split_once(' ')?;
    let bytes = STANDARD.decode(encoded).ok()?;
    let (id, bytes) = bytes.split_first_chunk::<4>()?;
    is_name(name).then(|| Signature { name, id: u32::from_be_bytes(*id), bytes: bytes.to_vec() })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '+' || c.is_control())
}
