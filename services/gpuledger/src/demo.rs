//! The whole product on this machine: a private database, a day of two simulated nodes or the user's own file, tables, bills, verification,
//! and the API's address. Nothing of the user's is touched: neither `DATABASE_URL` nor the working folder.

mod address;
mod bills;
mod books;
mod chapters;
mod day;
mod day_clock;
mod folder;
mod intake;
mod live;
mod measured;
mod nodes;
mod own_file;
mod private_postgres;
mod random;
mod screen;
mod way;

use crate::cli::DemoArgs;
use crate::clock::now;
use crate::outcome::{Outcome, Usage};
use address::Address;
use anyhow::Result;
use bills::Bills;
use books::Standing;
use folder::Folder;
use gpuledger_api::Clock;
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_ledger::verify::verify;
use gpuledger_storage::{Db, Role, connect, migrate};
use nodes::Programs;
use own_file::OwnFile;
use private_postgres::PrivatePostgres;
use screen::{Screen, count};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the demo runs.
struct Stage {
    screen: Screen,
    folder: Folder,
    db: Db,
    /// Answers as long as the demo runs.
    address: Address,
    /// The time at which everything that happened is known: when the demo began, or the end of the built-in day.
    now: Instant,
}

/// What the demo is about.
enum Subject {
    /// The user's own file.
    OwnFile(OwnFile),
    /// A day of simulated nodes, by these programs.
    Day(Programs),
}

/// What was replayed or lived and can be looked at.
struct Chapter {
    /// The time the tables show.
    window: Window,
    /// Months that are over.
    months: Vec<Period>,
    /// Whose bill and usage are shown; none: who used most.
    tenant: Option<String>,
    /// Whether collectors measured it.
    is_measured: bool,
}

/// Runs the demo. The answer is no where the ledger does not hold.
///
/// # Errors
/// Wrong options; no Postgres or no collector; an unreadable file.
pub(crate) async fn run(args: DemoArgs) -> Result<Outcome> {
    let subject = subject(&args)?;
    let screen = Screen::new();
    screen.heading("gpuledger demo", "from events to the invoice, on a private database");
    let folder = Folder::new(args.keep.as_deref())?;
    let is_kept = args.keep.is_some();
    let server = start(screen, folder.path().to_owned(), is_kept).await?;
    let db = ready(screen, &server.url()).await?;
    let (stage, chapter) = match subject {
        Subject::OwnFile(own) => {
            let now = now()?;
            let address = Address::open(&server.url(), running_from(now)).await?;
            let stage = Stage { screen, folder, db, address, now };
            let chapter = stage.replay_own(&own).await?;
            (stage, chapter)
        }
        Subject::Day(programs) => {
            let clock = nodes::clock(&folder)?;
            let address = Address::open(&server.url(), clock.shared()).await?;
            let stage = Stage { screen, folder, db, address, now: day::OVER };
            let chapter = stage.live_day(&programs, &clock).await?;
            (stage, Some(chapter))
        }
    };
    let outcome = match chapter {
        Some(chapter) => stage.show(chapter).await?,
        None => {
            screen.verdict(false, "nothing in the file says that anything was there or was used");
            books::print_findings(screen, &stage.db, &Standing::load(&stage.db).await?).await?;
            Outcome::No
        }
    };
    let Stage { folder, db, address, .. } = stage;
    address.close().await?;
    db.close().await;
    end(screen, &folder, server, is_kept).await?;
    Ok(outcome)
}

fn subject(args: &DemoArgs) -> Result<Subject> {
    match (&args.from, &args.path) {
        (Some(format), Some(path)) => Ok(Subject::OwnFile(OwnFile::new(format, path, &args.price)?)),
        _ if args.price.is_empty() => Ok(Subject::Day(Programs::find()?)),
        _ => Err(Usage("--price goes with --from: the built-in day has its own rate cards".into()).into()),
    }
}

async fn start(screen: Screen, home: PathBuf, is_kept: bool) -> Result<PrivatePostgres> {
    let step = screen.step("starting a private PostgreSQL");
    let server = tokio::task::spawn_blocking(move || PrivatePostgres::start(&home, is_kept)).await??;
    step.done(&format!("{}, private to this demo", server.describe()));
    Ok(server)
}

async fn ready(screen: Screen, database: &str) -> Result<Db> {
    let step = screen.step("making the schema");
    let owner = connect(database, Role::Owner).await?;
    let migrations = migrate(&owner).await?;
    owner.close().await;
    step.done(&format!(
        "schema made by {migrations} migrations: append-only facts and journals, row security"
    ));
    Ok(connect(database, Role::Writer).await?)
}

/// Stops the server, or says how to go on with it.
async fn end(screen: Screen, folder: &Folder, server: PrivatePostgres, is_kept: bool) -> Result<()> {
    screen.heading("Files", "");
    screen.line(&format!("here      {}", folder.path().display()));
    if is_kept {
        screen.line(&format!("database  {}", server.folder().display()));
        screen.line(&format!("          export DATABASE_URL='{}'", server.url()));
        screen.line("          gpuledger invoice list · gpuledger ledger verify · gpuledger findings · gpuledger serve --only api");
        screen.line(&format!("stop      {}", server.stop_command()));
        return tokio::task::spawn_blocking(move || server.leave_running()).await?;
    }
    screen.note("the database was thrown away; `gpuledger demo --keep DIR` keeps it");
    Ok(tokio::task::spawn_blocking(move || drop(server)).await?)
}

/// A clock that goes on from an instant.
fn running_from(began: Instant) -> Clock {
    let started = std::time::Instant::now();
    Arc::new(move || began.plus(i64::try_from(started.elapsed().as_micros()).unwrap_or(i64::MAX)))
}

impl Stage {
    /// Tables, bills, verification, the address.
    async fn show(&self, chapter: Chapter) -> Result<Outcome> {
        let screen = self.screen;
        let step = screen.step("closing and issuing");
        let bills = Bills::make(&self.db, &chapter.months, self.now, &self.folder).await?;
        step.done(&format!(
            "closed {}: {}, {} of them issued",
            months_in_words(&chapter.months),
            count(bills.len(), "bill"),
            bills.issued()
        ));
        let verified = self.verify().await?;

        let standing = Standing::load(&self.db).await?;
        let balanced = books::print_balance(screen, &self.db, &standing, chapter.window).await?;
        books::print_usage(screen, &standing, chapter.window);
        if chapter.is_measured {
            measured::print_measured(screen, &self.db, &standing, chapter.window).await?;
        }
        books::print_findings(screen, &self.db, &standing).await?;
        bills.print(screen);
        bills.print_one(screen, &self.db, chapter.tenant.as_deref()).await?;
        let first = bills.first(chapter.tenant.as_deref());
        let tenant = first.map(|(document, _)| document.tenant.clone());
        if let Some(tenant) =
            tenant.or_else(|| standing.ledger.spans.first().map(|span| span.tenant.to_string()))
        {
            self.answer(&tenant, chapter.window, first.map(|(_, page)| page.as_path())).await?;
        }
        Ok(if verified && balanced { Outcome::Done } else { Outcome::No })
    }

    /// The API and the bill to open; on a terminal until Ctrl-C.
    async fn answer(&self, tenant: &str, window: Window, page: Option<&Path>) -> Result<()> {
        let screen = self.screen;
        self.address.print(screen, tenant, window).await?;
        if let Some(page) = page {
            screen.heading("The bill to open", "");
            screen.line(&format!("file://{}", page.display()));
        }
        if Screen::is_terminal() {
            screen.note("\nthe API answers until Ctrl-C");
            self.address.wait().await?;
        }
        Ok(())
    }

    async fn verify(&self) -> Result<bool> {
        let step = self.screen.step("deriving everything anew by the naive painter");
        let verdict = verify(&self.db).await?;
        let compared = format!("{} GPUs, {} journals, {} sums", verdict.gpus, verdict.journals, verdict.sums);
        let unplaced = format!("{} allocations of unplaced units", verdict.unplaced);
        let holds = verdict.holds();
        step.ended(
            holds,
            &match holds {
                true => format!("the ledger holds: {compared}, {unplaced}, all derived anew"),
                false => format!(
                    "the ledger does not hold: {} differences in {compared}, {unplaced}",
                    verdict.differences.len()
                ),
            },
        );
        for difference in verdict.differences.iter().take(10) {
            self.screen.line(&format!("    {difference}"));
        }
        Ok(holds)
    }
}

fn months_in_words(months: &[Period]) -> String {
    match months {
        [] => "no month, none is over".to_owned(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    }
}
