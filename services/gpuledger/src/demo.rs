//! The whole product on this machine: a private database, a day of a small fleet or the user's own file, tables, bills, verification, and
//! the API's address. Nothing of the user's is touched: neither `DATABASE_URL` nor the working folder.

mod address;
mod bills;
mod books;
mod day;
mod folder;
mod own_file;
mod private_postgres;
mod screen;

use crate::cli::DemoArgs;
use crate::clock::now;
use crate::commands::events::open;
use crate::commands::objects::store_all;
use crate::commands::reports::hours_text;
use crate::outcome::{Outcome, Usage};
use address::Address;
use anyhow::{Context, Result};
use bills::Bills;
use books::Standing;
use folder::Folder;
use gpuledger_api::Clock;
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_ledger::batch::Tally;
use gpuledger_ledger::replay::replay;
use gpuledger_ledger::verify::verify;
use gpuledger_storage::{Db, Role, connect, migrate};
use gpuledger_wire::objects::parse_documents;
use own_file::OwnFile;
use private_postgres::PrivatePostgres;
use screen::{Screen, count};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the built-in day needs to be billed.
const DAY_OBJECTS: &str = include_str!("demo/day.yaml");
/// Whose bill and usage the built-in day shows.
const DAY_TENANT: &str = "acme";

/// Said where events are replayed.
const NOTE_ON_KAFKA: &str =
    "    straight into the ledger, by the same code as behind Kafka, which `make up` shows";

/// Where the demo runs.
struct Stage {
    screen: Screen,
    folder: Folder,
    database: String,
    db: Db,
    /// When the demo began, by its own clock.
    began: Instant,
}

/// What was replayed and can be looked at.
struct Chapter {
    /// The time the tables show.
    window: Window,
    /// Months that are over.
    months: Vec<Period>,
    /// Whose bill and usage are shown; none: who used most.
    tenant: Option<String>,
}

/// Runs the demo. The answer is no where the ledger does not hold.
///
/// # Errors
/// Wrong options; no Postgres; an unreadable file.
pub(crate) async fn run(args: DemoArgs) -> Result<Outcome> {
    let own = own_file(&args)?;
    let screen = Screen::new();
    screen.heading("gpuledger demo", "from events to the invoice, on a private database");
    let folder = Folder::new(args.keep.as_deref())?;
    let is_kept = args.keep.is_some();
    let server = start(screen, folder.path().to_owned(), is_kept).await?;
    let began = if own.is_some() { now()? } else { day::now() };
    let database = server.url();
    let db = ready(screen, &database).await?;
    let stage = Stage { screen, folder, database, db, began };
    let chapter = match &own {
        Some(own) => stage.replay_own(own).await?,
        None => Some(stage.replay_day().await?),
    };
    let outcome = match chapter {
        Some(chapter) => stage.show(chapter).await?,
        None => {
            screen.verdict(false, "nothing in the file says that anything was there or was used");
            books::print_findings(screen, &stage.db, &Standing::load(&stage.db).await?).await?;
            Outcome::No
        }
    };
    stage.db.close().await;
    end(screen, &stage.folder, server, is_kept).await?;
    Ok(outcome)
}

fn own_file(args: &DemoArgs) -> Result<Option<OwnFile>> {
    match (&args.from, &args.path) {
        (Some(format), Some(path)) => Ok(Some(OwnFile::new(format, path, &args.price)?)),
        _ if args.price.is_empty() => Ok(None),
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

impl Stage {
    /// The built-in day: events, objects, a replay, and a release that comes late.
    async fn replay_day(&self) -> Result<Chapter> {
        let screen = self.screen;
        let window = day::window().context("a day has a length")?;
        let step = screen.step("making up a day");
        let (events, late) = (day::events()?, day::late()?);
        let on_time = self.folder.write_events("events.ndjson", &events)?;
        let too_late = self.folder.write_events("late.ndjson", &late)?;
        step.done(&format!(
            "made up a day of a small fleet: 2 nodes, 8 GPUs, {} events",
            events.len() + late.len()
        ));

        let step = screen.step("applying objects");
        let file = self.folder.write("objects.yaml", DAY_OBJECTS)?;
        let name = file.display().to_string();
        let objects = parse_documents(DAY_OBJECTS, &name).map_err(|faults| Usage(format!("{faults:?}")))?;
        store_all(&self.db, &objects, self.began).await?;
        step.done(&format!(
            "applied {} objects: a seller, 3 customers, 3 tenants, products, rate cards",
            objects.len()
        ));

        self.replay("the events of the day", &[&on_time], Some(day::now())).await?;
        screen.note(NOTE_ON_KAFKA);
        let before = Standing::load(&self.db).await?.billed("bolt", window);
        let both = [on_time.as_path(), too_late.as_path()];
        let tally =
            self.replay("all of it again, and a release that came six hours late", &both, None).await?;
        let after = Standing::load(&self.db).await?.billed("bolt", window);
        screen.note(&format!(
            "    nothing counts twice: {} repeated, {} new. The late release takes {} h off what bolt pays.",
            tally.repeated,
            tally.accepted,
            hours_text(before - after)
        ));
        let months = Period::containing(window.start(), chrono_tz::UTC).into_iter().collect();
        Ok(Chapter { window, months, tenant: Some(DAY_TENANT.to_owned()) })
    }

    /// The user's own file: its events, and objects for whom it names. None: nothing of it could be accepted.
    async fn replay_own(&self, own: &OwnFile) -> Result<Option<Chapter>> {
        let screen = self.screen;
        let step = screen.step("reading the file");
        let (path, report) = own.events(&self.folder)?;
        let horizon = own_file::horizon(&path, self.began)?;
        step.done(&match &report {
            Some(report) => format!("{}: {report}", own.path.display()),
            None => own.path.display().to_string(),
        });
        let listed = report.iter().flat_map(|report| &report.unmapped);
        listed.take(5).for_each(|unmapped| screen.note(&format!("    {unmapped}")));
        screen.note(&format!("    {}", own.word_on_tenants()));
        self.replay("its events", &[&path], horizon).await?;
        screen.note(NOTE_ON_KAFKA);

        let standing = Standing::load(&self.db).await?;
        let Some(window) = used(&standing) else { return Ok(None) };
        let step = screen.step("applying objects");
        let tenants: BTreeSet<String> =
            standing.ledger.spans.iter().map(|span| span.tenant.to_string()).collect();
        let objects = own.objects(&tenants)?;
        store_all(&self.db, &objects, self.began).await?;
        let card = match own.prices.len() {
            0 => "no rate card, as no --price was given".to_owned(),
            prices => format!("a rate card with {} in USD", count(prices, "price")),
        };
        step.done(&format!("made a seller, {} and {card}", count(tenants.len(), "tenant")));
        Ok(Some(Chapter { window, months: months(window, standing.horizon), tenant: None }))
    }

    async fn replay(&self, what: &str, files: &[&Path], as_of: Option<Instant>) -> Result<Tally> {
        let step = self.screen.step(&format!("replaying {what}"));
        let inputs = files.iter().map(|path| open(&path.to_path_buf())).collect::<Result<Vec<_>>>()?;
        let mut progress = |lines| step.tell(format!("replaying {what}: {lines} lines"));
        let tally = replay(&self.db, inputs, as_of, self.began, &mut progress).await?;
        let parked = if tally.parked > 0 { format!(", {} parked", tally.parked) } else { String::new() };
        step.done(&format!("replayed {what}: {} accepted{parked}", tally.accepted + tally.windows));
        Ok(tally)
    }

    /// Tables, bills, verification, the address.
    async fn show(&self, chapter: Chapter) -> Result<Outcome> {
        let screen = self.screen;
        let step = screen.step("closing and issuing");
        let bills = Bills::make(&self.db, &chapter.months, self.began, &self.folder).await?;
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
        let address = Address::open(&self.database, self.clock(), tenant, window).await?;
        address.print(screen, tenant).await?;
        if let Some(page) = page {
            screen.heading("The bill to open", "");
            screen.line(&format!("file://{}", page.display()));
        }
        if Screen::is_terminal() {
            screen.note("\nthe API answers until Ctrl-C");
            address.wait().await?;
        }
        address.close().await
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

    /// The demo's clock: it goes on from where the demo began, so that the built-in day is over whenever it is shown.
    fn clock(&self) -> Clock {
        let (began, started) = (self.began, std::time::Instant::now());
        Arc::new(move || began.plus(i64::try_from(started.elapsed().as_micros()).unwrap_or(i64::MAX)))
    }
}

/// From the first to the last use of anything; where nothing was used, as long as there was a GPU.
fn used(standing: &Standing) -> Option<Window> {
    let over = |windows: Vec<Window>| {
        Window::new(windows.iter().map(|w| w.start()).min()?, windows.iter().map(|w| w.end()).max()?)
    };
    let spans = standing.ledger.spans.iter().map(|span| span.window).collect();
    let segments = standing.ledger.gpus.values().flat_map(|timeline| &timeline.segments);
    over(spans).or_else(|| over(segments.map(|segment| segment.window).collect()))
}

/// The months of a window that are over at the horizon, in UTC.
fn months(window: Window, horizon: Instant) -> Vec<Period> {
    let first = Period::containing(window.start(), chrono_tz::UTC);
    let all = std::iter::successors(first, |month| month.next());
    let is_over = |month: &Period| {
        month.window(chrono_tz::UTC).is_ok_and(|w| w.end() <= horizon && w.start() < window.end())
    };
    all.take_while(is_over).collect()
}

fn months_in_words(months: &[Period]) -> String {
    match months {
        [] => "no month, none is over".to_owned(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    }
}
