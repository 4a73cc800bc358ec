//! What the leaves of an exported log say, read in order: the tree proves that they are the log's, this that they make sense (L-3 to L-5).

use crate::progress::Progress;
use anyhow::{Context, Result};
use gpuledger_tlog::directory::Watch;
use gpuledger_trail::leaf::Leaf;
use gpuledger_trail::opening::Opening;
use gpuledger_trail::review::Review;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Lines};
use std::iter::Peekable;
use std::path::Path;

/// Follows the leaves while they are hashed.
pub(super) struct Reader {
    progress: Progress,
    /// None: nobody asked what they say.
    review: Option<Review>,
    salts: Salts,
}

impl Reader {
    /// Reads leaves and `salts.ndjson` beside them where `reads` says so; else only shows how far it is.
    ///
    /// # Errors
    /// `salts.ndjson` cannot be opened.
    pub(super) fn new(folder: &Path, reads: bool) -> Result<Self> {
        let salts = if reads { Salts::open(folder)? } else { Salts::default() };
        Ok(Self { progress: Progress::new("leaves"), review: reads.then(Review::default), salts })
    }

    /// How many openings fitted.
    ///
    /// # Errors
    /// One is of a leaf that is not there, or none at all.
    pub(super) fn finish(mut self) -> Result<u64, String> {
        self.progress.done();
        match self.salts.next_of(u64::MAX)? {
            None => Ok(self.salts.fitted),
            Some(opening) => Err(format!("salts.ndjson opens leaf {}, which is not there", opening.index)),
        }
    }
}

impl Watch for Reader {
    fn entry(&mut self, index: u64, entry: &[u8]) -> Result<(), String> {
        let Some(review) = &mut self.review else { return Ok(()) };
        review.take(index, entry).map_err(|fault| fault.to_string())?;
        self.salts.fit(index, entry)
    }

    fn progress(&mut self, leaves: u64, _size: u64) {
        self.progress.set(leaves);
    }
}

/// Openings beside the log, in the order of its leaves.
#[derive(Default)]
struct Salts {
    lines: Option<Peekable<Lines<BufReader<File>>>>,
    fitted: u64,
}

impl Salts {
    fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("salts.ndjson");
        let file = path.exists().then(|| File::open(&path)).transpose().context("salts.ndjson")?;
        Ok(Self { lines: file.map(|file| BufReader::new(file).lines().peekable()), fitted: 0 })
    }

    /// The next opening, if it is of this leaf or one before.
    fn next_of(&mut self, index: u64) -> Result<Option<Opening>, String> {
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let read = match lines.peek() {
            None => return Ok(None),
            Some(Ok(line)) => serde_json::from_str(line).ok().as_ref().and_then(Opening::from_json),
            Some(Err(_)) => None,
        };
        let Some(opening) = read else {
            self.lines = None;
            return Err("salts.ndjson: a line is no opening".to_owned());
        };
        if opening.index > index {
            return Ok(None);
        }
        lines.next();
        Ok(Some(opening))
    }

    fn fit(&mut self, index: u64, entry: &[u8]) -> Result<(), String> {
        let mut leaf = None;
        while let Some(opening) = self.next_of(index)? {
            let leaf = leaf.get_or_insert_with(|| Leaf::parse(entry));
            let fits =
                leaf.as_ref().is_some_and(|leaf| opening.index == index && opening.opens(leaf.content()));
            if !fits {
                return Err(format!(
                    "salts.ndjson does not open {} of leaf {}",
                    opening.field, opening.index
                ));
            }
            self.fitted += 1;
        }
        Ok(())
    }
}
