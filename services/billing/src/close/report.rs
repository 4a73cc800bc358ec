//! What a close says it did.

use crate::account::Account;
use crate::document::Document;
use crate::draft::Correction;
use crate::error::BillingError;
use crate::late::Late;
use crate::sold::SoldBook;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::money::Money;
use gpuledger_domain::rating::{Period, Rated};

/// What became of a close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseReport {
    /// The period.
    pub period: Period,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Tenants whose period is closed, in order.
    pub closed: Vec<Closed>,
    /// Tenants whose period could not be closed, in order, with why.
    pub refused: Vec<Refused>,
    /// Closed periods that come to something else from all facts now, and where that is billed.
    pub late: Vec<Late>,
    /// What is billed nothing, in words.
    pub not_billed: Vec<String>,
    /// Facts that were refused as too late and are not decided on yet.
    pub late_refused: i64,
}

/// A tenant whose period is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Who.
    pub tenant: String,
    /// Its document; none where there was nothing to bill (V-11).
    pub document: Option<Document>,
    /// Whether this close made it; else it was closed before.
    pub is_new: bool,
}

/// A tenant whose period, or a document, that stays as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Who.
    pub tenant: String,
    /// In words.
    pub reason: String,
}

impl CloseReport {
    pub(super) fn new(period: Period, dry_run: bool) -> Self {
        let (closed, refused, late, not_billed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { period, dry_run, closed, refused, late, not_billed, late_refused: 0 }
    }

    /// Whether every tenant asked for is closed.
    pub fn is_complete(&self) -> bool {
        self.refused.is_empty()
    }

    pub(super) fn note_late(
        &mut self,
        account: &Account,
        corrections: &[Correction],
        booked: Option<&str>,
    ) -> Result<(), BillingError> {
        let nothing = Money::zero(account.currency);
        for correction in corrections.iter().filter(|correction| !correction.adjustments.is_empty()) {
            let booked = booked.map(str::to_owned);
            self.late.push(Late::of(account.tenant.as_str(), correction, nothing, booked)?);
        }
        Ok(())
    }

    /// Charges in another currency than the tenant's (V-13).
    pub(super) fn note_not_billed(&mut self, account: &Account, rated: &Rated) {
        for one in &rated.foreign {
            self.not_billed.push(format!(
                "{}: charge {} {} of {} {} is not billed, expected an amount in {}",
                account.tenant,
                one.source,
                one.id,
                one.amount,
                one.currency.code(),
                account.currency.code()
            ));
        }
    }

    /// Charges recorded for a period before the first that is billed.
    pub(super) fn note_before_books(&mut self, tenant: &TenantId, first: Option<Period>, sold: &SoldBook) {
        let Some(first) = first else { return };
        for (one, period) in sold.before(tenant, first) {
            self.not_billed.push(format!(
                "{tenant}: charge {} {} is for {period} and not billed, expected a period from {first} on",
                one.source, one.id
            ));
        }
    }
}
