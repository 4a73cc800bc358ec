//! The log as a folder: C2SP's layout of tiles, so that foreign tools read it, with the log's policy and, where wanted, openings beside it. It is written page by page;
//! the checkpoint comes last, so what was broken off is seen.

use crate::error::{AuditError, SignerError};
use gpuledger_storage::audit_log::{self, LeafRow};
use gpuledger_storage::subject_keys::{self, SubjectRow};
use gpuledger_storage::{Db, Tx};
use gpuledger_tlog::note::Verifier;
use gpuledger_tlog::tile::{HEIGHT, Tile, WIDTH, entries_path, push_entry};
use gpuledger_trail::keys::Seal;
use gpuledger_trail::leaf::Leaf;
use gpuledger_trail::opening::openings;
use gpuledger_trail::sealed::{Gone, open};
use gpuledger_trail::stored::{StoredError, published, tile_bytes};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bundles of entries read at once.
const PAGE: u64 = 16;
/// Levels of tiles that 2^63 leaves need.
const LEVELS: u8 = 8;

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The folder, which is made; it must be empty.
    pub folder: PathBuf,
    /// The log's key, for the policy.
    pub log: Option<Verifier>,
    /// Witnesses, by name, for the policy.
    pub witnesses: Vec<Verifier>,
    /// Only entries of these leaves, whole bundles of 256; none: all. The hashes are always all.
    pub leaves: Option<Range<u64>>,
    /// With openings, for who may see them all; keys may be sealed under this.
    pub openings: Option<Seal>,
}

/// Writes the log under its published head; its size. `told` hears how many leaves are written.
///
/// # Errors
/// Nothing is published, the folder, the database, or a key.
pub async fn export(db: &Db, wanted: &Wanted, mut told: impl FnMut(u64)) -> Result<u64, AuditError> {
    let mut tx = db.snapshot().await?;
    let Some(head) = published(&mut tx).await? else {
        return Err(StoredError::Missing("a published checkpoint".to_owned()).into());
    };
    let mut folder = Folder::new(&wanted.folder)?;
    if let Some(log) = &wanted.log {
        folder.put("policy", policy(log, &wanted.witnesses).as_bytes())?;
    }
    entries(&mut tx, wanted, head.size, &mut folder, &mut told).await?;
    for level in 0..LEVELS {
        let count = head.size >> (u32::from(level) * u32::from(HEIGHT));
        for index in 0..count.div_ceil(WIDTH) {
            let width = u16::try_from((count - index * WIDTH).min(WIDTH)).unwrap_or(256);
            let tile = Tile { level, index, width };
            let bytes = tile_bytes(&mut tx, tile, head.size).await?;
            let bytes = bytes.ok_or_else(|| StoredError::Missing(tile.path()))?;
            folder.put(&tile.path(), &bytes)?;
        }
    }
    folder.put("checkpoint", head.note.as_bytes())?;
    Ok(head.size)
}

/// A policy that takes the log's signature alone: which witnesses are enough is for the reader to say, not for the log.
fn policy(log: &Verifier, witnesses: &[Verifier]) -> String {
    let mut text = format!("log {log}\n");
    for witness in witnesses {
        text.push_str(&format!("witness {} {witness}\n", witness.name()));
    }
    text.push_str("quorum none\n");
    text
}

async fn entries(
    tx: &mut Tx,
    wanted: &Wanted,
    size: u64,
    folder: &mut Folder,
    told: &mut impl FnMut(u64),
) -> Result<(), AuditError> {
    let leaves = wanted.leaves.clone().unwrap_or(0..size);
    let (mut bundle, end) = (leaves.start / WIDTH, leaves.end.min(size).div_ceil(WIDTH));
    let mut shown = match &wanted.openings {
        Some(seal) => Some(Openings::new(seal.clone(), folder)?),
        None => None,
    };
    while bundle < end {
        let next = end.min(bundle + PAGE);
        let (from, to) = (bundle * WIDTH, size.min(next * WIDTH));
        let rows = audit_log::leaves(tx, signed(from), signed(to)).await?;
        if u64::try_from(rows.len()) != Ok(to - from) {
            return Err(StoredError::Missing(format!("a leaf before {to}")).into());
        }
        for (index, rows) in (bundle..).zip(rows.chunks(256)) {
            let mut bytes = Vec::new();
            if !rows.iter().all(|row| push_entry(&mut bytes, &row.leaf)) {
                return Err(StoredError::Missing("a leaf that fits a bundle of entries".to_owned()).into());
            }
            let width = u16::try_from(rows.len()).unwrap_or(256);
            folder.put(&entries_path(index, width), &bytes)?;
        }
        if let Some(shown) = &mut shown {
            shown.write(tx, &rows).await?;
        }
        told(to);
        bundle = next;
    }
    match shown {
        Some(shown) => shown.finish(),
        None => Ok(()),
    }
}

/// `salts.ndjson`: one opening a line.
struct Openings {
    path: PathBuf,
    out: BufWriter<File>,
    seal: Seal,
    subjects: BTreeMap<i64, SubjectRow>,
}

impl Openings {
    fn new(seal: Seal, folder: &Folder) -> Result<Self, AuditError> {
        let path = folder.root.join("salts.ndjson");
        let out = BufWriter::new(File::create(&path).map_err(|error| SignerError::file(&path, error))?);
        Ok(Self { path, out, seal, subjects: BTreeMap::new() })
    }

    async fn write(&mut self, tx: &mut Tx, rows: &[LeafRow]) -> Result<(), AuditError> {
        let numbers = rows.iter().flat_map(|row| &row.subjects).copied();
        let unknown: Vec<i64> = numbers.filter(|number| !self.subjects.contains_key(number)).collect();
        for subject in subject_keys::by_numbers(tx, &unknown).await? {
            self.subjects.insert(subject.no, subject);
        }
        let records: Vec<i64> = rows.iter().filter_map(|row| row.pending_seq).collect();
        let mut records = audit_log::bodies(tx, &records).await?;
        open(tx, &self.seal, records.values_mut().map(|(_, body)| body).collect(), Gone::Kept).await?;
        for row in rows.iter().filter(|row| !row.subjects.is_empty()) {
            let Some(leaf) = Leaf::parse(&row.leaf) else { continue };
            let record = row.pending_seq.and_then(|seq| records.get(&seq));
            let record = record.map(|(kind, body)| (kind.as_str(), body.as_slice()));
            let known: Vec<SubjectRow> =
                row.subjects.iter().filter_map(|number| self.subjects.get(number)).cloned().collect();
            for opening in openings(&leaf, &row.subjects, &known, &self.seal, record)? {
                let line = gpuledger_wire::canonical_json(&opening.to_json());
                let written = self.out.write_all(&line).and_then(|()| self.out.write_all(b"\n"));
                written.map_err(|error| SignerError::file(&self.path, error))?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), AuditError> {
        self.out.flush().map_err(|error| SignerError::file(&self.path, error).into())
    }
}

/// A folder that was empty.
struct Folder {
    root: PathBuf,
    /// The subfolder made last.
    made: PathBuf,
}

impl Folder {
    fn new(root: &Path) -> Result<Self, AuditError> {
        let wrong = |why: String| SignerError::file(root, why);
        fs::create_dir_all(root).map_err(|error| wrong(error.to_string()))?;
        let mut inside = fs::read_dir(root).map_err(|error| wrong(error.to_string()))?;
        if inside.next().is_some() {
            return Err(wrong("want an empty folder".to_owned()).into());
        }
        Ok(Self { root: root.to_path_buf(), made: root.to_path_buf() })
    }

    fn put(&mut self, name: &str, bytes: &[u8]) -> Result<(), AuditError> {
        let path = self.root.join(name);
        let mut write = || -> std::io::Result<()> {
            if let Some(parent) = path.parent().filter(|parent| **parent != self.made) {
                fs::create_dir_all(parent)?;
                self.made = parent.to_path_buf();
            }
            fs::write(&path, bytes)
        };
        write().map_err(|error| SignerError::file(&path, error).into())
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
