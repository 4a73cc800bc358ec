//! The HTTP sink against servers that do what the test says.

use crate::server::{Reply, Request, read, serve, write};
use gpuledger_collector::sink::{HttpSettings, HttpSink, Sent, Sink, SinkError, Stopped, Taken};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::io::BufReader;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn settings(url: String) -> HttpSettings {
    HttpSettings { url, token_file: None, ca_file: None, timeout_seconds: 5 }
}

fn sink(answer: impl Fn(Request) -> Reply + Send + Sync + 'static) -> HttpSink {
    HttpSink::new(settings(format!("http://{}/", serve(answer)))).unwrap()
}

async fn send(sink: &mut HttpSink, events: &[&str]) -> Sent {
    sink.send(events.iter().map(|event| event.as_bytes().to_vec()).collect()).await
}

fn accepted(count: usize) -> Reply {
    Some((202, "", format!("{{\"accepted\":{count},\"not_entitled\":[],\"refused\":[]}}")))
}

fn elements(request: &Request) -> Vec<serde_json::Value> {
    serde_json::from_slice(&request.body).unwrap()
}

#[tokio::test]
async fn a_batch_is_an_array_of_the_events_as_they_are() {
    let mut sink = sink(|request| {
        assert_eq!(request.line.trim(), "POST /v1/events HTTP/1.1");
        assert_eq!(request.body, br#"[{"a":1},{"b":2}]"#);
        accepted(2)
    });
    assert_eq!(send(&mut sink, &[r#"{"a":1}"#, r#"{"b":2}"#]).await, Sent::all(vec![Taken::Stored; 2]));
}

#[tokio::test]
async fn a_new_token_is_read_when_the_old_one_is_refused() {
    let folder = crate::folder();
    let file = folder.path().join("token");
    fs::write(&file, "old\n").unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let known = seen.clone();
    let address = serve(move |request| {
        let token = request.headers["authorization"].clone();
        known.lock().unwrap().push(token.clone());
        if token == "Bearer new" { accepted(1) } else { Some((401, "", "{}".to_owned())) }
    });
    let mut settings = settings(format!("http://{address}"));
    settings.token_file = Some(file.clone());
    let mut sink = HttpSink::new(settings).unwrap();
    let sent = send(&mut sink, &["{}"]).await;
    assert!(sent.taken.is_empty() && sent.stopped.unwrap().why.contains("401"));
    fs::write(&file, "new\n").unwrap();
    assert_eq!(send(&mut sink, &["{}"]).await, Sent::all(vec![Taken::Stored]));
    assert_eq!(send(&mut sink, &["{}"]).await, Sent::all(vec![Taken::Stored]));
    assert_eq!(*seen.lock().unwrap(), ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]);
    assert!(!format!("{sink:?}").contains("new"), "the token is in no log");
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_halved_until_the_one_event_is_found() {
    let mut sink = sink(|request| {
        let events = elements(&request);
        if events.iter().any(|event| event["n"] == 5) {
            return Some((413, "", r#"{"title":"The body is too large"}"#.to_owned()));
        }
        accepted(events.len())
    });
    let events: Vec<String> = (0..8).map(|n| format!("{{\"n\":{n}}}")).collect();
    let sent = send(&mut sink, &events.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(sent.stopped, None);
    for (n, taken) in sent.taken.iter().enumerate() {
        match n {
            5 => assert_eq!(*taken, Taken::Refused("status 413: The body is too large".to_owned())),
            _ => assert_eq!(*taken, Taken::Stored),
        }
    }
}

#[tokio::test]
async fn a_breakdown_in_the_second_half_keeps_the_first() {
    let mut sink = sink(|request| match elements(&request).len() {
        4 => Some((413, "", "{}".to_owned())),
        _ if elements(&request)[0]["n"] == 0 => accepted(2),
        _ => Some((503, "retry-after: 7\r\n", "{}".to_owned())),
    });
    let sent = send(&mut sink, &[r#"{"n":0}"#, r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]).await;
    assert_eq!(sent.taken, vec![Taken::Stored; 2]);
    let wait = Some(Duration::from_secs(7));
    assert_eq!(sent.stopped, Some(Stopped { why: "status 503: ".to_owned(), wait }));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = settings(format!("http://{}", silent.local_addr().unwrap()));
    settings.timeout_seconds = 1;
    let mut sink = HttpSink::new(settings).unwrap();
    let sent = send(&mut sink, &["{}"]).await;
    assert!(sent.taken.is_empty());
    assert!(sent.stopped.unwrap().why.contains("timeout"));
}

#[tokio::test]
async fn nobody_there_is_tried_again() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut sink = HttpSink::new(settings(format!("http://{address}"))).unwrap();
    let sent = send(&mut sink, &["{}"]).await;
    assert!(sent.taken.is_empty() && sent.stopped.is_some());
}

#[test]
fn what_cannot_be_right_is_named_at_the_start() {
    let no_address = HttpSink::new(settings("gpuledger.example".to_owned())).unwrap_err();
    assert!(matches!(no_address, SinkError::Setting { setting: "http.url", .. }), "{no_address}");
    let mut no_token = settings("http://x".to_owned());
    no_token.token_file = Some("/nowhere/token".into());
    let no_token = HttpSink::new(no_token).unwrap_err().to_string();
    assert!(no_token.starts_with("http.token_file names /nowhere/token"), "{no_token}");
    let mut no_authority = settings("http://x".to_owned());
    no_authority.ca_file = Some("/dev/null".into());
    let no_authority = HttpSink::new(no_authority).unwrap_err().to_string();
    assert!(no_authority.contains("/dev/null has no certificate"), "{no_authority}");
}

/// A certificate for `localhost` in the folder; false where there is no openssl.
fn certificate(folder: &Path) -> bool {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    command.arg("-keyout").arg(folder.join("key.pem")).arg("-out").arg(folder.join("ca.pem"));
    command.output().is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn tls_is_checked_against_the_authorities_of_the_settings() {
    let folder = crate::folder();
    if !certificate(folder.path()) {
        eprintln!("SKIPPED: no openssl to make a certificate with");
        return;
    }
    let chain = vec![CertificateDer::from_pem_file(folder.path().join("ca.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = rustls::ServerConnection::new(Arc::new(config.clone())).unwrap();
            let mut reader = BufReader::new(rustls::StreamOwned::new(connection, stream));
            if let Some(request) = read(&mut reader) {
                write(reader.get_mut(), &accepted(elements(&request).len())).unwrap();
            }
        }
    });
    let mut trusting = settings(format!("https://localhost:{port}"));
    let mut stranger = HttpSink::new(trusting.clone()).unwrap();
    let why = send(&mut stranger, &["{}"]).await.stopped.expect("nobody vouches for it").why;
    assert!(why.contains("certificate") || why.contains("UnknownIssuer"), "{why}");
    trusting.ca_file = Some(folder.path().join("ca.pem"));
    let mut sink = HttpSink::new(trusting).unwrap();
    assert_eq!(send(&mut sink, &["{}"]).await, Sent::all(vec![Taken::Stored]));
}
