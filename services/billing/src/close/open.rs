//! Whether a period can be closed yet (V-2): it is over, everything about it has come, and earlier periods are closed.

use super::Closing;
use crate::account::Account;
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::{Instant, Window};

/// Partitions or nodes that are named before the rest is only counted.
const MOST_NAMED: usize = 3;

impl Closing {
    /// Why the period cannot be closed yet, or none.
    pub(super) fn not_yet(&self, account: &Account, window: Window) -> Option<String> {
        self.not_over(account, window)
            .or_else(|| self.behind(window.end()))
            .or_else(|| self.unread(window.end()))
            .or_else(|| self.unheard(window.end()))
            .or_else(|| self.earlier(account))
    }

    fn not_over(&self, account: &Account, window: Window) -> Option<String> {
        let (period, end) = (self.period, window.end());
        (self.now < end)
            .then(|| format!("period {period} is not over before {end} ({})", account.period_zone.name()))
    }

    fn behind(&self, end: Instant) -> Option<String> {
        let period = self.period;
        match self.ledgers.now.usage.horizon {
            Some(horizon) if horizon >= end => None,
            Some(horizon) => {
                Some(format!("the ledger has come to {horizon} only, period {period} ends at {end}"))
            }
            None => Some(format!("the ledger has no facts yet, period {period} ends at {end}")),
        }
    }

    /// Partitions that are not known to be read past the end.
    fn unread(&self, end: Instant) -> Option<String> {
        let late = self.partitions.iter().filter(|one| one.until_us.is_none_or(|us| us < end.as_micros()));
        let named: Vec<String> = late
            .map(|one| {
                let until = one.until_us.map_or_else(
                    || "not read to its end yet".to_owned(),
                    |us| format!("read until {}", Instant::from_micros(us)),
                );
                format!("{}/{} is {until}", one.topic, one.partition)
            })
            .collect();
        let what = "partitions that are not read past the end of the period";
        listed(&named, what).map(|list| format!("{list}; run `gpuledger serve` until they are"))
    }

    /// Nodes whose last proof of life lies before the end and whose silence is no gap yet.
    fn unheard(&self, end: Instant) -> Option<String> {
        let usage = &self.ledgers.now.usage;
        let horizon = usage.horizon?;
        let open = usage.heard.iter().filter(|(_, last)| {
            // Silence up to the horizon is a gap once it is longer than the observation gap, and covers the end.
            **last < end && horizon.since(**last) <= self.ledgers.gap_us
        });
        let named: Vec<String> =
            open.map(|(node, last)| format!("{node} was last heard of at {last}")).collect();
        let what = "nodes that may still speak of the period";
        listed(&named, what).map(|list| {
            format!(
                "{list}; a node is past the end once it is heard of later, or silent for more than {} s",
                self.ledgers.gap_us / 1_000_000
            )
        })
    }

    fn earlier(&self, account: &Account) -> Option<String> {
        let period = self.period;
        let open = self.first_open(account).filter(|open| *open < period)?;
        Some(format!("period {open} comes before {period} and is not closed; close it first"))
    }

    /// The first period that is billed: the one that contains `books_open`, else the earliest with a fact or a fee.
    pub(super) fn first_period(&self, account: &Account) -> Option<Period> {
        let zone = account.period_zone;
        if let Some(open) = account.books_open {
            return Period::containing(open, zone);
        }
        let used = self.ledgers.now.usage.first(&account.tenant).and_then(|at| Period::containing(at, zone));
        let bought = self.ledgers.sold.first(&account.tenant, zone);
        used.into_iter().chain(bought).min()
    }

    /// The earliest period of a tenant that is not closed.
    fn first_open(&self, account: &Account) -> Option<Period> {
        let mut period = self.first_period(account)?;
        while period < self.period && self.history.is_closed(&account.tenant, period) {
            period = period.next()?;
        }
        Some(period)
    }
}

/// `what: a, b, c and 2 more`; none where nothing is named.
fn listed(named: &[String], what: &str) -> Option<String> {
    let (count, first) = (named.len(), named.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>());
    let more = count.saturating_sub(MOST_NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (count > 0).then(|| format!("{what}: {}{rest}", first.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn long_lists_are_cut_and_counted() {
        let named = ["a", "b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(listed(&named, "nodes"), Some("nodes: a, b, c and 2 more".to_owned()));
        assert_eq!(listed(&named[..1], "nodes"), Some("nodes: a".to_owned()));
        assert_eq!(listed(&[], "nodes"), None);
    }
}
