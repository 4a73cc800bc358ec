//! One request: a batch of events, a token from a file, TLS by rustls with aws-lc.

use super::answer::Answer;
use crate::sink::SinkError;
use crate::spool::points::point;
use rustls::crypto::aws_lc_rs;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::http::{Response, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

/// Media type of a batch of events.
const BATCH: &str = "application/cloudevents-batch+json";
/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// Longest time a service may ask to be left alone.
const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// How to reach the HTTP interface.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// Address of the service: `https://gpuledger.example`; `/v1/events` is put behind it.
    pub url: String,
    /// File with the bearer token; read again when the service refuses the one that is known.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// PEM file with authorities to trust instead of the public ones.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Longest time of one request, in seconds.
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u32,
}

const fn default_timeout_seconds() -> u32 {
    30
}

/// Posts batches. Cheap to clone; clones share connections.
#[derive(Clone)]
pub(crate) struct Client {
    agent: Agent,
    url: String,
    token_file: Option<PathBuf>,
    token: Option<String>,
}

impl std::fmt::Debug for Client {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.url)
            .field("token_file", &self.token_file)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(settings: HttpSettings) -> Result<Self, SinkError> {
        let base = settings.url.trim_end_matches('/');
        if !(base.starts_with("https://") || base.starts_with("http://")) {
            let problem =
                format!("`{}` is no address, expected one such as https://gpuledger.example", settings.url);
            return Err(SinkError::Setting { setting: "http.url", problem });
        }
        let mut tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()));
        if let Some(file) = &settings.ca_file {
            tls = tls.root_certs(authorities(file)?);
        }
        let config = Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(settings.timeout_seconds.max(1).into())))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(1)
            .user_agent(concat!("gpuledger-collector/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            .build();
        let token = settings.token_file.as_deref().map(read_token).transpose()?;
        Ok(Self {
            agent: config.new_agent(),
            url: format!("{base}/v1/events"),
            token_file: settings.token_file,
            token,
        })
    }

    /// Sends a batch. Where the service refuses the token, the file is read again and, if it has another one, that is tried at once.
    pub(crate) fn post(&mut self, events: &[Vec<u8>]) -> Answer {
        let body = batch(events);
        match self.attempt(&body, events.len()) {
            (401, first) => match self.renew_token() {
                Ok(true) => self.attempt(&body, events.len()).1,
                Ok(false) => first,
                Err(error) => Answer::later(error),
            },
            (_, answer) => answer,
        }
    }

    /// Reads the token's file again. Whether there is another one in it.
    fn renew_token(&mut self) -> Result<bool, SinkError> {
        let Some(file) = &self.token_file else { return Ok(false) };
        let token = Some(read_token(file)?);
        let changed = token != self.token;
        self.token = token;
        Ok(changed)
    }

    /// One request: its status, 0 where there is none, and what it means.
    fn attempt(&self, body: &[u8], count: usize) -> (u16, Answer) {
        let mut request = self.agent.post(&self.url).header(header::CONTENT_TYPE, BATCH);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        point("sink::before-request");
        let answered = request.send(body);
        point("sink::after-request");
        let mut response = match answered {
            Ok(response) => response,
            Err(error) => return (0, Answer::later(format!("POST {}: {error}", self.url))),
        };
        let status = response.status().as_u16();
        let wait = retry_after(&response);
        let text = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string();
        match text {
            Ok(text) => (status, Answer::of(status, wait, &text, count)),
            Err(error) => (0, Answer::later(format!("POST {}: the answer broke off: {error}", self.url))),
        }
    }
}

/// The events as one JSON array.
fn batch(events: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::with_capacity(events.iter().map(|event| event.len() + 1).sum::<usize>() + 2);
    for event in events {
        body.push(if body.is_empty() { b'[' } else { b',' });
        body.extend_from_slice(event);
    }
    if body.is_empty() {
        body.push(b'[');
    }
    body.push(b']');
    body
}

/// Seconds of `Retry-After`; a date is not read.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

fn read_token(file: &Path) -> Result<String, SinkError> {
    let text = fs::read_to_string(file).map_err(|source| SinkError::File {
        setting: "http.token_file",
        path: file.to_owned(),
        source,
    })?;
    Ok(text.trim().to_owned())
}

fn authorities(file: &Path) -> Result<RootCerts, SinkError> {
    let setting = "http.ca_file";
    let pem = fs::read(file).map_err(|source| SinkError::File { setting, path: file.to_owned(), source })?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(error) => {
                let problem = format!("{} is no PEM: {error}", file.display());
                return Err(SinkError::Setting { setting, problem });
            }
        }
    }
    if found.is_empty() {
        let problem = format!("{} has no certificate, expected at least one", file.display());
        return Err(SinkError::Setting { setting, problem });
    }
    Ok(RootCerts::new_with_certs(&found))
}
