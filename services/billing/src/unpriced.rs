//! Findings about prices: usage no rate card has a price for, whether its period is closed or not (V-11), and who bought without being known.

use crate::catalogue::Catalogue;
use crate::error::BillingError;
use crate::sold::SoldBook;
use crate::usage::Usage;
use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::finding::{Finding, Kind};
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::rating::{Priced, RateError, Rating, Unpriced, UnpricedMeter, price, unpriced_meters};
use gpuledger_domain::time::{Instant, Window};

/// One finding per allocation with usage that has no price, and one per tenant with reported usage that has none, of every tenant whose
/// terms are known; one per tenant who was sold something and is not known.
///
/// # Errors
/// Two prices fit equally well, or a quantity is too large.
pub fn unpriced_findings(
    catalogue: &Catalogue,
    sold: &SoldBook,
    ledger: Attribution,
    as_of: Instant,
) -> Result<Vec<Finding>, BillingError> {
    let usage = Usage::new(ledger, as_of);
    let mut findings = Vec::new();
    let mut tenants: Vec<&TenantId> = usage.tenants().chain(sold.tenants()).collect();
    tenants.sort();
    tenants.dedup();
    for tenant in tenants {
        let Ok(account) = catalogue.account(tenant) else { continue };
        let from = account.books_open.unwrap_or(Instant::MIN);
        let Some(period) = Window::new(from, as_of) else { continue };
        let units = usage.units(tenant, from);
        let rating =
            Rating { tenant, period, currency: account.currency, cards: &catalogue.cards, later: None };
        let Priced { unpriced, .. } = price(&units, rating).map_err(RateError::from)?;
        let currency = account.currency.code();
        findings.extend(unpriced.iter().map(|one| of_allocation(one, currency)));
        let reported: Vec<_> = sold.reported(tenant).iter().filter(|r| r.start >= from).cloned().collect();
        findings.extend(of_meters(tenant, &unpriced_meters(&reported, rating)?, currency));
    }
    let unknown = sold.tenants().filter(|tenant| !catalogue.knows(tenant));
    findings.extend(unknown.map(|tenant| unknown_tenant(tenant, sold)));
    Ok(findings)
}

fn of_allocation(unpriced: &Unpriced, currency: &str) -> Finding {
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

/// One finding for all that was reported of a tenant and has no price.
fn of_meters(tenant: &TenantId, unpriced: &[UnpricedMeter], currency: &str) -> Option<Finding> {
    let what: Vec<String> =
        unpriced.iter().map(|one| format!("{} {} of sku {}", one.quantity, one.unit, one.sku)).collect();
    Some(Finding {
        kind: Kind::Unpriced,
        subject: tenant.to_string(),
        since: unpriced.iter().map(|one| one.start).min()?,
        until: unpriced.iter().map(|one| one.end).max(),
        detail: format!(
            "reported and without a price in {currency}: {}; billed nothing, and the invoice cannot be issued",
            what.join(", ")
        ),
    })
}

fn unknown_tenant(tenant: &TenantId, sold: &SoldBook) -> Finding {
    Finding {
        kind: Kind::UnknownTenant,
        subject: tenant.to_string(),
        since: sold.since(tenant).unwrap_or_default(),
        until: None,
        detail: format!(
            "tenant {tenant} was sold something, but no `kind: Tenant` has that id: it gets no invoice"
        ),
    }
}
