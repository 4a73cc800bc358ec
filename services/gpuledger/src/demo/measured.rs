//! What was measured beside what was held. `0`, not measurable and not seen are told apart (M-8): nothing here feeds a bill.

use super::books::Standing;
use super::screen::Screen;
use crate::commands::reports::hours_text;
use crate::table;
use anyhow::Result;
use gpuledger_domain::share::Share;
use gpuledger_domain::time::Window;
use gpuledger_ledger::pack;
use gpuledger_storage::Db;
use gpuledger_storage::hours::{Filter, Used, load};
use std::collections::BTreeMap;

/// The reading of SM-active time among the qualities of an hour.
const SM_READING: &str = "sm_active_us";
/// The reading of memory.
const MEMORY_READING: &str = "memory_byte_us";
/// Bytes of a GiB.
const GIB: i128 = 1 << 30;

/// What was read of processes, summed over hours and owners. What was never read is absent, which is not zero.
#[derive(Debug, Default)]
struct Seen {
    sm_active_us: Option<i128>,
    memory_byte_us: Option<i128>,
    covered_us: i128,
    /// Reading, label, covered microseconds.
    quality: BTreeMap<String, BTreeMap<String, i128>>,
}

impl Seen {
    fn add(&mut self, used: &Used) {
        let exact = |sum: u128| i128::try_from(sum).unwrap_or(i128::MAX);
        let plus = |sum: Option<i128>, more: Option<u128>| match (sum, more.map(exact)) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            (sum, more) => sum.or(more),
        };
        self.sm_active_us = plus(self.sm_active_us, used.sm_active_us.sum());
        self.memory_byte_us = plus(self.memory_byte_us, used.memory_byte_us.sum());
        self.covered_us += used.covered_us.sum().map_or(0, exact);
        for (reading, labels) in used.quality.to_map() {
            let mine = self.quality.entry(reading).or_default();
            for (label, covered_us) in labels {
                *mine.entry(label).or_default() += i128::from(covered_us);
            }
        }
    }
}

/// What one tenant held of one product, and what its processes did there.
#[derive(Debug, Default)]
struct Measured {
    held_us: i128,
    seen: Seen,
}

/// Prints a row for each tenant and product.
///
/// # Errors
/// The database.
pub(crate) async fn print_measured(
    screen: Screen,
    db: &Db,
    standing: &Standing,
    window: Window,
) -> Result<()> {
    let rows = gather(db, standing, window).await?;
    let cells: Vec<Vec<String>> =
        rows.iter().map(|((tenant, sku), measured)| cells(tenant, sku, measured)).collect();
    screen.heading("What was measured", "by the collectors, beside what was held; no bill rests on it");
    let numbers = ["held h", "covered", "SM-active h", "busy", "GiB in use"];
    let headings =
        ["tenant", "sku", numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], "measured by"];
    screen.line(&table::render(&headings, &numbers, &cells));
    screen.note("n/a: NVML has no such reading there, which is not zero. covered: the part of the held time in which a process was read");
    Ok(())
}

async fn gather(
    db: &Db,
    standing: &Standing,
    window: Window,
) -> Result<BTreeMap<(String, String), Measured>> {
    let mut rows: BTreeMap<(String, String), Measured> = BTreeMap::new();
    let mut of_allocation: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for span in standing.ledger.spans.iter().filter_map(|span| Some((span, span.cut(window)?))) {
        let (span, part) = span;
        let key = (span.tenant.to_string(), span.sku.to_string());
        of_allocation.insert(span.allocation.as_str(), key.clone());
        rows.entry(key).or_default().held_us += part.allocated_us();
    }
    let mut of_owner: BTreeMap<String, &(String, String)> = BTreeMap::new();
    for view in &standing.ledger.allocations {
        let Some(key) = of_allocation.get(view.allocation.as_str()) else { continue };
        let job = view.slurm_job.iter().map(|job| format!("job:{job}"));
        let pod = view.pod_uid.iter().map(|pod| format!("pod:{pod}"));
        of_owner.extend(job.chain(pod).map(|owner| (owner, key)));
    }
    // The day's last hours are young.
    pack::everything(db).await?;
    let mut tx = db.snapshot().await?;
    let filter = Filter { gpus: None, from_us: window.start().as_micros(), to_us: window.end().as_micros() };
    for hour in load(&mut tx, &filter).await? {
        let row = of_owner.get(&hour.key.owner).and_then(|key| rows.get_mut(*key));
        if let Some((row, used)) = row.zip(hour.used) {
            row.seen.add(&used);
        }
    }
    Ok(rows)
}

fn cells(tenant: &str, sku: &str, measured: &Measured) -> Vec<String> {
    let Measured { held_us, seen } = measured;
    let busy_us = covered(seen, SM_READING);
    let memory_us = covered(seen, MEMORY_READING);
    let is_seen = seen.covered_us > 0;
    let absent = || if is_seen { "n/a" } else { "–" }.to_owned();
    let sm = seen.sm_active_us.filter(|_| busy_us > 0);
    let memory = seen.memory_byte_us.filter(|_| memory_us > 0);
    vec![
        tenant.to_owned(),
        sku.to_owned(),
        hours_text(Share::from_integer(*held_us)),
        percent(seen.covered_us, *held_us),
        sm.map_or_else(absent, |sm| hours_text(Share::from_integer(sm))),
        sm.map_or_else(absent, |sm| percent(sm, busy_us)),
        memory.map_or_else(absent, |memory| tenths(Share::new(memory, memory_us * GIB))),
        if is_seen { how(seen) } else { "no process was ever there".to_owned() },
    ]
}

/// Time that a reading covers: what was not to be had covers nothing.
fn covered(seen: &Seen, reading: &str) -> i128 {
    let labels = seen.quality.get(reading).into_iter().flatten();
    labels.filter(|(label, _)| is_measured(label)).map(|(_, us)| *us).sum()
}

fn is_measured(label: &str) -> bool {
    !label.starts_with("unavailable") && label != "allocation_only"
}

/// The label of the SM reading that covers most, and how many others there are.
fn how(seen: &Seen) -> String {
    let labels = seen.quality.get(SM_READING);
    let most = labels.into_iter().flatten().max_by_key(|(_, us)| **us);
    let more = labels.map_or(0, |labels| labels.len().saturating_sub(1));
    let label = most.map_or("–", |(label, _)| label.as_str());
    if more == 0 { label.to_owned() } else { format!("{label} +{more}") }
}

fn percent(part: i128, whole: i128) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{} %", tenths(Share::new(part * 100, whole))) }
}

fn tenths(value: Share) -> String {
    let tenths = (value * Share::from_integer(10)).round().to_integer();
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i128 = 3_600_000_000;

    fn seen(label: &str, sm_active_us: Option<i128>) -> Seen {
        let quality = [
            (SM_READING.to_owned(), BTreeMap::from([(label.to_owned(), HOUR)])),
            (MEMORY_READING.to_owned(), BTreeMap::from([("point_gauge".to_owned(), HOUR)])),
        ];
        Seen {
            sm_active_us,
            memory_byte_us: Some(HOUR * 31 * GIB),
            covered_us: HOUR,
            quality: quality.into_iter().collect(),
        }
    }

    fn told(seen: Seen) -> Vec<String> {
        cells("t", "s", &Measured { held_us: 2 * HOUR, seen }).split_off(2)
    }

    #[test]
    fn nothing_busy_is_zero_and_not_measurable_is_not() {
        let measured = told(seen("interval_mean", Some(0)));
        assert_eq!(measured, ["2.000", "50.0 %", "0.000", "0.0 %", "31.0", "interval_mean"]);
        let not_to_be_had = told(seen("unavailable(not_supported)", None));
        assert_eq!(not_to_be_had, ["2.000", "50.0 %", "n/a", "n/a", "31.0", "unavailable(not_supported)"]);
        let nobody = told(Seen::default());
        assert_eq!(nobody, ["2.000", "0.0 %", "–", "–", "–", "no process was ever there"]);
    }

    #[test]
    fn busy_is_of_the_time_that_was_measured() {
        let half = told(seen("driver_counter", Some(HOUR / 2)));
        assert_eq!(half[2..4], ["0.500", "50.0 %"]);
    }
}
