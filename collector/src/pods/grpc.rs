//! One call of gRPC with an empty message, over HTTP/2 without TLS.
//!
//! A message travels behind five bytes: whether it is compressed, and its length; the status comes in the trailers, or, where there is
//! nothing else, in the headers.

use super::kubelet::KubeletError;
use h2::RecvStream;
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, StatusCode};

/// An empty message with its five bytes.
const EMPTY: &[u8] = &[0; 5];
/// Greatest answer, as the kubelet's own clients have it.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// What sends requests on a connection.
pub(super) type Client = SendRequest<&'static [u8]>;

/// The message that answers the method.
pub(super) async fn call(client: &mut Client, method: &'static str) -> Result<Vec<u8>, KubeletError> {
    // The host is not looked at, but Go's server refuses a request without one, or with the path of a socket in it.
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://localhost{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .map_err(|why| KubeletError::Malformed(why.to_string()))?;
    let (response, mut body) = client.send_request(request, false)?;
    body.send_data(EMPTY, true)?;
    let (head, body) = response.await?.into_parts();
    if head.status != StatusCode::OK {
        return Err(KubeletError::Malformed(format!("HTTP status {}, expected 200", head.status)));
    }
    if head.headers.contains_key("grpc-status") {
        check(&head.headers)?;
    }
    let (message, trailers) = receive(body).await?;
    check(trailers.as_ref().unwrap_or(&head.headers))?;
    unframe(&message)
}

async fn receive(mut body: RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), KubeletError> {
    let mut message = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        message.extend_from_slice(&chunk);
        if message.len() > ANSWER_BYTES {
            return Err(KubeletError::Malformed(format!("an answer of more than {ANSWER_BYTES} bytes")));
        }
    }
    Ok((message, body.trailers().await?))
}

fn check(headers: &HeaderMap) -> Result<(), KubeletError> {
    let text =
        |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match text("grpc-status").as_deref().map(str::parse) {
        Some(Ok(0)) => Ok(()),
        Some(Ok(code)) => {
            Err(KubeletError::Status { code, message: text("grpc-message").unwrap_or_default() })
        }
        Some(Err(_)) | None => Err(KubeletError::Malformed("no `grpc-status`, expected a number".to_owned())),
    }
}

fn unframe(message: &[u8]) -> Result<Vec<u8>, KubeletError> {
    let framed = message.split_first_chunk::<5>();
    let Some(([0, a, b, c, d], payload)) = framed else {
        return Err(KubeletError::Malformed("no plain message in the answer, expected one".to_owned()));
    };
    let length = u32::from_be_bytes([*a, *b, *c, *d]);
    if usize::try_from(length).ok() != Some(payload.len()) {
        let problem = format!("{} bytes in the answer, its head says {length}", payload.len());
        return Err(KubeletError::Malformed(problem));
    }
    Ok(payload.to_vec())
}
