//! From events to the facts that the rules see, and the digest that tells same content from other.

use crate::amount::Unsigned;
use crate::bodies::{self, Class, Mode, NodeDecommissioned, State};
use crate::encode::canonical_json;
use crate::event::{Event, EventData};
use crate::number::Count;
use crate::text::Name;
use gpuledger_domain::fact::{self, Cause, Fact, FactBody, PlacedOf};
use gpuledger_domain::ids::{AllocationId, GpuId, NodeId, ProjectId, ScrubId, Source, TenantId};
use gpuledger_domain::pool::{Work, WorkKind};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::Instant;
use serde_json::json;
use sha2::{Digest, Sha256};

impl Event {
    /// The event as the rules see it. A telemetry window is proof that its node lived at the window's end.
    pub fn to_fact(&self) -> Fact {
        Fact {
            source: Source::new(&self.source),
            id: self.id.clone(),
            at: self.fact_time(),
            body: body(&self.data),
        }
    }

    /// When the rules let it act: the event's time, or the end of a telemetry window.
    pub fn fact_time(&self) -> Instant {
        match &self.data {
            EventData::TelemetryWindow(window) => window.end.get(),
            _ => self.time,
        }
    }

    /// SHA-256 over the canonical JSON of type, time and data: equal exactly where the content is the same (I-1).
    pub fn content_digest(&self) -> [u8; 32] {
        let content = json!([self.type_name(), self.time.as_micros().to_string(), self.raw_data]);
        Sha256::digest(canonical_json(&content)).into()
    }
}

fn body(data: &EventData) -> FactBody {
    match data {
        EventData::NodeInventory(inventory) => FactBody::Inventory(inventory.into()),
        EventData::NodeDecommissioned(NodeDecommissioned::Node(node)) => {
            FactBody::NodeDecommissioned(NodeId::new(node))
        }
        EventData::NodeDecommissioned(NodeDecommissioned::Gpu(gpu)) => {
            FactBody::GpuDecommissioned(GpuId::new(gpu))
        }
        EventData::UnitState(state) => FactBody::UnitState(state.into()),
        EventData::TelemetryWindow(window) => FactBody::NodeAlive(NodeId::new(&window.node)),
        EventData::AllocationGranted(grant) => FactBody::Granted(grant.into()),
        EventData::AllocationPlaced(placed) => placed_body(placed),
        EventData::AllocationState(state) => FactBody::AllocationState {
            allocation: AllocationId::new(&state.allocation),
            state: state.state.to_string(),
        },
        EventData::AllocationTransferred(transfer) => FactBody::Transferred {
            allocation: AllocationId::new(&transfer.allocation),
            tenant: TenantId::new(&transfer.tenant),
            project: project(transfer.project.as_ref()),
        },
        EventData::AllocationReleased(release) => FactBody::Released {
            allocation: AllocationId::new(&release.allocation),
            reason: release.reason.as_ref().map(ToString::to_string),
        },
        EventData::AllocationSnapshot(snapshot) => FactBody::Snapshot {
            nodes: snapshot
                .scope
                .as_ref()
                .map(|scope| scope.nodes.iter().map(|node| NodeId::new(node)).collect()),
            allocations: snapshot.allocations.iter().map(|id| AllocationId::new(id)).collect(),
        },
        EventData::ScrubStarted(scrub) => FactBody::ScrubStarted {
            scrub: ScrubId::new(&scrub.scrub),
            gpu: GpuId::new(&scrub.gpu),
            placement: scrub.placement.map(Into::into),
        },
        EventData::ScrubFinished(scrub) => FactBody::ScrubFinished {
            scrub: ScrubId::new(&scrub.scrub),
            gpu: GpuId::new(&scrub.gpu),
            placement: scrub.placement.map(Into::into),
            started_at: scrub.started_at.get(),
            evidence: scrub.into(),
        },
        EventData::QuarantineReleased(release) => FactBody::QuarantineReleased {
            gpu: GpuId::new(&release.gpu),
            placement: release.placement.map(Into::into),
        },
        EventData::WorkReported(work) => FactBody::Work(work.into()),
        EventData::UsageReported(_)
        | EventData::ChargeRecorded(_)
        | EventData::DisputeResolved(_)
        | EventData::SignalRaised(_)
        | EventData::SignalAcknowledged(_) => FactBody::Other,
    }
}

fn project(name: Option<&Name>) -> Option<ProjectId> {
    name.map(|name| ProjectId::new(name))
}

/// By its name, else by job or pod. That exactly one of them stands there was checked when the event was read.
fn placed_body(placed: &bodies::AllocationPlaced) -> FactBody {
    let of = match (&placed.allocation, &placed.runtime) {
        (Some(allocation), _) => PlacedOf::Allocation(AllocationId::new(allocation)),
        (None, runtime) => PlacedOf::Runtime(runtime.as_ref().map(Into::into).unwrap_or_default()),
    };
    FactBody::Placed(fact::Placed { of, units: placed.units.iter().map(Into::into).collect() })
}

impl From<&bodies::WorkReported> for Work {
    fn from(work: &bodies::WorkReported) -> Self {
        let count = |count: Option<Count>| count.map(|count| Share::from_integer(count.get().into()));
        let amounts = [
            (WorkKind::InputTokens, count(work.input_tokens)),
            (WorkKind::OutputTokens, count(work.output_tokens)),
            (WorkKind::CachedTokens, count(work.cached_tokens)),
            (WorkKind::Requests, count(work.requests)),
            (WorkKind::KvByteUs, work.kv_byte_us.map(|held| Share::from_integer(held.get()))),
            (WorkKind::Units, work.units.map(Unsigned::ratio)),
        ];
        Self {
            pool: work.pool.to_string(),
            tenant: TenantId::new(&work.tenant),
            project: project(work.project.as_ref()),
            adapter: work.adapter.as_ref().map(ToString::to_string),
            start: work.start.get(),
            end: work.end.get(),
            amounts: amounts.into_iter().filter_map(|(kind, amount)| Some((kind, amount?))).collect(),
        }
    }
}

impl From<&bodies::ScrubFinished> for fact::ScrubEvidence {
    fn from(scrub: &bodies::ScrubFinished) -> Self {
        Self {
            result: match scrub.result {
                bodies::ScrubResult::Passed => fact::ScrubResult::Passed,
                bodies::ScrubResult::Failed => fact::ScrubResult::Failed,
                bodies::ScrubResult::Incomplete => fact::ScrubResult::Incomplete,
                bodies::ScrubResult::Skipped => fact::ScrubResult::Skipped,
            },
            read_back: match scrub.verification.method {
                bodies::Method::Full => fact::ReadBack::Full,
                bodies::Method::Sampled => fact::ReadBack::Sampled,
                bodies::Method::None => fact::ReadBack::Nothing,
            },
            bytes_read: scrub.verification.bytes_read.get(),
            mismatches: scrub.verification.mismatches.get(),
            bytes_total: scrub.coverage.bytes_total.get(),
            bytes_covered: scrub.coverage.bytes_covered.get(),
            bytes_reserved: scrub.coverage.bytes_reserved.get(),
        }
    }
}

impl From<&bodies::NodeInventory> for fact::Inventory {
    fn from(inventory: &bodies::NodeInventory) -> Self {
        Self {
            node: NodeId::new(&inventory.node),
            boot_id: inventory.boot_id.to_string(),
            gpus: inventory.gpus.iter().map(Into::into).collect(),
        }
    }
}

impl From<&bodies::InventoryGpu> for fact::InventoryGpu {
    fn from(gpu: &bodies::InventoryGpu) -> Self {
        Self {
            gpu: GpuId::new(&gpu.uuid),
            model: gpu.model.to_string(),
            compute_slices: gpu.compute_slices.get(),
            memory_slices: gpu.memory_slices.get(),
            mig: gpu.mig,
            instances: gpu.instances.iter().map(Into::into).collect(),
        }
    }
}

impl From<&bodies::InventoryInstance> for fact::Instance {
    fn from(instance: &bodies::InventoryInstance) -> Self {
        Self {
            uuid: instance.uuid.to_string(),
            profile: instance.profile.to_string(),
            compute_slices: instance.compute_slices.map(crate::number::Slices::get),
            placement: instance.placement.map(Into::into),
        }
    }
}

impl From<&bodies::UnitState> for fact::UnitState {
    fn from(state: &bodies::UnitState) -> Self {
        let cause = || match state.cause.as_deref() {
            Some("hardware") => Cause::Hardware,
            Some("application") => Cause::Application,
            Some("unknown") | None => Cause::Unknown,
            Some(other) => Cause::Named(other.to_owned()),
        };
        Self {
            gpu: GpuId::new(&state.gpu),
            placement: state.placement.map(Into::into),
            state: match state.state {
                State::Ok => fact::State::Ok,
                State::Fault => fact::State::Fault(cause()),
                State::Maintenance => fact::State::Maintenance,
            },
        }
    }
}

impl From<&bodies::AllocationGranted> for fact::Grant {
    fn from(grant: &bodies::AllocationGranted) -> Self {
        Self {
            allocation: AllocationId::new(&grant.allocation),
            tenant: TenantId::new(&grant.tenant),
            project: project(grant.project.as_ref()),
            units: grant.units.iter().map(Into::into).collect(),
            mode: grant.mode.into(),
            class: grant.class.into(),
            pool: grant.pool.as_ref().map(ToString::to_string),
            commitment: grant.commitment.as_ref().map(ToString::to_string),
            runtime: grant.runtime.as_ref().map(Into::into).unwrap_or_default(),
            labels: grant.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        }
    }
}

impl From<Mode> for fact::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Exclusive => Self::Exclusive,
            Mode::Shared => Self::Shared,
        }
    }
}

impl From<Class> for fact::Class {
    fn from(class: Class) -> Self {
        match class {
            Class::OnDemand => Self::OnDemand,
            Class::Reserved => Self::Reserved,
            Class::Spot => Self::Spot,
        }
    }
}
