//! One batch of events, one transaction.

use crate::decide::{Decision, conflict, decide, refused, too_late};
use crate::error::LedgerError;
use crate::incoming::{Arrivals, Incoming};
use crate::settle::Settlement;
use crate::telemetry::Admitted;
use crate::{horizon, parking, residue, sealing, telemetry, unsettled};
use gpuledger_books::closed::Closed;
use gpuledger_books::scope::News;
use gpuledger_domain::fact::{Fact, Settings};
use gpuledger_domain::time::Instant;
use gpuledger_storage::facts::{Inserted, insert_facts};
use gpuledger_storage::locks::{all_keys, give_back, hold, key_of};
use gpuledger_storage::{Tx, closes, trial};
use gpuledger_wire::arrived::Arrived;
use gpuledger_wire::{Event, EventData};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Events of a batch that may share the keys with other batches.
const FEW_EVENTS: usize = 16;

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Facts that stand now.
    pub accepted: u64,
    /// Telemetry windows that count now.
    pub windows: u64,
    /// Repetitions, which change nothing.
    pub repeated: u64,
    /// Kept aside.
    pub parked: u64,
    /// Nodes whose silences changed by telemetry: they are marked, to be settled.
    pub silences: u64,
    /// Accepted facts that were marked, to be settled.
    pub unsettled: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.windows += other.windows;
        self.repeated += other.repeated;
        self.parked += other.parked;
        self.silences += other.silences;
        self.unsettled += other.unsettled;
    }
}

/// What a batch did: its tally and the newest time it accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Counts.
    pub tally: Tally,
    /// Newest time of an accepted fact or window.
    pub newest: Option<Instant>,
}

/// Applies a batch in the caller's transaction; the caller adds offsets and commits. Where the database refuses what a batch would write, its
/// events are applied one by one, and the one that is refused is parked: no consumer stops on one bad event (I-4).
///
/// # Errors
/// The database. A bad event is parked, not an error.
pub async fn apply(tx: &mut Tx, incoming: &[Incoming], now: Instant) -> Result<Applied, LedgerError> {
    apply_all(tx, &Arrivals::from(incoming.to_vec()), now).await
}

/// As [`apply`], of a batch that has windows besides.
///
/// # Errors
/// As [`apply`].
pub async fn apply_all(tx: &mut Tx, arrivals: &Arrivals, now: Instant) -> Result<Applied, LedgerError> {
    trial::begin(tx).await?;
    match apply_together(tx, arrivals, now).await {
        Ok(applied) => {
            trial::keep(tx).await?;
            return Ok(applied);
        }
        Err(error) if error.is_about_data() => trial::undo(tx).await?,
        Err(error) => return Err(error),
    }
    // Each event would take its own locks and keep them: all at once, lowest first, so that no other batch waits for this one in a circle.
    closes::hold_open(tx).await?;
    hold(tx, &all_keys()).await?;
    let mut applied = Applied::default();
    for one in arrivals.events.iter().chain(&arrivals.as_events(|_| true)) {
        let alone = apply_or_park(tx, one, now).await?;
        applied.tally += alone.tally;
        applied.newest = applied.newest.max(alone.newest);
    }
    Ok(applied)
}

async fn apply_or_park(tx: &mut Tx, one: &Incoming, now: Instant) -> Result<Applied, LedgerError> {
    trial::begin(tx).await?;
    match apply_together(tx, &Arrivals::from(vec![one.clone()]), now).await {
        Ok(applied) => {
            trial::keep(tx).await?;
            Ok(applied)
        }
        Err(error) if error.is_about_data() => {
            trial::undo(tx).await?;
            tracing::error!(%error, origin = one.origin, "an event was refused by the database and is parked");
            let parked = parking::park(tx, &[(one, refused(one, &error))], now).await?;
            Ok(Applied { tally: Tally { parked, ..Tally::default() }, newest: None })
        }
        Err(error) => Err(error),
    }
}

async fn apply_together(tx: &mut Tx, arrivals: &Arrivals, now: Instant) -> Result<Applied, LedgerError> {
    closes::hold_open(tx).await?;
    let (mut applied, windows, settings) = apply_facts(tx, arrivals, now).await?;
    // Behind the facts: what is begun again there is not done twice here. Windows lead to no other subject; what they change is marked.
    for windows in windows {
        let counted = telemetry::take_in(tx, &windows, settings).await?;
        applied.tally.windows += counted.new;
        applied.tally.repeated += counted.repeated;
        applied.tally.silences += counted.silences;
        applied.newest = applied.newest.max(counted.newest);
    }
    Ok(applied)
}

/// Windows that are admitted: as they came, and those that were judged first.
type Windows = [Admitted; 2];

/// Takes everything in but windows, and posts what follows, or marks it where more is behind; returns the windows that are admitted, with their
/// subjects' locks held.
async fn apply_facts(
    tx: &mut Tx,
    arrivals: &Arrivals,
    now: Instant,
) -> Result<(Applied, Windows, Settings), LedgerError> {
    // Many events lead to nearly every key, and whoever is led further begins again.
    let mut keys = if arrivals.events.len() > FEW_EVENTS { all_keys() } else { keys_of_batch(arrivals) };
    loop {
        hold(tx, &keys).await?;
        // Read with the locks held: who changes the names of products settles everything anew under all of them.
        let context = horizon::context(tx).await?;
        let (applied, accepted, windows) = take_in(tx, arrivals, now, &context).await?;
        let mut done = (applied, windows, context.books.settings);
        // Before the first horizon nothing is posted. Whoever sets it takes every lock first, and then finds these facts.
        let Some(horizon) = horizon::settled(tx).await? else { return Ok(done) };
        let news = News::of_batch(accepted, horizon);
        if news.facts.is_empty() {
            return Ok(done);
        }
        if arrivals.is_backlog {
            done.0.tally.unsettled += unsettled::mark(tx, &news.facts).await?;
            return Ok(done);
        }
        let settlement = Settlement::with_life(tx, &context.books, news).await?;
        let subjects = settlement.subjects().map(|subject| key_of(&subject));
        let needed: BTreeSet<i32> = subjects.chain(keys.iter().copied()).collect();
        if needed.is_subset(&keys) {
            settlement.write(tx, &context, horizon).await?;
            return Ok(done);
        }
        // What stands already leads further than the batch itself names: begin again with all locks, lowest first.
        give_back(tx).await?;
        keys = needed;
    }
}

/// What every batch needs to know besides its events.
#[derive(Clone, Debug, Default)]
pub struct BatchContext {
    /// Names of products and times of silence.
    pub books: gpuledger_books::Terms,
    /// Periods that were closed.
    pub closed: Vec<Closed>,
}

/// Takes a batch in, but for its windows; with its subjects' locks held. Returns what was accepted, and the windows that are admitted.
async fn take_in(
    tx: &mut Tx,
    arrivals: &Arrivals,
    now: Instant,
    context: &BatchContext,
) -> Result<(Applied, BTreeMap<i64, Arc<Fact>>, Windows), LedgerError> {
    let is_late = |window: &Arrived| too_late(window.end, now, &context.closed).is_some();
    let late = arrivals.as_events(is_late);
    let mut applied = Applied::default();
    let mut admitted: Vec<(&Incoming, &Event)> = Vec::new();
    let mut windows: Vec<Arrived> = Vec::new();
    let mut parked = Vec::new();
    for one in arrivals.events.iter().chain(&late) {
        match decide(one, now, &context.closed) {
            Decision::Admit(event) if matches!(event.data, EventData::TelemetryWindow(_)) => {
                windows.extend(Arrived::from_event(event));
            }
            Decision::Admit(event) => admitted.push((one, event)),
            Decision::Park(parking) => parked.push((one, parking)),
        }
    }
    let keeping = sealing::keep(tx, admitted, now).await?;
    parked.extend(keeping.parked);
    let became = insert_facts(tx, &keeping.facts).await?;
    let mut accepted = BTreeMap::new();
    for (one, became) in keeping.kept.into_iter().zip(became) {
        match became {
            Inserted::New { seq } => {
                applied.tally.accepted += 1;
                applied.newest = applied.newest.max(Some(one.event.time));
                if let EventData::SignalAcknowledged(said) = &one.event.data {
                    residue::answer(tx, said, one.event.time).await?;
                }
                accepted.insert(seq, Arc::new(one.said));
            }
            Inserted::Exists { digest, .. } if one.is_repeated(tx, &digest).await? => {
                applied.tally.repeated += 1;
            }
            Inserted::Exists { .. } => parked.push((one.incoming, conflict(one.event))),
        }
    }
    let in_time = if late.is_empty() {
        Admitted { windows: Arc::clone(&arrivals.windows), blocks: Arc::clone(&arrivals.blocks) }
    } else {
        arrivals.windows.iter().filter(|window| !is_late(window)).cloned().collect::<Vec<_>>().into()
    };
    applied.tally.parked += parking::park(tx, &parked, now).await?;
    Ok((applied, accepted, [in_time, windows.into()]))
}

fn keys_of_batch(arrivals: &Arrivals) -> BTreeSet<i32> {
    let events = arrivals.events.iter().filter_map(|one| one.event.as_ref().ok());
    let nodes: BTreeSet<&str> = arrivals.windows.iter().map(|window| window.node.as_str()).collect();
    let nodes = nodes.into_iter().map(|node| format!("node:{node}"));
    events.flat_map(Event::subjects).chain(nodes).map(|subject| key_of(&subject)).collect()
}
