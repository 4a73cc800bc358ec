//! Telemetry on its way in: sequence ranges, proof of life, and the windows as they came, in blocks (I-2). What they say is packed
//! later, from the blocks ([`crate::pack`]).

mod sealing;

pub(crate) use sealing::Sealed;
pub(crate) use sealing::seal;

use crate::error::LedgerError;
use crate::points::point;
use gpuledger_domain::fact::Settings;
use gpuledger_domain::time::Instant;
use gpuledger_storage::Tx;
use gpuledger_storage::blocks::stage;
use gpuledger_storage::telemetry::{WindowId, accept};
use gpuledger_storage::{alive, state, touched};
use gpuledger_wire::arrived::Arrived;
use std::sync::Arc;

/// What became of the windows of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Windows that count now.
    pub(crate) new: u64,
    /// Windows that counted before.
    pub(crate) repeated: u64,
    /// Nodes whose silences changed.
    pub(crate) silences: u64,
    /// Newest end of a new window.
    pub(crate) newest: Option<Instant>,
}

/// Windows that are admitted, with the blocks that were made of them ahead, if any were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) windows: Arc<Vec<Arrived>>,
    pub(crate) blocks: Arc<Vec<Sealed>>,
}

impl From<Vec<Arrived>> for Admitted {
    fn from(windows: Vec<Arrived>) -> Self {
        Self { windows: Arc::new(windows), ..Self::default() }
    }
}

/// Takes windows in: each sequence of a stream counts once, however often and in whatever order it comes.
pub(crate) async fn take_in(
    tx: &mut Tx,
    Admitted { windows, blocks }: &Admitted,
    settings: Settings,
) -> Result<Counted, LedgerError> {
    if windows.is_empty() {
        return Ok(Counted::default());
    }
    let ids: Vec<WindowId<'_>> = windows.iter().map(id_of).collect();
    let is_new = accept(tx, &ids).await?;
    let (mut staged, missing) = sealing::usable(blocks, &is_new);
    // Sealing takes a core for a while, and the database is busy meanwhile.
    let sealing = {
        let windows = Arc::clone(windows);
        tokio::task::spawn_blocking(move || seal(&windows, missing))
    };
    let new = || windows.iter().zip(&is_new).filter(|(_, is_new)| **is_new).map(|(window, _)| window);
    let ends = || new().map(|window| (window.node.as_str(), window.end.as_micros()));
    let silences = hear(tx, &alive::runs(ends()), settings).await?;
    let sealed = sealing.await.map_err(|why| LedgerError::Block(why.to_string()))?;
    let sealed = sealed.map_err(|why| LedgerError::Block(why.to_string()))?;
    staged.extend(sealed.iter().map(|sealed| &sealed.block));
    stage(tx, &staged).await?;
    point("ledger::after-copy");
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let newest = ends().map(|(_, end_us)| Instant::from_micros(end_us)).max();
    let new = new().count();
    Ok(Counted { new: count(new), repeated: count(windows.len() - new), silences, newest })
}

fn id_of(window: &Arrived) -> WindowId<'_> {
    WindowId {
        node: &window.node,
        stream: &window.stream,
        sequence: window.sequence,
        start_us: window.start.as_micros(),
        end_us: window.end.as_micros(),
    }
}

/// Notes that nodes live, and marks those whose silences change by it: the settler does what follows (ADR 4). The horizon is read with the nodes'
/// locks held, so it does not move before this commits. Returns how many it marked.
async fn hear(tx: &mut Tx, runs: &[alive::Run], settings: Settings) -> Result<u64, LedgerError> {
    let mut marked = 0;
    if let Some(horizon_us) = state::load(tx).await?.horizon_us {
        let gap_us = settings.observation_gap_us.min(settings.lease_us);
        let changed = alive::silences_changed(tx, runs, gap_us, horizon_us).await?;
        marked = u64::try_from(changed.len()).unwrap_or(u64::MAX);
        touched::mark_from(tx, &changed).await?;
    }
    alive::merge(tx, runs).await?;
    Ok(marked)
}
