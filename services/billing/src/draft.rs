//! From rated usage to a draft: a pure function, so that the same facts give the same bytes (V-3).

use crate::account::Account;
use crate::document::{
    DetailView, Document, FactsView, LineTaxView, LineView, PriceView, TaxView, UnpricedView, WindowView,
};
use crate::error::BillingError;
use crate::text::seconds;
use gpuledger_domain::ids::SkuId;
use gpuledger_domain::money::{Money, ROUNDING_RULE};
use gpuledger_domain::rating::{Line, LineUse, Period, Rated, Tax, Unpriced, taxes_on};
use gpuledger_domain::time::Window;
use std::collections::BTreeMap;

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

/// The draft of a tenant's period.
///
/// # Errors
/// An amount is too large.
pub fn draft(
    account: &Account,
    (period, window): (Period, Window),
    attempt: i32,
    rated: &Rated,
    names: &BTreeMap<SkuId, String>,
    frozen: &Frozen,
) -> Result<Document, BillingError> {
    let id = format!("inv-{period}-{}-{attempt}", account.tenant);
    let amounts: Vec<Money> = rated.lines.iter().map(|l| l.amount).collect();
    let subtotal = Money::sum(account.currency, amounts.iter().copied())?;
    let taxes = taxes_on(&amounts, &account.taxes, account.currency)?;
    let total = taxes.iter().try_fold(subtotal, |sum, tax| sum.plus(tax.amount))?;
    let none = Money::zero(account.currency).to_string();
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
        lines: rated
            .lines
            .iter()
            .enumerate()
            .map(|(i, line)| line_view(&id, i, line, &taxes, names))
            .collect(),
        unpriced: rated.unpriced.iter().map(unpriced_view).collect(),
        subtotal: subtotal.to_string(),
        taxes: taxes.iter().map(tax_view).collect(),
        total: total.to_string(),
        credits: Vec::new(),
        carried_in: none.clone(),
        carried_out: none,
        amount_due: total.to_string(),
        rounding: ROUNDING_RULE.to_owned(),
        rule_set: frozen.rule_set.clone(),
        facts: FactsView { count: frozen.facts_count.to_string(), digest: hex(&frozen.facts_digest) },
        id,
    })
}

/// Bytes in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn line_view(
    id: &str,
    index: usize,
    line: &Line,
    taxes: &[Tax],
    names: &BTreeMap<SkuId, String>,
) -> LineView {
    let key = &line.key;
    LineView {
        id: format!("{id}.{}", index + 1),
        kind: key.kind.as_str().to_owned(),
        project: key.project.as_ref().map(ToString::to_string),
        sku: key.sku.to_string(),
        description: described(&key.sku, names),
        class: key.class.as_str().to_owned(),
        quantity: seconds(line.quantity_us),
        unit: "second".to_owned(),
        unit_price: key.unit_price.with_places(line.amount.currency().exponent()),
        per: key.per.as_str().to_owned(),
        amount: line.amount.to_string(),
        basis: "allocation".to_owned(),
        taxes: taxes.iter().map(|tax| line_tax(tax, index)).collect(),
        price: PriceView {
            card: key.card.clone(),
            effective_from: key.effective_from.to_string(),
            index: key.price_index.to_string(),
            lock: line.lock.as_str().to_owned(),
            granularity: seconds(i128::from(line.granularity_us)),
            minimum: seconds(i128::from(line.minimum_us)),
        },
        details: line.uses.iter().map(detail_view).collect(),
    }
}

/// The name of the longest part of the SKU that has one, and the rest of the id: `NVIDIA H100 80 GB, 3g.40gb`.
fn described(sku: &SkuId, names: &BTreeMap<SkuId, String>) -> String {
    let text = sku.as_str();
    let cuts = std::iter::once(text.len()).chain(text.rmatch_indices('/').map(|(at, _)| at));
    for cut in cuts {
        let (head, rest) = text.split_at(cut);
        if let Some(name) = names.get(&SkuId::new(head)) {
            return std::iter::once(name.as_str())
                .chain(rest.split('/').skip(1))
                .collect::<Vec<_>>()
                .join(", ");
        }
    }
    text.to_owned()
}

fn line_tax(tax: &Tax, index: usize) -> LineTaxView {
    let amount = tax.by_line.get(index).copied().unwrap_or(Money::zero(tax.base.currency()));
    LineTaxView { name: tax.name.clone(), amount: amount.to_string() }
}

fn detail_view(part: &LineUse) -> DetailView {
    DetailView {
        allocation: part.allocation.to_string(),
        unit: part.unit.to_string(),
        start: part.window.start().to_string(),
        end: part.window.end().to_string(),
        quantity: seconds(part.quantity_us),
        added: seconds(part.added_us),
    }
}

fn unpriced_view(unpriced: &Unpriced) -> UnpricedView {
    UnpricedView {
        allocation: unpriced.allocation.to_string(),
        sku: unpriced.sku.to_string(),
        class: unpriced.class.as_str().to_owned(),
        start: unpriced.window.start().to_string(),
        end: unpriced.window.end().to_string(),
        quantity: seconds(unpriced.quantity_us),
    }
}

fn tax_view(tax: &Tax) -> TaxView {
    TaxView {
        name: tax.name.clone(),
        rate: tax.rate.to_string(),
        base: tax.base.to_string(),
        amount: tax.amount.to_string(),
    }
}

#[cfg(test)]
#[path = "draft/tests.rs"]
pub(crate) mod tests;
