//! What the sink refuses for ever: kept aside, with the reason, for a person to look at.

use super::error::SpoolError;
use super::files::write_whole;
use serde::Serialize;
use serde_json::value::RawValue;
use std::fs;
use std::path::{Path, PathBuf};

/// Events that are kept; the oldest goes first.
const MOST: usize = 256;

/// The file of one event.
#[derive(Serialize)]
struct Refusal<'a> {
    /// Why.
    why: &'a str,
    /// The event.
    event: &'a RawValue,
}

/// Writes `refused/POSITION.json`. The same event again replaces its file.
pub(crate) fn keep(folder: &Path, event: &[u8], after: u64, why: &str) -> Result<PathBuf, SpoolError> {
    let folder = folder.join("refused");
    fs::create_dir_all(&folder).map_err(SpoolError::io("make", &folder))?;
    let path = folder.join(format!("{:020}.json", after.saturating_sub(1)));
    let unreadable = |why: serde_json::Error| SpoolError::io("write", &path)(std::io::Error::other(why));
    let event: &RawValue = serde_json::from_slice(event).map_err(unreadable)?;
    let bytes = serde_json::to_vec(&Refusal { why, event }).map_err(unreadable)?;
    write_whole(&path, &bytes, true, ("spool::refused-written", "spool::refused-named"))?;
    forget_oldest(&folder)?;
    Ok(path)
}

fn forget_oldest(folder: &Path) -> Result<(), SpoolError> {
    let entries = fs::read_dir(folder).map_err(SpoolError::io("list", folder))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort_unstable();
    for file in files.iter().take(files.len().saturating_sub(MOST)) {
        fs::remove_file(file).map_err(SpoolError::io("remove", file))?;
    }
    Ok(())
}
