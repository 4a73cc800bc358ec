//! An exported log in a folder, verified whole: `checkpoint`, `tile/LEVEL/INDEX[.p/WIDTH]`, `tile/entries/INDEX[.p/WIDTH]`, and beside them `policy` and
//! `salts.ndjson` where they are.
//!
//! The log is read once, from the first leaf to the last: each entry is hashed, every tile of every level is derived from the entries and compared, and so are the
//! root and the root of the size seen before. Memory does not grow with the log. A fault does not end the reading; the report counts them and names the first bad index.

mod derive;
mod edge;
mod files;

use crate::checkpoint::Checkpoint;
use crate::note::Verifier;
use crate::policy::Policy;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// Faults that a report keeps; the rest are counted.
const KEPT: usize = 100;
/// Faults after which reading ends: nothing is left to save, and a size made up by someone who has the key must not keep a verifier busy for ever.
const FAULTS_MAX: u64 = 100_000;

/// What the verifier holds already: it never comes out of the folder.
#[derive(Clone, Debug)]
pub struct Trust<'t> {
    /// The log's pinned key.
    pub log: &'t Verifier,
    /// How many witnesses must have cosigned.
    pub policy: &'t Policy,
    /// A checkpoint seen before; without one an older or another whole log cannot be told from this one.
    pub last: Option<&'t Checkpoint>,
    /// Only bundles of entries over these leaves are in the folder; none: all. Hashes are always all.
    pub leaves: Option<Range<u64>>,
}

impl<'t> Trust<'t> {
    /// Trust in a key alone, for a whole log.
    pub fn new(log: &'t Verifier, policy: &'t Policy) -> Self {
        Self { log, policy, last: None, leaves: None }
    }

    /// Whether the bundle of entries with this index should be in the folder.
    fn wants(&self, bundle: u64) -> bool {
        let width = crate::tile::WIDTH;
        self.leaves.as_ref().is_none_or(|leaves| {
            leaves.start < leaves.end && (leaves.start / width..leaves.end.div_ceil(width)).contains(&bundle)
        })
    }
}

/// Who is told while a folder is read.
pub trait Watch {
    /// An entry whose hash stands in its tile. That the tile belongs to the signed tree is known only at the end.
    ///
    /// # Errors
    /// What is wrong with the entry besides; it becomes a fault.
    fn entry(&mut self, index: u64, entry: &[u8]) -> Result<(), String> {
        let _ = (index, entry);
        Ok(())
    }

    /// So many leaves of `size` are read.
    fn progress(&mut self, leaves: u64, size: u64) {
        let _ = (leaves, size);
    }
}

/// Nobody is told.
impl Watch for () {}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Relative to the folder.
    pub file: String,
    /// The first leaf that it concerns, where it concerns leaves.
    pub index: Option<u64>,
    /// What is wrong and what would be right.
    pub why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}: leaf {index}: {}", self.file, self.why),
            None => write!(f, "{}: {}", self.file, self.why),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The folder's checkpoint, where its signature by the pinned key verifies.
    pub checkpoint: Option<Checkpoint>,
    /// Names of the policy's witnesses that cosigned it.
    pub cosigned: Vec<String>,
    /// Entries hashed.
    pub leaves: u64,
    /// Tiles of hashes compared.
    pub tiles: u64,
    /// The first hundred faults, as they were met.
    pub faults: Vec<Fault>,
    /// How many there are in all; reading ends at 100,000.
    pub faults_total: u64,
    /// The lowest leaf index that a fault names.
    pub first_bad_index: Option<u64>,
}

impl Report {
    /// The verdict.
    pub fn is_sound(&self) -> bool {
        self.checkpoint.is_some() && self.faults_total == 0
    }

    fn fault(&mut self, file: impl Into<String>, index: Option<u64>, why: impl Into<String>) {
        self.faults_total += 1;
        self.first_bad_index = match (self.first_bad_index, index) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
        if self.faults.len() < KEPT {
            self.faults.push(Fault { file: file.into(), index, why: why.into() });
        }
    }

    fn is_hopeless(&self) -> bool {
        self.faults_total >= FAULTS_MAX
    }
}

/// Verifies the log in a folder against what is trusted. All that is wrong, unreadable files too, is in the report.
pub fn verify_directory(folder: &Path, trust: &Trust<'_>, watch: &mut impl Watch) -> Report {
    let mut report = Report::default();
    let Some(checkpoint) = files::checkpoint(folder, trust, &mut report) else { return report };
    let (size, root) = (checkpoint.size, checkpoint.root);
    report.checkpoint = Some(checkpoint);
    if let Some(last) = trust.last.filter(|last| last.size > size) {
        let why = format!("its size is {size}, and {} was seen before: leaves are gone", last.size);
        report.fault(files::CHECKPOINT, Some(size), why);
    }
    let derived = derive::log(folder, size, trust, watch, &mut report);
    if derived.is_some_and(|derived| derived != root) {
        report.fault(
            files::CHECKPOINT,
            None,
            "the tree of these leaves has another root than the one signed",
        );
    }
    files::sweep(folder, size, trust, &mut report);
    report
}
