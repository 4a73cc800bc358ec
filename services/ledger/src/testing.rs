//! What tests of this room share.

use crate::batch::apply_all;
use crate::incoming::{Arrivals, Incoming};
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_storage::{Db, Role, connect, migrate};
use gpuledger_wire::time::parse_time;
use serde_json::{Value, json};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/local/postgres.sh");

/// A database of its own, made and dropped with a test.
pub(crate) struct Database {
    pub(crate) db: Db,
    url: String,
}

impl Database {
    pub(crate) async fn new() -> Self {
        script(&["start"], None);
        let url = script(&["fresh-db"], None);
        let owner = connect(&url, Role::Owner).await.unwrap();
        migrate(&owner).await.unwrap();
        owner.close().await;
        Self { db: connect(&url, Role::Writer).await.unwrap(), url }
    }

    pub(crate) async fn drop(self) {
        self.db.close().await;
        script(&["drop-db"], Some(&self.url));
    }
}

fn script(words: &[&str], url: Option<&str>) -> String {
    let mut command = Command::new("bash");
    command.arg(SCRIPT).args(words);
    if let Some(url) = url {
        command.env("DATABASE_URL", url);
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().lines().last().unwrap_or_default().to_owned()
}

/// The server clock of tests.
pub(crate) fn now() -> Instant {
    parse_time("2026-10-02T00:00:00Z").unwrap()
}

/// So long after midnight.
pub(crate) fn at(hour: i64, minute: i64) -> Instant {
    now().plus(-24 * HOUR_US + hour * HOUR_US + minute * HOUR_US / 60)
}

/// An event of a trusted source.
pub(crate) fn event(kind: &str, name: &str, time: Instant, data: &Value) -> Incoming {
    let event = json!({"specversion": "1.0", "id": name, "source": "/nodes/n1/x", "type": format!("gpuledger.{kind}.v1"),
                       "time": time.to_string(), "data": data});
    Incoming::trusted(event.to_string().into_bytes(), "test".to_owned())
}

/// Two GPUs on one node, from midnight on.
pub(crate) fn inventory() -> Incoming {
    let gpu = |n: u32| {
        json!({"uuid": format!("GPU-{n}"), "index": n, "model": "NVIDIA H100 80GB HBM3", "memory_bytes": 85_520_809_984_u64,
                                     "compute_slices": 7, "memory_slices": 8, "mig": false, "state": "ok", "instances": []})
    };
    let data = json!({"node": "n1", "boot_id": "b", "gpus": [gpu(0), gpu(1)]});
    event("node.inventory", "inventory", at(0, 0), &data)
}

/// Applies a batch; how many facts were marked to be settled.
pub(crate) async fn apply(database: &Database, events: Vec<Incoming>, is_backlog: bool) -> u64 {
    let mut tx = database.db.begin().await.unwrap();
    let arrivals = Arrivals { is_backlog, ..Arrivals::from(events) };
    let applied = apply_all(&mut tx, &arrivals, now()).await.unwrap();
    assert_eq!(applied.tally.parked, 0);
    tx.commit().await.unwrap();
    applied.tally.unsettled
}
