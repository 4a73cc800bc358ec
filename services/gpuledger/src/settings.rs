//! Process settings: one TOML file (`GPULEDGER_CONFIG`, else `gpuledger.toml` where it is there) and `GPULEDGER_…` variables. Unknown keys
//! and all faults are reported at once.

use crate::outcome::Usage;
use anyhow::Result;
use figment::Figment;
use figment::providers::{Env, Format, Toml};
use figment::value::{Dict, Value};
use gpuledger_archive::{ArchiveSettings, S3Settings};
use gpuledger_audit::witness::WitnessSettings;
use gpuledger_domain::time::HOUR_US;
use gpuledger_ledger::archive::Policy;
use gpuledger_messaging::{KafkaSettings, Replication, Security};
use serde::Deserialize;
use std::path::PathBuf;

/// What a process needs to know.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Postgres, as `postgres://…`; `DATABASE_URL` serves too. Never printed.
    pub(crate) database_url: Option<String>,
    /// Postgres as the API logs in; without it the API takes its role on the same login.
    pub(crate) api_database_url: Option<String>,
    /// Kafka brokers, `host:port` separated by commas; `KAFKA_BOOTSTRAP` serves too.
    pub(crate) kafka_bootstrap: Option<String>,
    /// Put before every topic name: lets several installations share brokers.
    pub(crate) kafka_topic_prefix: String,
    /// TLS and SASL; neither by default. Secrets stand in files of their own.
    pub(crate) kafka_security: Security,
    /// Copies of each partition of topics that are made.
    pub(crate) kafka_replication: Replication,
    /// Name of the ledger's consumer group.
    pub(crate) kafka_group: String,
    /// Stable name of this process in the group (static membership).
    pub(crate) kafka_instance: String,
    /// How long a member may be silent before its partitions go to others.
    pub(crate) kafka_session_seconds: u64,
    /// Address of the API.
    pub(crate) api_bind: String,
    /// Address of health and metrics.
    pub(crate) admin_bind: String,
    /// PEM file with the key that verifies tokens; `token` signs with its private part. Made where it is not there.
    pub(crate) jwt_key_file: PathBuf,
    /// Where telemetry is archived: a folder, `file:///FOLDER` or `s3://BUCKET/PREFIX`.
    pub(crate) archive_url: String,
    /// The way into a bucket; secrets stand in files of their own, or in the variables `AWS_…`.
    pub(crate) archive_s3: S3Settings,
    /// How long after its end an hour of telemetry is archived: what comes later than that makes a further file.
    pub(crate) archive_after_hours: u32,
    /// How long archived windows stay in the database too.
    pub(crate) keep_windows_days: u32,
    /// How long packed hours stay in the database.
    pub(crate) keep_hours_months: u32,
    /// The log's private key; `audit key new` makes it. Of the process that signs alone.
    pub(crate) audit_key_file: PathBuf,
    /// The last head that was signed with it. Never put an older one back.
    pub(crate) audit_head_file: PathBuf,
    /// A signer in another process instead of these two.
    pub(crate) audit_signer_socket: Option<PathBuf>,
    /// The log's public key, where the private one is not at hand.
    pub(crate) audit_log_key: Option<String>,
    /// The key that keys of persons and tenants are sealed under, outside the database. All that reads or writes what is personal needs it.
    pub(crate) audit_kek_file: Option<PathBuf>,
    /// Labels that name a person, besides `user`, `operator`, `approver` and `container`: their values are sealed before they are stored.
    pub(crate) personal_labels: Vec<String>,
    /// Who cosigns published heads.
    pub(crate) audit_witnesses: Vec<WitnessSettings>,
    /// How long the law wants records kept; nothing is erased before that, and nothing at all where nobody says.
    pub(crate) audit_retention_days: Option<u32>,
    /// How often the process that serves the API derives findings for it; 0: it does not.
    pub(crate) findings_minutes: u32,
    /// Log filter.
    pub(crate) log: String,
    /// Logs as JSON, one object a line.
    pub(crate) log_json: bool,
    /// The clock of tests (read by the clock itself; named here so that it is no unknown key).
    pub(crate) now: Option<String>,
    /// Path of the settings file (read before this).
    pub(crate) config: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            database_url: None,
            api_database_url: None,
            kafka_bootstrap: None,
            kafka_topic_prefix: String::new(),
            kafka_security: Security::default(),
            kafka_replication: Replication::SINGLE,
            kafka_group: "gpuledger-ledger".into(),
            kafka_instance: "ledger-0".into(),
            kafka_session_seconds: 30,
            api_bind: "127.0.0.1:8080".into(),
            admin_bind: "127.0.0.1:9090".into(),
            jwt_key_file: "gpuledger-jwt.pem".into(),
            archive_url: "/var/lib/gpuledger/archive".into(),
            archive_s3: S3Settings::default(),
            archive_after_hours: 6,
            keep_windows_days: 7,
            keep_hours_months: 26,
            audit_key_file: "gpuledger-audit.key".into(),
            audit_head_file: "gpuledger-audit.head".into(),
            audit_signer_socket: None,
            audit_log_key: None,
            audit_kek_file: None,
            personal_labels: Vec::new(),
            audit_witnesses: Vec::new(),
            audit_retention_days: None,
            findings_minutes: 5,
            log: "info".into(),
            log_json: false,
            now: None,
            config: None,
        }
    }
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    /// Every unknown key and wrong value, with where it stands.
    pub(crate) fn load() -> Result<Self> {
        let file = std::env::var_os("GPULEDGER_CONFIG").map(PathBuf::from);
        if let Some(missing) = file.as_ref().filter(|path| !path.is_file()) {
            return Err(
                Usage(format!("GPULEDGER_CONFIG names {}, which is no file", missing.display())).into()
            );
        }
        let file = file.unwrap_or_else(|| PathBuf::from("gpuledger.toml"));
        let figment = Figment::new().merge(Toml::file(file)).merge(Env::prefixed("GPULEDGER_"));
        let faults = faults(&figment);
        if !faults.is_empty() {
            return Err(Usage(format!("settings: {}", faults.join("; "))).into());
        }
        let mut settings: Self = figment.extract().map_err(|fault| Usage(format!("settings: {fault}")))?;
        settings.database_url = settings.database_url.or_else(|| std::env::var("DATABASE_URL").ok());
        settings.kafka_bootstrap = settings.kafka_bootstrap.or_else(|| std::env::var("KAFKA_BOOTSTRAP").ok());
        Ok(settings)
    }

    /// Where the database is.
    ///
    /// # Errors
    /// Nobody said.
    pub(crate) fn database_url(&self) -> Result<&str> {
        let missing = || Usage("no database: set DATABASE_URL or `database_url` in gpuledger.toml".into());
        Ok(self.database_url.as_deref().ok_or_else(missing)?)
    }

    /// Where the archive is.
    pub(crate) fn archive(&self) -> ArchiveSettings {
        ArchiveSettings { url: self.archive_url.clone(), s3: self.archive_s3.clone() }
    }

    /// When telemetry is archived, and how long it stays in the database.
    pub(crate) fn keeping(&self) -> Policy {
        Policy {
            archive_after_us: i64::from(self.archive_after_hours).saturating_mul(HOUR_US),
            keep_windows_us: i64::from(self.keep_windows_days).saturating_mul(24 * HOUR_US),
            keep_hours_months: self.keep_hours_months,
        }
    }

    /// How to reach Kafka; none where nobody said.
    pub(crate) fn kafka(&self) -> Option<KafkaSettings> {
        let bootstrap = self.kafka_bootstrap.as_ref()?;
        Some(KafkaSettings {
            topic_prefix: self.kafka_topic_prefix.clone(),
            security: self.kafka_security.clone(),
            ..KafkaSettings::plaintext(bootstrap)
        })
    }
}

/// Every fault of every key: each is read alone, since reading all at once stops at the first.
fn faults(figment: &Figment) -> Vec<String> {
    let given: Dict = match figment.extract() {
        Ok(given) => given,
        Err(fault) => return vec![fault.to_string()],
    };
    let alone = |(key, value): (String, Value)| Figment::from((key, value)).extract::<Settings>().err();
    given.into_iter().filter_map(alone).map(|fault| fault.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_are_named_at_once() {
        let text = "log_jsn = true\nkafka_session_seconds = \"soon\"\nlog = \"debug\"";
        let found = faults(&Figment::from(Toml::string(text)));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|fault| fault.contains("log_jsn")), "{found:?}");
        assert!(found.iter().any(|fault| fault.contains("kafka_session_seconds")), "{found:?}");
    }
}
