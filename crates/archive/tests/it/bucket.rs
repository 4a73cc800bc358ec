//! An archive in a bucket, of a store that speaks S3 at `ARCHIVE_S3_ENDPOINT` and has a bucket `gpuledger-archive`.

use crate::files::{HOUR, window};
use anyhow::Result;
use gpuledger_archive::{Archive, ArchiveError, ArchiveSettings, FileKey, Kind, S3Settings, windows};
use gpuledger_domain::time::{HOUR_US, Instant};
use std::path::PathBuf;

fn settings(endpoint: &str, secret: PathBuf) -> ArchiveSettings {
    ArchiveSettings {
        url: format!("s3://gpuledger-archive/run-{}", std::process::id()),
        s3: S3Settings {
            region: Some("eu-central-1".to_owned()),
            endpoint: Some(endpoint.to_owned()),
            access_key_id: Some("AKIAEXAMPLE".to_owned()),
            secret_access_key_file: Some(secret),
            allow_http: true,
        },
    }
}

async fn put(archive: &Archive, hour: Instant, sequence: i64) -> Result<FileKey> {
    let sealed = windows::seal(&[window(sequence, 100)])?;
    let key = sealed.key(Kind::Windows, hour, 0);
    archive.put(&key, sealed).await?;
    Ok(key)
}

#[tokio::test]
async fn a_bucket_is_an_archive_as_a_folder_is() -> Result<()> {
    let Ok(endpoint) = std::env::var("ARCHIVE_S3_ENDPOINT") else {
        println!("skipped: ARCHIVE_S3_ENDPOINT names no store");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "very secret\n")?;
    let archive = Archive::open(&settings(&endpoint, secret))?;
    let (first, second) = (put(&archive, HOUR, 1).await?, put(&archive, HOUR.plus(HOUR_US), 2).await?);
    assert_eq!(put(&archive, HOUR, 1).await?, first, "written again");
    let all = archive.list(Kind::Windows, Instant::MIN, Instant::MAX).await?;
    assert_eq!(all, [first.clone(), second.clone()]);
    assert_eq!(archive.list_hour(Kind::Windows, HOUR).await?, [first.clone()]);
    assert!(archive.get(&second).await?.starts_with(b"PAR1"));
    archive.remove(&first).await?;
    archive.remove(&first).await?;
    let gone = archive.get(&first).await.unwrap_err();
    assert!(matches!(gone, ArchiveError::Store { .. }), "{gone}");
    assert!(!format!("{archive:?} {gone} {gone:?}").contains("very secret"));
    archive.remove(&second).await?;
    Ok(())
}

#[test]
fn a_secret_that_cannot_be_read_is_named_by_its_file() {
    let error = Archive::open(&settings("http://127.0.0.1:1", "/no/such/secret".into())).unwrap_err();
    assert!(error.to_string().contains("/no/such/secret"), "{error}");
    let nameless = ArchiveSettings::at("s3:///prefix");
    assert!(Archive::open(&nameless).unwrap_err().to_string().contains("names no bucket"));
}
