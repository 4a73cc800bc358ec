//! Bounded reads against the whole: random fleets come in random batches and orders, the horizon moves, telemetry is settled, and after each
//! step journals, spans and allocations in the database are what attribution finds in all facts.
//!
//! Each case is a story of some hours; `SOAK_CASES` and `SOAK_SEED` as in `properties.rs`; with `STORY=1` each step and what it changes is told. It needs a
//! database: a private one is started.

mod compare;
pub(crate) mod database;
mod efforts;
mod events;
mod steps;

use crate::generate::Case;
use crate::properties::{draw, number};
use anyhow::Result;
use database::Database;
use efforts::Efforts;
use gpuledger_domain::pool::Pools;
use proptest::strategy::ValueTree as _;
use std::io::Write as _;
use std::time::{Duration, Instant as Clock};

/// Time for the cases where `SOAK_CASES` does not say how many.
const BUDGET: Duration = Duration::from_secs(30);
/// The least share of steps in which more had to be read, or less than all was, in percent.
const REACH_PERCENT: u64 = 10;

#[tokio::test]
async fn what_is_read_from_a_floor_comes_to_the_same_as_everything() -> Result<()> {
    let wanted = number("SOAK_CASES");
    let first = number("SOAK_SEED").unwrap_or(0);
    let begun = Clock::now();
    let mut database = Database::new().await?;
    let efforts = Efforts::default();
    let _guard = tracing::subscriber::set_default(efforts.clone());
    let mut cases = 0;
    while wanted.map_or_else(|| begun.elapsed() < BUDGET, |wanted| cases < wanted) {
        let seed = first + cases;
        // Its pools are those of `events::pools`; nothing is measured.
        let case = Case { pools: Pools::new(), measured: Vec::new(), ..draw(seed).current() };
        if let Err(broken) = try_case(&mut database, &case, &efforts).await {
            let (small, broken) = shrink(&mut database, case, format!("{broken:#}")).await;
            panic!("SOAK_SEED={seed}: {broken}\nIt does so with as little as this, {small:?}");
        }
        cases += 1;
    }
    let (lowered, bounded, waiting) =
        (efforts.lowered_percent(), efforts.bounded_percent(), efforts.waiting_percent());
    writeln!(
        std::io::stderr(),
        "{cases} random stories, {} settlements: floors lowered in {lowered} %, less than all read in {bounded} %; \
         facts of a backlog wait behind {waiting} % of steps",
        efforts.settled()
    )?;
    assert!(lowered >= REACH_PERCENT, "floors are lowered too seldom to be tested");
    assert!(waiting >= REACH_PERCENT, "a backlog waits too seldom to be tested");
    assert!(bounded >= REACH_PERCENT, "less than all is read too seldom to be tested");
    database.drop().await
}

async fn try_case(database: &mut Database, case: &Case, efforts: &Efforts) -> Result<()> {
    database.clear().await?;
    steps::run(&database.writer, case, efforts).await
}

/// The smallest story found that breaks, and how.
async fn shrink(database: &mut Database, case: Case, broken: String) -> (Case, String) {
    let (mut small, mut broken) = (case, broken);
    let mut place = small.facts.len();
    while let Some(n) = place.checked_sub(1) {
        place = n;
        let mut less = small.clone();
        less.facts.remove(n);
        if let Err(error) = try_case(database, &less, &Efforts::default()).await {
            (small, broken) = (less, format!("{error:#}"));
        }
    }
    (small, broken)
}
