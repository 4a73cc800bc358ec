//! The place: a folder, or a bucket. A file is written under a temporary name, synced and renamed (a bucket shows a whole object or
//! none), so a reader never sees half of one.

use crate::error::ArchiveError;
use crate::key::{FileKey, Kind, hex};
use crate::sealed::{Sealed, digest};
use crate::settings::ArchiveSettings;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use gpuledger_domain::time::Instant;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use std::path::PathBuf;
use std::sync::Arc;

/// An open archive.
#[derive(Clone, Debug)]
pub struct Archive {
    store: Arc<dyn ObjectStore>,
    /// As the settings name it: for messages.
    place: String,
    /// Where it is a folder.
    folder: Option<PathBuf>,
}

impl Archive {
    /// Opens the archive to write; a folder that is not there is made.
    ///
    /// # Errors
    /// [`ArchiveError::Setting`], [`ArchiveError::Secret`]; [`ArchiveError::Store`] where the folder cannot be made.
    pub fn open(settings: &ArchiveSettings) -> Result<Self, ArchiveError> {
        if let Some(folder) = folder_of(&settings.url)? {
            std::fs::create_dir_all(&folder)
                .map_err(|why| failed(&settings.url, "making the folder", why))?;
        }
        Self::open_to_read(settings)
    }

    /// Opens an archive that is there.
    ///
    /// # Errors
    /// As [`Archive::open`], and where there is no such folder.
    pub fn open_to_read(settings: &ArchiveSettings) -> Result<Self, ArchiveError> {
        let place = settings.url.clone();
        let Some(folder) = folder_of(&place)? else { return bucket::open(settings) };
        let store = LocalFileSystem::new_with_prefix(&folder)
            .map_err(|why| failed(&place, "opening the folder", why))?
            .with_fsync(true);
        Ok(Self { store: Arc::new(store), place, folder: Some(folder) })
    }

    /// As the settings name it.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Makes a file stand. One of this name has the same bytes, so it may be there already.
    ///
    /// # Errors
    /// [`ArchiveError::Store`].
    pub async fn put(&self, key: &FileKey, file: Sealed) -> Result<(), ArchiveError> {
        let path = Path::from(key.to_string());
        let put = self.store.put(&path, Bytes::from(file.bytes).into()).await;
        put.map(drop).map_err(|why| self.failed(format!("writing {key}"), why))
    }

    /// The bytes of a file, which have the digest of its name.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] where they have not; [`ArchiveError::Store`].
    pub async fn get(&self, key: &FileKey) -> Result<Bytes, ArchiveError> {
        let path = Path::from(key.to_string());
        let reading = |why| self.failed(format!("reading {key}"), why);
        let bytes = self.store.get(&path).await.map_err(reading)?.bytes().await.map_err(reading)?;
        let found = digest(&bytes);
        if found == key.digest {
            return Ok(bytes);
        }
        Err(ArchiveError::Damaged {
            key: key.to_string(),
            why: format!("its SHA-256 is {}, its name says {}", hex(&found), hex(&key.digest)),
        })
    }

    /// The files of a kind about the hours that begin in `[from, to)`, by hour and part. What has another form of name is not ours.
    ///
    /// # Errors
    /// [`ArchiveError::Store`].
    pub async fn list(&self, kind: Kind, from: Instant, to: Instant) -> Result<Vec<FileKey>, ArchiveError> {
        let mut keys = self.list_below(kind.word().to_owned()).await?;
        keys.retain(|key| from <= key.hour && key.hour < to);
        Ok(keys)
    }

    /// The files of a kind about one hour, by part.
    ///
    /// # Errors
    /// [`ArchiveError::Store`].
    pub async fn list_hour(&self, kind: Kind, hour: Instant) -> Result<Vec<FileKey>, ArchiveError> {
        self.list_below(FileKey::folder(kind, hour)).await
    }

    async fn list_below(&self, folder: String) -> Result<Vec<FileKey>, ArchiveError> {
        let found: Vec<_> = self
            .store
            .list(Some(&Path::from(folder.as_str())))
            .try_collect()
            .await
            .map_err(|why| self.failed(format!("listing {folder}"), why))?;
        let mut keys: Vec<FileKey> =
            found.iter().filter_map(|object| object.location.as_ref().parse().ok()).collect();
        keys.sort();
        Ok(keys)
    }

    /// Removes a file that no record names, and what a kill left of writing it. One that is not there is removed.
    ///
    /// # Errors
    /// [`ArchiveError::Store`].
    pub async fn remove(&self, key: &FileKey) -> Result<(), ArchiveError> {
        if let Some(folder) = &self.folder {
            self.remove_staged(folder, key)?;
        }
        match self.store.delete(&Path::from(key.to_string())).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(why) => Err(self.failed(format!("removing {key}"), why)),
        }
    }

    /// In a folder a file is written as `NAME#N` and renamed: a kill in between leaves that name.
    fn remove_staged(&self, folder: &std::path::Path, key: &FileKey) -> Result<(), ArchiveError> {
        let name = key.to_string();
        let (hour, name) = name.rsplit_once('/').unwrap_or(("", &name));
        let Ok(entries) = std::fs::read_dir(folder.join(hour)) else { return Ok(()) };
        for entry in entries.flatten() {
            let is_staged = entry.file_name().to_string_lossy().starts_with(&format!("{name}#"));
            if is_staged && let Err(why) = std::fs::remove_file(entry.path()) {
                return Err(failed(&self.place, &format!("removing {}", entry.path().display()), why));
            }
        }
        Ok(())
    }

    fn failed(
        &self,
        doing: String,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ArchiveError {
        failed(&self.place, &doing, source)
    }
}

fn failed(
    place: &str,
    doing: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> ArchiveError {
    ArchiveError::Store { place: place.to_owned(), doing: doing.to_owned(), source: source.into() }
}

/// The folder of the URL; none for a bucket.
fn folder_of(url: &str) -> Result<Option<PathBuf>, ArchiveError> {
    let wanted = |why: String| ArchiveError::Setting { setting: "archive_url", why };
    match url.split_once("://") {
        None if url.is_empty() => Err(wanted("is empty: give a folder or s3://BUCKET/PREFIX".to_owned())),
        None => Ok(Some(PathBuf::from(url))),
        Some(("file", path)) if path.starts_with('/') => Ok(Some(PathBuf::from(path))),
        Some(("file", path)) => Err(wanted(format!("file://{path} names a host: write file:///FOLDER"))),
        Some(("s3", _)) => Ok(None),
        Some((scheme, _)) => {
            Err(wanted(format!("{scheme}:// is not known, expected a folder, file:// or s3://")))
        }
    }
}

#[cfg(not(feature = "s3"))]
mod bucket {
    use super::{Archive, ArchiveError, ArchiveSettings};

    pub(super) fn open(settings: &ArchiveSettings) -> Result<Archive, ArchiveError> {
        let why = format!("{} needs a program built with the feature `s3`", settings.url);
        Err(ArchiveError::Setting { setting: "archive_url", why })
    }
}

#[cfg(feature = "s3")]
mod bucket {
    use super::{Arc, Archive, ArchiveError, ArchiveSettings, Path};
    use object_store::aws::AmazonS3Builder;
    use object_store::prefix::PrefixStore;

    pub(super) fn open(settings: &ArchiveSettings) -> Result<Archive, ArchiveError> {
        let place = settings.url.clone();
        let wanted = |why: String| ArchiveError::Setting { setting: "archive_url", why };
        let name = place.trim_start_matches("s3://");
        let (bucket, prefix) = name.split_once('/').unwrap_or((name, ""));
        if bucket.is_empty() {
            return Err(wanted(format!("{place} names no bucket: write s3://BUCKET/PREFIX")));
        }
        let s3 = &settings.s3;
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        if let Some(region) = &s3.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &s3.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(id) = &s3.access_key_id {
            builder = builder.with_access_key_id(id);
        }
        if let Some(file) = &s3.secret_access_key_file {
            let secret = std::fs::read_to_string(file)
                .map_err(|source| ArchiveError::Secret { file: file.clone(), source })?;
            builder = builder.with_secret_access_key(secret.trim());
        }
        if s3.allow_http {
            builder = builder.with_allow_http(true);
        }
        let store = builder.build().map_err(|why| wanted(why.to_string()))?;
        Ok(Archive { store: Arc::new(PrefixStore::new(store, Path::from(prefix))), place, folder: None })
    }
}
