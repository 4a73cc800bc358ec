//! The embedded migrations: one linear history in `migrations/`.

use crate::connect::{Db, Role};
use crate::error::{Doing, StorageError, classify};
use sqlx::SqlSafeStr;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use std::borrow::Cow;

/// Version, name and text of each migration, oldest first. A test compares the list with the folder.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (
        20_260_901_000_100,
        "roles_and_guards",
        include_str!("../../../migrations/20260901000100_roles_and_guards.sql"),
    ),
    (20_260_901_000_200, "facts", include_str!("../../../migrations/20260901000200_facts.sql")),
    (20_260_901_000_300, "telemetry", include_str!("../../../migrations/20260901000300_telemetry.sql")),
    (20_260_901_000_400, "journals", include_str!("../../../migrations/20260901000400_journals.sql")),
    (20_260_901_000_500, "read_models", include_str!("../../../migrations/20260901000500_read_models.sql")),
    (20_260_901_000_600, "business", include_str!("../../../migrations/20260901000600_business.sql")),
    (20_260_901_000_700, "inbox", include_str!("../../../migrations/20260901000700_inbox.sql")),
    (20_260_901_000_800, "touched", include_str!("../../../migrations/20260901000800_touched.sql")),
    (20_260_901_000_900, "span_state", include_str!("../../../migrations/20260901000900_span_state.sql")),
    (
        20_260_901_001_000,
        "measured_marks",
        include_str!("../../../migrations/20260901001000_measured_marks.sql"),
    ),
    (
        20_260_901_001_100,
        "bounded_reads",
        include_str!("../../../migrations/20260901001100_bounded_reads.sql"),
    ),
    (20_260_901_001_101, "journal_runs", include_str!("../../../migrations/20260901001101_journal_runs.sql")),
    (
        20_260_901_001_200,
        "telemetry_blocks",
        include_str!("../../../migrations/20260901001200_telemetry_blocks.sql"),
    ),
    (20_260_901_001_300, "archive", include_str!("../../../migrations/20260901001300_archive.sql")),
    (
        20_260_901_001_400,
        "measured_and_findings",
        include_str!("../../../migrations/20260901001400_measured_and_findings.sql"),
    ),
    (
        20_260_901_001_500,
        "billing_depth",
        include_str!("../../../migrations/20260901001500_billing_depth.sql"),
    ),
    (
        20_260_901_001_600,
        "parked_decisions",
        include_str!("../../../migrations/20260901001600_parked_decisions.sql"),
    ),
    (20_260_901_001_650, "unposted", include_str!("../../../migrations/20260901001650_unposted.sql")),
    (20_260_901_001_700, "audit_log", include_str!("../../../migrations/20260901001700_audit_log.sql")),
    (20_260_901_001_800, "residue", include_str!("../../../migrations/20260901001800_residue.sql")),
    (20_260_901_001_900, "unsettled", include_str!("../../../migrations/20260901001900_unsettled.sql")),
    (20_260_901_001_910, "signals_read", include_str!("../../../migrations/20260901001910_signals_read.sql")),
    (
        20_260_901_001_950,
        "sealed_fields",
        include_str!("../../../migrations/20260901001950_sealed_fields.sql"),
    ),
];

/// Brings the schema up to date and returns how many migrations that took: 0 on a current database.
///
/// # Errors
/// [`StorageError::Migration`] where an applied migration was edited or is unknown here, or one fails;
/// [`StorageError::Invalid`] where `db` is not of [`Role::Owner`].
pub async fn migrate(db: &Db) -> Result<usize, StorageError> {
    if db.role() != Role::Owner {
        return Err(StorageError::invalid("role", "only the owner migrates"));
    }
    let before = pending(db).await?;
    migrator().run(&db.pool).await.map_err(explain)?;
    Ok(before)
}

/// How many migrations the database lacks.
///
/// # Errors
/// [`StorageError::Unreachable`] and the like.
pub async fn pending(db: &Db) -> Result<usize, StorageError> {
    let known: bool = sqlx::query_scalar("SELECT to_regclass('public._sqlx_migrations') IS NOT NULL")
        .fetch_one(&db.pool)
        .await
        .doing("looking for the migrations table")?;
    if !known {
        return Ok(MIGRATIONS.len());
    }
    let mut connection = db.pool.acquire().await.doing("listing applied migrations")?;
    let applied = connection.list_applied_migrations("_sqlx_migrations").await.map_err(explain)?;
    Ok(MIGRATIONS.iter().filter(|(version, ..)| !applied.iter().any(|a| a.version == *version)).count())
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS.iter().map(|(version, name, sql)| {
        Migration::new(*version, Cow::Borrowed(*name), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.collect())
}

fn explain(error: MigrateError) -> StorageError {
    match error {
        MigrateError::Execute(cause) => classify(cause, "migrating"),
        MigrateError::ExecuteMigration(cause, version) => {
            StorageError::Migration { reason: format!("{version}: {cause}"), source: None }
        }
        other => StorageError::Migration { reason: other.to_string(), source: None },
    }
}

#[cfg(test)]
mod tests {
    use super::MIGRATIONS;
    use std::path::Path;

    #[test]
    fn the_list_is_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".sql"))
            .collect();
        files.sort();
        let listed: Vec<String> =
            MIGRATIONS.iter().map(|(version, name, _)| format!("{version}_{name}.sql")).collect();
        assert_eq!(files, listed);
    }
}
