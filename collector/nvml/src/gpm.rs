//! Means by performance counters (GPM): two samples of a scope, and one question about the time between them.

mod question;

use crate::absent::{Absent, Reading};
use crate::api::Clock;
use crate::calls::{Handle, function, get, system};
use crate::code::check;
use crate::library::Library;
use crate::values::{GpmMean, Scope};
use crate::versions::GPM;
use nvml_wrapper_sys::bindings as sys;
use std::collections::BTreeMap;
use std::sync::Arc;

type Device = Handle<sys::nvmlDevice_st>;

/// The header wants two samples at least as far apart.
const APART_US: u64 = 100_000;

/// Whether the device has the counters.
pub(crate) fn is_supported(table: &sys::NvmlLib, device: Device) -> Reading<bool> {
    let start = sys::nvmlGpmSupport_t { version: GPM, isSupportedDevice: 0 };
    match get(&table.nvmlGpmQueryDeviceSupport, device, start) {
        Ok(support) => Ok(support.isSupportedDevice != 0),
        Err(Absent::NotSupported) => Ok(false),
        Err(absent) => Err(absent),
    }
}

/// The last sample of each scope.
#[derive(Default)]
pub(crate) struct Gpm {
    last: BTreeMap<Scope, Taken>,
    /// The sample before the last one, to be filled anew.
    spare: Option<Sample>,
}

struct Taken {
    sample: Sample,
    at_us: u64,
    generation: u64,
}

impl Gpm {
    /// See [`crate::Gpu::gpm_mean`].
    pub(crate) fn mean(
        &mut self,
        library: &Arc<Library>,
        device: Device,
        scope: Scope,
        generation: u64,
        clock: &dyn Clock,
    ) -> Reading<Option<GpmMean>> {
        let before = self.last.get(&scope).filter(|taken| taken.generation == generation);
        if before.is_some_and(|taken| clock.monotonic_us().saturating_sub(taken.at_us) < APART_US) {
            return Err(Absent::NotYet);
        }
        // Taken out first: whatever fails below, the next sample is a first one.
        let before = self.last.remove(&scope);
        let taken = self.take(library, device, scope, generation, clock)?;
        let Some(before) = before else {
            self.last.insert(scope, taken);
            return Ok(None);
        };
        let mean =
            (before.generation == generation).then(|| mean_between(library, &before, &taken)).transpose()?;
        self.last.insert(scope, taken);
        self.spare = Some(before.sample);
        Ok(mean)
    }

    /// Forgets the samples of GPU instances that are gone.
    pub(crate) fn keep_instances(&mut self, live: impl Fn(u32) -> bool) {
        self.last.retain(|scope, _| match scope {
            Scope::Device => true,
            Scope::GpuInstance(id) => live(*id),
        });
    }

    fn take(
        &mut self,
        library: &Arc<Library>,
        device: Device,
        scope: Scope,
        generation: u64,
        clock: &dyn Clock,
    ) -> Reading<Taken> {
        let sample = match self.spare.take() {
            Some(spare) => spare,
            None => Sample::new(library)?,
        };
        sample.fill(library.table()?, device, scope)?;
        Ok(Taken { sample, at_us: clock.monotonic_us(), generation })
    }
}

fn mean_between(library: &Library, before: &Taken, after: &Taken) -> Reading<GpmMean> {
    let sm_active = question::sm_active(library.table()?, before.sample.raw, after.sample.raw)?;
    Ok(GpmMean { from_us: before.at_us, to_us: after.at_us, sm_active })
}

/// Room for a sample, NVML's own. Given back when dropped.
struct Sample {
    library: Arc<Library>,
    raw: Handle<sys::nvmlGpmSample_st>,
}

impl Sample {
    /// None from a library that could not take it back.
    fn new(library: &Arc<Library>) -> Reading<Self> {
        let table = library.table()?;
        function(&table.nvmlGpmSampleFree)?;
        let raw = system(&table.nvmlGpmSampleAlloc, std::ptr::null_mut()).and_then(Handle::given)?;
        Ok(Self { library: Arc::clone(library), raw })
    }

    fn fill(&self, table: &sys::NvmlLib, device: Device, scope: Scope) -> Reading<()> {
        let code = match scope {
            Scope::Device => {
                let call = function(&table.nvmlGpmSampleGet)?;
                // SAFETY: function and handles are NVML's (see `calls`), and the sample lives as long as `self`.
                unsafe { call(device.raw(), self.raw.raw()) }
            }
            Scope::GpuInstance(id) => {
                let call = function(&table.nvmlGpmMigSampleGet)?;
                // SAFETY: as above; an id that no instance has is an error of NVML's.
                unsafe { call(device.raw(), id, self.raw.raw()) }
            }
        };
        check(code)
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        // After the end of the library its samples are gone with it.
        let Ok(table) = self.library.table() else { return };
        let Ok(call) = function(&table.nvmlGpmSampleFree) else { return };
        // SAFETY: function and sample are NVML's (see `calls`); `new` made the sample, and nothing uses it after this. Nobody is left to
        // tell what it answers.
        unsafe { call(self.raw.raw()) };
    }
}
