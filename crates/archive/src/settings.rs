//! Where the archive is.

use serde::Deserialize;
use std::path::PathBuf;

/// Where the archive is, and how to get in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveSettings {
    /// A folder, `file:///FOLDER`, or `s3://BUCKET[/PREFIX]`.
    pub url: String,
    /// For `s3://…`.
    pub s3: S3Settings,
}

impl ArchiveSettings {
    /// An archive that needs no way in of its own: a folder, or a bucket with what the environment says.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), s3: S3Settings::default() }
    }
}

/// How to get into a bucket. What is absent is taken from the variables `AWS_…`, or from the machine's own role.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct S3Settings {
    /// Region of the bucket.
    pub region: Option<String>,
    /// URL of a store that speaks S3 and is not Amazon's.
    pub endpoint: Option<String>,
    /// Name of the key.
    pub access_key_id: Option<String>,
    /// File with the key; surrounding white space is not part of it.
    pub secret_access_key_file: Option<PathBuf>,
    /// Speak HTTP without TLS: for tests inside one machine.
    pub allow_http: bool,
}
