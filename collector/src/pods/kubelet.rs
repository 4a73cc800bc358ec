//! The kubelet's pod-resources API, version v1, over its unix socket.

use super::grpc;
use prost::Message;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::runtime::Builder;

/// What prost makes of `proto/podresources.proto`.
#[expect(unreachable_pub, reason = "generated code")]
pub(super) mod v1 {
    include!(concat!(env!("OUT_DIR"), "/v1.rs"));
}

const LIST: &str = "/v1.PodResourcesLister/List";
const ALLOCATABLE: &str = "/v1.PodResourcesLister/GetAllocatableResources";

/// How the kubelet is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubelet {
    /// Its socket. A container mounts the folder: the file is another one after each restart of the kubelet.
    pub socket: PathBuf,
    /// For connection and answers together, in real time.
    pub deadline: Duration,
}

/// Why the kubelet said nothing.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// No socket: no kubelet on this node, or its folder is not mounted.
    #[error("{} does not exist", .0.display())]
    Absent(PathBuf),
    /// The socket cannot be connected to.
    #[error("{}: {why}", .socket.display())]
    Connect {
        /// Which.
        socket: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// No runtime for the call.
    #[error("the call cannot be started: {0}")]
    Runtime(io::Error),
    /// HTTP/2 broke.
    #[error("connection to the kubelet: {0}")]
    Transport(#[from] h2::Error),
    /// It refuses.
    #[error("the kubelet answers with status {code}: {message}")]
    Status {
        /// Code of gRPC: 7 no permission, 8 too many calls, 12 no such method.
        code: u32,
        /// Its words.
        message: String,
    },
    /// It answers what cannot be read.
    #[error("answer of the kubelet: {0}")]
    Malformed(String),
    /// It did not answer in time.
    #[error("the kubelet did not answer within {0:?}")]
    TimedOut(Duration),
}

/// What the kubelet said.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) pods: Vec<v1::PodResources>,
    /// All devices it may give, given ones included; none where it does not tell (before Kubernetes 1.28 it may be switched off).
    pub(super) allocatable: Option<Vec<v1::ContainerDevices>>,
}

impl Kubelet {
    /// Asks on a connection of its own, so that a restarted kubelet is like any other.
    pub(super) fn ask(&self) -> Result<Answer, KubeletError> {
        let runtime =
            Builder::new_current_thread().enable_io().enable_time().build().map_err(KubeletError::Runtime)?;
        runtime.block_on(async {
            tokio::time::timeout(self.deadline, self.exchange())
                .await
                .unwrap_or(Err(KubeletError::TimedOut(self.deadline)))
        })
    }

    async fn exchange(&self) -> Result<Answer, KubeletError> {
        let socket = UnixStream::connect(&self.socket).await.map_err(|why| self.no_connection(why))?;
        let (client, connection) = h2::client::Builder::new().handshake(socket).await?;
        // Ends with the runtime, after the call. Its faults reach the requests.
        drop(tokio::spawn(connection));
        let mut client: grpc::Client = client.ready().await?;
        let pods: v1::ListPodResourcesResponse = decode(&grpc::call(&mut client, LIST).await?)?;
        let mut client = client.ready().await?;
        let allocatable = match grpc::call(&mut client, ALLOCATABLE).await {
            Ok(message) => Some(decode::<v1::AllocatableResourcesResponse>(&message)?.devices),
            Err(KubeletError::Status { .. }) => None,
            Err(broken) => return Err(broken),
        };
        Ok(Answer { pods: pods.pod_resources, allocatable })
    }

    fn no_connection(&self, why: io::Error) -> KubeletError {
        if why.kind() == io::ErrorKind::NotFound {
            return KubeletError::Absent(self.socket.clone());
        }
        KubeletError::Connect { socket: self.socket.clone(), why }
    }
}

fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M, KubeletError> {
    M::decode(bytes).map_err(|why| KubeletError::Malformed(why.to_string()))
}
