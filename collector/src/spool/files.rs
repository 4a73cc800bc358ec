//! Files of the spool's folder: names, and writes that are either whole or not there.

use super::error::SpoolError;
use super::points::{disk, point};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Suffix of a file that is not whole yet.
const UNFINISHED: &str = "tmp";
/// Suffix of a segment.
const SEGMENT: &str = "seg";

/// Path of the segment that begins at this position. Names sort as positions do.
pub(crate) fn segment_path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}.{SEGMENT}"))
}

/// First positions of the segments in the folder, in order; what an interrupted write has left is removed.
pub(crate) fn segments(folder: &Path) -> Result<Vec<u64>, SpoolError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(SpoolError::io("list", folder))? {
        let path = entry.map_err(SpoolError::io("list", folder))?.path();
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        match (suffix, stem.and_then(|stem| stem.parse().ok())) {
            (Some(SEGMENT), Some(first)) => found.push(first),
            (Some(UNFINISHED), _) => fs::remove_file(&path).map_err(SpoolError::io("remove", &path))?,
            _ => {}
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Writes a file so that after any interruption the old content or the new is there, whole. Gives back the file, open for writing
/// behind the content. `points` are the failpoints before and after it gets its name.
pub(crate) fn write_whole(
    path: &Path,
    content: &[u8],
    sync: bool,
    points: (&'static str, &'static str),
) -> Result<File, SpoolError> {
    let unfinished = path.with_extension(UNFINISHED);
    let written = fill(&unfinished, content, sync);
    // On a full disk the rest of it would take what little room there is.
    if written.is_err()
        && let Err(error) = fs::remove_file(&unfinished)
    {
        tracing::debug!(file = %unfinished.display(), %error, "an unfinished file stays until the next start");
    }
    let file = written.map_err(SpoolError::io("write", &unfinished))?;
    point(points.0);
    fs::rename(&unfinished, path).map_err(SpoolError::io("name", path))?;
    point(points.1);
    if sync {
        sync_folder(path.parent().unwrap_or(Path::new(".")))?;
    }
    Ok(file)
}

fn fill(path: &Path, content: &[u8], sync: bool) -> io::Result<File> {
    disk("spool::disk")?;
    let mut file = File::create(path)?;
    file.write_all(content)?;
    if sync {
        file.sync_all()?;
    }
    Ok(file)
}

/// Asks the disk to hold the names in a folder.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), SpoolError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(SpoolError::io("sync", folder))
}
