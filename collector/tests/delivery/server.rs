//! A small HTTP server that takes events and misbehaves.

use crate::truth::Arrived;
use gpuledger_wire::{EventData, decode_batch};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// One request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// An answer: status, further headers, body. None: the connection breaks.
pub(crate) type Reply = Option<(u16, &'static str, String)>;

/// Reads one request; none where the other side has closed.
pub(crate) fn read(stream: &mut impl BufRead) -> Option<Request> {
    let mut request = Request::default();
    stream.read_line(&mut request.line).ok().filter(|length| *length > 0)?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length: usize = request.headers.get("content-length")?.parse().ok()?;
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}

pub(crate) fn write(stream: &mut impl Write, reply: &Reply) -> Option<()> {
    let (status, headers, body) = reply.as_ref()?;
    let length = body.len();
    // At once: in pieces, each would wait for the other side to have confirmed the one before.
    let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    stream.write_all(answer.as_bytes()).ok()
}

/// Serves until the process ends; each connection on a thread of its own.
pub(crate) fn serve(answer: impl Fn(Request) -> Reply + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || converse(&stream, &*answer));
        }
    });
    address
}

fn converse(stream: &TcpStream, answer: &dyn Fn(Request) -> Reply) {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = read(&mut reader) {
        if write(&mut writer, &answer(request)).is_none() {
            return;
        }
    }
}

/// How the events interface behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Breaks every connection.
    Away,
    /// Takes everything.
    Kind,
    /// Each request by its number: answers lost on the way, rate limits, breakdowns, and now and then it works. Refuses some
    /// windows for ever.
    Clumsy,
}

/// An events interface that remembers what it took.
#[derive(Clone)]
pub(crate) struct Events {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    mood: Mood,
    requests: u64,
    arrived: Arrived,
}

impl Events {
    pub(crate) fn start(mood: Mood) -> Self {
        let state = Arc::new(Mutex::new(State { mood, requests: 0, arrived: Arrived::default() }));
        let shared = state.clone();
        let address = serve(move |request| shared.lock().unwrap().answer(&request));
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn become_(&self, mood: Mood) {
        self.state.lock().unwrap().mood = mood;
    }

    /// Looks at what arrived.
    pub(crate) fn arrived<T>(&self, look: impl FnOnce(&Arrived) -> T) -> T {
        look(&self.state.lock().unwrap().arrived)
    }
}

impl State {
    fn answer(&mut self, request: &Request) -> Reply {
        assert!(request.line.starts_with("POST /v1/events "), "{}", request.line);
        assert_eq!(request.headers["content-type"], "application/cloudevents-batch+json");
        self.requests += 1;
        match (self.mood, self.requests % 8) {
            (Mood::Away, _) | (Mood::Clumsy, 1) => None,
            (Mood::Clumsy, 2) => {
                self.take(request);
                None
            }
            (Mood::Clumsy, 3) => Some((503, "", "{}".to_owned())),
            (Mood::Clumsy, 4) => Some((429, "retry-after: 0\r\n", "{}".to_owned())),
            (Mood::Clumsy, 5) => {
                self.take(request);
                Some((202, "", "{\"acc".to_owned()))
            }
            (Mood::Clumsy | Mood::Kind, _) => Some((202, "", self.take(request))),
        }
    }

    fn take(&mut self, request: &Request) -> String {
        let (mut accepted, mut refused) = (0, Vec::new());
        for (index, item) in decode_batch(&request.body).unwrap().into_iter().enumerate() {
            let event = item.event.unwrap();
            if self.mood == Mood::Clumsy && is_refused(&event.id, &event.data) {
                refused.push(format!("{{\"index\":{index},\"detail\":\"not this one\"}}"));
            } else {
                self.arrived.take(event);
                accepted += 1;
            }
        }
        format!("{{\"accepted\":{accepted},\"not_entitled\":[],\"refused\":[{}]}}", refused.join(","))
    }
}

/// Some windows, by their time; never what stands in their place.
fn is_refused(id: &str, data: &EventData) -> bool {
    match data {
        EventData::TelemetryWindow(window) => {
            !id.contains("lost") && window.start.get().as_micros() / crate::truth::STEP_US % 17 == 5
        }
        _ => false,
    }
}
