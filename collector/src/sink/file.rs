//! A file of NDJSON, for sites with neither Kafka nor HTTP: `gpuledger publish` reads it later.
//!
//! An event has arrived when the disk holds its line. A kill between that and the acknowledgement repeats lines, under the same
//! names. The file is opened for each batch: renaming it begins a new one, and nothing is lost in between.

use super::{Sent, Sink, Taken};
use crate::spool::points::point;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes that are looked through at once for the end of the last whole line.
const STEP_BYTES: u64 = 64 << 10;

/// Which file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct FileSettings {
    /// The file; its folder must be there. It grows without bound: rename it from time to time.
    pub path: PathBuf,
}

/// Appends lines to a file.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
}

impl FileSink {
    /// Nothing is opened yet.
    pub fn new(settings: FileSettings) -> Self {
        Self { path: settings.path }
    }
}

impl Sink for FileSink {
    async fn send(&mut self, events: Vec<Vec<u8>>) -> Sent {
        match append(&self.path, &events) {
            Ok(()) => Sent::all(vec![Taken::Stored; events.len()]),
            Err(error) => Sent::until(Vec::new(), format!("write {}: {error}", self.path.display())),
        }
    }

    async fn close(self, _deadline: Duration) {}
}

fn append(path: &Path, events: &[Vec<u8>]) -> io::Result<()> {
    let is_new = !path.exists();
    let mut file = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
    let end = end_of_lines(&mut file)?;
    if end < file.metadata()?.len() {
        // What an interrupted write has left; it is sent again.
        file.set_len(end)?;
    }
    file.seek(SeekFrom::Start(end))?;
    let mut lines = Vec::with_capacity(events.iter().map(|event| event.len() + 1).sum());
    for event in events {
        lines.extend_from_slice(event);
        lines.push(b'\n');
    }
    file.write_all(&lines)?;
    point("sink::file-written");
    file.sync_data()?;
    if is_new {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Offset behind the last line feed.
fn end_of_lines(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    while end > 0 {
        let begin = end.saturating_sub(STEP_BYTES);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(begin))?;
        file.take(end - begin).read_to_end(&mut bytes)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin.saturating_add(u64::try_from(at).unwrap_or(u64::MAX)).saturating_add(1));
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    async fn send(path: &Path, events: &[&str]) -> Sent {
        let events = events.iter().map(|event| event.as_bytes().to_vec()).collect();
        FileSink::new(FileSettings { path: path.to_owned() }).send(events).await
    }

    #[tokio::test]
    async fn an_interrupted_line_is_cut_off_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.ndjson");
        assert_eq!(send(&path, &["1", "2"]).await, Sent::all(vec![Taken::Stored; 2]));
        fs::write(&path, b"1\n2\n{\"half").unwrap();
        send(&path, &["3"]).await;
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n3\n");
    }

    #[tokio::test]
    async fn a_half_line_alone_is_cut_off_however_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.ndjson");
        fs::write(&path, vec![b'x'; 200_000]).unwrap();
        send(&path, &["1"]).await;
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_is_named_and_tried_again() {
        let sent = send(Path::new("/nowhere/events.ndjson"), &["1"]).await;
        assert!(sent.taken.is_empty());
        assert!(sent.stopped.unwrap().why.contains("/nowhere/events.ndjson"));
    }
}
