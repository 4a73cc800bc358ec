//! Usage by tenant, from the ledger as the books compute it.

use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::ids::{NodeId, TenantId};
use gpuledger_domain::rating::{UnitUse, gather_units};
use gpuledger_domain::time::Instant;
use gpuledger_domain::usage::{AllocationView, UsageSpan};
use std::collections::BTreeMap;

/// All usage at a horizon.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Up to when facts act; none before the ledger was ever posted.
    pub horizon: Option<Instant>,
    /// The last proof of life of each node that has capacity.
    pub heard: BTreeMap<NodeId, Instant>,
    /// By whom it was held; an allocation that was transferred stands under each of its owners, with all its spans.
    by_tenant: BTreeMap<TenantId, TenantUsage>,
}

#[derive(Clone, Debug, Default)]
struct TenantUsage {
    spans: Vec<UsageSpan>,
    allocations: Vec<AllocationView>,
}

impl Usage {
    /// The usage of a ledger at `horizon`.
    pub fn new(ledger: Attribution, horizon: Instant) -> Self {
        let views: BTreeMap<_, _> =
            ledger.allocations.into_iter().map(|a| (a.allocation.clone(), a)).collect();
        let mut spans: BTreeMap<_, Vec<UsageSpan>> = BTreeMap::new();
        for span in ledger.spans {
            spans.entry(span.allocation.clone()).or_default().push(span);
        }
        let mut by_tenant: BTreeMap<TenantId, TenantUsage> = BTreeMap::new();
        for (allocation, spans) in spans {
            let mut owners: Vec<TenantId> = spans.iter().map(|s| s.tenant.clone()).collect();
            owners.sort();
            owners.dedup();
            for owner in owners {
                let usage = by_tenant.entry(owner).or_default();
                usage.spans.extend(spans.iter().cloned());
                usage.allocations.extend(views.get(&allocation).cloned());
            }
        }
        Self { horizon: Some(horizon), heard: ledger.heard, by_tenant }
    }

    /// Everyone who held anything, in order.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.by_tenant.keys()
    }

    /// The units a tenant held, charged from `from` on.
    pub fn units(&self, tenant: &TenantId, from: Instant) -> Vec<UnitUse> {
        self.by_tenant.get(tenant).map(|u| gather_units(&u.spans, &u.allocations, from)).unwrap_or_default()
    }

    /// When a tenant first held anything.
    pub fn first(&self, tenant: &TenantId) -> Option<Instant> {
        let spans = &self.by_tenant.get(tenant)?.spans;
        spans.iter().filter(|s| s.tenant == *tenant).map(|s| s.window.start()).min()
    }

    /// Whether a tenant held anything in `window`.
    pub fn touches(&self, tenant: &TenantId, window: gpuledger_domain::time::Window) -> bool {
        let usage = self.by_tenant.get(tenant);
        usage.is_some_and(|u| {
            u.spans.iter().any(|s| s.tenant == *tenant && s.window.intersect(window).is_some())
        })
    }
}
