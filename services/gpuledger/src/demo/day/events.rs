//! What the allocator says of its plan, and what the operator says of maintenance.

use super::allocator::{Hold, Plan, Unit};
use super::maintenance;
use super::requests::{Asks, Release, RunsAs};
use super::work::Owner;
use anyhow::{Context, Result};
use gpuledger_wire::bodies::{
    AllocationGranted, AllocationReleased, GrantUnit, MigUnit, Mode, PlacedUnit, Placement, Runtime, State,
    UnitState, UnplacedUnit,
};
use gpuledger_wire::number::{SliceIndex, Slices, UnitCount};
use gpuledger_wire::share::ShareText;
use gpuledger_wire::text::{Name, Text};
use gpuledger_wire::{Event, EventData};
use std::collections::BTreeMap;

/// Who speaks.
pub(crate) const ALLOCATOR: &str = "/allocators/demo";

/// What is said as the day goes on, in order of time.
///
/// # Errors
/// None: what is planned is within the bounds of events.
pub(crate) fn on_time(plan: &Plan) -> Result<Vec<Event>> {
    let mut events = drained()?;
    for hold in &plan.holds {
        events.push(granted(hold)?);
        if hold.request.release == Release::AtOnce {
            events.push(released(hold)?);
        }
    }
    events.sort_by_key(|event| event.time);
    Ok(events)
}

/// What is said when the day is over.
///
/// # Errors
/// As [`on_time`].
pub(crate) fn late(plan: &Plan) -> Result<Vec<Event>> {
    let late = plan.holds.iter().filter(|hold| hold.request.release == Release::Late);
    late.map(released).collect()
}

fn drained() -> Result<Vec<Event>> {
    let (gpu, window) = maintenance();
    let state = |id: &str, at, state, detail| -> Result<Event> {
        let detail = Some(Text::new(detail)?);
        let data = UnitState { gpu: gpu.name()?, placement: None, state, cause: None, detail };
        Ok(Event::new(ALLOCATOR, id, at, data.into())?)
    };
    Ok(vec![
        state("drained", window.start(), State::Maintenance, "firmware update")?,
        state("back", window.end(), State::Ok, "firmware updated")?,
    ])
}

fn granted(hold: &Hold) -> Result<Event> {
    let request = hold.request;
    let data = AllocationGranted {
        allocation: Name::new(request.id)?,
        tenant: Name::new(request.tenant)?,
        project: request.project.map(Name::new).transpose()?,
        units: units(hold)?,
        mode: if matches!(request.asks, Asks::Share(..)) { Mode::Shared } else { Mode::Exclusive },
        class: request.class,
        pool: None,
        commitment: None,
        reservation: None,
        runtime: Some(runtime(&Owner::of(hold))?),
        labels: BTreeMap::new(),
    };
    Ok(Event::new(ALLOCATOR, &format!("{}-granted", request.id), hold.window.start(), data.into())?)
}

fn released(hold: &Hold) -> Result<Event> {
    let reason = if hold.is_preempted { "preempted" } else { "completed" };
    let data = EventData::from(AllocationReleased {
        allocation: Name::new(hold.request.id)?,
        reason: Some(Name::new(reason)?),
    });
    Ok(Event::new(ALLOCATOR, &format!("{}-released", hold.request.id), hold.window.end(), data)?)
}

/// Of a job only what it gets and how much of it; else the devices.
fn units(hold: &Hold) -> Result<Vec<GrantUnit>> {
    match (hold.request.runs_as, hold.request.asks) {
        (RunsAs::Job, Asks::Whole(model, count)) => {
            let count = u32::try_from(count).ok().and_then(UnitCount::new).context("a count of units")?;
            let unit = UnplacedUnit { sku: Name::new(model.sku())?, count, share: None };
            Ok(vec![GrantUnit::Unplaced(unit)])
        }
        _ => hold.units.iter().map(|unit| Ok(GrantUnit::Placed(placed(*unit)?))).collect(),
    }
}

fn placed(unit: Unit) -> Result<PlacedUnit> {
    let mig = unit.part.map(|part| -> Result<MigUnit> {
        let start = SliceIndex::new(part.start).context("a memory slice")?;
        let size = Slices::new(part.size).context("a number of slices")?;
        Ok(MigUnit {
            uuid: Some(Name::new(&unit.gpu.instance_uuid(part))?),
            profile: Some(Name::new(part.profile)?),
            placement: Some(Placement { start, size }),
        })
    });
    Ok(PlacedUnit { gpu: unit.gpu.name()?, mig: mig.transpose()?, share: unit.share.map(ShareText) })
}

fn runtime(owner: &Owner) -> Result<Runtime> {
    Ok(match owner {
        Owner::Job(number) => Runtime { slurm_job: Some(Name::new(number)?), pod_uid: None },
        Owner::Pod { uid, .. } => Runtime { slurm_job: None, pod_uid: Some(Name::new(uid)?) },
    })
}
