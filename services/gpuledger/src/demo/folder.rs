//! Where the demo writes: the folder the user named, or a temporary one. Bills stay there, readable by their owner.

use crate::outcome::Usage;
use anyhow::{Context, Result};
use gpuledger_wire::{Event, encode_structured};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A folder, by its absolute path.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder to keep, made where it is not there; else a new temporary one.
    ///
    /// # Errors
    /// It cannot be made, or an earlier demo's database lies in it.
    pub(crate) fn new(keep: Option<&Path>) -> Result<Self> {
        let Some(wanted) = keep else {
            // Bills are nobody else's business.
            let private = std::fs::Permissions::from_mode(0o700);
            let folder = tempfile::Builder::new().prefix("gpuledger-demo-").permissions(private).tempdir();
            return Ok(Self { path: folder.context("making a temporary folder")?.keep() });
        };
        let name = || wanted.display().to_string();
        std::fs::create_dir_all(wanted).with_context(name)?;
        if wanted.join("postgres").exists() {
            let why = "holds the database of an earlier demo: stop and remove that, or name another folder";
            return Err(Usage(format!("--keep {} {why}", wanted.display())).into());
        }
        Ok(Self { path: wanted.canonicalize().with_context(name)? })
    }

    /// Its absolute path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file in it, or in a folder below it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let written =
            path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, text));
        written.with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Writes events, one a line.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write_events(&self, name: &str, events: &[Event]) -> Result<PathBuf> {
        let path = self.path.join(name);
        let write = || -> std::io::Result<()> {
            let mut file = BufWriter::new(std::fs::File::create(&path)?);
            for event in events {
                file.write_all(&encode_structured(event))?;
                file.write_all(b"\n")?;
            }
            file.flush()
        };
        write().with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_database_is_not_written_over() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Some(home.path())).unwrap();
        let bill = folder.write("bills/one.html", "<p>").unwrap();
        assert_eq!(std::fs::read_to_string(bill).unwrap(), "<p>");
        std::fs::create_dir(home.path().join("postgres")).unwrap();
        let error = Folder::new(Some(home.path())).unwrap_err();
        assert!(error.is::<Usage>() && error.to_string().contains("earlier demo"), "{error}");
    }
}
