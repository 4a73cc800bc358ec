//! Reading small files of a procfs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// All of a file, at most `limit` bytes of it.
pub(super) fn read_up_to(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(512);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
