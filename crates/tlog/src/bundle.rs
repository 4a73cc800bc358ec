//! Proof files (`c2sp.org/tlog-proof`, v1): index, audit path and checkpoint of one entry, in one text.

use crate::checkpoint::{Checkpoint, CheckpointError, read_size};
use crate::hash::Hash;
use crate::note::Verifier;
use crate::policy::Policy;
use crate::proof::{ProofError, verify_inclusion};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const HEAD: &str = "c2sp.org/tlog-proof@v1";
/// A tree of 2^63 leaves has no longer path.
const PATH_MAX: usize = 63;

/// A proof file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofFile {
    /// Bytes for the reader, such as salts; nothing vouches for them.
    pub extra: Option<Vec<u8>>,
    /// Of the leaf.
    pub index: u64,
    /// The audit path, from the leaf up.
    pub path: Vec<Hash>,
    /// A signed note.
    pub checkpoint: String,
}

/// Why a proof file proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFileError {
    /// The text is none.
    #[error("the proof file is malformed: {0}")]
    Text(&'static str),
    /// Its checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Its path.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// Too few witnesses cosigned.
    #[error("the checkpoint lacks cosignatures: {0}")]
    Quorum(String),
}

impl ProofFile {
    /// Reads a proof file.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn parse(text: &str) -> Result<Self, ProofFileError> {
        let wrong = ProofFileError::Text;
        let (head, checkpoint) =
            text.split_once("\n\n").ok_or(wrong("no blank line before the checkpoint"))?;
        let mut lines = head.split('\n').peekable();
        if lines.next() != Some(HEAD) {
            return Err(wrong("line 1 is c2sp.org/tlog-proof@v1"));
        }
        let extra = match lines.next_if(|line| line.starts_with("extra ")) {
            Some(line) => {
                let encoded = line.strip_prefix("extra ").unwrap_or_default();
                Some(STANDARD.decode(encoded).map_err(|_| wrong("extra is base64"))?)
            }
            None => None,
        };
        let index = lines.next().and_then(|line| line.strip_prefix("index ")).and_then(read_size);
        let index = index.ok_or(wrong("an index in decimal follows"))?;
        let path: Option<Vec<Hash>> = lines.take(PATH_MAX + 1).map(Hash::from_base64).collect();
        let path = path.filter(|path| path.len() <= PATH_MAX);
        let path = path.ok_or(wrong("at most 63 hashes in base64 follow the index"))?;
        Ok(Self { extra, index, path, checkpoint: checkpoint.to_owned() })
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let extra = self.extra.as_ref().map(|bytes| format!("extra {}\n", STANDARD.encode(bytes)));
        let path: String = self.path.iter().map(|hash| format!("{}\n", hash.to_base64())).collect();
        format!("{HEAD}\n{}index {}\n{path}\n{}", extra.unwrap_or_default(), self.index, self.checkpoint)
    }

    /// Verifies that `entry` stands in the log at the index, under a checkpoint that the policy takes.
    ///
    /// # Errors
    /// It is not proven.
    pub fn verify(
        &self,
        entry: &[u8],
        log: &Verifier,
        policy: &Policy,
    ) -> Result<Checkpoint, ProofFileError> {
        let (checkpoint, cosigned) = Checkpoint::open(self.checkpoint.as_bytes(), log, policy.witnesses())?;
        policy.check(&cosigned).map_err(ProofFileError::Quorum)?;
        verify_inclusion(Hash::of_leaf(entry), self.index, checkpoint.size, checkpoint.root, &self.path)?;
        Ok(checkpoint)
    }
}
