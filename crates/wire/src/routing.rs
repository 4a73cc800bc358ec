//! Where an event goes and what it is about: topics, keys, subjects.

use crate::bodies::{DisputeSubject, GrantUnit, NodeDecommissioned, Runtime, SignalUnit};
use crate::event::{Event, EventData};
use crate::text::Name;
use sha2::{Digest, Sha256};

/// Telemetry windows, by node.
pub const TOPIC_TELEMETRY: &str = "gpuledger.telemetry.v1";
/// Facts, by GPU or allocation.
pub const TOPIC_FACTS: &str = "gpuledger.facts.v1";
/// Reported work, by pool.
pub const TOPIC_WORK: &str = "gpuledger.work.v1";
/// Signals and acknowledgements, by tenant.
pub const TOPIC_SIGNALS: &str = "gpuledger.signals.v1";
/// Events that could not be applied.
pub const TOPIC_PARKED: &str = "gpuledger.parked.v1";

/// What an event names, each list in the order of the event.
#[derive(Default)]
struct Named<'a> {
    allocation: Option<&'a str>,
    gpus: Vec<&'a str>,
    node: Option<&'a str>,
    tenant: Option<&'a str>,
    runtime: Option<&'a Runtime>,
    pool: Option<&'a str>,
}

impl Event {
    /// The Kafka topic of its type.
    pub fn topic(&self) -> &'static str {
        match &self.data {
            EventData::TelemetryWindow(_) => TOPIC_TELEMETRY,
            EventData::WorkReported(_) => TOPIC_WORK,
            EventData::SignalRaised(_) | EventData::SignalAcknowledged(_) => TOPIC_SIGNALS,
            _ => TOPIC_FACTS,
        }
    }

    /// The Kafka key: node of telemetry, pool of work, tenant of signals; of a fact the allocation, else the GPU, else the node,
    /// else the tenant, else its source.
    pub fn partition_key(&self) -> String {
        match &self.data {
            EventData::WorkReported(work) => work.pool.to_string(),
            EventData::SignalRaised(signal) => signal.tenant.to_string(),
            EventData::SignalAcknowledged(signal) => signal.signal.to_string(),
            EventData::NodeInventory(inventory) => inventory.node.to_string(),
            data => named(data).first().unwrap_or(&self.source).to_owned(),
        }
    }

    /// What the fact is found by: `gpu:…`, `node:…`, `alloc:…`, `job:…`, `pod:…`, `pool:…` (its grants and its work), `scrub:…`, and of a
    /// source its grants and snapshots.
    /// Sorted, each once.
    pub fn subjects(&self) -> Vec<String> {
        let named = named(&self.data);
        let mut subjects: Vec<String> = named.gpus.iter().map(|gpu| format!("gpu:{gpu}")).collect();
        subjects.extend(named.node.map(|node| format!("node:{node}")));
        subjects.extend(named.allocation.map(|allocation| format!("alloc:{allocation}")));
        subjects.extend(named.pool.map(|pool| format!("pool:{pool}")));
        if let Some(runtime) = named.runtime {
            subjects.extend(runtime.slurm_job.as_ref().map(|job| format!("job:{job}")));
            subjects.extend(runtime.pod_uid.as_ref().map(|pod| format!("pod:{pod}")));
        }
        match &self.data {
            EventData::AllocationGranted(_) => subjects.push(format!("source-grants:{}", self.source)),
            EventData::AllocationSnapshot(_) => subjects.push(format!("snapshot:{}", self.source)),
            EventData::ScrubStarted(scrub) => subjects.push(scrub_subject(&scrub.gpu, &scrub.scrub)),
            EventData::ScrubFinished(scrub) => subjects.push(scrub_subject(&scrub.gpu, &scrub.scrub)),
            _ => {}
        }
        subjects.sort();
        subjects.dedup();
        subjects
    }

    /// The subject of a finding about the event: the allocation, else the GPU, else the node, else the tenant, else `source id`.
    pub fn subject_of_finding(&self) -> String {
        if let EventData::NodeInventory(inventory) = &self.data {
            // It names many GPUs and is about none of them.
            return inventory.node.to_string();
        }
        named(&self.data).first().map_or_else(|| format!("{} {}", self.source, self.id), str::to_owned)
    }
}

/// What the begin and the end of a scrub on a GPU are found by: a hash, since both names together may be longer than an index row.
pub fn scrub_subject(gpu: &str, scrub: &str) -> String {
    let hash = Sha256::digest(format!("{gpu}/{scrub}"));
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("scrub:{digits}")
}

impl<'a> Named<'a> {
    fn first(&self) -> Option<&'a str> {
        self.allocation.or_else(|| self.gpus.first().copied()).or(self.node).or(self.tenant)
    }

    fn gpu(gpu: &'a Name) -> Self {
        Self { gpus: vec![gpu], ..Self::default() }
    }

    fn allocation(allocation: &'a Name) -> Self {
        Self { allocation: Some(allocation), ..Self::default() }
    }

    fn tenant(tenant: &'a Name) -> Self {
        Self { tenant: Some(tenant), ..Self::default() }
    }
}

fn devices(units: &[GrantUnit]) -> Vec<&str> {
    let mut gpus = Vec::new();
    for unit in units {
        if let GrantUnit::Placed(unit) = unit {
            gpus.push(unit.gpu.as_str());
        }
    }
    gpus
}

fn named(data: &EventData) -> Named<'_> {
    match data {
        EventData::NodeInventory(inventory) => Named {
            gpus: inventory.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect(),
            node: Some(&inventory.node),
            ..Named::default()
        },
        EventData::NodeDecommissioned(NodeDecommissioned::Node(node)) => {
            Named { node: Some(node), ..Named::default() }
        }
        EventData::NodeDecommissioned(NodeDecommissioned::Gpu(gpu)) => Named::gpu(gpu),
        EventData::UnitState(state) => Named::gpu(&state.gpu),
        EventData::TelemetryWindow(window) => Named { node: Some(&window.node), ..Named::default() },
        EventData::AllocationGranted(grant) => Named {
            allocation: Some(&grant.allocation),
            gpus: devices(&grant.units),
            tenant: Some(&grant.tenant),
            runtime: grant.runtime.as_ref(),
            pool: grant.pool.as_deref(),
            ..Named::default()
        },
        EventData::AllocationPlaced(placed) => Named {
            allocation: placed.allocation.as_deref(),
            gpus: placed.units.iter().map(|unit| unit.gpu.as_str()).collect(),
            runtime: placed.runtime.as_ref(),
            ..Named::default()
        },
        EventData::AllocationState(state) => Named::allocation(&state.allocation),
        EventData::AllocationTransferred(transfer) => {
            Named { tenant: Some(&transfer.tenant), ..Named::allocation(&transfer.allocation) }
        }
        EventData::AllocationReleased(release) => Named::allocation(&release.allocation),
        EventData::AllocationSnapshot(_) | EventData::SignalAcknowledged(_) => Named::default(),
        EventData::ScrubStarted(scrub) => Named::gpu(&scrub.gpu),
        EventData::ScrubFinished(scrub) => Named::gpu(&scrub.gpu),
        EventData::QuarantineReleased(release) => Named::gpu(&release.gpu),
        EventData::WorkReported(work) => Named { pool: Some(&work.pool), ..Named::tenant(&work.tenant) },
        EventData::UsageReported(usage) => Named::tenant(&usage.tenant),
        EventData::ChargeRecorded(charge) => Named::tenant(&charge.tenant),
        EventData::DisputeResolved(dispute) => match &dispute.about {
            DisputeSubject::Allocation(allocation) => Named::allocation(allocation),
            DisputeSubject::Line(_) => Named::default(),
        },
        EventData::SignalRaised(signal) => {
            let gpus = signal.units.iter().filter_map(|unit| match unit {
                SignalUnit::Unit(GrantUnit::Placed(placed)) => Some(placed.gpu.as_str()),
                SignalUnit::Unit(GrantUnit::Unplaced(_)) => None,
                SignalUnit::Slices(slices) => Some(slices.gpu.as_str()),
            });
            Named { gpus: gpus.collect(), ..Named::tenant(&signal.tenant) }
        }
    }
}

#[cfg(test)]
mod tests;
