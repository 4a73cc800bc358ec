//! What NVML reports by itself: errors of the device, changes of its instances.

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, function, get, system, system_handle};
use crate::code::check;
use crate::identity;
use crate::library::Library;
use crate::values::{DeviceEvent, EventKind};
use nvml_wrapper_sys::bindings as sys;
use std::sync::Arc;
use std::time::Duration;

type Device = Handle<sys::nvmlDevice_st>;

const XID: u64 = 0x8;
const DOUBLE_BIT: u64 = 0x2;
const MIG_CHANGE: u64 = 0x100;
/// Retired memory, poison, a device that is not to be had, a recovery wanted.
const FAULTS: u64 = 0x400 | 0x800 | 0x1000 | 0x2000 | 0x4000 | 0x8000;
const WANTED: u64 = XID | DOUBLE_BIT | MIG_CHANGE | FAULTS;
/// What every driver knows that has events at all.
const OLDEST: u64 = XID | DOUBLE_BIT;

/// An event set with every device of the node that can report. Freed when dropped.
pub(crate) struct EventSet {
    library: Arc<Library>,
    raw: Handle<sys::nvmlEventSet_st>,
    registered: Vec<(Device, String)>,
    /// Devices that could not be registered so far: a lost one may come back.
    missing: Vec<u32>,
}

impl EventSet {
    /// Makes a set and registers all devices there are. MIG devices report through their parents.
    pub(crate) fn new(library: &Arc<Library>) -> Reading<Self> {
        let table = library.table()?;
        function(&table.nvmlEventSetFree)?;
        let devices = system(&table.nvmlDeviceGetCount_v2, 0)?;
        let raw = system(&table.nvmlEventSetCreate, std::ptr::null_mut()).and_then(Handle::given)?;
        Ok(Self {
            library: Arc::clone(library),
            raw,
            registered: Vec::new(),
            missing: (0..devices).collect(),
        })
    }

    /// The next event. None: nothing came in time.
    pub(crate) fn next(&mut self, timeout: Duration) -> Reading<Option<DeviceEvent>> {
        self.register_missing()?;
        let table = self.library.table()?;
        match self.wait(table, timeout) {
            Ok(data) => self.event(table, &data).map(Some),
            Err(Absent::TimedOut) => Ok(None),
            Err(absent) => Err(absent),
        }
    }

    fn register_missing(&mut self) -> Reading<()> {
        let mut why = Absent::NotSupported;
        for index in std::mem::take(&mut self.missing) {
            match self.register(index) {
                Ok(member) => self.registered.push(member),
                Err(Absent::NotSupported) => {}
                Err(absent) => {
                    self.missing.push(index);
                    why = absent;
                }
            }
        }
        if self.registered.is_empty() { Err(why) } else { Ok(()) }
    }

    fn register(&self, index: u32) -> Reading<(Device, String)> {
        let table = self.library.table()?;
        let device = system_handle(&table.nvmlDeviceGetHandleByIndex_v2, index)?;
        let uuid = identity::uuid(table, device)?;
        let wanted = match get(&table.nvmlDeviceGetSupportedEventTypes, device, 0) {
            Ok(supported) => supported & WANTED,
            Err(Absent::NoFunction) => OLDEST,
            Err(absent) => return Err(absent),
        };
        if wanted == 0 {
            return Err(Absent::NotSupported);
        }
        let call = function(&table.nvmlDeviceRegisterEvents)?;
        // SAFETY: function and handles are NVML's (see `calls`), and the set lives as long as `self`.
        check(unsafe { call(device.raw(), wanted, self.raw.raw()) })?;
        Ok((device, uuid))
    }

    /// The second version, since the first does not say the GPU instance.
    fn wait(&self, table: &sys::NvmlLib, timeout: Duration) -> Reading<sys::nvmlEventData_t> {
        let call = function(&table.nvmlEventSetWait_v2)?;
        let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        let mut data = NO_EVENT;
        // SAFETY: function and set are NVML's (see `calls`); it writes one record, which `data` has room for.
        let code = unsafe { call(self.raw.raw(), &raw mut data, milliseconds) };
        check(code).map(|()| data)
    }

    fn event(&self, table: &sys::NvmlLib, data: &sys::nvmlEventData_t) -> Reading<DeviceEvent> {
        let device = Handle::given(data.device)?;
        let known =
            self.registered.iter().find(|(member, _)| *member == device).map(|(_, uuid)| uuid.clone());
        let gpu = match known {
            Some(uuid) => uuid,
            None => identity::uuid(table, device)?,
        };
        let gpu_instance = (data.gpuInstanceId != u32::MAX).then_some(data.gpuInstanceId);
        Ok(DeviceEvent { gpu, gpu_instance, kind: kind(data.eventType, data.eventData) })
    }
}

impl Drop for EventSet {
    fn drop(&mut self) {
        // After the end of the library its sets are gone with it.
        let Ok(table) = self.library.table() else { return };
        let Ok(call) = function(&table.nvmlEventSetFree) else { return };
        // SAFETY: function and set are NVML's (see `calls`); `new` made the set, and nothing uses it after this. Nobody is left to tell
        // what it answers.
        unsafe { call(self.raw.raw()) };
    }
}

fn kind(event: u64, data: u64) -> EventKind {
    match event {
        XID => EventKind::Xid(data),
        MIG_CHANGE => EventKind::MigChange,
        DOUBLE_BIT => EventKind::DoubleBitError,
        other => EventKind::Other(other),
    }
}

const NO_EVENT: sys::nvmlEventData_t = sys::nvmlEventData_t {
    device: std::ptr::null_mut(),
    eventType: 0,
    eventData: 0,
    gpuInstanceId: u32::MAX,
    computeInstanceId: u32::MAX,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_the_header_are_told_apart() {
        assert_eq!(kind(u64::from(sys::nvmlEventTypeXidCriticalError), 79), EventKind::Xid(79));
        assert_eq!(kind(u64::from(sys::nvmlEventMigConfigChange), 0), EventKind::MigChange);
        assert_eq!(kind(u64::from(sys::nvmlEventTypeDoubleBitEccError), 0), EventKind::DoubleBitError);
        assert_eq!(kind(0x8000, 0), EventKind::Other(0x8000));
    }
}
