//! The way to a signer: in this process, or another one behind a unix socket, as another user on the same host, so that who owns the service does not own the key.
//! One line of JSON each way: `{"last":true}` or `{"size":…,"root":…,"proof":[…]}`, and `{"note":…}` or `{"refused":…}`.

use crate::error::SignerError;
use crate::signer::{FileSigner, Request};
use gpuledger_tlog::checkpoint::Checkpoint;
use gpuledger_tlog::hash::Hash;
use gpuledger_tlog::note::Verifier;
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest message: a proof has 63 hashes at most.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// A way to a signer.
#[derive(Clone, Debug)]
pub enum Signing {
    /// Key and head are files of this process.
    File(FileSigner),
    /// Another process.
    Socket {
        /// Where it listens.
        path: PathBuf,
        /// Its public key, which is known beforehand.
        log: Verifier,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Asked {
    Sign { size: String, root: String, proof: Vec<String> },
    Last { last: bool },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Note(String),
    Refused(String),
}

impl Signing {
    /// The public key.
    pub fn verifier(&self) -> &Verifier {
        match self {
            Self::File(signer) => signer.verifier(),
            Self::Socket { log, .. } => log,
        }
    }

    /// The last signed head and its note.
    ///
    /// # Errors
    /// The signer's.
    pub async fn last(&self) -> Result<(Checkpoint, String), SignerError> {
        match self.clone() {
            Self::File(signer) => beside(move || signer.last()).await,
            Self::Socket { path, log } => {
                beside(move || checked(&log, ask(&path, &Asked::Last { last: true })?)).await
            }
        }
    }

    /// Has a head signed.
    ///
    /// # Errors
    /// The signer's.
    pub async fn sign(&self, request: Request) -> Result<String, SignerError> {
        match self.clone() {
            Self::File(signer) => beside(move || signer.sign(&request)).await,
            Self::Socket { path, log } => beside(move || over_socket(&path, &log, &request)).await,
        }
    }
}

/// Files and sockets block.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SignerError> + Send + 'static,
) -> Result<T, SignerError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| SignerError::BrokenOff)?
}

fn over_socket(path: &Path, log: &Verifier, request: &Request) -> Result<String, SignerError> {
    let asked = Asked::Sign {
        size: request.size.to_string(),
        root: request.root.to_base64(),
        proof: request.proof.iter().map(|hash| hash.to_base64()).collect(),
    };
    let (head, note) = checked(log, ask(path, &asked)?)?;
    if (head.size, head.root) != (request.size, request.root) {
        return Err(SignerError::Socket {
            path: path.to_path_buf(),
            why: "it signed another head".to_owned(),
        });
    }
    Ok(note)
}

fn checked(log: &Verifier, note: String) -> Result<(Checkpoint, String), SignerError> {
    let (head, _) = Checkpoint::open(note.as_bytes(), log, &[])?;
    Ok((head, note))
}

fn ask(path: &Path, asked: &Asked) -> Result<String, SignerError> {
    let wrong = |why: String| SignerError::Socket { path: path.to_path_buf(), why };
    let talk = || -> std::io::Result<Answer> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{}\n", serde_json::to_string(asked)?).as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    };
    match talk().map_err(|error| wrong(error.to_string()))? {
        Answer::Note(note) => Ok(note),
        Answer::Refused(why) => Err(wrong(why)),
    }
}

/// Answers at a socket until the process ends: whoever may open the socket may have heads signed, and nothing else.
///
/// # Errors
/// The socket cannot be made. One request that goes wrong is answered and left.
pub fn listen(signer: &FileSigner, path: &Path) -> Result<(), SignerError> {
    // A socket file of a process that was killed is in the way; a living one is not taken from it.
    if UnixStream::connect(path).is_err() {
        let _gone = std::fs::remove_file(path);
    }
    let listener = UnixListener::bind(path).map_err(|error| SignerError::file(path, error))?;
    for stream in listener.incoming().flatten() {
        if let Err(error) = answer(signer, stream) {
            tracing::warn!(%error, "a request to sign was broken off");
        }
    }
    Ok(())
}

fn answer(signer: &FileSigner, mut stream: UnixStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.try_clone()?.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    let said =
        match serde_json::from_str(&line).map_err(|error| error.to_string()).and_then(|a| act(signer, a)) {
            Ok(note) => Answer::Note(note),
            Err(why) => Answer::Refused(why),
        };
    stream.write_all(format!("{}\n", serde_json::to_string(&said)?).as_bytes())
}

fn act(signer: &FileSigner, asked: Asked) -> Result<String, String> {
    match asked {
        Asked::Last { .. } => signer.last().map(|(_, note)| note).map_err(|error| error.to_string()),
        Asked::Sign { size, root, proof } => {
            let hash = |text: &str| Hash::from_base64(text).ok_or("a hash is base64 of 32 bytes".to_owned());
            let request = Request {
                size: size.parse().map_err(|_| "size is a decimal".to_owned())?,
                root: hash(&root)?,
                proof: proof.iter().map(|text| hash(text)).collect::<Result<_, _>>()?,
            };
            signer.sign(&request).map_err(|error| error.to_string())
        }
    }
}
