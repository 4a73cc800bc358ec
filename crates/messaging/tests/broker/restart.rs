//! A broker that crashes and comes back under load. It is a private one, so that nobody else's tests see it go.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use gpuledger_messaging::{Producer, ProducerSettings};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::{
    PATIENCE, Store, bootstrap, local_stack, member, records, settings, start, start_member, topic, work,
};

const RECORDS: u64 = 12_000;

/// A broker with its own data directory and port; stopped at the end.
struct Private {
    checkout: TempDir,
}

impl Private {
    /// A copy of the local stack's scripts keeps its state beside itself.
    fn new() -> Self {
        let checkout = tempfile::tempdir().unwrap();
        let private = Self { checkout };
        fs::create_dir_all(private.folder()).unwrap();
        for file in fs::read_dir(local_stack()).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                fs::copy(file.path(), private.folder().join(file.file_name())).unwrap();
            }
        }
        let jars = local_stack().join("../../.local/kafka/libs");
        if let Ok(jars) = jars.canonicalize() {
            let state = private.checkout.path().join(".local/kafka");
            fs::create_dir_all(&state).unwrap();
            symlink(jars, state.join("libs")).unwrap();
        }
        private
    }

    fn folder(&self) -> PathBuf {
        self.checkout.path().join("deploy/local")
    }

    fn start(&self) -> String {
        start(&self.folder(), &["start"]).expect("the shared broker's start found Java")
    }

    /// Ends the broker as a crash would and starts it again, at the same address.
    fn crash(&self, address: &str) {
        let killed = Command::new("bash").arg(self.folder().join("kafka.sh")).arg("kill").status().unwrap();
        assert!(killed.success());
        // A killed process drops its listener a little after it has vanished from the process list.
        while TcpStream::connect(address).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.start(), address, "the broker comes back where it was");
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let script = self.folder().join("kafka.sh");
        drop(Command::new("bash").arg(script).arg("kill").status());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_crashes_twice_loses_and_doubles_nothing() {
    if std::env::var("KAFKA_BOOTSTRAP").is_ok_and(|given| !given.is_empty()) {
        eprintln!("SKIPPED: the broker of KAFKA_BOOTSTRAP is not ours to crash");
        return;
    }
    // Fetches the jars where nobody has yet, and tells whether there is Java.
    if bootstrap().is_none() {
        return;
    }
    let broker = Private::new();
    let kafka = settings(&broker.start());
    let name = topic(&kafka, "facts", 6).await;
    let store = Store::default();
    let stop = CancellationToken::new();
    let members = ["one", "two"].map(|instance| {
        let consumer = start_member(&kafka, member(&kafka, instance, &name), &store);
        tokio::spawn(work(consumer, store.clone(), Duration::from_millis(30), stop.clone()))
    });
    let few = ProducerSettings { in_flight: 200, ..ProducerSettings::default() };
    let producer = Producer::new(&kafka, &few).unwrap();
    let publication = tokio::spawn({
        let (producer, name) = (producer.clone(), name.clone());
        async move { producer.publish(records(&name, RECORDS), 0, |_| ()).await }
    });
    for mark in [2000, 6000] {
        store.wait_for(mark).await;
        tokio::task::block_in_place(|| broker.crash(&kafka.bootstrap));
    }
    assert_eq!(publication.await.unwrap().unwrap(), RECORDS);
    store.wait_for(RECORDS).await;
    stop.cancel();
    for member in members {
        member.await.unwrap().unwrap().close(PATIENCE).await.unwrap();
    }
    producer.close(PATIENCE).await.unwrap();
    store.assert_exactly_once(RECORDS);
}
