//! A clock in a file: the time of a simulated node, driven by who holds it.

use super::{Clock, Stamp};
use gpuledger_domain::time::Instant;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Sixteen bytes, little endian: `u64` microseconds since boot, `i64` microseconds since 1970. Each change is one write, each look one
/// read, so that processes that share the file see both clocks of one moment. To sleep is to move both on.
#[derive(Debug)]
pub struct FileClock {
    file: File,
    /// What was seen last: the answer where the file cannot be read any more. Held while the file is changed.
    last: Mutex<Stamp>,
}

impl FileClock {
    /// Makes the file, or sets it where it stands.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub fn create(path: &Path, at: Stamp) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        file.write_all_at(&bytes(at), 0)?;
        Ok(Self { file, last: Mutex::new(at) })
    }

    /// Takes the file as it stands.
    ///
    /// # Errors
    /// The file cannot be opened, or is shorter than its 16 bytes.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let last = Mutex::new(read(&file)?);
        Ok(Self { file, last })
    }

    /// Sets both clocks, as a step of UTC or a wait.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set(&self, at: Stamp) -> io::Result<()> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.file.write_all_at(&bytes(at), 0)?;
        *last = at;
        Ok(())
    }
}

impl Clock for FileClock {
    fn now(&self) -> Stamp {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(at) = read(&self.file) {
            *last = at;
        }
        *last
    }

    fn sleep_until(&self, monotonic_us: u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = read(&self.file).unwrap_or(*last);
        let step_us = monotonic_us.saturating_sub(now.monotonic_us);
        if step_us == 0 {
            return;
        }
        let real = now.real.plus(i64::try_from(step_us).unwrap_or(i64::MAX));
        let then = Stamp { monotonic_us, real };
        // A clock that cannot be moved stands still; its holder notices, since nothing becomes due any more.
        if self.file.write_all_at(&bytes(then), 0).is_ok() {
            *last = then;
        }
    }
}

fn read(file: &File) -> io::Result<Stamp> {
    let mut bytes = [0; 16];
    file.read_exact_at(&mut bytes, 0)?;
    let (mut monotonic, mut real) = ([0; 8], [0; 8]);
    monotonic.copy_from_slice(&bytes[..8]);
    real.copy_from_slice(&bytes[8..]);
    Ok(Stamp {
        monotonic_us: u64::from_le_bytes(monotonic),
        real: Instant::from_micros(i64::from_le_bytes(real)),
    })
}

fn bytes(at: Stamp) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&at.monotonic_us.to_le_bytes());
    bytes[8..].copy_from_slice(&at.real.as_micros().to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(monotonic_us: u64, real_us: i64) -> Stamp {
        Stamp { monotonic_us, real: Instant::from_micros(real_us) }
    }

    #[test]
    fn a_sleep_moves_both_clocks_for_everybody_who_shares_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        let ours = FileClock::create(&path, stamp(5, 1_000)).unwrap();
        let theirs = FileClock::open(&path).unwrap();
        ours.sleep_until(25);
        assert_eq!(theirs.now(), stamp(25, 1_020));
        theirs.sleep_until(10);
        assert_eq!(ours.now(), stamp(25, 1_020), "what is past is not waited for");
    }

    #[test]
    fn utc_may_be_set_back_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        let clock = FileClock::create(&path, stamp(5, 1_000)).unwrap();
        clock.set(stamp(6, -3)).unwrap();
        assert_eq!(FileClock::open(&path).unwrap().now(), stamp(6, -3));
    }

    #[test]
    fn a_short_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock");
        std::fs::write(&path, [0; 15]).unwrap();
        assert!(FileClock::open(&path).is_err());
    }
}
