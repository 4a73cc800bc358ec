//! Performance counters (GPM): two samples, and the mean between them.

use super::argument::{Argument, GpuInstanceId, InOut, Out, Words};
use super::call::{Call, begin, guard};
use super::code::Code;
use super::engine::lock;
use super::handle::{DeviceHandle, Handle};
use super::layout::{GpmHeader, GpmMetric, GpmSupport};
use super::since;
use super::slots::Slots;
use crate::world::Track;
use std::ffi::c_uint;
use std::fmt::{self, Write};

/// The only version of both structures.
const VERSION: c_uint = 1;
/// Below this distance of two samples, in microseconds, the library has no data.
const SHORTEST_US: u64 = 100_000;

/// Samples that clients hold; one that was not taken yet is none.
pub(super) type Samples = Slots<Option<Taken>>;

/// A sample: the timeline's integrals are exact, so where and when is all there is to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    gpu: usize,
    /// The id of a GPU instance and which of those that ever had it.
    instance: Option<(u32, usize)>,
    t_us: u64,
}

export! {
    fn nvmlGpmQueryDeviceSupport(call, device: DeviceHandle, support: InOut<'_, GpmSupport>) {
        let support = support.get()?;
        if support.version != VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        support.is_supported = call.target(device)?.model().has_gpm().into();
        Ok(())
    }

    fn nvmlGpmSampleAlloc(call, sample: Out<'_, usize>) {
        let slot = lock(&call.engine.samples).put(None)?;
        sample.put(Handle::GpmSample(slot).number())
    }

    fn nvmlGpmSampleFree(call, sample: usize) {
        lock(&call.engine.samples).take(slot(sample)?).map(|_| ())
    }

    fn nvmlGpmSampleGet(call, device: DeviceHandle, sample: usize) {
        let target = call.target(device)?;
        let compute = target.compute_instance().map(|index| call.world().compute_instance(index));
        if compute.is_some() && !since::samples_gpm_of_mig_devices(call.release) {
            return Err(Code::NOT_SUPPORTED);
        }
        let instance = compute.map(|compute| {
            (call.world().gpu_instance(compute.gpu_instance).id, compute.gpu_instance)
        });
        take(call, sample, target.gpu, instance)
    }

    fn nvmlGpmMigSampleGet(call, device: DeviceHandle, gpu_instance: GpuInstanceId, sample: usize) {
        let target = call.gpu(device)?;
        if !target.state.is_mig_on() {
            return Err(Code::NOT_SUPPORTED);
        }
        let (index, instance) = target.gpu_instance(gpu_instance.0).ok_or(Code::NOT_FOUND)?;
        take(call, sample, target.gpu, Some((instance.id, index)))
    }

    fn nvmlGpmQueryIfStreamingEnabled(call, device: DeviceHandle, state: Out<'_, c_uint>) {
        if call.target(device)?.model().has_gpm() { state.put(0) } else { Err(Code::NOT_SUPPORTED) }
    }

    fn nvmlGpmSetStreamingEnabled(call, device: DeviceHandle, _state: c_uint) {
        call.needs_root()?;
        if call.target(device)?.model().has_gpm() { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
    }
}

/// Means between two samples. What lies after the rows asked for differs by the client's header and is not touched.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlGpmMetricsGet(mut query: Query) -> c_uint {
    guard(move || {
        let call = begin("nvmlGpmMetricsGet", &[&query])?;
        let GpmHeader { version, first, second, .. } = query.header()?;
        if version != VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let (first, second) = {
            let mut samples = lock(&call.engine.samples);
            (*samples.get(slot(first)?)?, *samples.get(slot(second)?)?)
        };
        let (Some(first), Some(second)) = (first, second) else { return Err(Code::INVALID_ARGUMENT) };
        let id = |sample: Taken| sample.instance.map(|(id, _)| id);
        if (first.gpu, id(first)) != (second.gpu, id(second)) || second.t_us < first.t_us {
            return Err(Code::INVALID_ARGUMENT);
        }
        let echo = call.world().wrong_echo(first.gpu, call.t_us);
        for metric in query.metrics()? {
            let answer = percent(&call, first, second, metric.id);
            metric.code = answer.map_or_else(|code| code.0, |_| 0);
            metric.value = answer.unwrap_or(0.0);
            metric.id = echo.unwrap_or(metric.id);
        }
        Ok(())
    })
}

fn slot(number: usize) -> Result<u16, Code> {
    match Handle::read(number)? {
        Handle::GpmSample(slot) => Ok(slot),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

fn take(call: &Call, sample: usize, gpu: usize, instance: Option<(u32, usize)>) -> Result<(), Code> {
    if !call.world().model(gpu).has_gpm() {
        return Err(Code::NOT_SUPPORTED);
    }
    *lock(&call.engine.samples).get(slot(sample)?)? = Some(Taken { gpu, instance, t_us: call.t_us });
    Ok(())
}

/// The value of a metric. Only how busy the multiprocessors are comes from the timeline; what follows from it is made up, the rest is zero.
fn percent(call: &Call, first: Taken, second: Taken, metric: c_uint) -> Result<f64, Code> {
    let length_us = second.t_us - first.t_us;
    if length_us < SHORTEST_US {
        return Err(Code::NO_DATA);
    }
    let busy = f64::from(mean_ppm(call, first, second, length_us)) / 10_000.0;
    match metric {
        1 | 2 => Ok(busy),
        3 | 5 | 10 => Ok(busy / 2.0),
        4 | 6..=9 | 11..=13 | 20 | 21 | 30..=37 | 40..=54 | 60..=97 => Ok(0.0),
        _ => Err(Code::NOT_SUPPORTED),
    }
}

/// Mean between two samples in parts per million. Where another instance took the id in between, the counters of both run into one value: it looks
/// like any other and is nobody's.
fn mean_ppm(call: &Call, first: Taken, second: Taken, length_us: u64) -> u32 {
    let world = call.world();
    let between = |track: &Track| track.between(first.t_us, second.t_us);
    let sum = match (first.instance, second.instance) {
        (Some((_, before)), Some((_, after))) if before != after => {
            between(&world.gpu_instance(before).busy) + between(&world.gpu_instance(after).busy)
        }
        (_, Some((_, index))) => between(&world.gpu_instance(index).busy),
        _ => between(world.device_busy(first.gpu)),
    };
    let length = u128::from(length_us);
    u32::try_from((sum + length / 2) / length).unwrap_or(u32::MAX)
}

/// What `nvmlGpmMetricsGet` is given: a header, and rows of 40 bytes after it.
#[repr(transparent)]
pub(crate) struct Query(*mut GpmHeader);

impl Query {
    fn header(&self) -> Result<GpmHeader, Code> {
        if self.0.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: not null, and the caller of the C function vouches for a header here; each bit pattern is one.
        Ok(unsafe { self.0.read() })
    }

    fn metrics(&mut self) -> Result<&mut [GpmMetric], Code> {
        let count = usize::try_from(self.header()?.count).map_err(|_| Code::INVALID_ARGUMENT)?;
        let first = self.0.wrapping_add(1).cast::<GpmMetric>();
        // SAFETY: the caller of the C function vouches for that many rows after the header; each bit pattern is one.
        Ok(unsafe { std::slice::from_raw_parts_mut(first, count) })
    }

    fn ids(&self) -> Vec<c_uint> {
        Self(self.0).metrics().map_or_else(|_| Vec::new(), |rows| rows.iter().map(|row| row.id).collect())
    }
}

impl Argument for Query {
    fn record(&self, to: &mut String) -> fmt::Result {
        let Ok(header) = self.header() else { return to.write_char('-') };
        let halves = |number: usize| (number & 0xffff_ffff, number >> 32);
        let ((first_low, first_high), (second_low, second_high)) =
            (halves(header.first), halves(header.second));
        write!(to, "[{:x},{:x}", header.version, header.count)?;
        write!(to, ",{first_low:x},{first_high:x},{second_low:x},{second_high:x}")?;
        for id in self.ids() {
            write!(to, ",{id:x},0,0,0,0,0,0,0,0,0")?;
        }
        to.write_char(']')
    }
}

impl Words for GpmSupport {
    fn words(&self, to: &mut String) -> fmt::Result {
        write!(to, "{:x}", self.version)
    }
}
