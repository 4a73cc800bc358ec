//! How to reach the cluster. Secrets come from files and are read when a client is made, never kept here.

use std::fs;
use std::path::{Path, PathBuf};

use rdkafka::ClientConfig;
use serde::Deserialize;

use crate::error::MessagingError;

/// Where the cluster is and how to prove who we are. Holds file names of secrets, no secrets, so it may be logged.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct KafkaSettings {
    /// Brokers to ask first: `host:port`, separated by commas.
    pub bootstrap: String,
    /// Name this process shows in the brokers' logs and quotas.
    #[serde(default = "default_client_id")]
    pub client_id: String,
    /// Put before every topic name. Empty in production; lets tests share a broker.
    #[serde(default)]
    pub topic_prefix: String,
    /// TLS and SASL; neither by default.
    #[serde(default)]
    pub security: Security,
}

fn default_client_id() -> String {
    "gpuledger".to_owned()
}

/// How connections are protected.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Security {
    /// Encrypts the connection where set.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Authenticates by name and password where set.
    #[serde(default)]
    pub sasl: Option<Sasl>,
}

/// Certificates, all PEM files. An empty table means TLS with the system's authorities.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Authorities to trust instead of the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Our certificate, where brokers ask for one; needs `key_file`.
    #[serde(default)]
    pub certificate_file: Option<PathBuf>,
    /// The private key of `certificate_file`.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// File with the password of `key_file`.
    #[serde(default)]
    pub key_password_file: Option<PathBuf>,
}

/// A name and the file with its password.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Sasl {
    /// How the password is proven.
    pub mechanism: SaslMechanism,
    /// User name.
    pub username: String,
    /// File with the password; surrounding white space is not part of it.
    pub password_file: PathBuf,
}

/// Supported ways to prove a password.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum SaslMechanism {
    /// The password itself: only sensible inside TLS.
    #[serde(rename = "PLAIN")]
    Plain,
    /// Salted challenge and response over SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// Salted challenge and response over SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

impl SaslMechanism {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl KafkaSettings {
    /// Plain text to `bootstrap`, no prefix: the local stack.
    pub fn plaintext(bootstrap: impl Into<String>) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            client_id: default_client_id(),
            topic_prefix: String::new(),
            security: Security::default(),
        }
    }

    /// Options every client of ours starts from.
    pub(crate) fn client_config(&self) -> Result<ClientConfig, MessagingError> {
        if self.bootstrap.trim().is_empty() {
            return Err(MessagingError::Setting("kafka.bootstrap is empty: give host:port".to_owned()));
        }
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", self.bootstrap.trim())
            .set("client.id", &self.client_id)
            .set("socket.keepalive.enable", "true")
            // The default waits up to ten seconds before it tries a restarted broker again.
            .set("reconnect.backoff.max.ms", "2000");
        self.security.apply(&mut config)?;
        Ok(config)
    }
}

impl Security {
    fn apply(&self, config: &mut ClientConfig) -> Result<(), MessagingError> {
        let protocol = match (&self.tls, &self.sasl) {
            (None, None) => "plaintext",
            (Some(_), None) => "ssl",
            (None, Some(_)) => "sasl_plaintext",
            (Some(_), Some(_)) => "sasl_ssl",
        };
        config.set("security.protocol", protocol);
        if let Some(tls) = &self.tls {
            tls.apply(config)?;
        }
        if let Some(sasl) = &self.sasl {
            config
                .set("sasl.mechanism", sasl.mechanism.name())
                .set("sasl.username", &sasl.username)
                .set("sasl.password", secret(&sasl.password_file)?);
        }
        Ok(())
    }
}

impl Tls {
    fn apply(&self, config: &mut ClientConfig) -> Result<(), MessagingError> {
        if self.certificate_file.is_some() != self.key_file.is_some() {
            let fault = "kafka.security.tls: certificate_file and key_file go together; one is missing";
            return Err(MessagingError::Setting(fault.to_owned()));
        }
        let files = [
            ("ssl.ca.location", &self.ca_file),
            ("ssl.certificate.location", &self.certificate_file),
            ("ssl.key.location", &self.key_file),
        ];
        for (option, file) in files {
            if let Some(file) = file {
                config.set(option, file.to_string_lossy());
            }
        }
        if let Some(file) = &self.key_password_file {
            config.set("ssl.key.password", secret(file)?);
        }
        Ok(())
    }
}

/// Reads a secret; the error names the file, never the content.
fn secret(file: &Path) -> Result<String, MessagingError> {
    let text = fs::read_to_string(file)
        .map_err(|source| MessagingError::Secret { file: file.to_owned(), source })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sasl(password_file: PathBuf) -> KafkaSettings {
        let mut settings = KafkaSettings::plaintext("broker:9093");
        settings.security = Security {
            tls: Some(Tls::default()),
            sasl: Some(Sasl {
                mechanism: SaslMechanism::ScramSha512,
                username: "u".to_owned(),
                password_file,
            }),
        };
        settings
    }

    #[test]
    fn a_password_comes_from_its_file_and_never_into_debug() {
        let file = std::env::temp_dir().join(format!("gpuledger-secret-{}", std::process::id()));
        fs::write(&file, "hunter2\n").unwrap();
        let settings = sasl(file.clone());
        let config = settings.client_config().unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(config.get("sasl.password"), Some("hunter2"));
        assert_eq!(config.get("security.protocol"), Some("sasl_ssl"));
        assert!(!format!("{settings:?}{config:?}").contains("hunter2"));
    }

    #[test]
    fn a_missing_secret_is_named() {
        let fault = sasl(PathBuf::from("/nonexistent/password")).client_config().unwrap_err();
        assert!(fault.to_string().contains("/nonexistent/password"), "{fault}");
    }

    #[test]
    fn half_a_client_certificate_is_refused() {
        let mut settings = KafkaSettings::plaintext("b:1");
        settings.security.tls = Some(Tls { key_file: Some(PathBuf::from("k")), ..Tls::default() });
        assert!(settings.client_config().unwrap_err().to_string().contains("certificate_file and key_file"));
    }
}
