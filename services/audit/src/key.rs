//! The log's key, in the form that Go's notes have: `PRIVATE+KEY+NAME+HASH+BASE64`, the base64 of a type byte and a 32-byte seed. It is never shown.

use crate::error::SignerError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gpuledger_tlog::note::{Kind, NoteError, Signer};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const PREFIX: &str = "PRIVATE+KEY+";
/// Type byte of Ed25519.
const ED25519: u8 = 1;

/// A new key for the log `origin`: a URL without scheme, which never changes.
///
/// # Errors
/// The origin cannot name a log, or no random numbers.
pub fn generate(origin: &str) -> Result<(Signer, String), SignerError> {
    let seed = Signer::new_seed()?;
    let signer = Signer::from_seed(origin, Kind::Ed25519, &seed)?;
    let encoded = STANDARD.encode([[ED25519].as_slice(), &seed].concat());
    let text = format!("{PREFIX}{origin}+{:08x}+{encoded}\n", signer.verifier().id());
    Ok((signer, text))
}

/// Reads a key file. It must be readable by its owner alone.
///
/// # Errors
/// Says what is wrong with the file, never what stands in it.
pub fn read(path: &Path) -> Result<Signer, SignerError> {
    let wrong = |why: &str| SignerError::file(path, why);
    let mode = std::fs::metadata(path).map_err(|error| wrong(&error.to_string()))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(wrong("others may read it: `chmod 600` is right"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    parse(text.trim()).map_err(|error| wrong(&error.to_string()))
}

fn parse(text: &str) -> Result<Signer, NoteError> {
    let wrong = NoteError::Key("PRIVATE+KEY+NAME+HASH+BASE64 is right; `gpuledger audit key new` makes one");
    let mut parts = text.strip_prefix(PREFIX).ok_or_else(|| wrong.clone())?.splitn(3, '+');
    let (Some(name), Some(hash), Some(encoded)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(wrong);
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| wrong.clone())?;
    let Some((&ED25519, seed)) = bytes.split_first() else { return Err(wrong) };
    let signer = Signer::from_seed(name, Kind::Ed25519, seed)?;
    if format!("{:08x}", signer.verifier().id()) != hash {
        return Err(NoteError::Key("HASH is not that of name and key"));
    }
    Ok(signer)
}

/// Writes a file that was not there, readable by its owner alone, down to the disk.
///
/// # Errors
/// It is there already, or cannot be written.
pub fn write_new(path: &Path, text: &str) -> Result<(), SignerError> {
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        sync_folder(path)
    };
    write().map_err(|error| SignerError::file(path, error))
}

/// A new or renamed file is there for good only once its folder is on disk.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let (signer, text) = generate("log.example/audit").unwrap();
        write_new(&path, &text).unwrap();
        assert_eq!(read(&path).unwrap().verifier(), signer.verifier());
        assert!(write_new(&path, &text).is_err(), "a key is never overwritten");
        // Base64 has `+` too.
        let secret = text.trim().splitn(5, '+').last().unwrap();
        assert!(!format!("{signer:?}").contains(secret));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains(secret), "{error}");
    }

    #[test]
    fn a_broken_key_file_is_named_without_its_content() {
        for text in ["", "PRIVATE+KEY+", "PRIVATE+KEY+a+00000000+AAAA", "PRIVATE+KEY+a+b+!!"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(!error.contains("AAAA"), "{error}");
        }
    }
}
