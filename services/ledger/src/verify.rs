//! Verification: everything derived anew by the naive painter and compared with what stands. The painter shares no code with attribution.

use crate::error::LedgerError;
use crate::horizon::{context, settled};
use crate::settle::Anew;
use gpuledger_books::Books;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::fact::{Account, Fact, Settings};
use gpuledger_domain::ids::{AllocationId, GpuId, TenantId};
use gpuledger_domain::journal::{journals, postable_until};
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_painter::{Owned, Rules, Totals, TotalsKey, UnplacedTime, paint, unplaced};
use gpuledger_storage::{Db, Tx, journals as posted, unsettled};
use std::collections::{BTreeMap, BTreeSet};

/// What verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// GPUs compared.
    pub gpus: usize,
    /// Journals (GPU and hour) that stand in the database.
    pub journals: usize,
    /// Sums compared, one per GPU, hour, account, tenant and allocation.
    pub sums: usize,
    /// Accepted facts that wait to be settled: with any of them, what stands is not compared.
    pub waiting: usize,
    /// Allocations of unplaced units compared.
    pub unplaced: usize,
    /// Every difference, in words.
    pub differences: Vec<String>,
}

/// Compares posted journals, the ledger computed from facts, and the read model with what the naive painter finds.
///
/// # Errors
/// The database.
pub async fn verify(db: &Db) -> Result<Verdict, LedgerError> {
    let mut tx = db.snapshot().await?;
    let books = Books::load(&mut tx).await?;
    let Some(horizon) = books.horizon else { return Ok(Verdict::default()) };
    let terms = &books.terms;
    let rules = Rules {
        geometry: &terms.geometry,
        settings: terms.settings,
        pools: &terms.pools,
        measured: &terms.measured,
    };
    let painted = paint(&books.facts, &rules, horizon).totals();
    let computed = terms.attribute(&books.facts, horizon);
    let mut verdict = Verdict { gpus: computed.gpus.len(), sums: painted.len(), ..Verdict::default() };
    verdict.compare("computed", &painted, &totals_of(&computed));
    verdict.compare_unplaced(&unplaced(&books.facts, &rules, horizon), &computed);
    verdict.waiting = unsettled::load(&mut tx).await?.len();
    if verdict.waiting > 0 {
        return Ok(verdict);
    }
    let until = postable_until(horizon, terms.settings);
    let (stands, journals) = posted_totals(&mut tx, until).await?;
    verdict.journals = journals;
    verdict.compare_posted(painted, stands, until);
    verdict.check_read_model(&mut tx, &computed).await?;
    Ok(verdict)
}

/// As [`verify`], of these GPUs from a full hour on, reading what acts there and no more: a sample of a ledger too large to be derived anew.
///
/// # Errors
/// The database.
pub async fn verify_part(db: &Db, gpus: &[GpuId], from: Instant) -> Result<Verdict, LedgerError> {
    let mut tx = db.snapshot().await?;
    let Some(horizon) = settled(&mut tx).await? else { return Ok(Verdict::default()) };
    let context = context(&mut tx).await?;
    let mut floors: BTreeMap<GpuId, Instant> =
        gpus.iter().map(|gpu| (gpu.clone(), from.floor(HOUR_US))).collect();
    let Anew { facts, terms, ledger: computed, spans } =
        Anew::from(&mut tx, &context.books, &mut floors, horizon).await?;
    let facts: Vec<Fact> = facts.iter().map(|fact| Fact::clone(fact)).collect();
    let rules = Rules {
        geometry: &terms.geometry,
        settings: terms.settings,
        pools: &terms.pools,
        measured: &terms.measured,
    };
    let mut painted = paint(&facts, &rules, horizon).totals();
    painted.retain(|(gpu, hour, ..), _| floors.get(gpu).is_some_and(|floor| hour >= floor));
    let mut verdict = Verdict { gpus: computed.gpus.len(), sums: painted.len(), ..Verdict::default() };
    verdict.compare("computed", &painted, &totals_of(&computed));
    verdict.waiting = unsettled::load(&mut tx).await?.len();
    if verdict.waiting > 0 {
        return Ok(verdict);
    }
    let until = postable_until(horizon, terms.settings);
    let mut stands = Totals::new();
    for (gpu, from) in &floors {
        verdict.journals += add_posted(&mut tx, gpu.as_str(), (*from, until), &mut stands).await?;
    }
    stands.retain(|_, sum| *sum != (0, 0));
    verdict.compare_posted(painted, stands, until);
    verdict.differences.extend(spans.differences());
    Ok(verdict)
}

/// Sums of the computed ledger per GPU, hour, account, tenant and allocation.
pub fn totals_of(ledger: &Attribution) -> Totals {
    let mut totals = Totals::new();
    for (gpu, timeline) in &ledger.gpus {
        for journal in journals(gpu, timeline, Instant::MAX) {
            for entry in &journal.entries {
                let owner = entry.owner.as_ref();
                let key = (
                    gpu.clone(),
                    journal.hour,
                    entry.account,
                    owner.map(|o| o.tenant.clone()),
                    owner.map(|o| o.allocation.clone()),
                );
                let part = i128::from(entry.part_us);
                let sum = totals.entry(key).or_default();
                sum.0 += part * i128::from(entry.compute_slices);
                sum.1 += part * i128::from(entry.memory_mask.count_ones());
            }
        }
    }
    totals.retain(|_, sum| *sum != (0, 0));
    totals
}

async fn posted_totals(tx: &mut Tx, until: Instant) -> Result<(Totals, usize), LedgerError> {
    let mut totals = Totals::new();
    let mut journals = 0;
    for gpu in posted::gpus(tx).await? {
        journals += add_posted(tx, &gpu, (Instant::MIN, until), &mut totals).await?;
    }
    totals.retain(|_, sum| *sum != (0, 0));
    Ok((totals, journals))
}

/// Adds the posted entries of a GPU in some hours; returns how many journals they are of.
async fn add_posted(
    tx: &mut Tx,
    gpu: &str,
    (from, until): (Instant, Instant),
    totals: &mut Totals,
) -> Result<usize, LedgerError> {
    let mut hours = BTreeSet::new();
    for (hour_us, row) in posted::last_entries(tx, gpu, from.as_micros(), until.as_micros()).await? {
        hours.insert(hour_us);
        let Some(account) = account_of(&row.account) else { continue };
        let key = (
            GpuId::new(gpu),
            Instant::from_micros(hour_us),
            account,
            row.tenant.as_deref().map(TenantId::new),
            row.allocation.as_deref().map(AllocationId::new),
        );
        let sum = totals.entry(key).or_default();
        sum.0 += i128::from(row.compute_slice_us());
        sum.1 += i128::from(row.memory_slice_us());
    }
    Ok(hours.len())
}

fn account_of(word: &str) -> Option<Account> {
    let all = [
        Account::Tenant,
        Account::Idle,
        Account::Stranded,
        Account::Scrub,
        Account::Quarantine,
        Account::Fault,
        Account::Maintenance,
        Account::Unobserved,
    ];
    all.into_iter().find(|account| account.as_str() == word)
}

impl Verdict {
    /// Whether everything was compared, and nothing differs.
    pub fn holds(&self) -> bool {
        self.differences.is_empty() && self.waiting == 0
    }

    fn compare(&mut self, what: &str, painted: &Totals, other: &Totals) {
        let keys: BTreeSet<&TotalsKey> = painted.keys().chain(other.keys()).collect();
        for key in keys {
            let (wanted, found) =
                (painted.get(key).copied().unwrap_or_default(), other.get(key).copied().unwrap_or_default());
            if wanted != found {
                let (gpu, hour, account, tenant, allocation) = key;
                let whose = match (tenant, allocation) {
                    (Some(tenant), Some(allocation)) => format!(" {tenant} {allocation}"),
                    _ => String::new(),
                };
                self.differences.push(format!(
                    "{what}: {gpu} {hour} {}{whose}: {} / {} slice-us, the painter finds {} / {}",
                    account.as_str(),
                    found.0,
                    found.1,
                    wanted.0,
                    wanted.1
                ));
            }
        }
    }

    fn compare_unplaced(&mut self, painted: &BTreeMap<Owned, UnplacedTime>, computed: &Attribution) {
        let mut spans: BTreeMap<Owned, UnplacedTime> = BTreeMap::new();
        for span in computed.spans.iter().filter(|span| span.place.is_none()) {
            let owner = (span.allocation.clone(), span.tenant.clone(), span.project.clone());
            let time = spans.entry(owner).or_default();
            if span.held {
                *time.held_us.entry(span.state.clone()).or_default() += span.allocated_us();
            }
            time.billed_us += span.billed_us();
        }
        spans.retain(|_, time| *time != UnplacedTime::default());
        self.unplaced = painted.len();
        let keys: BTreeSet<&Owned> = painted.keys().chain(spans.keys()).collect();
        for key in keys {
            let (wanted, found) = (painted.get(key), spans.get(key));
            if wanted != found {
                let (allocation, tenant, _) = key;
                self.differences.push(format!(
                    "unplaced: {allocation} of {tenant}: {found:?}, the painter finds {wanted:?}"
                ));
            }
        }
    }

    /// What is posted before `until` says what was painted.
    fn compare_posted(&mut self, mut painted: Totals, stands: Totals, until: Instant) {
        painted.retain(|(_, hour, ..), _| *hour < until);
        self.compare("posted", &painted, &stands);
    }

    /// The read model the API answers from says the same as the ledger computed from facts.
    async fn check_read_model(&mut self, tx: &mut Tx, computed: &Attribution) -> Result<(), LedgerError> {
        let stands = gpuledger_books::spans::load(tx).await?;
        // A pool may serve several with one unit over one time.
        let key = |span: &gpuledger_domain::usage::UsageSpan| {
            let owner = (span.tenant.clone(), span.project.clone(), span.held);
            (span.allocation.clone(), span.unit, span.window, owner)
        };
        let wanted: BTreeMap<_, _> = computed.spans.iter().map(|span| (key(span), span)).collect();
        let found: BTreeMap<_, _> = stands.iter().map(|span| (key(span), span)).collect();
        for (key, span) in &wanted {
            if found.get(key) != Some(span) {
                self.differences
                    .push(format!("read model: {} unit {} {} is not as computed", key.0, key.1, key.2));
            }
        }
        for key in found.keys().filter(|key| !wanted.contains_key(*key)) {
            self.differences.push(format!("read model: {} unit {} {} should not stand", key.0, key.1, key.2));
        }
        Ok(())
    }
}

/// Start of the first hour that is not posted at a horizon.
pub fn posted_until(horizon: Instant, settings: Settings) -> Instant {
    postable_until(horizon, settings).floor(HOUR_US)
}
