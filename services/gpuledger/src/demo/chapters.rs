//! The demo's two subjects: a day of simulated nodes, lived by all of the product's processes, and the user's own file.

use super::books::Standing;
use super::day::allocator::place;
use super::day::requests::REQUESTS;
use super::day::{self, MIDNIGHT};
use super::day_clock::DayClock;
use super::live::Day;
use super::nodes::{Nodes, Programs, SAMPLE_SECONDS, WINDOW_SECONDS};
use super::own_file::{self, OwnFile};
use super::screen::count;
use super::{Chapter, Stage, way};
use crate::commands::events::open;
use crate::commands::objects::store_all;
use crate::commands::reports::hours_text;
use crate::outcome::Usage;
use anyhow::Result;
use gpuledger_domain::fact::FactBody;
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_ledger::batch::Tally;
use gpuledger_ledger::horizon;
use gpuledger_ledger::replay::replay;
use gpuledger_wire::objects::parse_documents;
use std::collections::BTreeSet;
use std::path::Path;

/// What the built-in day needs to be billed.
const DAY_OBJECTS: &str = include_str!("day.yaml");
/// Whose bill and usage the built-in day shows.
const DAY_TENANT: &str = "acme";

impl Stage {
    /// The built-in day: a plan, objects, two nodes that live it; then all of the allocator's events again, and a release that comes late.
    pub(super) async fn live_day(&self, programs: &Programs, clock: &DayClock) -> Result<Chapter> {
        let screen = self.screen;
        let window = day::window();
        let step = screen.step("planning a day");
        let plan = place(&REQUESTS)?;
        let (events, late) = (day::events::on_time(&plan)?, day::events::late(&plan)?);
        let on_time = self.folder.write_events("allocator.ndjson", &events)?;
        let too_late = self.folder.write_events("late.ndjson", &late)?;
        step.done(&format!(
            "an allocator planned a day: {} of 3 tenants on 2 nodes with 8 GPUs each",
            count(plan.holds.len(), "allocation")
        ));

        let step = screen.step("applying objects");
        let file = self.folder.write("objects.yaml", DAY_OBJECTS)?;
        let name = file.display().to_string();
        let objects = parse_documents(DAY_OBJECTS, &name).map_err(|faults| Usage(format!("{faults:?}")))?;
        store_all(&self.db, &objects, MIDNIGHT).await?;
        step.done(&format!(
            "applied {} objects: a seller, 3 customers, 3 tenants, products, rate cards",
            objects.len()
        ));

        let step = screen.step("looking for Kafka");
        let found = way::find().await?;
        step.done(&found.words);
        let nodes = Nodes::start(programs, &self.folder, &plan, &found.way, &self.address)?;
        let day = Day { screen, db: &self.db, address: &self.address, clock, way: &found.way };
        day.live(nodes, events).await?;
        screen.note(&format!(
            "    2 collectors on simulated NVML, a sample each {SAMPLE_SECONDS} s and a window each {WINDOW_SECONDS} s of the day"
        ));

        let step = screen.step("posting every hour");
        horizon::advance(&self.db, self.now).await?;
        step.done("posted every hour of the day: journals of each GPU, spans of each allocation");
        let standing = Standing::load(&self.db).await?;
        screen.note(&format!(
            "    found out by the collectors alone: the devices of {}, and {} of GPUs",
            count(standing.said_by_nodes(|body| matches!(body, FactBody::Placed(_))), "hold"),
            count(standing.said_by_nodes(|body| matches!(body, FactBody::UnitState(_))), "state"),
        ));
        let before = standing.billed("bolt", window);
        let both = [on_time.as_path(), too_late.as_path()];
        let what = "the allocator's events again, and a release that came six hours late";
        let tally = self.replay(what, &both, Some(self.now)).await?;
        let after = Standing::load(&self.db).await?.billed("bolt", window);
        screen.note(&format!(
            "    nothing counts twice: {} repeated, {} new. The late release takes {} h off what bolt pays.",
            tally.repeated,
            tally.accepted,
            hours_text(before - after)
        ));
        let months = Period::containing(window.start(), chrono_tz::UTC).into_iter().collect();
        Ok(Chapter { window, months, tenant: Some(DAY_TENANT.to_owned()), is_measured: true })
    }

    /// The user's own file: its events, and objects for whom it names. None: nothing of it could be accepted.
    pub(super) async fn replay_own(&self, own: &OwnFile) -> Result<Option<Chapter>> {
        let screen = self.screen;
        let step = screen.step("reading the file");
        let (path, report) = own.events(&self.folder)?;
        let horizon = own_file::horizon(&path, self.now)?;
        step.done(&match &report {
            Some(report) => format!("{}: {report}", own.path.display()),
            None => own.path.display().to_string(),
        });
        let listed = report.iter().flat_map(|report| &report.unmapped);
        listed.take(5).for_each(|unmapped| screen.note(&format!("    {unmapped}")));
        screen.note(&format!("    {}", own.word_on_tenants()));
        self.replay("its events", &[&path], horizon).await?;
        screen.note("    straight into the ledger, by the same code as behind Kafka");

        let standing = Standing::load(&self.db).await?;
        let Some(window) = used(&standing) else { return Ok(None) };
        let step = screen.step("applying objects");
        let tenants: BTreeSet<String> =
            standing.ledger.spans.iter().map(|span| span.tenant.to_string()).collect();
        let objects = own.objects(&tenants)?;
        store_all(&self.db, &objects, self.now).await?;
        let card = match own.prices.len() {
            0 => "no rate card, as no --price was given".to_owned(),
            prices => format!("a rate card with {} in USD", count(prices, "price")),
        };
        step.done(&format!("made a seller, {} and {card}", count(tenants.len(), "tenant")));
        Ok(Some(Chapter {
            window,
            months: months(window, standing.horizon),
            tenant: None,
            is_measured: false,
        }))
    }

    async fn replay(&self, what: &str, files: &[&Path], as_of: Option<Instant>) -> Result<Tally> {
        let step = self.screen.step(&format!("replaying {what}"));
        let inputs = files.iter().map(|path| open(&path.to_path_buf())).collect::<Result<Vec<_>>>()?;
        let mut progress = |lines| step.tell(format!("replaying {what}: {lines} lines"));
        let tally = replay(&self.db, inputs, as_of, self.now, &mut progress).await?;
        let parked = if tally.parked > 0 { format!(", {} parked", tally.parked) } else { String::new() };
        step.done(&format!("replayed {what}: {} accepted{parked}", tally.accepted + tally.windows));
        Ok(tally)
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
