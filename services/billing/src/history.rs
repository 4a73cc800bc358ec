//! What was closed and drafted before.

use crate::document::Document;
use crate::error::BillingError;
use crate::read::document_of;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::rating::Period;
use gpuledger_storage::documents::{self, DocumentFilter, DocumentRow};
use gpuledger_storage::{PgConnection, closes};
use std::collections::BTreeMap;

/// Closes and documents by tenant and period.
pub(crate) struct History {
    /// How often each was closed.
    closes: BTreeMap<(String, String), usize>,
    /// In order of attempts.
    documents: BTreeMap<(String, String), Vec<DocumentRow>>,
}

impl History {
    pub(crate) async fn load(connection: &mut PgConnection) -> Result<Self, BillingError> {
        let mut closes: BTreeMap<(String, String), usize> = BTreeMap::new();
        for close in closes::all(connection).await? {
            *closes.entry((close.tenant, close.period)).or_default() += 1;
        }
        let mut documents: BTreeMap<(String, String), Vec<DocumentRow>> = BTreeMap::new();
        for row in documents::list(connection, &DocumentFilter::default()).await? {
            documents.entry((row.tenant.clone(), row.period.clone())).or_default().push(row);
        }
        Ok(Self { closes, documents })
    }

    /// Whether the period is closed (V-1): a close makes one draft at most, and a draft that is discarded opens it again.
    pub(crate) fn is_closed(&self, tenant: &TenantId, period: Period) -> bool {
        let closed = self.closes.get(&key(tenant, period)).copied().unwrap_or(0);
        let opened = self.rows(tenant, period).iter().filter(|row| row.status == "discarded").count();
        closed > opened
    }

    /// Periods of a tenant that are closed, up to `last`.
    pub(crate) fn closed_until(&self, tenant: &TenantId, last: Period) -> Vec<Period> {
        let of_tenant = self.closes.keys().filter(|(who, _)| who == tenant.as_str());
        let periods = of_tenant.filter_map(|(_, period)| period.parse::<Period>().ok());
        periods.filter(|period| *period <= last && self.is_closed(tenant, *period)).collect()
    }

    /// The document of a closed period.
    pub(crate) fn document(
        &self,
        tenant: &TenantId,
        period: Period,
    ) -> Result<Option<Document>, BillingError> {
        self.rows(tenant, period)
            .iter()
            .rev()
            .find(|row| row.status != "discarded")
            .map(document_of)
            .transpose()
    }

    /// The attempt a new draft is.
    pub(crate) fn next_attempt(&self, tenant: &TenantId, period: Period) -> i32 {
        self.rows(tenant, period).iter().map(|row| row.attempt).max().unwrap_or(0).saturating_add(1)
    }

    fn rows(&self, tenant: &TenantId, period: Period) -> &[DocumentRow] {
        self.documents.get(&key(tenant, period)).map_or(&[], Vec::as_slice)
    }
}

fn key(tenant: &TenantId, period: Period) -> (String, String) {
    (tenant.to_string(), period.to_string())
}
