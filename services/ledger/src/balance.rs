//! The balance sheet: what stands in each account of each GPU over a window. Posted journals give the whole hours they cover; young hours, cut
//! hours, every other horizon, and all while facts of a backlog wait to be settled, are computed from facts.

use crate::error::LedgerError;
use gpuledger_books::Books;
use gpuledger_domain::ids::{GpuId, TenantId};
use gpuledger_domain::journal::postable_until;
use gpuledger_domain::time::{HOUR_US, Instant, Window};
use gpuledger_storage::{PgConnection, balance as posted, unsettled};
use std::collections::BTreeMap;

/// What stands in one account of one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceRow {
    /// Which GPU.
    pub gpu: GpuId,
    /// Which account.
    pub account: String,
    /// Whose, in account `tenant`.
    pub tenant: Option<TenantId>,
    /// Compute-slice-microseconds.
    pub compute_slice_us: i128,
    /// Memory-slice-microseconds.
    pub memory_slice_us: i128,
}

type Sums = BTreeMap<(GpuId, String, Option<TenantId>), (i128, i128)>;

/// The balance over `window` at `as_of`, in order of GPU, account and tenant.
///
/// # Errors
/// The database.
pub async fn balance(
    connection: &mut PgConnection,
    books: &Books,
    as_of: Instant,
    window: Window,
    gpu: Option<&str>,
) -> Result<Vec<BalanceRow>, LedgerError> {
    let mut sums = Sums::new();
    let hours = if books.horizon == Some(as_of) && !unsettled::any(connection).await? {
        posted_hours(window, postable_until(as_of, books.terms.settings))
    } else {
        None
    };
    if let Some(hours) = hours {
        let rows =
            posted::balance(connection, hours.start().as_micros(), hours.end().as_micros(), gpu).await?;
        for row in rows {
            let key = (GpuId::new(&row.gpu), row.account, row.tenant.as_deref().map(TenantId::new));
            add(&mut sums, key, (row.compute_slice_us, row.memory_slice_us));
        }
    }
    let before = Window::new(window.start(), hours.map_or(window.end(), |h| h.start()));
    let after = hours.and_then(|h| Window::new(h.end(), window.end()));
    let parts: Vec<Window> = before.into_iter().chain(after).collect();
    if !parts.is_empty() {
        compute(books, as_of, &parts, gpu, &mut sums);
    }
    let rows = sums.into_iter().filter(|(_, sum)| *sum != (0, 0));
    Ok(rows
        .map(|((gpu, account, tenant), (compute_slice_us, memory_slice_us))| BalanceRow {
            gpu,
            account,
            tenant,
            compute_slice_us,
            memory_slice_us,
        })
        .collect())
}

/// The whole hours inside the window that are posted.
fn posted_hours(window: Window, until: Instant) -> Option<Window> {
    Window::new(window.start().ceil(HOUR_US), window.end().floor(HOUR_US).min(until))
}

fn compute(books: &Books, as_of: Instant, parts: &[Window], gpu: Option<&str>, sums: &mut Sums) {
    let ledger = books.attribute(as_of);
    for (id, timeline) in ledger.gpus.iter().filter(|(id, _)| gpu.is_none_or(|wanted| id.as_str() == wanted))
    {
        for part in parts {
            for posting in timeline.cut(*part).postings() {
                let key = (id.clone(), posting.account.as_str().to_owned(), posting.tenant);
                add(sums, key, (posting.compute_slice_us, posting.memory_slice_us));
            }
        }
    }
}

fn add(sums: &mut Sums, key: (GpuId, String, Option<TenantId>), more: (i128, i128)) {
    let sum = sums.entry(key).or_default();
    sum.0 += more.0;
    sum.1 += more.1;
}
