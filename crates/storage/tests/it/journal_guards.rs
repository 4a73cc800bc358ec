//! A journal that does not balance is refused, by INSERT and by COPY, on the parent and on the partition, by role and replica.

use crate::database::{Database, refusal};
use crate::journals::{GPU, HOUR, START, revision, shorter};
use anyhow::Result;
use gpuledger_storage::journals::{EntryRow, JournalRevision};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

const COLUMNS: &str =
    "gpu, hour_us, revision, line, sign, start_us, end_us, account, tenant, project, allocation, unit,
                       memory_mask, compute_slices, part_us, compute_slice_us, memory_slice_us";
/// How rows come in.
const WAYS: [(&str, bool); 4] =
    [("entry", false), ("entry", true), ("entry_2026_10", false), ("entry_2026_10", true)];

/// A row of `entry` as text columns; none: null.
type Row = Vec<Option<String>>;

fn row(revision: i32, line: usize, sign: i32, e: &EntryRow) -> Row {
    let mut row: Row =
        [GPU.to_owned(), START.to_string(), revision.to_string(), line.to_string(), sign.to_string()]
            .map(Some)
            .to_vec();
    row.extend([Some(e.start_us.to_string()), Some(e.end_us.to_string()), Some(e.account.clone())]);
    row.extend([e.tenant.clone(), e.project.clone(), e.allocation.clone(), e.unit.map(|u| u.to_string())]);
    let numbers =
        [e.memory_mask.into(), e.compute_slices.into(), e.part_us, e.compute_slice_us(), e.memory_slice_us()];
    row.extend(numbers.map(|number: i64| Some(number.to_string())));
    row
}

fn rows(number: i32, negated: &[EntryRow], posted: &[EntryRow]) -> Vec<Row> {
    let entries = negated.iter().map(|e| (-1, e)).chain(posted.iter().map(|e| (1, e)));
    entries.enumerate().map(|(at, (sign, e))| row(number, at + 1, sign, e)).collect()
}

async fn bring(tx: &mut PgConnection, table: &str, copy: bool, rows: &[Row]) -> Result<(), sqlx::Error> {
    if copy {
        let line =
            |row: &Row| row.iter().map(|v| v.as_deref().unwrap_or("\\N")).collect::<Vec<_>>().join("\t");
        let text: String = rows.iter().map(|row| line(row) + "\n").collect();
        let mut stream = tx.copy_in_raw(&format!("COPY {table} ({COLUMNS}) FROM STDIN")).await?;
        stream.send(text.as_bytes()).await?;
        stream.finish().await?;
    } else {
        let value = |v: &Option<String>| v.as_ref().map_or("NULL".to_owned(), |v| format!("'{v}'"));
        let tuple = |row: &Row| format!("({})", row.iter().map(value).collect::<Vec<_>>().join(","));
        let tuples = rows.iter().map(tuple).collect::<Vec<_>>().join(",");
        tx.execute(AssertSqlSafe(format!("INSERT INTO {table} ({COLUMNS}) VALUES {tuples}"))).await?;
    }
    Ok(())
}

async fn bring_header(tx: &mut PgConnection, journal: &JournalRevision) -> Result<(), sqlx::Error> {
    let capacity: Vec<String> = journal.capacity.iter().map(|(from, to)| format!("[{from},{to})")).collect();
    let statement = "INSERT INTO journal (gpu, hour_us, revision, compute_slices, memory_slices, capacity, digest, horizon_us, rule_set)
                     VALUES ($1, $2, $3, $4, $5, $6::INT8MULTIRANGE, $7, $8, $9)";
    sqlx::query(statement)
        .bind(&journal.gpu)
        .bind(journal.hour_us)
        .bind(journal.revision)
        .bind(journal.compute_slices)
        .bind(journal.memory_slices)
        .bind(format!("{{{}}}", capacity.join(",")))
        .bind(journal.digest.as_slice())
        .bind(journal.horizon_us)
        .bind(&journal.rule_set)
        .execute(tx)
        .await?;
    Ok(())
}

/// Rows that must be refused.
struct Case {
    name: &'static str,
    /// Brought first, and taken.
    before: Option<(JournalRevision, Vec<Row>)>,
    header: Option<JournalRevision>,
    rows: Vec<Row>,
    constraint: &'static str,
    /// Part of the message.
    says: &'static str,
}

/// Brings each case each way and demands its refusal.
async fn all_refused(cases: &[Case]) -> Result<()> {
    let database = Database::new().await?;
    let mut login = database.login().await?;
    sqlx::query("SELECT ensure_entry_partition($1)").bind(START).execute(&mut login).await?;
    for setting in ["SET ROLE gpuledger_writer", "RESET ROLE", "SET session_replication_role = replica"] {
        login.execute(setting).await?;
        for (table, copy) in WAYS {
            for case in cases {
                let mut tx = login.begin().await?;
                if let Some((header, rows)) = &case.before {
                    bring_header(&mut tx, header).await?;
                    bring(&mut tx, table, copy, rows).await?;
                }
                if let Some(header) = &case.header {
                    bring_header(&mut tx, header).await?;
                }
                let said = refusal(bring(&mut tx, table, copy, &case.rows).await);
                let context = format!("{}, {setting}, {table}, copy {copy}: {said:?}", case.name);
                assert!(said.0.starts_with("23"), "{context}");
                assert_eq!(said.1, case.constraint, "{context}");
                assert!(said.2.contains(case.says), "{context}");
                tx.rollback().await?;
            }
        }
    }
    login.close().await?;
    database.drop().await
}

#[tokio::test]
async fn the_good_journal_is_taken_each_way() -> Result<()> {
    let database = Database::new().await?;
    let mut login = database.login().await?;
    sqlx::query("SELECT ensure_entry_partition($1)").bind(START).execute(&mut login).await?;
    let (good, next) = (revision(1), shorter(2));
    for (table, copy) in WAYS {
        let mut tx = login.begin().await?;
        bring_header(&mut tx, &good).await?;
        bring(&mut tx, table, copy, &rows(1, &[], &good.entries)).await?;
        bring_header(&mut tx, &next).await?;
        bring(&mut tx, table, copy, &rows(2, &good.entries, &next.entries)).await?;
        tx.execute("SET CONSTRAINTS ALL IMMEDIATE").await?;
        tx.rollback().await?;
    }
    login.close().await?;
    database.drop().await
}

/// The good journal with a change.
fn first(name: &'static str, says: &'static str, change: impl FnOnce(&mut JournalRevision)) -> Case {
    let mut journal = revision(1);
    change(&mut journal);
    let rows = rows(1, &[], &journal.entries);
    Case { name, before: None, header: Some(journal), rows, constraint: "journal_balance", says }
}

#[tokio::test]
async fn what_does_not_tile_the_capacity() -> Result<()> {
    let stretch = |j: &mut JournalRevision| {
        for entry in &mut j.entries[..3] {
            entry.end_us += 1;
            entry.part_us += i64::from(entry.allocation.as_deref() != Some("a-2"));
        }
    };
    let twice = |j: &mut JournalRevision| {
        let mut again = j.entries[2].clone();
        again.allocation = Some("a-4".to_owned());
        j.entries.push(again);
    };
    let parts = "the parts of a unit do not add up to its time";
    let cases = [
        first("too few compute slices", "come to 6 compute slices", |j| j.entries[2].compute_slices = 2),
        first("another capacity in compute", "its capacity is 6,", |j| j.compute_slices = 6),
        first("another capacity in memory", "its capacity is 7, 7 and 127", |j| j.memory_slices = 7),
        first("a hole in time", "come to 0 compute slices and 0 memory slices", |j| j.entries.truncate(3)),
        first("a hole in memory", "and 7 memory slices", |j| j.entries[2].memory_mask = 0xe0),
        first("time beyond the capacity", "its capacity is 0, 0 and 0", |j| {
            j.capacity = vec![(START, START + HOUR / 2)]
        }),
        first("an overlap in time", "come to 14 compute slices", stretch),
        first("an overlap in memory", "and 9 memory slices", |j| j.entries[2].memory_mask = 0xf8),
        first("a unit posted twice", parts, twice),
        first("a lost microsecond", parts, |j| j.entries[0].part_us -= 1),
    ];
    all_refused(&cases).await
}

#[tokio::test]
async fn what_is_no_next_revision() -> Result<()> {
    let (good, next) = (revision(1), shorter(2));
    let stands = || Some((revision(1), rows(1, &[], &revision(1).entries)));
    let second = |name, negated: &[EntryRow]| Case {
        name,
        before: stands(),
        header: Some(next.clone()),
        rows: rows(2, negated, &next.entries),
        constraint: "journal_balance",
        says: "its negations are not exactly",
    };
    let mut other = good.entries.clone();
    other[2].allocation = Some("a-9".to_owned());
    let mut twice = good.entries.clone();
    twice.push(good.entries[0].clone());
    let mut gapped = rows(1, &[], &good.entries);
    gapped[5][3] = Some("7".to_owned());
    let cases = [
        second("no negation", &[]),
        second("an incomplete negation", &good.entries[1..]),
        second("a negation of something else", &other),
        second("a negation twice", &twice),
        Case { says: "revision 1 does not exist", before: None, ..second("a revision after none", &[]) },
        Case {
            says: "revision 2 does not exist",
            header: Some(shorter(3)),
            rows: rows(3, &good.entries, &next.entries),
            ..second("a revision that skips one", &[])
        },
        Case {
            rows: rows(1, &good.entries[..1], &good.entries),
            ..first("a negation in the first revision", "revision 1 has nothing to negate", |_| ())
        },
        Case { header: None, ..first("no header", "it has no journal header", |_| ()) },
        Case {
            rows: gapped,
            ..first("lines that are not 1 to n", "its lines must be 1 to 6, all in one statement", |_| ())
        },
        Case {
            before: stands(),
            header: None,
            constraint: "entry_2026_10_pkey",
            ..first("the same journal again", "duplicate key", |_| ())
        },
        Case {
            before: stands(),
            header: None,
            rows: vec![row(1, 7, 1, &good.entries[5])],
            ..first("more lines later", "all in one statement", |_| ())
        },
    ];
    all_refused(&cases).await
}

#[tokio::test]
async fn rows_that_are_wrong_by_themselves() -> Result<()> {
    let wrong = |name, constraint, change: fn(&mut Row)| {
        let mut case = Case { constraint, ..first(name, "", |_| ()) };
        change(&mut case.rows[0]);
        case
    };
    let cases = [
        wrong("a tenant without an allocation", "tenant_iff_held", |row| row[10] = None),
        wrong("an idle tenant", "tenant_iff_held", |row| row[7] = Some("idle".to_owned())),
        wrong("compute that is no product", "compute_is_part_by_slices", |row| {
            row[15] = Some("1".to_owned())
        }),
        wrong("memory that is no product", "memory_is_part_by_slices", |row| row[16] = Some("1".to_owned())),
        wrong("time outside the hour", "interval_inside_hour", |row| {
            row[6] = Some((START + 2 * HOUR).to_string())
        }),
    ];
    all_refused(&cases).await
}

#[tokio::test]
async fn a_header_alone_does_not_commit() -> Result<()> {
    let database = Database::new().await?;
    let mut login = database.login().await?;
    let mut tx = login.begin().await?;
    bring_header(&mut tx, &revision(1)).await?;
    let said = refusal(tx.commit().await);
    assert_eq!((said.0.as_str(), said.1.as_str()), ("23514", "journal_balance"), "{said:?}");
    assert!(said.2.contains("it has no entries"), "{said:?}");
    login.close().await?;
    database.drop().await
}

#[tokio::test]
async fn a_capacity_outside_the_hour() -> Result<()> {
    let database = Database::new().await?;
    let mut login = database.login().await?;
    let beyond = JournalRevision { capacity: vec![(START, START + HOUR + 1)], ..revision(1) };
    let said = refusal(bring_header(&mut login, &beyond).await);
    assert_eq!(said.1, "capacity_inside_hour", "{said:?}");
    login.close().await?;
    database.drop().await
}
