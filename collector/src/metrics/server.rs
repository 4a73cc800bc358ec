//! The port: HTTP without tokens and without TLS, so it belongs on an inner address.

use super::board::Board;
use gpuledger_telemetry::health::Report;
use gpuledger_telemetry::metrics::CONTENT_TYPE;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE as TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections served at a time; more wait. A scraper needs one.
const CONNECTIONS: usize = 8;
/// A client that has not sent its request by then is let go.
const PATIENCE: Duration = Duration::from_secs(5);
const PLAIN: &str = "text/plain; charset=utf-8";

/// Takes the address. Port 0 is any free one; the address returned says which.
///
/// # Errors
/// The address cannot be had.
pub async fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Answers until `end` completes. A connection that is being answered then is cut.
pub async fn serve(listener: TcpListener, board: Arc<Board>, end: impl Future<Output = ()>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let accepting = async {
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let board = Arc::clone(&board);
                    tokio::spawn(async move {
                        converse(stream, board).await;
                        drop(permit);
                    });
                }
                // Out of file handles, for instance: without the pause this would spin.
                Err(error) => {
                    tracing::warn!(%error, "the metrics port takes no connection");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = end => {}
    }
}

async fn converse(stream: TcpStream, board: Arc<Board>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let response = answer(request.method(), request.uri().path(), &board);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // A client that goes away is no news.
    if let Err(error) = http.serve_connection(TokioIo::new(stream), answer).await {
        tracing::debug!(%error, "a connection to the metrics port ended early");
    }
}

fn answer(method: &Method, path: &str, board: &Board) -> Response<Full<Bytes>> {
    let response = match path {
        "/metrics" => text(StatusCode::OK, CONTENT_TYPE, board.exposition()),
        "/healthz" => report(&board.live()),
        "/readyz" => report(&board.ready()),
        _ => text(StatusCode::NOT_FOUND, PLAIN, "there are /metrics, /healthz and /readyz\n".to_owned()),
    };
    if matches!(*method, Method::GET | Method::HEAD) {
        return response;
    }
    let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "GET or HEAD is right\n".to_owned());
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    refusal
}

fn report(report: &Report) -> Response<Full<Bytes>> {
    if report.ok {
        return text(StatusCode::OK, PLAIN, "ok\n".to_owned());
    }
    let lines: Vec<String> = report.faults.iter().map(|(part, why)| format!("{part}: {why}\n")).collect();
    text(StatusCode::SERVICE_UNAVAILABLE, PLAIN, lines.concat())
}

fn text(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests;
