//! The client of witnesses (`c2sp.org/tlog-witness`): each is shown the published head with the proof that it extends the one it saw last, and its cosignature is
//! published with the head. A witness that is slow or away holds nobody up: heads are published without it.

use crate::error::AuditError;
use crate::sequencer::unsigned;
use gpuledger_domain::time::Instant;
use gpuledger_storage::Db;
use gpuledger_storage::audit_log::{self, CheckpointRow};
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::{Kind, Note, Verifier};
use gpuledger_trail::stored;
use rustls::crypto::aws_lc_rs;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

/// Longest time of one request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// A witness that says another size is asked again with that; then it is left until the next head.
const TRIES: u32 = 3;

/// A witness.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct WitnessSettings {
    /// Its prefix: `https://witness.example/gpuledger`; `/add-checkpoint` is put behind it.
    pub url: String,
    /// Its key, `NAME+HASH+KEY`, of type 4.
    pub key: String,
}

/// Why a setting is none.
#[derive(Debug, thiserror::Error)]
#[error("witness {url}: {why}")]
pub struct WitnessSettingError {
    /// Which.
    pub url: String,
    /// What would be right.
    pub why: String,
}

/// What a witness said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Signature lines.
    Cosigned(String),
    /// The last size it cosigned is another one.
    Size(u64),
    /// Anything else, for the log.
    Refused(String),
}

/// Clients of all witnesses.
#[derive(Clone, Debug)]
pub struct Witnesses {
    agent: Agent,
    all: Vec<(String, Verifier)>,
    /// The size each cosigned last, as far as is known.
    seen: BTreeMap<String, u64>,
}

impl Witnesses {
    /// Of settings.
    ///
    /// # Errors
    /// An address or a key is none.
    pub fn new(settings: &[WitnessSettings]) -> Result<Self, WitnessSettingError> {
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::WebPki)
            .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("gpuledger/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build());
        let all: Result<Vec<_>, _> = settings.iter().map(read).collect();
        Ok(Self { agent: config.build().new_agent(), all: all?, seen: BTreeMap::new() })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Shows the published head to each witness that has not cosigned it, and stores what they answer; how many cosigned.
    ///
    /// # Errors
    /// The database. A witness's failure is logged and left.
    pub async fn show(&mut self, db: &Db, now: Instant) -> Result<usize, AuditError> {
        let mut tx = db.snapshot().await?;
        let Some(head) = audit_log::latest_checkpoint(&mut tx).await? else { return Ok(0) };
        let have = audit_log::cosignatures(&mut tx, head.size).await?;
        drop(tx);
        let mut cosigned = 0;
        for (url, key) in self.all.clone() {
            if have.iter().any(|(name, _)| name == key.name()) {
                continue;
            }
            match self.ask(db, &url, &key, &head).await? {
                Said::Cosigned(line) => {
                    self.seen.insert(url, unsigned(head.size));
                    let mut tx = db.begin().await?;
                    audit_log::add_cosignature(&mut tx, head.size, key.name(), &line, now.as_micros())
                        .await?;
                    tx.commit().await?;
                    cosigned += 1;
                }
                Said::Size(size) => tracing::warn!(url, size, "a witness keeps naming another size"),
                Said::Refused(why) => tracing::warn!(url, why, "a witness did not cosign"),
            }
        }
        Ok(cosigned)
    }

    async fn ask(
        &mut self,
        db: &Db,
        url: &str,
        key: &Verifier,
        head: &CheckpointRow,
    ) -> Result<Said, AuditError> {
        let size = unsigned(head.size);
        let mut said = Said::Refused("it was not asked".to_owned());
        for _ in 0..TRIES {
            let old = self.seen.get(url).copied().unwrap_or(0);
            if old > size {
                return Ok(Said::Refused(format!("it has seen {old} leaves, the published head has {size}")));
            }
            let mut tx = db.snapshot().await?;
            let proof = stored::consistency(&mut tx, old, size).await?;
            drop(tx);
            let (agent, to) = (self.agent.clone(), format!("{}/add-checkpoint", url.trim_end_matches('/')));
            let (body, key, note) = (request(old, &proof, &head.note), key.clone(), head.note.clone());
            let asked = tokio::task::spawn_blocking(move || match post(&agent, &to, &body) {
                Ok((status, answer)) => understood(status, &answer, &key, &note),
                Err(error) => Said::Refused(error.to_string()),
            });
            said = asked.await.unwrap_or_else(|error| Said::Refused(error.to_string()));
            match &said {
                Said::Size(size) => self.seen.insert(url.to_owned(), *size),
                Said::Cosigned(_) | Said::Refused(_) => return Ok(said),
            };
        }
        Ok(said)
    }
}

fn read(settings: &WitnessSettings) -> Result<(String, Verifier), WitnessSettingError> {
    let wrong = |why: String| WitnessSettingError { url: settings.url.clone(), why };
    if !(settings.url.starts_with("https://") || settings.url.starts_with("http://")) {
        return Err(wrong("want an address such as https://witness.example/gpuledger".to_owned()));
    }
    let key = Verifier::parse(&settings.key).map_err(|error| wrong(error.to_string()))?;
    if key.kind() != Kind::Cosigner {
        return Err(wrong("its key must be of type 4, a cosigner's".to_owned()));
    }
    Ok((settings.url.clone(), key))
}

/// `old SIZE`, the proof line by line, an empty line, the checkpoint.
fn request(old: u64, proof: &[Hash], note: &[u8]) -> Vec<u8> {
    let mut body = format!("old {old}\n");
    for hash in proof {
        body.push_str(&hash.to_base64());
        body.push('\n');
    }
    body.push('\n');
    [body.as_bytes(), note].concat()
}

fn post(agent: &Agent, url: &str, body: &[u8]) -> Result<(u16, String), ureq::Error> {
    let mut response = agent.post(url).content_type("text/plain; charset=utf-8").send(body)?;
    let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()?;
    Ok((response.status().as_u16(), text))
}

/// What an answer means. Since v1.0.0 a conflict of equal sizes moved from 409 to 422; a 409 that names a size is asked again with it, whichever version said it.
fn understood(status: u16, body: &str, key: &Verifier, note: &[u8]) -> Said {
    match status {
        200 => cosignature(body, key, note).map_or_else(
            || Said::Refused("it answered 200 without a valid cosignature of its key".to_owned()),
            Said::Cosigned,
        ),
        409 => match body.trim_end_matches('\n').parse() {
            Ok(size) => Said::Size(size),
            Err(_) => Said::Refused(format!("409 without a size: {}", short(body))),
        },
        422 => Said::Refused(format!("422, the proof or an equal size with another root: {}", short(body))),
        other => Said::Refused(format!("{other}: {}", short(body))),
    }
}

/// The line of this key, if it signs the note's text.
fn cosignature(body: &str, key: &Verifier, note: &[u8]) -> Option<String> {
    let text = Note::parse(note).ok()?.text.to_owned();
    body.lines().find_map(|line| {
        let line = format!("{line}\n");
        let composed = gpuledger_tlog::note::compose(&text, std::slice::from_ref(&line)).ok()?;
        Note::parse(composed.as_bytes()).ok()?.verify(std::slice::from_ref(key)).ok()?;
        Some(line)
    })
}

fn short(body: &str) -> String {
    body.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::generate;
    use gpuledger_tlog::checkpoint::Checkpoint;
    use gpuledger_tlog::note::{Signer, compose};

    fn note() -> (String, String) {
        let (log, _) = generate("log.example/audit").unwrap();
        let head = Checkpoint { origin: "log.example/audit".to_owned(), size: 3, root: Hash([1; 32]) };
        (head.text(), compose(&head.text(), &[log.sign(&head.text(), 0)]).unwrap())
    }

    #[test]
    fn a_cosignature_is_taken_only_where_it_is_the_witness_and_the_head() {
        let (text, note) = note();
        let witness = Signer::from_seed("witness.example", Kind::Cosigner, &[3; 32]).unwrap();
        let line = witness.sign(&text, 1_790_000_000);
        let said = |status, body: &str| understood(status, body, witness.verifier(), note.as_bytes());
        assert_eq!(said(200, &line), Said::Cosigned(line.clone()));
        let other = witness.sign(&text.replace('3', "4"), 1_790_000_000);
        assert!(matches!(said(200, &other), Said::Refused(_)));
        assert!(matches!(said(200, ""), Said::Refused(_)));
        assert_eq!(said(409, "7\n"), Said::Size(7));
        assert!(matches!(said(409, "conflict"), Said::Refused(_)));
        assert!(matches!(said(422, ""), Said::Refused(_)));
        assert!(matches!(said(404, ""), Said::Refused(_)));
    }

    #[test]
    fn a_request_is_size_proof_and_checkpoint() {
        let body = String::from_utf8(request(2, &[Hash([0; 32])], b"note\n")).unwrap();
        assert_eq!(body, "old 2\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\nnote\n");
        assert_eq!(request(0, &[], b"note\n"), b"old 0\n\nnote\n");
    }
}
