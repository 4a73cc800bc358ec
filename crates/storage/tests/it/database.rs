//! A database per test, on the server of `DATABASE_URL` or the private one of `deploy/local/postgres.sh`.

use anyhow::{Context, Result, bail, ensure};
use gpuledger_storage::{Db, Role, connect, migrate};
use sqlx::{Connection, Executor, PgConnection};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static NEXT: AtomicU32 = AtomicU32::new(0);
static SERVER: OnceLock<String> = OnceLock::new();

/// An empty database. Call [`Empty::drop`] at the end of a test; a failed test leaves it for a look.
pub(crate) struct Empty {
    name: String,
    pub(crate) url: String,
}

impl Empty {
    pub(crate) async fn new() -> Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gpuledger_storage_{}_{number}", std::process::id());
        let create = format!("CREATE DATABASE {name} TEMPLATE template0");
        let mut connection = PgConnection::connect(server()?).await?;
        for statement in [format!("DROP DATABASE IF EXISTS {name}"), create] {
            connection.execute(sqlx::AssertSqlSafe(statement)).await?;
        }
        let (server, rest) = server()?.rsplit_once('/').context("the URL has no database")?;
        let parameters = rest.split_once('?').map(|(_, parameters)| format!("?{parameters}"));
        let url = format!("{server}/{name}{}", parameters.unwrap_or_default());
        Ok(Self { name, url })
    }

    pub(crate) async fn drop(self) -> Result<()> {
        let mut server = PgConnection::connect(server()?).await?;
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        server.execute(sqlx::AssertSqlSafe(statement)).await?;
        Ok(())
    }
}

/// A migrated database, and a pool of each role.
pub(crate) struct Database {
    empty: Empty,
    pub(crate) owner: Db,
    pub(crate) writer: Db,
    pub(crate) api: Db,
}

impl Database {
    pub(crate) async fn new() -> Result<Self> {
        let empty = Empty::new().await?;
        let owner = connect(&empty.url, Role::Owner).await?;
        migrate(&owner).await?;
        let writer = connect(&empty.url, Role::Writer).await?;
        let api = connect(&empty.url, Role::Api).await?;
        Ok(Self { empty, owner, writer, api })
    }

    /// A bare connection of the login, which is a superuser and owns the tables.
    pub(crate) async fn login(&self) -> Result<PgConnection> {
        Ok(PgConnection::connect(&self.empty.url).await?)
    }

    /// Returns when exactly `count` connections wait for a lock; sleeping instead would only hope for it.
    pub(crate) async fn until_waiting(&self, count: i64) -> Result<()> {
        let mut login = self.login().await?;
        for _ in 0..1_000 {
            let waiting: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
            .fetch_one(&mut login)
            .await?;
            if waiting == count {
                return Ok(login.close().await?);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("never have {count} connections waited for a lock")
    }

    pub(crate) async fn drop(self) -> Result<()> {
        for db in [&self.owner, &self.writer, &self.api] {
            db.close().await;
        }
        self.empty.drop().await
    }
}

fn server() -> Result<&'static str> {
    if let Some(url) = SERVER.get() {
        return Ok(url);
    }
    let url = match std::env::var("DATABASE_URL") {
        Ok(url) if !url.is_empty() => url,
        _ => start()?,
    };
    Ok(SERVER.get_or_init(|| url))
}

fn start() -> Result<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/local/postgres.sh");
    let output = Command::new(script).arg("start").output().context("starting postgres.sh")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "postgres.sh start failed: {said}");
    let printed = String::from_utf8(output.stdout)?;
    Ok(printed.lines().last().context("postgres.sh printed nothing")?.to_owned())
}

/// What a statement was refused for: SQLSTATE, constraint (empty where none), message.
pub(crate) fn refusal<T>(result: Result<T, sqlx::Error>) -> (String, String, String) {
    match result {
        Ok(_) => ("00000".to_owned(), String::new(), "not refused".to_owned()),
        Err(error) => {
            let said = error.as_database_error().expect("the server must have spoken");
            let code = said.code().unwrap_or_default().into_owned();
            (code, said.constraint().unwrap_or_default().to_owned(), said.message().to_owned())
        }
    }
}
