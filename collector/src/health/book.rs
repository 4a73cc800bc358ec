//! The book of running faults: what was said and must be taken back, kept over restarts.
//!
//! A collector that forgot its own `fault` would never say `ok`, and one that says `ok` at each start would end a maintenance that an operator
//! declared. So the book may name a fault that was never said, and never lacks one that was:
//!
//! ```text
//! fault:  book -> spool    a kill between them: an `ok` too many after the restart
//! ok:     spool -> book    a kill between them: an `ok` twice; the other way round it would be said by nobody
//! ```

use super::fault::Fault;
use super::gpu::{GpuHealth, Signal};
use super::verdict::Change;
use crate::clock::Stamp;
use gpuledger_nvml::Placement;
use gpuledger_wire::bodies::State;
use gpuledger_wire::text::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why the book cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// It cannot be read or written.
    #[error("{file}: {source}")]
    File {
        /// Which file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It holds something else.
    #[error(
        "{file}: {source}; a book of faults is right, or no file: then every GPU counts as sound until it is read"
    )]
    Content {
        /// Which file.
        file: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    /// By GPU, then in any order.
    faults: BTreeMap<String, Vec<Entry>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// First memory slice and number of them; none: the whole device.
    placement: Option<(u32, u32)>,
    /// Under which boot and driver it was said.
    under: String,
    fault: Fault,
}

/// The book of a node.
#[derive(Debug)]
pub struct Book {
    file: PathBuf,
    page: Page,
    /// This boot and driver.
    under: String,
    /// What could not be appended yet, in order.
    unsaid: VecDeque<Change>,
}

impl Book {
    /// Opens the book, or begins one where there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or is no book.
    pub fn open(file: &Path, boot_id: &Name, driver: &str) -> Result<Self, BookError> {
        let page = match fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|source| BookError::Content { file: file.to_owned(), source })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Page::default(),
            Err(source) => return Err(BookError::File { file: file.to_owned(), source }),
        };
        let under = format!("{boot_id} {driver}");
        Ok(Self { file: file.to_owned(), page, under, unsaid: VecDeque::new() })
    }

    /// The health of a GPU as the last run left it. Faults of before a boot or of another driver end with the first good cycle.
    pub fn health(&self, gpu: Name, now: Stamp) -> GpuHealth {
        let entries = self.page.faults.get(gpu.as_str()).cloned().unwrap_or_default();
        let (mut device, mut instances, mut outdated) = (None, BTreeMap::new(), false);
        for Entry { placement, under, fault } in entries {
            outdated |= under != self.under;
            match placement {
                None => device = Some(fault),
                Some((start, size)) => {
                    instances.insert(Placement { start, size }, fault);
                }
            }
        }
        let mut health = GpuHealth::restored(gpu, device, instances);
        if outdated {
            health.on(Signal::Reloaded, now);
        }
        health
    }

    /// Says what changed: `append` puts a change into the spool, in the order that survives a kill. What it refuses is kept and said before the
    /// next change, or by [`Book::retry`].
    ///
    /// # Errors
    /// The book cannot be written; the changes are said all the same.
    pub fn say<E>(
        &mut self,
        health: &GpuHealth,
        changes: Vec<Change>,
        append: impl FnMut(&Change) -> Result<(), E>,
    ) -> Result<(), BookError> {
        let gpu = health.gpu().to_string();
        let now = self.entries(health);
        let mut kept = Ok(());
        if changes.iter().any(|change| change.state.state == State::Fault) {
            let both = self.page.faults.entry(gpu.clone()).or_default();
            both.retain(|old| !now.iter().any(|new| new.placement == old.placement));
            both.extend(now.iter().cloned());
            kept = self.keep();
        }
        self.unsaid.extend(changes);
        if self.retry(append) {
            if now.is_empty() {
                self.page.faults.remove(&gpu);
            } else {
                self.page.faults.insert(gpu, now);
            }
            kept = kept.and(self.keep());
        }
        kept
    }

    /// Says again what could not be said. True: nothing is left.
    pub fn retry<E>(&mut self, mut append: impl FnMut(&Change) -> Result<(), E>) -> bool {
        while let Some(change) = self.unsaid.front() {
            if append(change).is_err() {
                return false;
            }
            self.unsaid.pop_front();
        }
        true
    }

    /// Changes that wait for room in the spool.
    pub fn unsaid(&self) -> usize {
        self.unsaid.len()
    }

    fn entries(&self, health: &GpuHealth) -> Vec<Entry> {
        let entry =
            |placement, fault: &Fault| Entry { placement, under: self.under.clone(), fault: fault.clone() };
        let device = health.fault().map(|fault| entry(None, fault));
        let instances = health.instance_faults().iter();
        let instances = instances.map(|(at, fault)| entry(Some((at.start, at.size)), fault));
        device.into_iter().chain(instances).collect()
    }

    /// Writes the page beside the file and puts it in its place, so that a kill leaves one or the other.
    fn keep(&self) -> Result<(), BookError> {
        let fault = |source| BookError::File { file: self.file.clone(), source };
        let bytes = serde_json::to_vec(&self.page).map_err(|error| fault(error.into()))?;
        let beside = self.file.with_extension("new");
        let mut file = File::create(&beside).map_err(fault)?;
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(fault)?;
        fs::rename(&beside, &self.file).map_err(fault)?;
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()).map_err(fault)
    }
}

#[cfg(test)]
mod tests;
