//! Connections: pool, role, time zone, and transactions.

use crate::error::{Doing, StorageError, classify};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, PgPool, Postgres, Transaction};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Connections a process keeps at most. A server takes 100 by default, and a site runs several processes.
const MAX_CONNECTIONS: u32 = 16;
/// How long a caller waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Oldest server with everything the schema uses.
const OLDEST_VERSION: i32 = 150_000;

/// Who a process is in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The login itself: owns the tables, migrates, nothing else.
    Owner,
    /// `gpuledger_writer`: the ledger. Inserts; bypasses row security, because COPY FROM is refused under it.
    Writer,
    /// `gpuledger_api`: reads, under row security. See [`Scope`].
    Api,
}

impl Role {
    /// Statement that makes a fresh connection this role.
    const fn set_role(self) -> Option<&'static str> {
        match self {
            Self::Owner => None,
            Self::Writer => Some("SET ROLE gpuledger_writer"),
            Self::Api => Some("SET ROLE gpuledger_api"),
        }
    }
}

/// Whose rows a transaction of [`Role::Api`] sees. Without one it sees none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// One tenant's rows.
    Tenant(&'a str),
    /// All rows: an administrator.
    All,
}

/// A pool of connections of one role.
#[derive(Clone, Debug)]
pub struct Db {
    pub(crate) pool: PgPool,
    role: Role,
    memory: Memory,
}

/// What a process keeps beside a database, to read it less often: one value of each type for each [`connect`].
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl Memory {
    /// The value of this type; at first a default one.
    pub fn of<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = Arc::clone(kept.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default())));
        value.downcast().unwrap_or_default()
    }
}

/// An open transaction; it is rolled back when dropped. Dereferences to its connection.
#[derive(Debug)]
pub struct Tx(Transaction<'static, Postgres>, Memory);

/// Connects to the server of `url` as `role` and checks that it answers.
///
/// # Errors
/// [`StorageError::BadUrl`], [`StorageError::Unreachable`] and [`StorageError::TooOld`] as they say; [`StorageError::NotMigrated`]
/// where the role does not exist yet.
pub async fn connect(url: &str, role: Role) -> Result<Db, StorageError> {
    // The parser's error may quote the URL, so it is not passed on.
    let options = PgConnectOptions::from_str(url).map_err(|_| StorageError::BadUrl)?;
    // Its statements are many and short, or read much by an index: compiling them costs more than it saves.
    let options = options.application_name("gpuledger").options([("TimeZone", "UTC"), ("jit", "off")]);
    probe(&options, role).await?;
    let pool = PgPoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(move |connection, _| Box::pin(become_role(connection, role)))
        .connect_lazy_with(options);
    Ok(Db { pool, role, memory: Memory::default() })
}

/// One connection by hand: a pool would retry a refused connection until its timeout.
async fn probe(options: &PgConnectOptions, role: Role) -> Result<(), StorageError> {
    let mut connection =
        PgConnection::connect_with(options).await.map_err(|error| match classify(error, "connecting") {
            StorageError::Unreachable { reason, source } => StorageError::Unreachable {
                reason: format!("{}:{}: {reason}", options.get_host(), options.get_port()),
                source,
            },
            other => other,
        })?;
    let version: i32 = sqlx::query_scalar("SELECT current_setting('server_version_num')::INT4")
        .fetch_one(&mut connection)
        .await
        .doing("asking for the server's version")?;
    if version < OLDEST_VERSION {
        return Err(StorageError::TooOld { found: format!("{}.{}", version / 10_000, version % 10_000) });
    }
    become_role(&mut connection, role).await.map_err(explain_role)?;
    connection.close().await.doing("connecting")
}

/// The first migration makes the roles.
fn explain_role(error: sqlx::Error) -> StorageError {
    let unknown = error.as_database_error().filter(|said| said.code().as_deref() == Some("22023"));
    match unknown.map(|said| said.message().to_owned()) {
        Some(reason) => StorageError::NotMigrated { reason },
        None => classify(error, "taking the role"),
    }
}

async fn become_role(connection: &mut PgConnection, role: Role) -> Result<(), sqlx::Error> {
    if let Some(statement) = role.set_role() {
        connection.execute(statement).await?;
    }
    Ok(())
}

impl Db {
    /// The role of its connections.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What the process keeps beside this database.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Begins a transaction (READ COMMITTED: it sees what others commit meanwhile, as batches that lock GPUs need).
    ///
    /// # Errors
    /// [`StorageError::Unreachable`] where no connection can be had.
    pub async fn begin(&self) -> Result<Tx, StorageError> {
        self.pool.begin().await.map(|tx| Tx(tx, self.memory.clone())).doing("beginning a transaction")
    }

    /// Begins a read-only transaction that sees one state of the database throughout.
    ///
    /// # Errors
    /// [`StorageError::Unreachable`] where no connection can be had.
    pub async fn snapshot(&self) -> Result<Tx, StorageError> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let tx = self.pool.begin_with(begin).await.doing("beginning a snapshot")?;
        Ok(Tx(tx, self.memory.clone()))
    }

    /// A [`Db::snapshot`] that sees only the rows of `scope`, by row security.
    ///
    /// # Errors
    /// As [`Db::snapshot`]; [`StorageError::Invalid`] for a tenant named `*` or not at all, which would widen or void the scope.
    pub async fn snapshot_of(&self, scope: Scope<'_>) -> Result<Tx, StorageError> {
        let tenant = match scope {
            Scope::Tenant(name) if name == "*" || name.is_empty() => {
                return Err(StorageError::invalid(format!("tenant {name:?}"), "no tenant has this name"));
            }
            Scope::Tenant(name) => name,
            Scope::All => "*",
        };
        let mut tx = self.snapshot().await?;
        sqlx::query("SELECT set_config('gpuledger.tenant', $1, true)")
            .bind(tenant)
            .execute(&mut *tx)
            .await
            .doing("setting the tenant of a transaction")?;
        Ok(tx)
    }

    /// Closes all connections, waiting for those in use.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Tx {
    /// What the process keeps beside this database.
    pub fn memory(&self) -> &Memory {
        &self.1
    }

    /// Makes the transaction's effects visible and durable.
    ///
    /// # Errors
    /// [`StorageError::Refused`] where a deferred check fails (a journal without entries); nothing is committed then.
    pub async fn commit(self) -> Result<(), StorageError> {
        self.0.commit().await.doing("committing")
    }

    /// Undoes the transaction's effects.
    ///
    /// # Errors
    /// [`StorageError::Unreachable`] where the connection is lost; nothing is committed then either.
    pub async fn rollback(self) -> Result<(), StorageError> {
        self.0.rollback().await.doing("rolling back")
    }
}

impl Deref for Tx {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.0
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}
