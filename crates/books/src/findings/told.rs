//! What a tenant is told of findings: those about its allocations and itself, in words that name nobody else.

use gpuledger_domain::attribution::Attribution;
use gpuledger_domain::finding::{Finding, Kind};
use gpuledger_domain::ids::{AllocationId, TenantId};
use gpuledger_wire::findings::finding_kind;
use std::collections::{BTreeMap, BTreeSet};

/// A finding as one tenant reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Who.
    pub tenant: TenantId,
    /// What.
    pub finding: Finding,
}

/// Who owned what: to whom findings are told.
#[derive(Clone, Debug)]
pub struct Owners {
    by_allocation: BTreeMap<AllocationId, BTreeSet<TenantId>>,
    tenants: BTreeSet<TenantId>,
}

impl Owners {
    /// Of all allocations, whoever owned them when.
    pub fn of(ledger: &Attribution) -> Self {
        let mut by_allocation: BTreeMap<AllocationId, BTreeSet<TenantId>> = BTreeMap::new();
        let held = ledger.spans.iter().filter(|span| span.held).map(|span| (&span.allocation, &span.tenant));
        let granted = ledger.allocations.iter().map(|view| (&view.allocation, &view.tenant));
        for (allocation, tenant) in held.chain(granted) {
            by_allocation.entry(allocation.clone()).or_default().insert(tenant.clone());
        }
        let served = ledger.spans.iter().map(|span| &span.tenant);
        let tenants = by_allocation.values().flatten().chain(served).cloned().collect();
        Self { by_allocation, tenants }
    }

    /// Findings about allocations, told to their owners, and about tenants. A finding about a GPU, a node or a source is the platform's alone;
    /// so is one whose subject is the name of an allocation and of a tenant.
    pub fn told(&self, findings: &[Finding]) -> Vec<Told> {
        let told = |finding| {
            let say = |tenant: &TenantId| Told { tenant: tenant.clone(), finding: in_own_words(finding) };
            self.whose(finding).into_iter().map(say).collect::<Vec<_>>()
        };
        findings.iter().flat_map(told).collect()
    }

    fn whose(&self, finding: &Finding) -> Vec<&TenantId> {
        let owners = self.by_allocation.get(&AllocationId::new(&finding.subject));
        let tenant = self.tenants.get(&TenantId::new(&finding.subject));
        match (owners, tenant) {
            (Some(owners), None) if is_of_allocation(finding.kind) => owners.iter().collect(),
            (None, Some(tenant)) if is_of_tenant(finding.kind) => vec![tenant],
            _ => Vec::new(),
        }
    }
}

fn in_own_words(finding: &Finding) -> Finding {
    let detail = if names_others(finding.kind) {
        finding_kind(finding.kind.as_str()).map_or("", |kind| kind.threshold).to_owned()
    } else {
        finding.detail.clone()
    };
    Finding { detail, ..finding.clone() }
}

/// Kinds whose detail may speak of other tenants' allocations, jobs and devices, or of whoever owned the allocation before or after.
const fn names_others(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::ZeroLength
            | Kind::EndBeforeStart
            | Kind::Unconfirmed
            | Kind::PlacementMismatch
            | Kind::UnknownProfile
            | Kind::IdleAllocation
            | Kind::HeldAfterRelease
            | Kind::UnknownTenant
            | Kind::Unpriced
    )
}

const fn is_of_allocation(kind: Kind) -> bool {
    match kind {
        Kind::Waiting
        | Kind::TransferAfterEnd
        | Kind::ZeroLength
        | Kind::EndBeforeStart
        | Kind::Contested
        | Kind::PlacementMismatch
        | Kind::UnknownProfile
        | Kind::Oversubscribed
        | Kind::Unconfirmed
        | Kind::OwnerMismatch
        | Kind::ForeignProcess
        | Kind::HeldAfterRelease
        | Kind::IdleAllocation
        | Kind::ResidueViolation
        | Kind::ScrubMissing
        | Kind::ScrubLate
        | Kind::ScrubSkipped
        | Kind::Unpriced => true,
        Kind::Conflict
        | Kind::Future
        | Kind::NotEntitled
        | Kind::LateRefused
        | Kind::BadValue
        | Kind::UnknownTenant
        | Kind::ReleaseWithoutGrant
        | Kind::LostNode
        | Kind::Gap
        | Kind::ClockSkew
        | Kind::ResidueUnknown
        | Kind::ScrubFailed
        | Kind::ScrubIncomplete
        | Kind::Unattributed => false,
    }
}

const fn is_of_tenant(kind: Kind) -> bool {
    matches!(kind, Kind::UnknownTenant | Kind::Unpriced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_domain::fact::Class;
    use gpuledger_domain::ids::Source;
    use gpuledger_domain::time::Instant;
    use gpuledger_domain::usage::{AllocationView, End};

    fn view(allocation: &str, tenant: &str) -> AllocationView {
        AllocationView {
            allocation: AllocationId::new(allocation),
            start: Instant::from_micros(0),
            end: End::Open,
            unit_ends: BTreeMap::new(),
            tenant: TenantId::new(tenant),
            project: None,
            class: Class::OnDemand,
            reason: None,
            source: Source::new("/allocators/t"),
            labels: BTreeMap::new(),
            slurm_job: None,
            pod_uid: None,
        }
    }

    /// `tenant kind subject detail` of what is told, of findings `kind subject` with the detail `secret`.
    fn told_of(findings: &[(Kind, &str)]) -> Vec<String> {
        let views = [("a-1", "acme"), ("u-1", "umbra"), ("acme", "umbra")];
        let ledger = Attribution {
            allocations: views.map(|(allocation, tenant)| view(allocation, tenant)).to_vec(),
            ..Attribution::default()
        };
        let findings = findings.iter().map(|(kind, subject)| Finding {
            kind: *kind,
            subject: (*subject).to_owned(),
            since: Instant::from_micros(0),
            until: None,
            detail: "secret".to_owned(),
        });
        let said = |told: Told| {
            let Finding { kind, subject, detail, .. } = told.finding;
            format!("{} {} {subject} {}", told.tenant, kind.as_str(), detail == "secret")
        };
        Owners::of(&ledger).told(&findings.collect::<Vec<_>>()).into_iter().map(said).collect()
    }

    #[test]
    fn a_finding_is_told_to_the_owner_of_what_it_is_about() {
        let findings =
            [(Kind::IdleAllocation, "a-1"), (Kind::Unpriced, "u-1"), (Kind::UnknownTenant, "umbra")];
        assert_eq!(
            told_of(&findings),
            ["acme idle_allocation a-1 true", "umbra unpriced u-1 true", "umbra unknown_tenant umbra true"]
        );
    }

    #[test]
    fn a_detail_that_may_name_others_is_not_told() {
        let findings =
            [(Kind::Contested, "a-1"), (Kind::ForeignProcess, "a-1"), (Kind::TransferAfterEnd, "a-1")];
        assert!(told_of(&findings).iter().all(|told| told.starts_with("acme ") && told.ends_with(" false")));
        assert_eq!(told_of(&findings).len(), 3);
    }

    #[test]
    fn what_is_about_devices_or_has_two_meanings_is_the_platforms() {
        let findings = [
            (Kind::Gap, "a-1"),
            (Kind::Unattributed, "GPU-1"),
            (Kind::Unpriced, "acme"),
            (Kind::Unpriced, "GPU-1"),
        ];
        assert_eq!(told_of(&findings), [""; 0], "`acme` is an allocation of umbra, and a tenant");
    }
}
