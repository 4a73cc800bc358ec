//! A small HTTP client: one request a connection, and what came back.

use anyhow::{Context, Result};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// One structured event.
    pub(crate) fn event(event: &Value) -> Self {
        let body = event.to_string().into_bytes();
        Self::new("POST", "/v1/events").header("content-type", "application/cloudevents+json").body(body)
    }

    /// A batch of whatever.
    pub(crate) fn batch(elements: &[Value]) -> Self {
        let body = Value::from(elements.to_vec()).to_string().into_bytes();
        Self::new("POST", "/v1/events")
            .header("content-type", "application/cloudevents-batch+json")
            .body(body)
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    pub(crate) async fn send(&self, to: SocketAddr) -> Result<Response> {
        let mut stream = TcpStream::connect(to).await?;
        let mut head =
            format!("{} {} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n", self.method, self.path);
        head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        // A server that has seen enough answers and closes: what could not be written does not matter then.
        let written = stream.write_all(&self.body).await;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes).await;
        if bytes.is_empty() {
            written.context("sending the body")?;
            read.context("reading the answer")?;
        }
        parse(&bytes)
    }
}

fn parse(bytes: &[u8]) -> Result<Response> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("the answer has no head")?;
    let head = std::str::from_utf8(&bytes[..end])?;
    let mut lines = head.split("\r\n");
    let status =
        lines.next().and_then(|line| line.split(' ').nth(1)).context("the answer has no status")?.parse()?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(Response { status, headers, body: bytes[end + 4..].to_vec() })
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
