//! What the segments alone do not tell: up to where everything was acknowledged, and how far numbers were given.

use super::error::SpoolError;
use super::files::write_whole;
use super::frame::Place;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The state file. It may be older than the segments, never newer: what it lacks is sent again, under the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// The place before the first record that is not acknowledged.
    pub(crate) acknowledged: Place,
    /// The place after the last record when this was written.
    pub(crate) tip: Place,
}

impl State {
    fn path(folder: &Path) -> PathBuf {
        folder.join("state.json")
    }

    /// Reads it; none where there is none, or where it is damaged: then everything that is still there is sent again.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, SpoolError> {
        let path = Self::path(folder);
        match fs::read(&path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)
                .inspect_err(|why| {
                    tracing::error!(file = %path.display(), %why, "the state of the spool is damaged; what is still there is sent again");
                })
                .ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SpoolError::io("read", path)(error)),
        }
    }

    /// Writes it.
    pub(crate) fn write(&self, folder: &Path, sync: bool) -> Result<(), SpoolError> {
        let path = Self::path(folder);
        let bytes =
            serde_json::to_vec(self).map_err(|why| SpoolError::io("write", &path)(io::Error::other(why)))?;
        write_whole(&path, &bytes, sync, ("spool::state-written", "spool::state-named")).map(drop)
    }
}
