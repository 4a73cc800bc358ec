//! Checkpoints (`c2sp.org/tlog-checkpoint`): the head of a tree, as the text of a signed note.

use crate::hash::Hash;
use crate::note::{Note, NoteError, Verifier};

/// The head of a log's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log: a URL without scheme, which never changes. The log's key has the same name.
    pub origin: String,
    /// Number of leaves.
    pub size: u64,
    /// Root of the tree of that size.
    pub root: Hash,
}

/// Why a text is no checkpoint, or not one of this log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The text is not origin, size and root.
    #[error("the checkpoint is malformed: {0}")]
    Text(&'static str),
    /// Of another log.
    #[error("the checkpoint is of {found}, not of {expected}")]
    Origin {
        /// Which log was asked for.
        expected: String,
        /// Which stands there.
        found: String,
    },
    /// Its note or a signature.
    #[error(transparent)]
    Note(#[from] NoteError),
}

impl Checkpoint {
    /// The text to be signed.
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, self.root.to_base64())
    }

    /// Reads a text. Extension lines are left aside.
    ///
    /// # Errors
    /// Says which line is wrong.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let body = text.strip_suffix('\n').ok_or(CheckpointError::Text("the last line does not end"))?;
        let mut lines = body.split('\n');
        let origin = lines
            .next()
            .filter(|line| !line.is_empty())
            .ok_or(CheckpointError::Text("line 1 is an origin"))?;
        let size =
            lines.next().and_then(read_size).ok_or(CheckpointError::Text("line 2 is a size in decimal"))?;
        let root = lines
            .next()
            .and_then(Hash::from_base64)
            .ok_or(CheckpointError::Text("line 3 is a hash in base64"))?;
        if lines.any(str::is_empty) {
            return Err(CheckpointError::Text("an extension line is empty"));
        }
        Ok(Self { origin: origin.to_owned(), size, root })
    }

    /// The checkpoint of a signed note whose log signature verifies with `log`, and those of `witnesses` that cosigned it.
    ///
    /// # Errors
    /// The note, a signature, or a checkpoint of another log than the key's.
    pub fn open<'w>(
        note: &[u8],
        log: &Verifier,
        witnesses: &'w [Verifier],
    ) -> Result<(Self, Vec<&'w Verifier>), CheckpointError> {
        let note = Note::parse(note)?;
        note.verify(std::slice::from_ref(log))?;
        let checkpoint = Self::parse(note.text)?;
        if checkpoint.origin != log.name() {
            return Err(CheckpointError::Origin {
                expected: log.name().to_owned(),
                found: checkpoint.origin,
            });
        }
        let cosigned = match note.verify(witnesses) {
            Ok(cosigned) => cosigned,
            Err(NoteError::Unsigned) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        Ok((checkpoint, cosigned))
    }
}

/// A decimal without leading zeros.
pub(crate) fn read_size(text: &str) -> Option<u64> {
    let is_plain = text == "0" || !text.starts_with('0');
    (is_plain && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}
