//! The kubelet's API against a server of its own: a unix socket, HTTP/2, messages as they travel.

use super::kubelet::v1;
use super::*;
use crate::clock::Clock;
use gpuledger_domain::time::Instant;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use prost::Message;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

const UID: &str = "1f2e3d4c-5b6a-4789-8a9b-0c1d2e3f4a5b";

/// What a fake kubelet does with a call.
#[derive(Clone, Debug)]
enum Reply {
    Message(Vec<u8>),
    Status(u32),
    Raw(Vec<u8>),
    Silence,
}

type Script = Arc<dyn Fn(&str) -> Reply + Send + Sync>;

/// A kubelet in a thread.
struct Fake {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn start(socket: &Path, script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let script: Script = Arc::new(script);
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (path, noted) = (socket.to_owned(), Arc::clone(&calls));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = UnixListener::bind(path).unwrap();
                ready.send(()).unwrap();
                tokio::select! {
                    _ = stopped => {}
                    () = accept(listener, script, noted) => {}
                }
            });
        });
        is_ready.recv().unwrap();
        Self { stop: Some(stop), thread: Some(thread), calls }
    }

    fn with_pods(
        socket: &Path,
        pods: Vec<v1::PodResources>,
        allocatable: Option<Vec<v1::ContainerDevices>>,
    ) -> Self {
        Self::start(socket, move |method| {
            let reply = match method {
                "List" => Some(v1::ListPodResourcesResponse { pod_resources: pods.clone() }.encode_to_vec()),
                _ => allocatable
                    .clone()
                    .map(|devices| v1::AllocatableResourcesResponse { devices }.encode_to_vec()),
            };
            reply.map_or(Reply::Status(12), Reply::Message)
        })
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop.take().unwrap().send(()).ok();
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn accept(listener: UnixListener, script: Script, calls: Arc<Mutex<Vec<String>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&calls)));
    }
}

async fn serve(stream: UnixStream, script: Script, calls: Arc<Mutex<Vec<String>>>) {
    let builder = h2::server::Builder::new();
    let mut connection = builder.handshake::<_, Cursor<Vec<u8>>>(stream).await.unwrap();
    let mut open = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_is_grpc(&request);
        calls.lock().unwrap().push(request.uri().path().to_owned());
        let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
        match script(&method) {
            Reply::Message(message) => {
                let mut framed = vec![0];
                framed.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
                framed.extend_from_slice(&message);
                answer(&mut respond, framed);
            }
            Reply::Raw(bytes) => answer(&mut respond, bytes),
            Reply::Status(code) => {
                let head = Response::builder()
                    .header("content-type", "application/grpc")
                    .header("grpc-status", code);
                respond.send_response(head.header("grpc-message", "no").body(()).unwrap(), true).unwrap();
            }
            Reply::Silence => open.push((request, respond)),
        }
    }
}

/// What a real server of gRPC asks of its callers.
fn assert_is_grpc(request: &Request<h2::RecvStream>) {
    assert_eq!(request.method(), "POST");
    assert_eq!(request.headers()["content-type"], "application/grpc");
    assert_eq!(request.headers()["te"], "trailers");
    assert_eq!(request.uri().authority().unwrap().as_str(), "localhost");
}

fn answer(respond: &mut SendResponse<Cursor<Vec<u8>>>, framed: Vec<u8>) {
    let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    let mut stream = respond.send_response(head, false).unwrap();
    // In two frames: a message may be cut anywhere.
    let tail = framed[framed.len() / 2..].to_vec();
    stream.send_data(Cursor::new(framed[..framed.len() / 2].to_vec()), false).unwrap();
    stream.send_data(Cursor::new(tail), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
}

fn devices(resource: &str, ids: &[&str]) -> v1::ContainerDevices {
    let device_ids = ids.iter().map(ToString::to_string).collect();
    v1::ContainerDevices { resource_name: resource.to_owned(), device_ids }
}

fn claim(driver: &str, device: &str) -> v1::DynamicResource {
    let resource = v1::ClaimResource {
        driver_name: driver.to_owned(),
        pool_name: "n1".to_owned(),
        device_name: device.to_owned(),
        share_id: None,
    };
    v1::DynamicResource {
        claim_name: "c".to_owned(),
        claim_namespace: "ml".to_owned(),
        claim_resources: vec![resource],
    }
}

fn pod(name: &str, devices: Vec<v1::ContainerDevices>, claims: Vec<v1::DynamicResource>) -> v1::PodResources {
    let container = v1::ContainerResources { name: "main".to_owned(), devices, dynamic_resources: claims };
    v1::PodResources { name: name.to_owned(), namespace: "ml".to_owned(), containers: vec![container] }
}

/// A node with a folder for the socket, logs and control groups.
fn node() -> (TempDir, Pods) {
    let dir = TempDir::new().unwrap();
    let pods = Pods {
        kubelet: Kubelet { socket: dir.path().join("kubelet.sock"), deadline: Duration::from_secs(5) },
        logs: dir.path().join("logs"),
        cgroups: dir.path().join("cgroups"),
    };
    fs::create_dir_all(dir.path().join("cgroups")).unwrap();
    (dir, pods)
}

const NOW: Stamp = Stamp { monotonic_us: 7, real: Instant::from_micros(9) };

#[test]
fn the_devices_of_every_pod_are_listed() {
    let (_dir, pods) = node();
    let given = vec![
        devices("nvidia.com/gpu.shared", &["GPU-1::3", "GPU-1::0"]),
        devices("nvidia.com/mig-1g.10gb", &["MIG-1"]),
    ];
    let claims = vec![claim("gpu.nvidia.com", "gpu-2"), claim("compute-domain.nvidia.com", "channel-0")];
    let _kubelet = Fake::with_pods(
        &pods.kubelet.socket,
        vec![
            pod("train-0", given, claims),
            pod("web-0", vec![devices("example.com/nic", &["eth1"])], Vec::new()),
            pod("idle-0", Vec::new(), Vec::new()),
        ],
        Some(vec![
            devices("nvidia.com/gpu.shared", &["GPU-1::0", "GPU-1::1", "GPU-1::2", "GPU-1::3"]),
            devices("nvidia.com/gpu.shared", &["GPU-1::0"]),
        ]),
    );
    let listing = pods.list(NOW).unwrap();
    assert_eq!(listing.asked, NOW);
    let names: Vec<&str> = listing.pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["ml/train-0"], "pods without a GPU are left out");
    let given: Vec<(&str, &str)> =
        listing.pods[0].given.iter().map(|g| (g.resource.as_str(), g.text.as_str())).collect();
    assert_eq!(
        given,
        [
            ("nvidia.com/gpu.shared", "GPU-1::3"),
            ("nvidia.com/gpu.shared", "GPU-1::0"),
            ("nvidia.com/mig-1g.10gb", "MIG-1"),
            ("gpu.nvidia.com ml/c", "gpu-2"),
        ]
    );
    assert_eq!(listing.replicas.unwrap(), [(Device::Gpu("GPU-1".to_owned()), 4)].into());
}

#[test]
fn a_finished_pod_is_told_from_a_living_one() {
    let (dir, pods) = node();
    let listed = ["train-0", "train-1", "train-2"]
        .map(|name| pod(name, vec![devices("nvidia.com/gpu", &["GPU-1"])], Vec::new()));
    let _kubelet = Fake::with_pods(&pods.kubelet.socket, listed.to_vec(), None);
    let life = || {
        let listing = pods.list(NOW).unwrap();
        listing
            .pods
            .iter()
            .map(|pod| (pod.uid.clone().map(|uid| uid.to_string()), pod.life))
            .collect::<Vec<_>>()
    };
    assert_eq!(life(), vec![(None, Life::Untold); 3]);

    let dead = UID.replace("1f2e", "0000");
    fs::create_dir_all(dir.path().join(format!("logs/ml_train-0_{UID}"))).unwrap();
    fs::create_dir_all(dir.path().join(format!("logs/ml_train-1_{dead}"))).unwrap();
    assert_eq!(life()[0], (Some(UID.to_owned()), Life::Untold), "no control groups to look at");

    let slice = format!("cgroups/kubepods.slice/kubepods-pod{}.slice", UID.replace('-', "_"));
    fs::create_dir_all(dir.path().join(slice)).unwrap();
    assert_eq!(
        life(),
        [(Some(UID.to_owned()), Life::Alive), (Some(dead), Life::Ended), (None, Life::Untold)]
    );
}

#[test]
fn a_kubelet_that_does_not_tell_its_devices_is_asked_all_the_same() {
    let (_dir, pods) = node();
    let kubelet = Fake::with_pods(&pods.kubelet.socket, Vec::new(), None);
    assert_eq!(pods.list(NOW).unwrap().replicas, None);
    let calls = kubelet.calls.lock().unwrap().clone();
    assert_eq!(calls, ["/v1.PodResourcesLister/List", "/v1.PodResourcesLister/GetAllocatableResources"]);
}

#[test]
fn a_long_list_passes_the_windows_of_flow_control() {
    let (_dir, pods) = node();
    let many: Vec<String> = (0..20_000).map(|n| format!("GPU-{n:08}-0000-0000-0000-000000000000")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let _kubelet = Fake::with_pods(
        &pods.kubelet.socket,
        vec![pod("all", vec![devices("nvidia.com/gpu", &many)], Vec::new())],
        None,
    );
    assert_eq!(pods.list(NOW).unwrap().pods[0].given.len(), 20_000);
}

#[test]
fn no_socket_is_no_kubelet() {
    let (_dir, pods) = node();
    assert!(matches!(pods.list(NOW), Err(KubeletError::Absent(_))));
}

#[test]
fn a_socket_nobody_listens_on_is_a_failure() {
    let (_dir, pods) = node();
    drop(std::os::unix::net::UnixListener::bind(&pods.kubelet.socket).unwrap());
    assert!(matches!(pods.list(NOW), Err(KubeletError::Connect { .. })));
}

#[test]
fn a_refusal_and_nonsense_are_said() {
    for (reply, expected) in [
        (Reply::Status(7), "the kubelet answers with status 7: no"),
        (
            Reply::Raw(vec![0, 0, 0, 0, 9, 1, 2]),
            "answer of the kubelet: 2 bytes in the answer, its head says 9",
        ),
        (
            Reply::Raw(vec![1, 0, 0, 0, 0]),
            "answer of the kubelet: no plain message in the answer, expected one",
        ),
        (Reply::Message(vec![0xff; 8]), "answer of the kubelet: failed to decode Protobuf message"),
    ] {
        let (_dir, pods) = node();
        let script = reply.clone();
        let _kubelet = Fake::start(&pods.kubelet.socket, move |_| script.clone());
        let said = pods.list(NOW).unwrap_err().to_string();
        assert!(said.starts_with(expected), "{reply:?}: {said}");
    }
}

#[test]
fn a_kubelet_that_hangs_is_left_at_the_deadline() {
    let (_dir, mut pods) = node();
    pods.kubelet.deadline = Duration::from_millis(50);
    let _kubelet = Fake::start(&pods.kubelet.socket, |_| Reply::Silence);
    assert!(matches!(pods.list(NOW), Err(KubeletError::TimedOut(_))));
}

/// Stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Stamp {
        NOW
    }

    fn sleep_until(&self, _: u64) {}
}

/// Waits for what another thread does; the interval is that of the watch, not of a guess.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..5000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("never: {what}");
}

#[test]
fn the_watch_outlives_restarts_of_the_kubelet() {
    let (_dir, pods) = node();
    let socket = pods.kubelet.socket.clone();
    let watch = Watch::start(pods, Arc::new(Still), Duration::from_millis(1)).unwrap();
    eventually("absent", || watch.state() == KubeletState::Absent);
    assert_eq!(watch.latest(), None);

    let of = |name: &str| vec![pod(name, vec![devices("nvidia.com/gpu", &["GPU-1"])], Vec::new())];
    let listed = |name: &str| watch.latest().is_some_and(|listing| listing.pods[0].name == name);
    let first = Fake::with_pods(&socket, of("train-0"), None);
    eventually("first answer", || listed("ml/train-0"));

    drop(first);
    eventually("refused", || matches!(watch.state(), KubeletState::Fails(_)));
    assert!(listed("ml/train-0"), "the last listing stands");

    fs::remove_file(&socket).unwrap();
    let second = Fake::with_pods(&socket, of("train-1"), None);
    eventually("second answer", || listed("ml/train-1"));
    assert_eq!(watch.state(), KubeletState::Answers);
    drop(watch);
    drop(second);
}

#[test]
fn the_watch_survives_a_kubelet_that_breaks_off() {
    let (_dir, pods) = node();
    let broken = Arc::new(AtomicBool::new(true));
    let script = Arc::clone(&broken);
    let _kubelet = Fake::start(&pods.kubelet.socket, move |_| {
        if script.load(Ordering::SeqCst) { Reply::Raw(Vec::new()) } else { Reply::Message(Vec::new()) }
    });
    let watch = Watch::start(pods, Arc::new(Still), Duration::from_millis(1)).unwrap();
    eventually("failure", || matches!(watch.state(), KubeletState::Fails(_)));
    broken.store(false, Ordering::SeqCst);
    eventually("answer", || watch.state() == KubeletState::Answers);
}
