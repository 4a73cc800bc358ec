//! What was closed and drafted before.

use crate::document::Document;
use crate::error::BillingError;
use crate::read::document_of;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::rating::Period;
use gpuledger_storage::documents::{self, DocumentFilter, DocumentRow};
use gpuledger_storage::{PgConnection, closes};
use std::collections::{BTreeMap, BTreeSet};

/// Closes and documents by tenant and period.
pub(crate) struct History {
    closed: BTreeSet<(String, String)>,
    /// In order of attempts.
    documents: BTreeMap<(String, String), Vec<DocumentRow>>,
}

impl History {
    pub(crate) async fn load(connection: &mut PgConnection) -> Result<Self, BillingError> {
        let closed = closes::all(connection).await?.into_iter().map(|c| (c.tenant, c.period)).collect();
        let mut documents: BTreeMap<(String, String), Vec<DocumentRow>> = BTreeMap::new();
        for row in documents::list(connection, &DocumentFilter::default()).await? {
            documents.entry((row.tenant.clone(), row.period.clone())).or_default().push(row);
        }
        Ok(Self { closed, documents })
    }

    /// Whether the period is closed: it was closed once, and the last document it gave was not discarded (V-1).
    pub(crate) fn is_closed(&self, tenant: &TenantId, period: Period) -> bool {
        let last = self.rows(tenant, period).last();
        self.closed.contains(&key(tenant, period)) && last.is_none_or(|row| row.status != "discarded")
    }

    /// Periods of a tenant that are closed, up to `last`.
    pub(crate) fn closed_until(&self, tenant: &TenantId, last: Period) -> Vec<Period> {
        let of_tenant = self.closed.iter().filter(|(who, _)| who == tenant.as_str());
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
