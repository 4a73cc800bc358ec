//! The folder's files: read into buffers that are kept, never beyond a bound, and none besides those that the size asks for.

use super::{Report, Trust};
use crate::checkpoint::Checkpoint;
use crate::policy::Policy;
use crate::tile::{HEIGHT, Named, WIDTH, read_path};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Name of the checkpoint's file.
pub(super) const CHECKPOINT: &str = "checkpoint";
const POLICY: &str = "policy";
const SALTS: &str = "salts.ndjson";
/// A note or a policy is not larger.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// The deepest path: `tile`, a level, seven groups of three digits, a width.
const DEPTH_MAX: usize = 12;

/// Reads files of one folder.
pub(super) struct Files<'f> {
    folder: &'f Path,
    path: PathBuf,
    entries: Vec<u8>,
    tile: Vec<u8>,
}

impl<'f> Files<'f> {
    pub(super) fn new(folder: &'f Path) -> Self {
        Self { folder, path: PathBuf::new(), entries: Vec::new(), tile: Vec::new() }
    }

    pub(super) fn entries(&mut self, name: &str, most: u64) -> Result<&[u8], String> {
        self.path.clear();
        self.path.push(self.folder);
        self.path.push(name);
        read(&self.path, most, &mut self.entries)?;
        Ok(&self.entries)
    }

    pub(super) fn tile(&mut self, name: &str, most: u64) -> Result<&[u8], String> {
        self.path.clear();
        self.path.push(self.folder);
        self.path.push(name);
        read(&self.path, most, &mut self.tile)?;
        Ok(&self.tile)
    }
}

/// Reads a file of at most so many bytes.
fn read(path: &Path, most: u64, into: &mut Vec<u8>) -> Result<(), String> {
    into.clear();
    let file = File::open(path).map_err(|error| said(&error))?;
    file.take(most + 1).read_to_end(into).map_err(|error| said(&error))?;
    if u64::try_from(into.len()).is_ok_and(|length| length <= most) {
        Ok(())
    } else {
        Err(format!("it is longer than the {most} bytes that such a file can have"))
    }
}

fn said(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "the file is missing".to_owned(),
        _ => format!("the file cannot be read: {error}"),
    }
}

/// The folder's checkpoint, if the pinned key signed it. Its policy is looked at too: one that names another log belongs to another log.
pub(super) fn checkpoint(folder: &Path, trust: &Trust<'_>, report: &mut Report) -> Option<Checkpoint> {
    let mut bytes = Vec::new();
    match read(&folder.join(POLICY), TEXT_BYTES_MAX, &mut bytes) {
        Ok(()) => policy(&bytes, trust, report),
        Err(_) if !folder.join(POLICY).exists() => {}
        Err(why) => report.fault(POLICY, None, why),
    }
    if let Err(why) = read(&folder.join(CHECKPOINT), TEXT_BYTES_MAX, &mut bytes) {
        report.fault(CHECKPOINT, None, why);
        return None;
    }
    let (checkpoint, cosigned) = match Checkpoint::open(&bytes, trust.log, trust.policy.witnesses()) {
        Ok(opened) => opened,
        Err(error) => {
            report.fault(CHECKPOINT, None, error.to_string());
            return None;
        }
    };
    if let Err(why) = trust.policy.check(&cosigned) {
        report.fault(CHECKPOINT, None, why);
    }
    report.cosigned = cosigned.iter().map(|witness| witness.name().to_owned()).collect();
    Some(checkpoint)
}

fn policy(bytes: &[u8], trust: &Trust<'_>, report: &mut Report) {
    let policy = str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
    match policy.and_then(|text| Policy::parse(text).map_err(|error| error.to_string())) {
        Ok(policy) if policy.logs().contains(trust.log) => {}
        Ok(_) => report.fault(POLICY, None, format!("it does not name the log {}", trust.log)),
        Err(why) => report.fault(POLICY, None, why),
    }
}

/// Looks for files that a log of this size does not have.
pub(super) fn sweep(folder: &Path, size: u64, trust: &Trust<'_>, report: &mut Report) {
    sweep_in(folder, "", 0, &|name| is_of_log(name, size, trust), report);
}

fn sweep_in(folder: &Path, within: &str, depth: usize, belongs: &impl Fn(&str) -> bool, report: &mut Report) {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) => return report.fault(within, None, format!("the folder cannot be read: {error}")),
    };
    for entry in listed {
        if report.is_hopeless() {
            return;
        }
        let Ok(entry) = entry else {
            return report.fault(within, None, "the folder cannot be read to its end");
        };
        let name = entry.file_name();
        let name = if within.is_empty() {
            name.to_string_lossy().into_owned()
        } else {
            format!("{within}/{}", name.to_string_lossy())
        };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => {
                sweep_in(&entry.path(), &name, depth + 1, belongs, report);
            }
            Ok(kind) if kind.is_file() && belongs(&name) => {}
            _ => report.fault(name, None, "a log of this size has no such file"),
        }
    }
}

fn is_of_log(name: &str, size: u64, trust: &Trust<'_>) -> bool {
    match read_path(name) {
        Some(Named::Entries { index, width }) => is_width(size, index, width) && trust.wants(index),
        Some(Named::Hashes(tile)) => {
            is_width(size >> (u32::from(tile.level) * u32::from(HEIGHT)), tile.index, tile.width)
        }
        None => [CHECKPOINT, POLICY, SALTS].contains(&name),
    }
}

/// Whether a tile over `count` items has this width.
fn is_width(count: u64, index: u64, width: u16) -> bool {
    index
        .checked_mul(WIDTH)
        .and_then(|first| count.checked_sub(first))
        .is_some_and(|left| left.min(WIDTH) == u64::from(width))
}
