//! What was closed and drafted before.

use crate::account::Account;
use crate::document::Document;
use crate::error::BillingError;
use crate::read::document_of;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::money::Money;
use gpuledger_domain::rating::{Period, Quantity};
use gpuledger_storage::closes::PeriodClose;
use gpuledger_storage::documents::{self, DocumentFilter, DocumentRow};
use gpuledger_storage::{PgConnection, closes};
use std::collections::{BTreeMap, BTreeSet};

/// Closes and documents by tenant and period.
pub(crate) struct History {
    /// In their order.
    closes: BTreeMap<(String, String), Vec<PeriodClose>>,
    /// In order of attempts.
    documents: BTreeMap<(String, String), Vec<DocumentRow>>,
}

impl History {
    pub(crate) async fn load(connection: &mut PgConnection) -> Result<Self, BillingError> {
        let mut closes: BTreeMap<(String, String), Vec<PeriodClose>> = BTreeMap::new();
        for close in closes::all(connection).await? {
            closes.entry((close.tenant.clone(), close.period.clone())).or_default().push(close);
        }
        let mut documents: BTreeMap<(String, String), Vec<DocumentRow>> = BTreeMap::new();
        for row in documents::list(connection, &DocumentFilter::default()).await? {
            documents.entry((row.tenant.clone(), row.period.clone())).or_default().push(row);
        }
        Ok(Self { closes, documents })
    }

    /// Whether the period is closed (V-1): a close makes one draft at most, and a draft that is discarded opens it again.
    pub(crate) fn is_closed(&self, tenant: &TenantId, period: Period) -> bool {
        let closed = self.closes.get(&key(tenant, period)).map_or(0, Vec::len);
        let opened = self.rows(tenant, period).iter().filter(|row| row.status == "discarded").count();
        closed > opened
    }

    /// Closed periods of a tenant, each with the close that stands, in order.
    pub(crate) fn closed(&self, tenant: &TenantId) -> Vec<(Period, &PeriodClose)> {
        let of_tenant = self.closes.iter().filter(|((who, _), _)| who == tenant.as_str());
        let last = of_tenant.filter_map(|((_, period), closes)| Some((period.parse().ok()?, closes.last()?)));
        last.filter(|(period, _)| self.is_closed(tenant, *period)).collect()
    }

    /// The `objects_seq` of every close that stands.
    pub(crate) fn objects_seqs(&self) -> BTreeSet<i64> {
        self.closes.values().filter_map(|closes| closes.last()).map(|close| close.objects_seq).collect()
    }

    /// The document of a closed period.
    pub(crate) fn document(
        &self,
        tenant: &TenantId,
        period: Period,
    ) -> Result<Option<Document>, BillingError> {
        self.rows(tenant, period).iter().rev().find(|row| stands(row)).map(document_of).transpose()
    }

    /// All documents of a tenant that stand, in order of their periods.
    pub(crate) fn documents(&self, tenant: &TenantId) -> Result<Vec<Document>, BillingError> {
        let of_tenant = self.documents.iter().filter(|((who, _), _)| who == tenant.as_str());
        of_tenant.flat_map(|(_, rows)| rows).filter(|row| stands(row)).map(document_of).collect()
    }

    /// The attempt a new draft is.
    pub(crate) fn next_attempt(&self, tenant: &TenantId, period: Period) -> i32 {
        self.rows(tenant, period).iter().map(|row| row.attempt).max().unwrap_or(0).saturating_add(1)
    }

    fn rows(&self, tenant: &TenantId, period: Period) -> &[DocumentRow] {
        self.documents.get(&key(tenant, period)).map_or(&[], Vec::as_slice)
    }
}

/// What documents left in the customer's favour and no document has used yet (V-11), between the same parties in the same currency.
pub(crate) fn carried(documents: &[Document], account: &Account) -> Result<Money, BillingError> {
    let ours = documents.iter().filter(|document| {
        document.customer.id == account.customer.id
            && document.seller.id == account.seller.id
            && document.currency == account.currency.code()
    });
    let mut left = Money::zero(account.currency);
    for document in ours {
        let read = |member, text: &str| {
            let bad = |_| BillingError::Member { id: document.id.clone(), member, text: text.to_owned() };
            let value = text.parse::<Quantity>().map_err(bad)?.value();
            Ok::<_, BillingError>(Money::round(value, account.currency)?)
        };
        left = left.plus(read("carried_out", &document.carried_out)?)?;
        left = left.minus(read("carried_in", &document.carried_in)?)?;
    }
    Ok(left)
}

fn stands(row: &DocumentRow) -> bool {
    row.status != "discarded"
}

fn key(tenant: &TenantId, period: Period) -> (String, String) {
    (tenant.to_string(), period.to_string())
}
