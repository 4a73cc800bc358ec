//! One database for all stories, emptied before each.

use anyhow::{Context as _, Result, ensure};
use gpuledger_storage::{Db, Role, connect, migrate};
use sqlx::{Connection, Executor, PgConnection};
use std::process::Command;

/// What a story leaves behind. Order of the statements: entries before journals, whose guard looks for them.
const TABLES: [&str; 20] = [
    "entry",
    "journal",
    "usage_span",
    "allocation",
    "reach",
    "touched",
    "unsettled",
    "gpu_home",
    "inventory_content",
    "fact_subject",
    "audit_pending",
    "identity",
    "fact",
    "parked",
    "node_heard",
    "telemetry_stream",
    "telemetry_block",
    "object",
    "residue_violation",
    "signal",
];

pub(crate) struct Database {
    pub(crate) url: String,
    login: PgConnection,
    pub(crate) writer: Db,
}

impl Database {
    pub(crate) async fn new() -> Result<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/local/postgres.sh");
        let output = Command::new(script).arg("fresh-db").output().context("starting postgres.sh")?;
        ensure!(output.status.success(), "postgres.sh: {}", String::from_utf8_lossy(&output.stderr));
        let url = String::from_utf8(output.stdout)?
            .lines()
            .last()
            .context("postgres.sh printed nothing")?
            .to_owned();
        let owner = connect(&url, Role::Owner).await?;
        migrate(&owner).await?;
        owner.close().await;
        let writer = connect(&url, Role::Writer).await?;
        let login = PgConnection::connect(&url).await?;
        Ok(Self { url, login, writer })
    }

    /// As after migrating. The guards of append-only tables stand in the way of this and of nothing else here.
    pub(crate) async fn clear(&mut self) -> Result<()> {
        let mut statements = String::from(
            "DO $$ DECLARE t REGCLASS; BEGIN
               FOR t IN SELECT DISTINCT tgrelid::REGCLASS FROM pg_trigger WHERE tgname IN ('append_only', 'append_only_row') AND tgenabled = 'A' LOOP
                 EXECUTE format('ALTER TABLE %s DISABLE TRIGGER append_only', t);
                 IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t AND tgname = 'append_only_row' AND tgparentid = 0) THEN
                   EXECUTE format('ALTER TABLE %s DISABLE TRIGGER append_only_row', t);
                 END IF;
               END LOOP; END $$;",
        );
        for table in TABLES {
            statements += &format!("DELETE FROM {table};");
        }
        statements +=
            "UPDATE ledger_state SET horizon_us = NULL, clock_us = NULL, rule_set = NULL, derived = 0;";
        self.login.execute(sqlx::AssertSqlSafe(statements)).await?;
        Ok(())
    }

    /// All that stands in all tables, as text; bytes in hexadecimal digits.
    pub(crate) async fn dump(&mut self) -> Result<String> {
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT oid::REGCLASS::TEXT FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::REGNAMESPACE",
        )
        .fetch_all(&mut self.login)
        .await?;
        let mut all = String::new();
        for table in tables {
            let rows = format!("SELECT COALESCE(string_agg(t::TEXT, E'\\n'), '') FROM {table} AS t");
            let rows: String =
                sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(&mut self.login).await?;
            all.push_str(&rows);
        }
        Ok(all)
    }

    pub(crate) async fn drop(self) -> Result<()> {
        self.writer.close().await;
        self.login.close().await?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/local/postgres.sh");
        let done = Command::new(script).arg("drop-db").env("DATABASE_URL", &self.url).status()?;
        ensure!(done.success(), "postgres.sh drop-db failed");
        Ok(())
    }
}
