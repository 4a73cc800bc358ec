use super::*;
use crate::clock::Clock;
use crate::metrics::Outcome;
use crate::metrics::board::tests::{board, figures};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

/// Runs a conversation with a served board: what to do, then the text of each request's answer.
async fn ask(requests: &[&str]) -> Vec<String> {
    let (clock, board) = board(false);
    board.read(figures(vec![]), clock.now(), Outcome::Complete);
    let (listener, address) = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, Arc::new(board), async move {
        ended.await.unwrap();
    }));
    let mut answers = Vec::new();
    for request in requests {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("{request} HTTP/1.1\r\nhost: n1\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answers.push(answer);
    }
    end.send(()).unwrap();
    serving.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the port is free again");
    answers
}

#[tokio::test]
async fn the_three_pages_answer() {
    let answers = ask(&["GET /metrics", "GET /readyz", "GET /healthz"]).await;
    assert!(answers[0].starts_with("HTTP/1.1 200 OK\r\n"), "{}", answers[0]);
    assert!(
        answers[0].contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{}",
        answers[0]
    );
    assert!(answers[0].contains("\ngpuledger_gpu_power_watts{gpu=\"GPU-1\"} 409.692\n"), "{}", answers[0]);
    for answer in &answers[1..] {
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
    }
}

#[tokio::test]
async fn other_paths_and_methods_are_refused_with_what_is_right() {
    let answers = ask(&["GET /", "POST /metrics", "HEAD /metrics"]).await;
    assert!(answers[0].starts_with("HTTP/1.1 404") && answers[0].contains("/readyz"), "{}", answers[0]);
    assert!(
        answers[1].starts_with("HTTP/1.1 405") && answers[1].contains("allow: GET, HEAD"),
        "{}",
        answers[1]
    );
    assert!(answers[2].starts_with("HTTP/1.1 200") && answers[2].ends_with("\r\n\r\n"), "{}", answers[2]);
}

#[tokio::test]
async fn a_node_that_is_not_ready_says_why() {
    let (_, board) = board(false);
    board.has_gpus(&std::collections::BTreeSet::from(["GPU-7".to_owned()]));
    let response = answer(&Method::GET, "/readyz", &board);
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}
