//! Allocations: which grant counts, who owns it when, and which units it holds.

use super::Context;
use super::devices::Devices;
use super::states::Scopes;
use super::units::{Place, Unit, Units};
use crate::fact::{Fact, FactBody, Grant, Mode, Placed, PlacedOf, Runtime};
use crate::finding::{Finding, Findings, Kind};
use crate::ids::{AllocationId, GpuId, NodeId, ProjectId, Source, TenantId};
use crate::residue::Hold;
use crate::time::Instant;
use crate::usage::{AllocationView, End};
use std::collections::{BTreeMap, BTreeSet};

/// An allocation with everything the facts say of it.
#[derive(Debug)]
pub(super) struct Allocation<'a> {
    pub(super) id: &'a AllocationId,
    pub(super) grant: &'a Grant,
    pub(super) source: &'a Source,
    pub(super) start: Instant,
    /// Owners from their instant on; the first from the start.
    pub(super) owners: Vec<Owner<'a>>,
    /// All transfers, as they were said.
    pub(super) transfers: Vec<Owner<'a>>,
    /// The end by release.
    pub(super) released: Option<Release<'a>>,
    /// Billing states as they were said, in the order of A-18.
    pub(super) states: Vec<(Instant, &'a str)>,
    /// Releases before the start only: nothing is held.
    pub(super) ends_before_start: bool,
    /// Instants of all facts that name it.
    pub(super) named_at: Vec<Instant>,
    /// Snapshots of its source, later than all that names it, that lack it.
    pub(super) lacked_by: Vec<Lacking<'a>>,
    pub(super) units: Vec<Unit>,
}

/// Who owns an allocation from `since` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner<'a> {
    pub(super) since: Instant,
    pub(super) tenant: &'a TenantId,
    pub(super) project: Option<&'a ProjectId>,
}

/// A snapshot that lacks an allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lacking<'a> {
    pub(super) at: Instant,
    /// Nodes it speaks for; none: all.
    pub(super) nodes: Option<&'a [NodeId]>,
}

/// The release that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release<'a> {
    pub(super) at: Instant,
    pub(super) reason: Option<&'a str>,
}

impl Allocation<'_> {
    /// Who owns it at `at`; before the start, who owns it at the start.
    pub(super) fn owner(&self, at: Instant) -> Owner<'_> {
        let upto = self.owners.partition_point(|owner| owner.since <= at);
        self.owners[upto.saturating_sub(1)]
    }

    /// GPUs it has units on, each once.
    pub(super) fn gpus(&self) -> BTreeSet<&GpuId> {
        self.units.iter().filter_map(Unit::gpu).collect()
    }

    /// The holds of its units on slices of GPUs.
    pub(super) fn holds(&self) -> Vec<Hold> {
        let owners: Vec<(Instant, TenantId)> =
            self.owners.iter().map(|owner| (owner.since, owner.tenant.clone())).collect();
        let hold = |unit: &Unit| match &unit.place {
            Place::Slices { gpu, placement, .. } if unit.end > self.start => Some(Hold {
                start: self.start,
                allocation: self.id.clone(),
                unit: unit.index,
                gpu: gpu.clone(),
                placement: *placement,
                shared: self.is_shared(),
                end: unit.end,
                open: unit.open,
                owners: owners.clone(),
            }),
            _ => None,
        };
        self.units.iter().filter_map(hold).collect()
    }

    /// The row of a report.
    pub(super) fn view(&self, states: &Scopes) -> AllocationView {
        let unit_ends: BTreeMap<u32, End> =
            self.units.iter().map(|unit| (unit.index, self.unit_end(unit, states))).collect();
        let end = if unit_ends.values().any(|end| *end == End::Open) {
            End::Open
        } else {
            let latest = unit_ends
                .values()
                .max_by_key(|end| if let End::Ended { at, .. } = end { *at } else { Instant::MAX });
            latest.cloned().unwrap_or(End::Open)
        };
        let owner = self.owner(Instant::MAX);
        AllocationView {
            allocation: self.id.clone(),
            start: self.start,
            end,
            unit_ends,
            tenant: owner.tenant.clone(),
            project: owner.project.cloned(),
            class: self.grant.class,
            reason: self.released.and_then(|r| r.reason.map(str::to_owned)),
            source: self.source.clone(),
            labels: self.grant.labels.clone(),
            slurm_job: self.grant.runtime.slurm_job.clone(),
            pod_uid: self.grant.runtime.pod_uid.clone(),
        }
    }

    fn unit_end(&self, unit: &Unit, states: &Scopes) -> End {
        if unit.open {
            return End::Open;
        }
        let preempted = self.released.is_some_and(|r| r.at == unit.end && r.reason == Some("preempted"));
        let broken = match &unit.place {
            Place::Slices { gpu, placement, .. } => states.broken_before(gpu, *placement, unit.end),
            Place::Waiting | Place::Unplaced => false,
        };
        End::Ended { at: unit.end, provider_took: preempted || broken }
    }
}

/// Facts about one allocation id, in the order of A-18.
#[derive(Default)]
struct Story<'a> {
    grants: Vec<(&'a Fact, &'a Grant)>,
    releases: Vec<(Instant, Option<&'a str>)>,
    transfers: Vec<Owner<'a>>,
    states: Vec<(Instant, &'a str)>,
    placed: Vec<(&'a Fact, &'a Placed)>,
    named_at: Vec<Instant>,
}

/// Reads all allocations from facts in the order of A-18.
pub(super) fn resolve<'a>(
    facts: &[&'a Fact],
    devices: &Devices<'a>,
    context: &Context<'_>,
    as_of: Instant,
    findings: &mut Findings,
) -> Vec<Allocation<'a>> {
    let stories = stories(facts);
    let mut allocations = Vec::new();
    let mut placed = BTreeMap::new();
    for (id, story) in stories {
        match choose_grant(id, &story, findings) {
            Some((fact, grant)) => {
                placed.insert(id, story.placed.clone());
                allocations.push(begin(id, fact, grant, story, findings));
            }
            None => orphan(id, &story, findings),
        }
    }
    note_snapshots(&mut allocations, facts);
    address_by_runtime(facts, &allocations, &mut placed, as_of, findings);
    for allocation in &mut allocations {
        let mut devices_of_it = placed.remove(allocation.id).unwrap_or_default();
        devices_of_it.sort_by(|a, b| (a.0.at, &a.0.source, &a.0.id).cmp(&(b.0.at, &b.0.source, &b.0.id)));
        allocation.units =
            Units { allocation, devices, context, findings, units: Vec::new() }.build(&devices_of_it);
    }
    allocations
}

fn stories<'a>(facts: &[&'a Fact]) -> BTreeMap<&'a AllocationId, Story<'a>> {
    let mut stories: BTreeMap<&AllocationId, Story<'_>> = BTreeMap::new();
    for fact in facts {
        let id = match &fact.body {
            FactBody::Granted(grant) => {
                stories.entry(&grant.allocation).or_default().grants.push((fact, grant));
                &grant.allocation
            }
            FactBody::Released { allocation, reason } => {
                stories.entry(allocation).or_default().releases.push((fact.at, reason.as_deref()));
                allocation
            }
            FactBody::Transferred { allocation, tenant, project } => {
                let owner = Owner { since: fact.at, tenant, project: project.as_ref() };
                stories.entry(allocation).or_default().transfers.push(owner);
                allocation
            }
            FactBody::Placed(placed) => {
                let PlacedOf::Allocation(allocation) = &placed.of else { continue };
                stories.entry(allocation).or_default().placed.push((fact, placed));
                allocation
            }
            FactBody::AllocationState { allocation, state } => {
                stories.entry(allocation).or_default().states.push((fact.at, state));
                allocation
            }
            FactBody::Snapshot { allocations, .. } => {
                for allocation in allocations {
                    stories.entry(allocation).or_default().named_at.push(fact.at);
                }
                continue;
            }
            FactBody::Inventory(_)
            | FactBody::NodeDecommissioned(_)
            | FactBody::GpuDecommissioned(_)
            | FactBody::UnitState(_)
            | FactBody::NodeAlive(_)
            | FactBody::ScrubStarted { .. }
            | FactBody::ScrubFinished { .. }
            | FactBody::QuarantineReleased { .. }
            | FactBody::Work(_)
            | FactBody::Other => continue,
        };
        stories.entry(id).or_default().named_at.push(fact.at);
    }
    stories
}

/// Of several grants the earliest counts, then the smallest event id; a different one is a conflict.
fn choose_grant<'a>(
    id: &AllocationId,
    story: &Story<'a>,
    findings: &mut Findings,
) -> Option<(&'a Fact, &'a Grant)> {
    let (fact, grant) = *story.grants.iter().min_by_key(|(fact, _)| (fact.at, &fact.id, &fact.source))?;
    for (other, other_grant) in &story.grants {
        if other.at != fact.at || *other_grant != grant {
            findings.add(Finding {
                kind: Kind::Conflict,
                subject: id.to_string(),
                since: other.at,
                until: None,
                detail: format!(
                    "grant {} of {id} differs from grant {}, which is the earliest and counts",
                    other.id, fact.id
                ),
            });
        }
    }
    Some((fact, grant))
}

fn orphan(id: &AllocationId, story: &Story<'_>, findings: &mut Findings) {
    let release = story
        .releases
        .first()
        .map(|(at, _)| (Kind::ReleaseWithoutGrant, *at, "released, but nobody granted it"));
    let other = story
        .transfers
        .first()
        .map(|owner| (Kind::Waiting, owner.since, "transferred, but nobody granted it"));
    let placed =
        story.placed.first().map(|(fact, _)| (Kind::Waiting, fact.at, "placed, but nobody granted it"));
    for (kind, since, what) in [release, other.or(placed)].into_iter().flatten() {
        findings.add(Finding {
            kind,
            subject: id.to_string(),
            since,
            until: None,
            detail: format!("allocation {id} was {what}"),
        });
    }
}

fn begin<'a>(
    id: &'a AllocationId,
    fact: &'a Fact,
    grant: &'a Grant,
    story: Story<'a>,
    findings: &mut Findings,
) -> Allocation<'a> {
    let start = fact.at;
    let note = |kind, detail: &str| Finding {
        kind,
        subject: id.to_string(),
        since: start,
        until: None,
        detail: format!("allocation {id} {detail}"),
    };
    let released = story
        .releases
        .iter()
        .find(|(at, _)| *at >= start)
        .map(|(at, reason)| Release { at: *at, reason: *reason });
    let ends_before_start = released.is_none() && !story.releases.is_empty();
    if ends_before_start {
        findings.add(note(Kind::EndBeforeStart, "was released before its grant only"));
    }
    if released.is_some_and(|r| r.at == start) {
        findings.add(note(Kind::ZeroLength, "was released at the instant of its grant"));
    }
    Allocation {
        id,
        grant,
        source: &fact.source,
        start,
        owners: owners(grant, start, &story.transfers),
        transfers: story.transfers,
        states: story.states,
        released,
        ends_before_start,
        named_at: story.named_at,
        lacked_by: Vec::new(),
        units: Vec::new(),
    }
}

/// The last transfer at or before the start owns from the start; each later one from its instant on.
fn owners<'a>(grant: &'a Grant, start: Instant, transfers: &[Owner<'a>]) -> Vec<Owner<'a>> {
    let mut owners = vec![Owner { since: start, tenant: &grant.tenant, project: grant.project.as_ref() }];
    for transfer in transfers {
        let owner = Owner { since: transfer.since.max(start), ..*transfer };
        if let Some(last) = owners.last_mut().filter(|last| last.since == owner.since) {
            *last = owner;
        } else {
            owners.push(owner);
        }
    }
    // Who transfers to the owner changes nobody's share.
    owners.dedup_by(|later, earlier| (later.tenant, later.project) == (earlier.tenant, earlier.project));
    owners
}

/// A snapshot after everything that names the allocation, and without it, says it is gone.
fn note_snapshots<'a>(allocations: &mut [Allocation<'a>], facts: &[&'a Fact]) {
    let mut by_source: BTreeMap<&Source, Vec<(usize, Lacking<'a>)>> = BTreeMap::new();
    let mut last_named: BTreeMap<&AllocationId, usize> = BTreeMap::new();
    for (position, fact) in facts.iter().enumerate() {
        let mut name = |id: &'a AllocationId| {
            last_named.insert(id, position);
        };
        match &fact.body {
            FactBody::Granted(grant) => name(&grant.allocation),
            FactBody::Released { allocation, .. }
            | FactBody::Transferred { allocation, .. }
            | FactBody::AllocationState { allocation, .. }
            | FactBody::Placed(Placed { of: PlacedOf::Allocation(allocation), .. }) => name(allocation),
            FactBody::Snapshot { nodes, allocations } => {
                allocations.iter().for_each(name);
                by_source
                    .entry(&fact.source)
                    .or_default()
                    .push((position, Lacking { at: fact.at, nodes: nodes.as_deref() }));
            }
            _ => {}
        }
    }
    for allocation in allocations {
        let named = last_named.get(allocation.id).copied().unwrap_or_default();
        let snapshots = by_source.get(allocation.source).map(Vec::as_slice).unwrap_or_default();
        allocation.lacked_by =
            snapshots.iter().filter(|(position, _)| *position > named).map(|(_, lacking)| *lacking).collect();
    }
}

/// A placement addressed by job or pod means the one allocation that holds it at the time; none or several: it waits.
fn address_by_runtime<'a>(
    facts: &[&'a Fact],
    allocations: &[Allocation<'a>],
    placed_of: &mut BTreeMap<&'a AllocationId, Vec<(&'a Fact, &'a Placed)>>,
    as_of: Instant,
    findings: &mut Findings,
) {
    let mut of_job: BTreeMap<&str, Vec<&Allocation<'_>>> = BTreeMap::new();
    let mut of_pod: BTreeMap<&str, Vec<&Allocation<'_>>> = BTreeMap::new();
    let all: Vec<&Allocation<'_>> = allocations.iter().collect();
    for allocation in allocations {
        let Runtime { slurm_job, pod_uid } = &allocation.grant.runtime;
        slurm_job.iter().for_each(|job| of_job.entry(job).or_default().push(allocation));
        pod_uid.iter().for_each(|pod| of_pod.entry(pod).or_default().push(allocation));
    }
    for fact in facts {
        let FactBody::Placed(placed) = &fact.body else { continue };
        let PlacedOf::Runtime(runtime) = &placed.of else { continue };
        let named = match (&runtime.slurm_job, &runtime.pod_uid) {
            (Some(job), _) => of_job.get(job.as_str()),
            (None, Some(pod)) => of_pod.get(pod.as_str()),
            (None, None) => Some(&all),
        };
        let mut holders = named
            .into_iter()
            .flatten()
            .filter(|a| same_runtime(&a.grant.runtime, runtime) && a.holds_at(fact.at, as_of));
        match (holders.next(), holders.next()) {
            (Some(one), None) => placed_of.entry(one.id).or_default().push((fact, placed)),
            (one, _) => findings.add(Finding {
                kind: Kind::Waiting,
                subject: format!("{} {}", fact.source, fact.id),
                since: fact.at,
                until: None,
                detail: format!(
                    "{} of job or pod {} at {}",
                    if one.is_some() { "several allocations" } else { "no allocation" },
                    runtime.slurm_job.as_deref().or(runtime.pod_uid.as_deref()).unwrap_or("?"),
                    fact.at
                ),
            }),
        }
    }
}

fn same_runtime(granted: &Runtime, named: &Runtime) -> bool {
    let same = |a: &Option<String>, b: &Option<String>| b.is_none() || a == b;
    same(&granted.slurm_job, &named.slurm_job) && same(&granted.pod_uid, &named.pod_uid)
}

impl Allocation<'_> {
    fn holds_at(&self, at: Instant, as_of: Instant) -> bool {
        let gone = self.lacked_by.iter().any(|lacking| lacking.nodes.is_none()).then(|| self.last_named());
        let end = self.released.map(|r| r.at).or(gone).unwrap_or(as_of.plus(1));
        !self.ends_before_start && self.start <= at && at < end
    }

    /// The last fact or snapshot that named it.
    pub(super) fn last_named(&self) -> Instant {
        self.named_at.iter().copied().max().unwrap_or(self.start)
    }
}

impl Allocation<'_> {
    /// Whether others may hold the identical unit beside it.
    pub(super) fn is_shared(&self) -> bool {
        self.grant.mode == Mode::Shared
    }
}
