//! Corrections of closed periods: every line rated anew from all facts, by the objects of its close, against what stands.

use crate::document::{Document, UnpricedView};
use crate::draft::{Correction, unpriced};
use crate::error::BillingError;
use crate::ledgers::Ledgers;
use crate::rated::{Month, rated};
use crate::stood::stood;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::money::Currency;
use gpuledger_domain::rating::{Period, Quantity, Rated, adjust};
use gpuledger_storage::closes::PeriodClose;

/// What is wrong with a closed period that cannot be rated anew, in words; or an error of the whole close.
pub(crate) enum CorrectError {
    /// This tenant's matter.
    Refused(String),
    /// Everybody's.
    Failed(BillingError),
}

impl From<BillingError> for CorrectError {
    fn from(error: BillingError) -> Self {
        match error {
            // An amount that fits no number is this tenant's matter.
            BillingError::Money(error) => Self::Refused(error.to_string()),
            error => Self::Failed(error),
        }
    }
}

/// The corrections of a tenant's closed periods, in order; periods without any are left out.
pub(crate) fn corrections(
    ledgers: &Ledgers,
    tenant: &TenantId,
    closed: &[(Period, &PeriodClose)],
    documents: &[Document],
    currency: Currency,
) -> Result<Vec<Correction>, CorrectError> {
    let mut corrections = Vec::new();
    for (period, close) in closed {
        let correction = correction(ledgers, tenant, (*period, close), documents, currency)?;
        if !correction.adjustments.is_empty() || !correction.unpriced.is_empty() {
            corrections.push(correction);
        }
    }
    Ok(corrections)
}

fn correction(
    ledgers: &Ledgers,
    tenant: &TenantId,
    (period, close): (Period, &PeriodClose),
    documents: &[Document],
    currency: Currency,
) -> Result<Correction, CorrectError> {
    let refused =
        |why: &str| CorrectError::Refused(format!("closed period {period} cannot be rated anew: {why}"));
    let ledger = ledgers.at(close.objects_seq);
    let account = ledger.catalogue.account(tenant).map_err(|why| refused(&why))?;
    if account.currency != currency {
        let was = account.currency.code();
        return Err(refused(&format!("it was billed in {was}, the tenant pays in {} now", currency.code())));
    }
    let window = period.window(account.period_zone).map_err(BillingError::from)?;
    let month = Month { account: &account, period, window };
    let later = Some(&ledgers.now.catalogue.cards);
    let rated = rated(ledger, &ledgers.sold, month, later).map_err(|error| refused(&error.to_string()))?;
    let unpriced = late_unpriced(&rated, documents, period)?;
    let stood = stood(documents, period)?;
    let adjustments = adjust(rated.lines, stood).map_err(BillingError::from)?;
    Ok(Correction { period, adjustments, unpriced })
}

/// Usage without a price beyond what documents name already.
fn late_unpriced(
    rated: &Rated,
    documents: &[Document],
    period: Period,
) -> Result<Vec<UnpricedView>, BillingError> {
    let period = period.to_string();
    let mut late = Vec::new();
    for now in unpriced(rated) {
        let mut left = quantity(&now)?;
        for document in documents {
            let of_period = document.unpriced.iter().filter(|one| {
                *one.period.as_ref().unwrap_or(&document.period) == period && names_the_same(one, &now)
            });
            for one in of_period {
                left = left.minus(quantity(one)?).unwrap_or(left);
            }
        }
        if left > Quantity::default() {
            late.push(UnpricedView { quantity: left.to_string(), period: Some(period.clone()), ..now });
        }
    }
    Ok(late)
}

fn names_the_same(one: &UnpricedView, other: &UnpricedView) -> bool {
    (&one.allocation, &one.sku, &one.class, &one.unit)
        == (&other.allocation, &other.sku, &other.class, &other.unit)
}

fn quantity(view: &UnpricedView) -> Result<Quantity, BillingError> {
    view.quantity.parse().map_err(|_| BillingError::Member {
        id: view.sku.clone(),
        member: "unpriced.quantity",
        text: view.quantity.clone(),
    })
}
