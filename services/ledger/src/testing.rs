//! What tests of this room share.

use gpuledger_domain::time::Instant;
use gpuledger_storage::{Db, Role, connect, migrate};
use gpuledger_wire::time::parse_time;
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
