//! Keys of tokens, as PEM files.

use aws_lc_rs::signature::Ed25519KeyPair;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use std::fmt;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not a PEM text with one of the known labels.
    #[error("the key is no PEM file with a PRIVATE KEY or PUBLIC KEY: {0}")]
    Pem(String),
    /// A kind of key that is not taken.
    #[error("the key is neither Ed25519 nor RSA of 2048 bits or more: {0}")]
    Kind(String),
    /// A public key where a private one is needed.
    #[error("the key is public: signing a token needs the private key")]
    Public,
    /// The library could make none.
    #[error("no key could be made")]
    Generate,
    /// The file.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A private key that signs tokens.
#[derive(Clone)]
pub struct SigningKey {
    pub(super) key: EncodingKey,
    pub(super) algorithm: Algorithm,
}

/// A public key that verifies tokens, and the one algorithm it goes with.
#[derive(Clone)]
pub struct VerifyKey {
    pub(super) key: DecodingKey,
    pub(super) algorithm: Algorithm,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({:?})", self.algorithm)
    }
}

impl fmt::Debug for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyKey({:?})", self.algorithm)
    }
}

impl SigningKey {
    /// Reads a private key: Ed25519 (PKCS #8) or RSA (PKCS #1 or #8).
    ///
    /// # Errors
    /// Says what the file is instead.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        match label(pem)?.as_str() {
            "PUBLIC KEY" | "RSA PUBLIC KEY" => Err(KeyError::Public),
            "RSA PRIVATE KEY" => Self::rsa(pem),
            "PRIVATE KEY" => match EncodingKey::from_ed_pem(pem) {
                Ok(key) => Ok(Self { key, algorithm: Algorithm::EdDSA }),
                Err(_) => Self::rsa(pem),
            },
            other => Err(KeyError::Pem(format!("it is labelled {other}"))),
        }
    }

    fn rsa(pem: &[u8]) -> Result<Self, KeyError> {
        let key = EncodingKey::from_rsa_pem(pem).map_err(|why| KeyError::Kind(why.to_string()))?;
        Ok(Self { key, algorithm: Algorithm::RS256 })
    }

    /// The public half.
    ///
    /// # Errors
    /// The private key is broken.
    pub fn verify_key(&self) -> Result<VerifyKey, KeyError> {
        let jwk = Jwk::from_encoding_key(&self.key, self.algorithm);
        let key =
            jwk.and_then(|jwk| DecodingKey::from_jwk(&jwk)).map_err(|why| KeyError::Kind(why.to_string()))?;
        Ok(VerifyKey { key, algorithm: self.algorithm })
    }
}

impl VerifyKey {
    /// Reads a public key, or the public half of a private one.
    ///
    /// # Errors
    /// Says what the file is instead.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        match label(pem)?.as_str() {
            "PUBLIC KEY" => match DecodingKey::from_ed_pem(pem) {
                Ok(key) => Ok(Self { key, algorithm: Algorithm::EdDSA }),
                Err(_) => Self::rsa(pem),
            },
            "RSA PUBLIC KEY" => Self::rsa(pem),
            _ => SigningKey::from_pem(pem)?.verify_key(),
        }
    }

    fn rsa(pem: &[u8]) -> Result<Self, KeyError> {
        let key = DecodingKey::from_rsa_pem(pem).map_err(|why| KeyError::Kind(why.to_string()))?;
        Ok(Self { key, algorithm: Algorithm::RS256 })
    }
}

fn label(bytes: &[u8]) -> Result<String, KeyError> {
    pem::parse(bytes).map(|found| found.tag().to_owned()).map_err(|why| KeyError::Pem(why.to_string()))
}

/// A new Ed25519 private key as PKCS #8 PEM: for development; a site brings its own key.
///
/// # Errors
/// The system's source of chance fails.
pub fn generate_ed25519_pem() -> Result<String, KeyError> {
    let pair = Ed25519KeyPair::generate().map_err(|_| KeyError::Generate)?;
    let der = pair.to_pkcs8v1().map_err(|_| KeyError::Generate)?;
    Ok(pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref())))
}

/// Writes a key into a new file that only its owner may read.
///
/// # Errors
/// The file exists or cannot be written.
pub fn write_key_file(path: &Path, pem: &str) -> Result<(), KeyError> {
    let failed = |source| KeyError::File { path: path.display().to_string(), source };
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(pem.as_bytes()).map_err(failed)
}
