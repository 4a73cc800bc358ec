//! From rated usage to a draft: a pure function, so that the same facts give the same bytes (V-3).

mod views;

use crate::account::Account;
use crate::document::{Document, FactsView, UnpricedView, WindowView};
use crate::error::BillingError;
use gpuledger_domain::ids::SkuId;
use gpuledger_domain::money::{Money, ROUNDING_RULE};
use gpuledger_domain::rating::{Adjustment, Period, Rated, taxes_on};
use gpuledger_domain::time::Window;
use std::collections::BTreeMap;

pub(crate) use views::unpriced;

/// What a close freezes besides the amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// Version of the rules.
    pub rule_set: String,
    /// Facts accepted until then.
    pub facts_count: i64,
    /// SHA-256 over their sorted (source, id, content digest).
    pub facts_digest: Vec<u8>,
}

/// What came late for a closed period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The closed period.
    pub period: Period,
    /// Its lines that come to something else now, in order.
    pub adjustments: Vec<Adjustment>,
    /// Late usage that has no price either.
    pub unpriced: Vec<UnpricedView>,
}

/// What a document is made of.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// Who pays whom.
    pub account: &'a Account,
    /// The month.
    pub period: Period,
    /// Its edges.
    pub window: Window,
    /// Counted from 1.
    pub attempt: i32,
    /// What the month comes to.
    pub rated: &'a Rated,
    /// What came late for closed periods, in their order.
    pub corrections: &'a [Correction],
    /// Left in the customer's favour by earlier documents, 0 or more.
    pub carried_in: Money,
    /// Names of products.
    pub names: &'a BTreeMap<SkuId, String>,
    /// What the close freezes.
    pub frozen: &'a Frozen,
}

/// The draft of a tenant's period.
///
/// # Errors
/// An amount is too large.
pub fn draft(contents: &Contents<'_>) -> Result<Document, BillingError> {
    let Contents { account, period, window, rated, corrections, frozen, .. } = *contents;
    let id = format!("inv-{period}-{}-{}", account.tenant, contents.attempt);
    let adjusted = corrections.iter().flat_map(|correction| &correction.adjustments);
    let amounts: Vec<Money> =
        rated.lines.iter().map(|line| line.amount).chain(adjusted.map(|one| one.line.amount)).collect();
    let subtotal = Money::sum(account.currency, amounts.iter().copied())?;
    let taxes = taxes_on(&amounts, &account.taxes, account.currency)?;
    let total = taxes.iter().try_fold(subtotal, |sum, tax| sum.plus(tax.amount))?;
    let (amount_due, carried_out) = settled(total, contents.carried_in)?;
    Ok(Document {
        number: None,
        kind: "invoice".to_owned(),
        status: "draft".to_owned(),
        issued_at: None,
        issued_on: None,
        seller: account.seller.clone(),
        customer: account.customer.clone(),
        tenant: account.tenant.to_string(),
        tenant_name: account.tenant_name.clone(),
        period: period.to_string(),
        window: WindowView {
            start: window.start().to_string(),
            end: window.end().to_string(),
            zone: account.period_zone.name().to_owned(),
        },
        currency: account.currency.code().to_owned(),
        lines: views::lines(&id, contents, &taxes),
        unpriced: unpriced(rated)
            .chain(corrections.iter().flat_map(|correction| correction.unpriced.iter().cloned()))
            .collect(),
        not_billed: rated.foreign.iter().map(views::not_billed).collect(),
        subtotal: subtotal.to_string(),
        taxes: taxes.iter().map(views::tax).collect(),
        total: total.to_string(),
        credits: Vec::new(),
        carried_in: contents.carried_in.to_string(),
        carried_out: carried_out.to_string(),
        amount_due: amount_due.to_string(),
        rounding: ROUNDING_RULE.to_owned(),
        rule_set: frozen.rule_set.clone(),
        facts: FactsView { count: frozen.facts_count.to_string(), digest: hex(&frozen.facts_digest) },
        id,
    })
}

/// What is due, and what is left in the customer's favour: nothing is due on a negative total, and it is carried (V-11).
fn settled(total: Money, carried_in: Money) -> Result<(Money, Money), BillingError> {
    let rest = total.minus(carried_in)?;
    let nothing = Money::zero(total.currency());
    Ok(if rest.minor() < 0 { (nothing, nothing.minus(rest)?) } else { (rest, nothing) })
}

/// Bytes in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
#[path = "draft/tests.rs"]
pub(crate) mod tests;
