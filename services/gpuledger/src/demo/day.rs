//! A day of a small fleet, made up: two nodes, eight GPUs, three tenants, and what goes wrong on any day. The same events every time.
//!
//! 2026-10-31, UTC: the last day of its month, so that the month can be closed right after it.

mod devices;

use anyhow::{Context, Result};
use devices::{Gpu, inventory};
use gpuledger_domain::share::Share;
use gpuledger_domain::time::{HOUR_US, Instant, MINUTE_US, SECOND_US, Window};
use gpuledger_wire::bodies::{
    AllocationGranted, AllocationReleased, Class, GrantUnit, MigUnit, Mode, PlacedUnit, Placement, Runtime,
    State, UnitState,
};
use gpuledger_wire::number::{SliceIndex, Slices};
use gpuledger_wire::share::ShareText;
use gpuledger_wire::text::{Name, Text};
use gpuledger_wire::{Event, EventData};
use std::collections::BTreeMap;

/// 2026-10-31T00:00:00Z.
const MIDNIGHT: Instant = Instant::from_micros(1_793_404_800_000_000);
/// How long a node is silent between two inventories, in microseconds.
const HEARTBEAT_US: i64 = 10 * MINUTE_US;
/// When the second node is heard of for the last time.
const LOST: Instant = at(22, 0);
/// When the first MIG GPU is cut anew.
const RECUT: Instant = at(12, 0);
const ALLOCATOR: &str = "/allocators/slurm-1";

/// The day.
pub(crate) fn window() -> Option<Window> {
    Window::new(MIDNIGHT, at(24, 0))
}

/// The clock of the demo: two hours after the day, when every hour of it can be posted.
pub(crate) const fn now() -> Instant {
    at(26, 0)
}

/// The instant of a time of that day.
const fn at(hours: i64, minutes: i64) -> Instant {
    MIDNIGHT.plus(hours * HOUR_US + minutes * MINUTE_US)
}

/// Part of a GPU: profile, first memory slice, number of memory slices.
type Part = (&'static str, u8, u8);

/// Who held what, when.
struct Hold {
    allocation: &'static str,
    tenant: &'static str,
    project: Option<&'static str>,
    gpus: &'static [Gpu],
    part: Option<Part>,
    /// One of so many.
    share: Option<i128>,
    class: Class,
    from: Instant,
    /// None: nobody ever said that it ended.
    to: Option<Instant>,
    reason: &'static str,
}

const fn hold(
    allocation: &'static str,
    tenant: &'static str,
    gpus: &'static [Gpu],
    from: Instant,
    to: Instant,
) -> Hold {
    Hold {
        allocation,
        tenant,
        project: None,
        gpus,
        part: None,
        share: None,
        class: Class::OnDemand,
        from,
        to: Some(to),
        reason: "completed",
    }
}

use Gpu::{A0, A1, A2, A3, H0, H1, H2, H3};

/// The day's allocations.
const HOLDS: [Hold; 11] = [
    // Two GPUs for twelve hours; one of them breaks for an hour and a half, which is not charged.
    Hold { project: Some("vision"), ..hold("acme-train", "acme", &[H0, H1], at(0, 30), at(12, 30)) },
    // Its release comes six hours late: see `late`.
    hold("bolt-serve", "bolt", &[H2], at(2, 0), at(20, 0)),
    // Granted on a GPU that is held: contested, not charged.
    hold("cora-eval", "cora", &[H2], at(10, 0), at(11, 0)),
    // Spot, taken back.
    Hold {
        project: Some("vision"),
        class: Class::Spot,
        reason: "preempted",
        ..hold("acme-spot", "acme", &[H3], at(12, 0), at(15, 0))
    },
    Hold {
        project: Some("speech"),
        part: Some(("3g.40gb", 0, 4)),
        ..hold("acme-asr", "acme", &[A0], at(3, 0), at(9, 0))
    },
    Hold { part: Some(("3g.40gb", 4, 4)), ..hold("cora-rank", "cora", &[A0], at(6, 0), at(18, 0)) },
    Hold {
        project: Some("speech"),
        part: Some(("4g.40gb", 0, 4)),
        ..hold("acme-tts", "acme", &[A0], at(13, 0), at(17, 0))
    },
    Hold { part: Some(("4g.40gb", 0, 4)), ..hold("bolt-train", "bolt", &[A1], at(0, 0), at(21, 0)) },
    // Never released: its node is lost, and with it the hold ends.
    Hold {
        part: Some(("1g.10gb", 6, 1)),
        to: None,
        ..hold("cora-notebook", "cora", &[A1], at(10, 0), at(22, 0))
    },
    Hold { project: Some("speech"), share: Some(4), ..hold("acme-chat", "acme", &[A2], at(4, 0), at(16, 0)) },
    Hold { share: Some(2), ..hold("bolt-chat", "bolt", &[A2], at(4, 0), at(16, 0)) },
];
/// Half a minute of work, billed as the minimum of a minute.
const SMOKE: Hold = hold("cora-smoke", "cora", &[A3], at(9, 0), at(9, 0).plus(36 * SECOND_US));

/// States of GPUs: which, from when, what, why.
const STATES: [(Gpu, Instant, State, Option<&str>, &str); 4] = [
    (H1, at(6, 0), State::Fault, Some("hardware"), "XID 79: the GPU has fallen off the bus"),
    (H1, at(7, 30), State::Ok, None, "reset, and well again"),
    (H3, at(8, 0), State::Maintenance, None, "firmware update"),
    (H3, at(10, 0), State::Ok, None, "firmware updated"),
];

/// Everything that was known when the day was over, in order of time.
///
/// # Errors
/// None: what is written here is within the bounds of events.
pub(crate) fn events() -> Result<Vec<Event>> {
    let mut events = heartbeats("n1", now())?;
    events.extend(heartbeats("n2", LOST)?);
    for (number, (gpu, at, state, cause, detail)) in STATES.into_iter().enumerate() {
        let source = if cause.is_some() { "/nodes/n1/collector" } else { "/platform/console" };
        let data = UnitState {
            gpu: gpu.name()?,
            placement: None,
            state,
            cause: cause.map(Name::new).transpose()?,
            detail: Some(Text::new(detail)?),
        };
        events.push(Event::new(source, &format!("state-{number}"), at, data.into())?);
    }
    for (number, hold) in HOLDS.iter().chain([&SMOKE]).enumerate() {
        events.push(granted(hold, number)?);
        if !is_late(hold) {
            events.extend(released(hold)?);
        }
    }
    events.sort_by_key(|event| event.time);
    Ok(events)
}

/// What came when the day was long over.
///
/// # Errors
/// As [`events`].
pub(crate) fn late() -> Result<Vec<Event>> {
    let late = HOLDS.iter().filter(|hold| is_late(hold)).map(released);
    Ok(late.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn is_late(hold: &Hold) -> bool {
    hold.allocation == "bolt-serve"
}

/// Inventories of a node from midnight to `until`, both included.
fn heartbeats(node: &str, until: Instant) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    let mut at = MIDNIGHT;
    while at <= until {
        let id = format!("inventory-{}", at.since(MIDNIGHT) / MINUTE_US);
        events.push(Event::new(
            &format!("/nodes/{node}/collector"),
            &id,
            at,
            inventory(node, at >= RECUT)?.into(),
        )?);
        at = at.plus(HEARTBEAT_US);
    }
    Ok(events)
}

fn granted(hold: &Hold, number: usize) -> Result<Event> {
    let units = hold.gpus.iter().map(|gpu| unit(*gpu, hold)).collect::<Result<Vec<_>>>()?;
    let data = AllocationGranted {
        allocation: Name::new(hold.allocation)?,
        tenant: Name::new(hold.tenant)?,
        project: hold.project.map(Name::new).transpose()?,
        units,
        mode: if hold.share.is_some() { Mode::Shared } else { Mode::Exclusive },
        class: hold.class,
        pool: None,
        commitment: None,
        reservation: None,
        runtime: Some(Runtime { slurm_job: Some(Name::new(&(4711 + number).to_string())?), pod_uid: None }),
        labels: BTreeMap::new(),
    };
    Ok(Event::new(ALLOCATOR, &format!("{}-granted", hold.allocation), hold.from, data.into())?)
}

fn released(hold: &Hold) -> Result<Option<Event>> {
    let Some(to) = hold.to else { return Ok(None) };
    let data = EventData::from(AllocationReleased {
        allocation: Name::new(hold.allocation)?,
        reason: Some(Name::new(hold.reason)?),
    });
    Ok(Some(Event::new(ALLOCATOR, &format!("{}-released", hold.allocation), to, data)?))
}

fn unit(gpu: Gpu, hold: &Hold) -> Result<GrantUnit> {
    let mig = hold.part.map(|(profile, start, size)| {
        Ok::<_, anyhow::Error>(MigUnit {
            uuid: None,
            profile: Some(Name::new(profile)?),
            placement: Some(placement(start, size)?),
        })
    });
    let share = hold.share.map(|parts| ShareText(Share::new(1, parts)));
    Ok(GrantUnit::Placed(PlacedUnit { gpu: gpu.name()?, mig: mig.transpose()?, share }))
}

fn placement(start: u8, size: u8) -> Result<Placement> {
    let start = SliceIndex::new(start).with_context(|| format!("memory slice {start}"))?;
    Ok(Placement { start, size: slices(size)? })
}

fn slices(number: u8) -> Result<Slices> {
    Slices::new(number).with_context(|| format!("{number} slices"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_wire::{decode_structured, encode_structured};

    #[test]
    fn the_day_is_the_last_of_october() {
        assert_eq!(window().unwrap().to_string(), "[2026-10-31T00:00:00Z, 2026-11-01T00:00:00Z)");
        assert_eq!(now().to_string(), "2026-11-01T02:00:00Z");
    }

    #[test]
    fn the_events_are_the_same_every_time_and_read_back_without_unknown_members() {
        let lines = |events: Vec<Event>| events.iter().map(encode_structured).collect::<Vec<_>>();
        let day = lines(events().unwrap());
        assert_eq!(day, lines(events().unwrap()));
        // 157 and 133 inventories, 4 states, 12 grants, 10 releases: one is late, one never comes.
        assert_eq!(day.len(), 157 + 133 + 4 + 12 + 10);
        for line in day.iter().chain(&lines(late().unwrap())) {
            let event = decode_structured(line).unwrap();
            assert_eq!(event.unknown_members(), Vec::<String>::new());
        }
        assert_eq!(late().unwrap().len(), 1);
    }
}
