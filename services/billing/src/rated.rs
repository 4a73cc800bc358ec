//! One tenant's month, rated.

use crate::account::Account;
use crate::ledgers::Ledger;
use crate::sold::SoldBook;
use gpuledger_domain::rating::{Period, RateCards, RateError, Rated, Rating, Sold, rate};
use gpuledger_domain::time::{Instant, Window};

/// Whose month.
#[derive(Clone, Copy)]
pub(crate) struct Month<'a> {
    pub(crate) account: &'a Account,
    pub(crate) period: Period,
    pub(crate) window: Window,
}

/// What a month comes to by a ledger and its objects; `later` are cards for what had no price by those.
pub(crate) fn rated(
    ledger: &Ledger,
    sold: &SoldBook,
    month: Month<'_>,
    later: Option<&RateCards>,
) -> Result<Rated, RateError> {
    let Month { account, period, window } = month;
    let open = account.books_open.unwrap_or(Instant::MIN);
    let units = ledger.usage.units(&account.tenant, open);
    let sold = sold.of(&account.tenant, (period, window), open);
    let rating = Rating {
        tenant: &account.tenant,
        period: window,
        currency: account.currency,
        cards: &ledger.catalogue.cards,
        later,
    };
    rate(Sold { units: &units, reported: &sold.reported, recorded: &sold.recorded }, rating)
}
