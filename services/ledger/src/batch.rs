//! One batch of events, one transaction.

use crate::decide::{Closed, Decision, conflict, decide, refused};
use crate::error::LedgerError;
use crate::incoming::Incoming;
use crate::points::point;
use crate::{RULE_SET, horizon, models, parking, post, telemetry};
use gpuledger_books::scope::{Scope, gather};
use gpuledger_domain::time::Instant;
use gpuledger_storage::facts::{Inserted, NewFact, insert_facts};
use gpuledger_storage::locks::{all_keys, give_back, hold, key_of};
use gpuledger_storage::{Tx, closes, state, trial};
use gpuledger_wire::{Event, EventData};
use std::collections::BTreeSet;

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
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.windows += other.windows;
        self.repeated += other.repeated;
        self.parked += other.parked;
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
    trial::begin(tx).await?;
    match apply_together(tx, incoming, now).await {
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
    for one in incoming {
        let alone = apply_or_park(tx, one, now).await?;
        applied.tally += alone.tally;
        applied.newest = applied.newest.max(alone.newest);
    }
    Ok(applied)
}

async fn apply_or_park(tx: &mut Tx, one: &Incoming, now: Instant) -> Result<Applied, LedgerError> {
    trial::begin(tx).await?;
    match apply_together(tx, std::slice::from_ref(one), now).await {
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

async fn apply_together(tx: &mut Tx, incoming: &[Incoming], now: Instant) -> Result<Applied, LedgerError> {
    closes::hold_open(tx).await?;
    let mut keys = keys_of_batch(incoming);
    loop {
        hold(tx, &keys).await?;
        // Read with the locks held: who changes the names of products settles everything anew under all of them.
        let context = horizon::context(tx).await?;
        let (applied, seeds) = take_in(tx, incoming, now, &context).await?;
        // Before the first horizon nothing is posted. Whoever sets it takes every lock first, and then finds these facts.
        let Some(horizon) = state::load(tx).await?.horizon_us.map(Instant::from_micros) else {
            return Ok(applied);
        };
        let scope = gather(tx, &seeds).await?;
        let needed: BTreeSet<i32> =
            scope.subjects.iter().map(|subject| key_of(subject)).chain(keys.iter().copied()).collect();
        if needed.is_subset(&keys) {
            settle(tx, &scope, &context, horizon).await?;
            return Ok(applied);
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

/// Posts journals and read models of what the scope covers.
pub(crate) async fn settle(
    tx: &mut Tx,
    scope: &Scope,
    context: &BatchContext,
    horizon: Instant,
) -> Result<(), LedgerError> {
    if scope.gpus.is_empty() && scope.allocations.is_empty() {
        return Ok(());
    }
    let ledger = context.books.attribute_gpus(&scope.facts, horizon, &scope.gpus);
    post::post(tx, &ledger, &scope.gpus, context.books.settings, horizon).await?;
    point("ledger::after-journals");
    models::replace(tx, &ledger, scope).await
}

/// Takes a batch in; with its subjects' locks held. Returns the subjects of new facts.
async fn take_in(
    tx: &mut Tx,
    incoming: &[Incoming],
    now: Instant,
    context: &BatchContext,
) -> Result<(Applied, BTreeSet<String>), LedgerError> {
    let mut applied = Applied::default();
    let mut admitted: Vec<(&Incoming, &Event)> = Vec::new();
    let mut windows: Vec<(&Incoming, &Event)> = Vec::new();
    let mut parked = Vec::new();
    for one in incoming {
        match decide(one, now, &context.closed) {
            Decision::Admit(event) if matches!(event.data, EventData::TelemetryWindow(_)) => {
                windows.push((one, event))
            }
            Decision::Admit(event) => admitted.push((one, event)),
            Decision::Park(parking) => parked.push((one, parking)),
        }
    }
    let facts: Vec<NewFact> = admitted.iter().map(|(_, event)| new_fact(event, now)).collect();
    let mut seeds = BTreeSet::new();
    for ((one, event), (fact, became)) in
        admitted.iter().zip(facts.iter().zip(insert_facts(tx, &facts).await?))
    {
        match became {
            Inserted::New { .. } => {
                applied.tally.accepted += 1;
                applied.newest = applied.newest.max(Some(event.time));
                seeds.extend(fact.subjects.iter().cloned());
            }
            Inserted::Exists { digest, .. } if digest == fact.digest => applied.tally.repeated += 1,
            Inserted::Exists { .. } => parked.push((one, conflict(event))),
        }
    }
    let counted = telemetry::take_in(tx, &windows).await?;
    applied.tally.windows += counted.new;
    applied.tally.repeated += counted.repeated;
    applied.newest = applied.newest.max(counted.newest);
    applied.tally.parked += parking::park(tx, &parked, now).await?;
    Ok((applied, seeds))
}

fn new_fact(event: &Event, now: Instant) -> NewFact {
    NewFact {
        source: event.source.clone(),
        id: event.id.clone(),
        kind: event.type_name().to_owned(),
        at_us: event.time.as_micros(),
        received_at_us: now.as_micros(),
        rule_set: RULE_SET.to_owned(),
        digest: event.content_digest(),
        body: event.canonical_bytes(),
        subjects: event.subjects(),
    }
}

fn keys_of_batch(incoming: &[Incoming]) -> BTreeSet<i32> {
    let events = incoming.iter().filter_map(|one| one.event.as_ref().ok());
    events.flat_map(Event::subjects).map(|subject| key_of(&subject)).collect()
}
