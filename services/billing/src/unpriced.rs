//! The finding `unpriced`: usage no rate card has a price for, whether its period is closed or not (V-11).

use crate::catalogue::Catalogue;
use crate::error::BillingError;
use crate::usage::Usage;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::finding::{Finding, Kind};
use gpuledger_domain::rating::{RateError, Rating, Unpriced, price};
use gpuledger_domain::time::{Instant, Window};

/// One finding per allocation with usage that has no price, of every tenant whose terms are known.
///
/// # Errors
/// Two prices fit equally well.
pub fn unpriced_findings(
    catalogue: &Catalogue,
    ledger: Attribution,
    as_of: Instant,
) -> Result<Vec<Finding>, BillingError> {
    let usage = Usage::new(ledger, as_of);
    let mut findings = Vec::new();
    for tenant in usage.tenants() {
        let Ok(account) = catalogue.account(tenant) else { continue };
        let from = account.books_open.unwrap_or(Instant::MIN);
        let Some(period) = Window::new(from, as_of) else { continue };
        let units = usage.units(tenant, from);
        let rating = Rating { tenant, period, currency: account.currency, cards: &catalogue.cards };
        let priced = price(&units, rating).map_err(RateError::from)?;
        findings.extend(priced.unpriced.iter().map(|u| finding(u, account.currency.code())));
    }
    Ok(findings)
}

fn finding(unpriced: &Unpriced, currency: &str) -> Finding {
    Finding {
        kind: Kind::Unpriced,
        subject: unpriced.allocation.to_string(),
        since: unpriced.window.start(),
        until: Some(unpriced.window.end()),
        detail: format!(
            "{} s of sku {} ({}) have no price in {currency}; they are billed nothing, and their invoice cannot be issued",
            crate::text::seconds(unpriced.quantity_us),
            unpriced.sku,
            unpriced.class.as_str()
        ),
    }
}
