//! What the rules find for the facts of one case, and whether it is what the case says.

use super::compare;
use gpuledger_cases::{BalanceRow, Case, Expect, FindingRow, PoolLine, UsageRow, asks_for};
use gpuledger_domain::attribution::{Attribution, Context, attribute, holds};
use gpuledger_domain::fact::{Account, Fact, Posting, Settings};
use gpuledger_domain::finding::{Finding, Findings};
use gpuledger_domain::geometry::Geometry;
use gpuledger_domain::ids::{GpuId, TenantId};
use gpuledger_domain::journal::journals;
use gpuledger_domain::pool::{Idle, Policy, Pool, Pools, WorkKind, WorkWindow};
use gpuledger_domain::report::{GroupKey, ReportContext, UsageRow as Reported, Weight, usage_rows};
use gpuledger_domain::residue;
use gpuledger_domain::share::Share;
use gpuledger_domain::sku::SkuBook;
use gpuledger_domain::time::{CELL_US, HOUR_US, Instant, Window};
use gpuledger_painter::{Painting, Rules, paint};
use gpuledger_wire::geometry::geometry;
use std::collections::BTreeMap;

/// What both methods find.
pub(super) struct Ledger<'c> {
    case: &'c Case,
    found: Attribution,
    painted: Painting,
}

/// GPU and account (or tenant) to slice-time.
type Sums = BTreeMap<(String, String), (i128, i128)>;

impl<'c> Ledger<'c> {
    pub(super) fn of(case: &'c Case, facts: &[Fact], horizon: Instant) -> Result<Self, String> {
        let geometry: Geometry = geometry();
        let pools = pools(&case.pools)?;
        let settings = Settings::default();
        let context = Context {
            geometry: &geometry,
            skus: &SkuBook::default(),
            settings,
            pools: &pools,
            measured: &[],
        };
        let mut found = attribute(facts, &context, horizon);
        found.findings = with_residue(found.findings, facts, &context, horizon);
        let rules = Rules { geometry: &geometry, settings, pools: &pools, measured: &[] };
        let painted = paint(facts, &rules, horizon);
        Ok(Self { case, found, painted })
    }

    /// The same in every part.
    pub(super) fn equals(&self, first: &Self) -> Result<(), String> {
        let same = |what: &str, same: bool| {
            if same { Ok(()) } else { Err(format!("{what} differ from those in the order of the file")) }
        };
        same("timelines", self.found.gpus == first.found.gpus)?;
        same("spans", self.found.spans == first.found.spans)?;
        same("allocations", self.found.allocations == first.found.allocations)?;
        same("findings", self.found.findings == first.found.findings)?;
        same("paintings", self.painted.totals() == first.painted.totals())
    }

    /// Whether it is what the case says.
    pub(super) fn stands(&self, expect: &Expect) -> Result<(), String> {
        match expect {
            Expect::Balance { over, rows } => self.balance(*over, rows),
            Expect::Usage { over, weight, by, rows } => self.usage(*over, weight.as_deref(), by, rows),
            Expect::Findings { of, rows } => self.findings(of, rows),
            Expect::Parked(_) | Expect::Invoice { .. } => Err("needs a database".to_owned()),
        }
    }

    fn balance(&self, over: Option<Window>, rows: &[BalanceRow]) -> Result<(), String> {
        let mut wanted = Sums::new();
        for row in rows {
            let sum = wanted.entry((row.gpu.clone(), row.account.clone())).or_default();
            *sum = (sum.0 + row.compute_slice_us, sum.1 + row.memory_slice_us);
        }
        differences("the ledger", &wanted, &self.attributed(over))?;
        differences("the journals", &wanted, &self.posted(over))?;
        // The painter's postings are those of whole quarters of an hour.
        let on_cells = |at: Instant| at.floor(CELL_US) == at;
        if over.is_none_or(|over| on_cells(over.start()) && on_cells(over.end())) {
            differences("the painter", &wanted, &self.painted(over))?;
        }
        Ok(())
    }

    fn attributed(&self, over: Option<Window>) -> Sums {
        let mut sums = Sums::new();
        for (gpu, timeline) in &self.found.gpus {
            let part = over.map(|over| timeline.cut(over));
            add(&mut sums, gpu, &part.as_ref().unwrap_or(timeline).postings());
        }
        sums
    }

    fn painted(&self, over: Option<Window>) -> Sums {
        let mut sums = Sums::new();
        let inside = |posting: &Posting| over.is_none_or(|over| over.contains(posting.window.start()));
        for (gpu, postings) in &self.painted.postings {
            let part: Vec<Posting> = postings.iter().filter(|p| inside(p)).cloned().collect();
            add(&mut sums, gpu, &part);
        }
        sums
    }

    /// By the entries of the journals; those of an hour cut by the window are not whole, and left to the ledger.
    fn posted(&self, over: Option<Window>) -> Sums {
        let on_hours = |at: Instant| at.floor(HOUR_US) == at;
        if over.is_some_and(|over| !on_hours(over.start()) || !on_hours(over.end())) {
            return self.attributed(over);
        }
        let mut sums = Sums::new();
        for (gpu, timeline) in &self.found.gpus {
            for journal in journals(gpu, timeline, Instant::MAX) {
                for entry in
                    journal.entries.iter().filter(|e| over.is_none_or(|over| over.contains(e.window.start())))
                {
                    let account = account(entry.account, entry.owner.as_ref().map(|owner| &owner.tenant));
                    let sum = sums.entry((gpu.to_string(), account)).or_default();
                    sum.0 += i128::from(entry.part_us) * i128::from(entry.compute_slices);
                    sum.1 += i128::from(entry.part_us) * i128::from(entry.memory_mask.count_ones());
                }
            }
        }
        sums
    }

    fn usage(
        &self,
        over: Option<Window>,
        weight: Option<&str>,
        by: &[String],
        rows: &[UsageRow],
    ) -> Result<(), String> {
        let keys: Option<Vec<GroupKey>> = by.iter().map(|word| GroupKey::parse(word)).collect();
        let mut context = ReportContext { weight: weighed(weight)?, ..ReportContext::default() };
        for tenant in &self.case.tenants {
            let zone = tenant.zone.parse().map_err(|_| format!("{} is no zone", tenant.zone))?;
            context.zones.insert(TenantId::new(&tenant.name), zone);
        }
        context.allocations =
            self.found.allocations.iter().map(|view| (view.allocation.as_str(), view)).collect();
        let all = Window::new(Instant::from_micros(0), Instant::from_micros(i64::MAX / 4));
        let window = over.or(all).ok_or("no window")?;
        let mut there = usage_rows(&self.found.spans, window, &keys.ok_or("no such group key")?, &context);
        there.retain(|row| {
            (row.allocated_us, row.billed_us) != (0, 0)
                || row.gpu_us.is_some_and(|gpu| gpu != Share::from_integer(0))
        });
        compare::rows(rows, there, usage_is).map_err(|fell| format!("usage{fell}"))
    }

    fn findings(&self, of: &[String], rows: &[FindingRow]) -> Result<(), String> {
        let mut there = self.found.findings.clone();
        there.retain(|finding| asks_for(of, finding.kind.as_str()));
        compare::rows(rows, there, finding_is).map_err(|fell| format!("findings{fell}"))
    }
}

/// Every GPU is observed, as it is where nobody applied a set.
fn with_residue(
    found: Vec<Finding>,
    facts: &[Fact],
    context: &Context<'_>,
    horizon: Instant,
) -> Vec<Finding> {
    let mut all = Findings::default();
    all.extend(found);
    let holds = holds(facts.iter().collect(), context, horizon);
    for history in residue::histories(facts, holds, horizon).values() {
        all.extend(residue::findings(history, &residue::Rules::default(), horizon));
    }
    all.into_vec()
}

fn usage_is(want: &UsageRow, row: &Reported) -> bool {
    let slices = row.compute_slice_us.zip(row.memory_slice_us);
    want.keys == row.keys
        && want.held.is_none_or(|held| held == row.allocated_us)
        && want.billed.is_none_or(|billed| billed == row.billed_us)
        && want.gpu.is_none_or(|gpu| row.gpu_us == Some(gpu))
        && want.slices.is_none_or(|wanted| wanted == slices)
}

fn finding_is(want: &FindingRow, found: &Finding) -> bool {
    want.kind == found.kind.as_str()
        && want.subject == found.subject
        && want.since.is_none_or(|since| since == found.since)
        && want.until.is_none_or(|until| until == found.until)
        && want.names.iter().all(|name| found.detail.contains(name.as_str()))
}

fn weighed(word: Option<&str>) -> Result<Weight, String> {
    match word {
        None | Some("memory") => Ok(Weight::Memory),
        Some("compute") => Ok(Weight::Compute),
        Some("dominant") => Ok(Weight::Dominant),
        Some(other) => Err(format!("{other} is no weight")),
    }
}

fn account(account: Account, tenant: Option<&TenantId>) -> String {
    tenant.map_or_else(|| account.as_str().to_owned(), ToString::to_string)
}

fn add(sums: &mut Sums, gpu: &GpuId, postings: &[Posting]) {
    for posting in postings {
        let sum =
            sums.entry((gpu.to_string(), account(posting.account, posting.tenant.as_ref()))).or_default();
        *sum = (sum.0 + posting.compute_slice_us, sum.1 + posting.memory_slice_us);
    }
}

fn differences(whose: &str, wanted: &Sums, there: &Sums) -> Result<(), String> {
    let keys: std::collections::BTreeSet<_> = wanted.keys().chain(there.keys()).collect();
    let of = |sums: &Sums, key| sums.get(key).copied().unwrap_or_default();
    let lines = keys.into_iter().filter(|key| of(wanted, key) != of(there, key)).map(|key| {
        let ((c, m), (got_c, got_m)) = (of(wanted, key), of(there, key));
        format!("\n    {} {}: expected {c}c {m}m us, {whose} has {got_c}c {got_m}m us", key.0, key.1)
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { Ok(()) } else { Err(format!("balance{}", lines.concat())) }
}

fn pools(lines: &[PoolLine]) -> Result<Pools, String> {
    lines.iter().map(|line| Ok((line.name.clone(), pool(line)?))).collect()
}

fn pool(line: &PoolLine) -> Result<Pool, String> {
    let idle = match line.idle.as_str() {
        "provider" => Idle::Provider,
        "proportional" => Idle::Proportional,
        "even" => Idle::Even,
        other => return Err(format!("{other} is no distribution of idle time")),
    };
    let policy = match line.policy.as_str() {
        "entitlement" => Policy::Entitlement,
        "measured" => Policy::Measured,
        "work" => work(line)?,
        other => return Err(format!("{other} is no policy")),
    };
    Ok(Pool { policy, idle })
}

fn work(line: &PoolLine) -> Result<Policy, String> {
    let window = match line.window.as_str() {
        "1m" => WorkWindow::One,
        "5m" => WorkWindow::Five,
        "15m" => WorkWindow::Fifteen,
        other => return Err(format!("{other} is no window")),
    };
    let mut weights = BTreeMap::new();
    for (kind, weight) in &line.weights {
        let kind = WorkKind::parse(kind).ok_or_else(|| format!("{kind} is no kind of work"))?;
        weights.insert(kind, weight.parse().map_err(|_| format!("{weight} is no weight"))?);
    }
    Ok(Policy::Work { weights, window })
}
