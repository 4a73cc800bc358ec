//! What the ledger says, as tables a person reads: where the fleet's time went, who used what, what to look at.

use super::screen::{Screen, count};
use crate::commands::reports::hours_text;
use crate::findings::found;
use crate::table;
use anyhow::Result;
use gpuledger_books::Books;
use gpuledger_books::usage_json::seconds_text;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::fact::FactBody;
use gpuledger_domain::finding::Finding;
use gpuledger_domain::report::{GroupKey, ReportContext, UsageRow, usage_rows};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_ledger::balance::balance;
use gpuledger_storage::Db;
use std::collections::BTreeMap;

/// Rows of a table before it is cut.
const MOST_ROWS: usize = 24;
/// Rows that are left of one that was cut.
const ROWS_OF_MANY: usize = 10;
/// Columns of a whole bar.
const BAR: i128 = 24;
/// A column filled by one to seven eighths.
const EIGHTHS: [&str; 7] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Accounts that are no tenant's, in the order of the table.
const ACCOUNTS: [&str; 7] = ["idle", "stranded", "scrub", "quarantine", "fault", "maintenance", "unobserved"];

/// Everything that stands, at the horizon.
pub(crate) struct Standing {
    books: Books,
    /// The ledger, computed from facts.
    pub(crate) ledger: Attribution,
    /// How far it has come.
    pub(crate) horizon: Instant,
}

impl Standing {
    /// Reads it.
    ///
    /// # Errors
    /// The database.
    pub(crate) async fn load(db: &Db) -> Result<Self> {
        let books = Books::load(&mut *db.snapshot().await?).await?;
        let horizon = books.horizon.unwrap_or_default();
        Ok(Self { ledger: books.attribute(horizon), books, horizon })
    }

    /// How many facts of a kind the nodes have said themselves.
    pub(crate) fn said_by_nodes(&self, is_it: impl Fn(&FactBody) -> bool) -> usize {
        let facts = self.books.facts.iter().filter(|fact| fact.source.as_str().starts_with("/nodes/"));
        facts.filter(|fact| is_it(&fact.body)).count()
    }

    /// Billed time of a tenant in a window.
    pub(crate) fn billed(&self, tenant: &str, window: Window) -> Share {
        let rows = self.usage(window, &[GroupKey::Tenant]);
        let own = rows.iter().find(|row| row.keys == [Some(tenant.to_owned())]);
        own.map_or_else(Share::default, |row| Share::from_integer(row.billed_us))
    }

    /// Usage in a window.
    pub(crate) fn usage(&self, window: Window, keys: &[GroupKey]) -> Vec<UsageRow> {
        let context = ReportContext { zones: self.books.objects.zones(), ..ReportContext::default() };
        usage_rows(&self.ledger.spans, window, keys, &context)
    }
}

/// GPU time of one account by both dimensions, in microseconds of whole GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct GpuTime {
    memory: Share,
    compute: Share,
}

impl std::ops::AddAssign for GpuTime {
    fn add_assign(&mut self, more: Self) {
        self.memory += more.memory;
        self.compute += more.compute;
    }
}

/// Prints where each GPU's time went; says whether it adds up to what there was.
///
/// # Errors
/// The database.
pub(crate) async fn print_balance(
    screen: Screen,
    db: &Db,
    standing: &Standing,
    window: Window,
) -> Result<bool> {
    let gpus = standing.ledger.gpus.len();
    if gpus == 0 {
        screen.heading("Where the fleet's time went", "");
        screen.line("No GPU is named in these events, only how many of which product were held: that time stands outside the balance (A-17).");
        return Ok(true);
    }
    let sums = sums(db, standing, window).await?;
    let capacity = capacity(&standing.ledger, window);
    let mut all = GpuTime::default();
    sums.values().for_each(|time| all += *time);
    let mut rows: Vec<Vec<String>> = ordered(&sums).map(|(name, time)| row(name, time, capacity)).collect();
    rows.push(row("all", all, capacity));
    screen.heading("Where the fleet's time went", &format!("{} to {}", window.start(), window.end()));
    let numbers = ["GPU h by memory", "GPU h by compute", "part"];
    screen.line(&table::render(&["account", numbers[0], numbers[1], numbers[2], ""], &numbers, &rows));
    let holds = all == capacity;
    let word = if holds { "adds up to" } else { "does not add up to" };
    let hours = hours_text(capacity.memory);
    screen.verdict(
        holds,
        &format!(
            "{word} the capacity of {}, {hours} GPU h, in memory and in compute slices, to the microsecond",
            count(gpus, "GPU")
        ),
    );
    Ok(holds)
}

/// Whole-GPU time by account; tenants under their names, with a mark before them.
async fn sums(db: &Db, standing: &Standing, window: Window) -> Result<BTreeMap<(bool, String), GpuTime>> {
    let mut tx = db.snapshot().await?;
    let mut sums: BTreeMap<(bool, String), GpuTime> = BTreeMap::new();
    for row in balance(&mut tx, &standing.books, standing.horizon, window, None).await? {
        let Some(segment) = standing.ledger.gpus.get(&row.gpu).and_then(|timeline| timeline.segments.first())
        else {
            continue;
        };
        let key = match row.tenant {
            Some(tenant) => (true, tenant.to_string()),
            None => (false, row.account),
        };
        *sums.entry(key).or_default() += GpuTime {
            memory: Share::new(row.memory_slice_us, i128::from(segment.memory_slices)),
            compute: Share::new(row.compute_slice_us, i128::from(segment.compute_slices)),
        };
    }
    Ok(sums)
}

/// What the GPUs could have given in the window.
fn capacity(ledger: &Attribution, window: Window) -> GpuTime {
    let segments = ledger.gpus.values().flat_map(|timeline| &timeline.segments);
    let micros =
        segments.filter_map(|segment| segment.window.intersect(window)).map(|part| i128::from(part.micros()));
    let whole = Share::from_integer(micros.sum());
    GpuTime { memory: whole, compute: whole }
}

/// Tenants by name, then the other accounts that have anything.
fn ordered(sums: &BTreeMap<(bool, String), GpuTime>) -> impl Iterator<Item = (&str, GpuTime)> {
    let tenants =
        sums.iter().filter(|((is_tenant, _), _)| *is_tenant).map(|((_, name), time)| (name.as_str(), *time));
    let others = ACCOUNTS.iter().filter_map(|name| Some((*name, *sums.get(&(false, (*name).to_owned()))?)));
    tenants.chain(others)
}

fn row(name: &str, time: GpuTime, capacity: GpuTime) -> Vec<String> {
    let part =
        if capacity.memory == Share::default() { Share::default() } else { time.memory / capacity.memory };
    let thousandths = (part * Share::from_integer(1000)).round().to_integer();
    let percent = format!("{}.{} %", thousandths / 10, thousandths % 10);
    vec![name.to_owned(), hours_text(time.memory), hours_text(time.compute), percent, bar(part)]
}

/// A bar in eighths of a column; what there is shows, however little.
fn bar(part: Share) -> String {
    let eighths =
        (part * Share::from_integer(8 * BAR)).round().to_integer().max(i128::from(part > Share::default()));
    let whole = "█".repeat(usize::try_from(eighths / 8).unwrap_or_default());
    let rest =
        usize::try_from(eighths % 8).ok().and_then(|rest| rest.checked_sub(1)).and_then(|at| EIGHTHS.get(at));
    format!("{whole}{}", rest.copied().unwrap_or_default())
}

/// Prints who used what: by tenant, project, SKU and class; where that is too much, the tenants with most.
pub(crate) fn print_usage(screen: Screen, standing: &Standing, window: Window) {
    let fine = [GroupKey::Tenant, GroupKey::Project, GroupKey::Sku, GroupKey::Class];
    let mut rows = standing.usage(window, &fine);
    let mut keys = fine.as_slice();
    if rows.len() > MOST_ROWS {
        keys = &fine[..1];
        rows = standing.usage(window, keys);
        rows.sort_by(|a, b| (b.billed_us, &a.keys).cmp(&(a.billed_us, &b.keys)));
    }
    let total = standing.usage(window, &[]);
    let kept = if rows.len() > MOST_ROWS { ROWS_OF_MANY } else { rows.len() };
    let mut cells: Vec<Vec<String>> = rows.iter().take(kept).map(|row| usage_cells(&row.keys, row)).collect();
    let left = rows.len() - kept;
    if left > 0 {
        cells.push(named(&format!("… and {left} more"), keys.len(), vec![String::new(); 3]));
    }
    if let Some(total) = total.first() {
        cells.push(named("all", keys.len(), quantities(total)));
    }
    let names: Vec<String> = keys.iter().map(GroupKey::name).collect();
    let numbers = ["held h", "billed h", "GPU h"];
    let headings: Vec<&str> = names.iter().map(String::as_str).chain(numbers).collect();
    screen.heading("Who used what", "billed is after shares, GPU h in whole GPUs");
    screen.line(&table::render(&headings, &numbers, &cells));
    if let Some(total) = total.first() {
        screen.note(&format!(
            "exactly {} unit-seconds in all",
            seconds_text(Share::from_integer(total.billed_us))
        ));
    }
}

fn usage_cells(keys: &[Option<String>], row: &UsageRow) -> Vec<String> {
    let keys = keys.iter().map(|key| key.clone().unwrap_or_else(|| "–".to_owned()));
    keys.chain(quantities(row)).collect()
}

fn quantities(row: &UsageRow) -> Vec<String> {
    vec![
        hours_text(Share::from_integer(row.allocated_us)),
        hours_text(Share::from_integer(row.billed_us)),
        row.gpu_us.map_or_else(|| "–".to_owned(), hours_text),
    ]
}

/// A row with a name where the keys stand.
fn named(name: &str, keys: usize, numbers: Vec<String>) -> Vec<String> {
    let blank = std::iter::repeat_n(String::new(), keys.saturating_sub(1));
    std::iter::once(name.to_owned()).chain(blank).chain(numbers).collect()
}

/// Prints what a person should look at.
///
/// # Errors
/// The database, or prices that fit equally well.
pub(crate) async fn print_findings(screen: Screen, db: &Db, standing: &Standing) -> Result<()> {
    let mut tx = db.snapshot().await?;
    let mut found = found(&mut tx, &standing.books, standing.horizon).await?.findings;
    found.sort_by(|a, b| {
        (b.kind.severity(), &a.kind, &a.subject).cmp(&(a.kind.severity(), &b.kind, &b.subject))
    });
    screen.heading("What to look at", &counted(&found));
    if found.is_empty() {
        screen.line("nothing");
        return Ok(());
    }
    let kept = if found.len() > MOST_ROWS { ROWS_OF_MANY } else { found.len() };
    let kinds = found.iter().take(kept).map(|finding| finding.kind.as_str().len()).max().unwrap_or_default();
    for finding in found.iter().take(kept) {
        screen.line(&finding_line(finding, kinds));
        screen.note(&format!("            {}", finding.detail));
    }
    if found.len() > kept {
        screen.note(&format!("… and {} more", found.len() - kept));
    }
    Ok(())
}

/// `2 findings: contested 1, lost_node 1`.
fn counted(found: &[Finding]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in found {
        *kinds.entry(finding.kind.as_str()).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    if kinds.is_empty() {
        String::new()
    } else {
        format!("{}: {}", count(found.len(), "finding"), kinds.join(", "))
    }
}

/// Severity, kind, subject and time, in columns.
fn finding_line(finding: &Finding, kinds: usize) -> String {
    let (severity, kind) = (finding.kind.severity().as_str(), finding.kind.as_str());
    let until = finding.until.map(|until| format!(" until {until}")).unwrap_or_default();
    format!("  {severity:<8}  {kind:<kinds$}  {}, since {}{until}", finding.subject, finding.since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_part() {
        assert_eq!(bar(Share::from_integer(1)).chars().count(), 24);
        assert_eq!(bar(Share::new(1, 2)), "█".repeat(12));
        assert_eq!(bar(Share::new(3, 48)), "█▌");
        assert_eq!(bar(Share::new(1, 1_000_000)), "▏");
        assert_eq!(bar(Share::default()), "");
    }

    #[test]
    fn tenants_come_first_and_accounts_in_their_order() {
        let time = GpuTime::default();
        let sums = [(false, "fault"), (false, "idle"), (true, "zoe"), (true, "idle")];
        let sums = sums.map(|(is_tenant, name)| ((is_tenant, name.to_owned()), time)).into_iter().collect();
        let names: Vec<&str> = ordered(&sums).map(|(name, _)| name).collect();
        assert_eq!(names, ["idle", "zoe", "idle", "fault"], "a tenant may be called idle");
    }
}
