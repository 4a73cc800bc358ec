//! An archive in a folder.

use crate::files::{HOUR, window};
use anyhow::Result;
use gpuledger_archive::{Archive, ArchiveError, ArchiveSettings, FileKey, Kind, windows};
use gpuledger_domain::time::{HOUR_US, Instant};
use tempfile::TempDir;

fn archive() -> Result<(TempDir, Archive)> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&ArchiveSettings::at(folder.path().display().to_string()))?;
    Ok((folder, archive))
}

async fn put(archive: &Archive, hour: Instant, part: u32, sequence: i64) -> Result<FileKey> {
    let sealed = windows::seal(&[window(sequence, 100)])?;
    let key = sealed.key(Kind::Windows, hour, part);
    archive.put(&key, sealed).await?;
    Ok(key)
}

#[tokio::test]
async fn files_are_listed_by_hour_and_part_and_others_are_left_out() -> Result<()> {
    let (folder, archive) = archive()?;
    let late = put(&archive, HOUR.plus(HOUR_US), 0, 3).await?;
    let second = put(&archive, HOUR, 1, 2).await?;
    let first = put(&archive, HOUR, 0, 1).await?;
    std::fs::write(folder.path().join("windows/date=2026-10-01/hour=07/notes.txt"), "x")?;
    let all = archive.list(Kind::Windows, Instant::MIN, Instant::MAX).await?;
    assert_eq!(all, [first.clone(), second.clone(), late]);
    let one = archive.list(Kind::Windows, HOUR, HOUR.plus(1)).await?;
    assert_eq!(one, [first.clone(), second.clone()]);
    assert_eq!(archive.list_hour(Kind::Windows, HOUR).await?, [first, second]);
    assert_eq!(archive.list_hour(Kind::Minutes, HOUR).await?, []);
    // An hour whose name is the beginning of no other: `hour=0` would be that of `hour=07`.
    assert_eq!(archive.list_hour(Kind::Windows, HOUR.plus(-7 * HOUR_US)).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_file_whose_bytes_changed_is_damaged() -> Result<()> {
    let (folder, archive) = archive()?;
    let key = put(&archive, HOUR, 0, 1).await?;
    assert!(archive.get(&key).await.is_ok());
    let path = folder.path().join(key.to_string());
    let mut bytes = std::fs::read(&path)?;
    bytes[50] ^= 1;
    std::fs::write(&path, bytes)?;
    let error = archive.get(&key).await.unwrap_err();
    assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("SHA-256"), "{error}");
    Ok(())
}

#[tokio::test]
async fn writing_a_file_again_and_removing_it_twice_is_no_error() -> Result<()> {
    let (folder, archive) = archive()?;
    let key = put(&archive, HOUR, 0, 1).await?;
    assert_eq!(put(&archive, HOUR, 0, 1).await?, key);
    // What a kill leaves between writing and renaming.
    let staged = folder.path().join(format!("{key}#1"));
    std::fs::write(&staged, "half")?;
    archive.remove(&key).await?;
    archive.remove(&key).await?;
    assert!(!staged.exists());
    assert_eq!(archive.list(Kind::Windows, Instant::MIN, Instant::MAX).await?, []);
    Ok(())
}

#[test]
fn places_that_cannot_be_opened_say_what_would_be_right() -> Result<()> {
    for (url, wanted) in [
        ("", "is empty"),
        ("gs://bucket", "expected a folder, file:// or s3://"),
        ("file://server/share", "file:///FOLDER"),
    ] {
        let error = Archive::open(&ArchiveSettings::at(url)).unwrap_err();
        assert!(error.to_string().contains(wanted), "{url}: {error}");
        assert!(!error.is_out_of_reach());
    }
    let missing = Archive::open_to_read(&ArchiveSettings::at("/no/such/folder")).unwrap_err();
    assert!(missing.is_out_of_reach(), "{missing}");
    Ok(())
}
