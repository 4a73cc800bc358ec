//! Events. A set hears of what happens to its devices after they were registered; waiting blocks, as a client that is answered at once would spin.

use super::argument::{Argument, Out};
use super::call::{Call, begin, guard};
use super::code::Code;
use super::engine::lock;
use super::handle::{DeviceHandle, Handle};
use super::layout::{EventData, EventDataV1};
use super::slots::Slots;
use crate::model::Model;
use crate::scenario::Privilege;
use crate::world::{DeviceEvent, EventKind};
use std::ffi::{c_uint, c_ulonglong};
use std::time::Duration;

const DOUBLE_BIT: u64 = 0x2;
const XID: u64 = 0x8;
const MIG_CHANGE: u64 = 0x100;
/// What else real devices offer and no scenario causes: single-bit errors, performance states, clocks.
const OTHERS: u64 = 0x1 | 0x4 | 0x10;

/// How long a wait sleeps before it looks at the clock file again, and at most on the machine's clock before it looks whether the library was shut
/// down meanwhile.
const FILE_CLOCK_NAP: Duration = Duration::from_millis(1);
const REAL_CLOCK_NAP_US: u64 = 100_000;

/// Sets that clients hold.
pub(super) type Sets = Slots<Set>;

/// A set of events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Set {
    registrations: Vec<Registration>,
    /// Up to where the timeline was heard, and how many of the events at that very instant.
    heard_us: u64,
    heard_then: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Registration {
    gpu: usize,
    types: u64,
    from_us: u64,
}

export! {
    fn nvmlEventSetCreate(call, set: Out<'_, usize>) {
        let slot = lock(&call.engine.sets).put(Set { heard_us: call.t_us, ..Set::default() })?;
        set.put(Handle::EventSet(slot).number())
    }

    fn nvmlEventSetFree(call, set: usize) {
        lock(&call.engine.sets).take(slot(set)?).map(|_| ())
    }

    fn nvmlDeviceGetSupportedEventTypes(call, device: DeviceHandle, types: Out<'_, c_ulonglong>) {
        types.put(supported(call.gpu(device)?.model()))
    }

    fn nvmlDeviceRegisterEvents(call, device: DeviceHandle, types: c_ulonglong, set: usize) {
        let target = call.gpu(device)?;
        if types & !supported(target.model()) != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let registration = Registration { gpu: target.gpu, types, from_us: call.t_us };
        lock(&call.engine.sets).get(slot(set)?)?.registrations.push(registration);
        Ok(())
    }
}

/// Waits for an event of a set.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlEventSetWait_v2(
    set: usize,
    data: Out<'_, EventData>,
    timeout_ms: c_uint,
) -> c_uint {
    guard(move || {
        let event = wait("nvmlEventSetWait_v2", &[&set, &data, &timeout_ms], set, timeout_ms)?;
        data.put(event_data(event)?)
    })
}

/// The first version, which does not tell instances.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlEventSetWait(
    set: usize,
    data: Out<'_, EventDataV1>,
    timeout_ms: c_uint,
) -> c_uint {
    guard(move || {
        let event = wait("nvmlEventSetWait", &[&set, &data, &timeout_ms], set, timeout_ms)?;
        let EventData { device, event_type, data: what, .. } = event_data(event)?;
        data.put(EventDataV1 { device, event_type, data: what })
    })
}

fn slot(number: usize) -> Result<u16, Code> {
    match Handle::read(number)? {
        Handle::EventSet(slot) => Ok(slot),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

fn supported(model: &Model) -> u64 {
    let mig = if model.mig.is_some() { MIG_CHANGE } else { 0 };
    DOUBLE_BIT | XID | OTHERS | mig
}

fn wait(
    name: &str,
    arguments: &[&dyn Argument],
    set: usize,
    timeout_ms: c_uint,
) -> Result<DeviceEvent, Code> {
    let slot = slot(set)?;
    let call = begin(name, arguments)?;
    let host = &call.engine.host;
    let until_us = call.t_us.saturating_add(u64::from(timeout_ms) * 1000);
    loop {
        if !call.engine.is_current() {
            return Err(Code::UNINITIALIZED);
        }
        let now_us = host.now_us()?;
        let found = lock(&call.engine.sets).get(slot)?.next(&call, now_us.min(until_us));
        if let Some(event) = found {
            return Ok(event);
        }
        if now_us >= until_us {
            return Err(Code::TIMEOUT);
        }
        host.refresh_procfs(now_us)?;
        if host.is_real_time() {
            let next_us = host.world.events(now_us, until_us).first().map_or(until_us, |event| event.t_us);
            std::thread::sleep(Duration::from_micros((next_us - now_us).clamp(1, REAL_CLOCK_NAP_US)));
        } else {
            std::thread::sleep(FILE_CLOCK_NAP);
        }
    }
}

impl Set {
    /// The next event up to an instant, and hears of it.
    fn next(&mut self, call: &Call, until_us: u64) -> Option<DeviceEvent> {
        // Several events may stand at one instant, and that instant may have been the last one heard of.
        let events = call.world().events(self.heard_us.saturating_sub(1), until_us);
        let skipped = self.heard_then;
        let wanted = events.iter().enumerate().skip(skipped).find(|(_, event)| self.wants(call, event));
        let end = wanted.map_or(events.len(), |(place, _)| place + 1);
        if let Some(last) = events[..end].last() {
            self.heard_us = last.t_us;
            self.heard_then = events[..end].iter().filter(|event| event.t_us == last.t_us).count();
        }
        wanted.map(|(_, event)| *event)
    }

    fn wants(&self, call: &Call, event: &DeviceEvent) -> bool {
        let is_of_instance = event.gpu_instance.is_some();
        let may_hear = !is_of_instance || call.world().scenario().privilege == Privilege::Root;
        let of_set = self.registrations.iter().any(|registration| {
            registration.gpu == event.gpu
                && registration.types & event_type(event.kind) != 0
                && registration.from_us < event.t_us
        });
        may_hear && of_set
    }
}

fn event_type(kind: EventKind) -> u64 {
    match kind {
        EventKind::Xid(_) => XID,
        EventKind::DoubleBit => DOUBLE_BIT,
        EventKind::MigChange => MIG_CHANGE,
    }
}

fn event_data(event: DeviceEvent) -> Result<EventData, Code> {
    let gpu = u8::try_from(event.gpu).map_err(|_| Code::UNKNOWN)?;
    Ok(EventData {
        device: Handle::Gpu(gpu).number(),
        event_type: event_type(event.kind),
        data: if let EventKind::Xid(number) = event.kind { number } else { 0 },
        gpu_instance_id: event.gpu_instance.unwrap_or(c_uint::MAX),
        compute_instance_id: event.compute_instance.unwrap_or(c_uint::MAX),
    })
}
