//! The last signed head, in a file outside the database (L-6): a signed note, replaced as a whole. A kill, a full disk or a failed sync leaves the old or the new
//! one, never a piece; and no head is shown before it is there.

use crate::error::SignerError;
use crate::key::sync_folder;
use crate::points::point;
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::note::Verifier;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file of the last signed head.
#[derive(Clone, Debug)]
pub struct HeadFile {
    path: PathBuf,
}

/// The file, held against other processes.
#[derive(Debug)]
pub struct Held<'f> {
    file: &'f HeadFile,
    _lock: File,
}

impl HeadFile {
    /// At this path; beside it lie its lock and, while it is replaced, the next one.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
    }

    /// Takes it, waiting for whoever has it.
    ///
    /// # Errors
    /// The lock file cannot be made.
    pub fn hold(&self) -> Result<Held<'_>, SignerError> {
        let path = self.beside("lock");
        let take = || -> std::io::Result<File> {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        Ok(Held { file: self, _lock: take().map_err(|error| SignerError::file(&path, error))? })
    }

    fn beside(&self, extension: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".");
        name.push(extension);
        PathBuf::from(name)
    }
}

impl Held<'_> {
    /// The head and its note, as the log's key signed it.
    ///
    /// # Errors
    /// It is not there or was changed. A signer without its last head could sign anything, so there is no default.
    pub fn read(&self, log: &Verifier) -> Result<(Checkpoint, String), SignerError> {
        let path = &self.file.path;
        let note = std::fs::read_to_string(path).map_err(|error| {
            SignerError::file(path, format!("{error}; without the last signed head nothing is signed: put the last published checkpoint there"))
        })?;
        let (head, _) =
            Checkpoint::open(note.as_bytes(), log, &[]).map_err(|error| SignerError::file(path, error))?;
        Ok((head, note))
    }

    /// Puts another note in its place: written beside it, synced, renamed, and the folder synced.
    ///
    /// # Errors
    /// Any step fails; what stands then is the old note or the new one.
    pub fn replace(&self, note: &str) -> Result<(), SignerError> {
        let next = self.file.beside("next");
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&next)?;
            file.write_all(note.as_bytes())?;
            point("audit::head_written");
            sync(&file)?;
            point("audit::head_synced");
            std::fs::rename(&next, &self.file.path)?;
            point("audit::head_renamed");
            sync_folder(&self.file.path)
        };
        write().map_err(|error| SignerError::file(&self.file.path, error))
    }
}

/// Tests let this fail, as a disk does.
fn sync(file: &File) -> std::io::Result<()> {
    fail::fail_point!("audit::head_sync", |_| Err(std::io::Error::other("the disk does not sync")));
    file.sync_all()
}
