//! Lists of processes, in all the versions there were.
//!
//! The protocol of all of them: with no room the call says how many there are and that the size is insufficient, or succeeds where there are none.

use super::argument::{InOut, Rows, Words};
use super::call::Call;
use super::code::Code;
use super::handle::{DeviceHandle, count};
use super::layout::{ProcessDetail, ProcessDetailList, ProcessInfo, ProcessInfoV1};
use super::target::Target;
use crate::scenario::ContextKind;
use crate::world::ContextState;
use std::ffi::c_uint;
use std::fmt::{self, Write};

/// What NVML says where it does not know, or where there is no instance.
const NO_MEMORY: u64 = u64::MAX;
const NO_INSTANCE: c_uint = c_uint::MAX;

/// Which contexts a list names.
#[derive(Clone, Copy)]
enum List {
    Compute,
    Graphics,
    Mps,
    All,
}

export! {
    fn nvmlDeviceGetComputeRunningProcesses(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfoV1>) {
        answer(call, device, List::Compute, number, rows)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfo>) {
        answer(call, device, List::Compute, number, rows)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfo>) {
        answer_v3(call, device, List::Compute, number, rows)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfoV1>) {
        answer(call, device, List::Graphics, number, rows)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v2(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfo>) {
        answer(call, device, List::Graphics, number, rows)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfo>) {
        answer_v3(call, device, List::Graphics, number, rows)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfoV1>) {
        answer(call, device, List::Mps, number, rows)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfo>) {
        answer(call, device, List::Mps, number, rows)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(call, device: DeviceHandle, number: InOut<'_, c_uint>, rows: Rows<ProcessInfo>) {
        answer_v3(call, device, List::Mps, number, rows)
    }

    fn nvmlDeviceGetRunningProcessDetailList(call, device: DeviceHandle, list: InOut<'_, ProcessDetailList>) {
        let list = list.get()?;
        if list.version != ProcessDetailList::VERSION {
            return Err(Code::ARGUMENT_VERSION_MISMATCH);
        }
        let target = call.target(device)?;
        if target.model().compute_capability.0 < 9 {
            return Err(Code::NOT_SUPPORTED);
        }
        let mode = match list.mode {
            0 => List::Compute,
            1 => List::Graphics,
            2 => List::Mps,
            3 => List::All,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        let rows: Vec<ProcessDetail> = rows_of(call, &target, mode)?;
        fill(&mut list.entries, Rows::at(list.rows), &rows)
    }
}

/// Makes a row of one version.
trait FromRow {
    fn from_row(pid: u32, memory: u64, gpu_instance: u32, compute_instance: u32) -> Self;
}

impl FromRow for ProcessInfoV1 {
    fn from_row(pid: u32, used_gpu_memory: u64, _: u32, _: u32) -> Self {
        Self { pid, used_gpu_memory }
    }
}

impl FromRow for ProcessInfo {
    fn from_row(pid: u32, used_gpu_memory: u64, gpu_instance_id: u32, compute_instance_id: u32) -> Self {
        Self { pid, used_gpu_memory, gpu_instance_id, compute_instance_id }
    }
}

impl FromRow for ProcessDetail {
    fn from_row(pid: u32, used_gpu_memory: u64, gpu_instance_id: u32, compute_instance_id: u32) -> Self {
        Self { pid, used_gpu_memory, gpu_instance_id, compute_instance_id, used_gpu_cc_protected_memory: 0 }
    }
}

fn answer<T: FromRow + super::layout::Plain>(
    call: &Call,
    device: DeviceHandle,
    list: List,
    number: InOut<'_, c_uint>,
    rows: Rows<T>,
) -> Result<(), Code> {
    let found: Vec<T> = rows_of(call, &call.target(device)?, list)?;
    fill(number.get()?, rows, &found)
}

/// The third version, whose record had other lengths in some drivers without saying so.
fn answer_v3(
    call: &Call,
    device: DeviceHandle,
    list: List,
    number: InOut<'_, c_uint>,
    rows: Rows<ProcessInfo>,
) -> Result<(), Code> {
    match call.driver()?.driver.record_bytes() {
        16 => answer_as::<ProcessInfoV1>(call, device, list, number, rows),
        32 => answer_as::<ProcessDetail>(call, device, list, number, rows),
        _ => answer(call, device, list, number, rows),
    }
}

/// Writes rows of another length than the client has room for. A real driver goes beyond the end of the room; here what does not fit is left out,
/// so that rows are garbled and the client's other memory stays whole.
fn answer_as<T: FromRow + super::layout::Plain>(
    call: &Call,
    device: DeviceHandle,
    list: List,
    number: InOut<'_, c_uint>,
    rows: Rows<ProcessInfo>,
) -> Result<(), Code> {
    let found: Vec<T> = rows_of(call, &call.target(device)?, list)?;
    let number = number.get()?;
    let room = *number;
    *number = count(found.len());
    if rows.is_null() || room < *number {
        return if found.is_empty() { Ok(()) } else { Err(Code::INSUFFICIENT_SIZE) };
    }
    let bytes = usize::try_from(room).unwrap_or(0).saturating_mul(size_of::<ProcessInfo>());
    let whole = found.len().min(bytes / size_of::<T>());
    rows.cast::<T>().put(room, &found[..whole])
}

fn fill<T: super::layout::Plain>(number: &mut c_uint, rows: Rows<T>, found: &[T]) -> Result<(), Code> {
    let room = if rows.is_null() { 0 } else { *number };
    *number = count(found.len());
    rows.put(room, found)
}

fn rows_of<T: FromRow>(call: &Call, target: &Target<'_>, list: List) -> Result<Vec<T>, Code> {
    if target.state.is_mig_on() && target.instance().is_none() {
        call.needs_root()?;
    }
    Ok(target.state.contexts.iter().filter_map(|context| row(call, target, list, context)).collect())
}

fn row<T: FromRow>(call: &Call, target: &Target<'_>, list: List, state: &ContextState) -> Option<T> {
    let world = call.world();
    let context = world.context(state.context);
    let is_elsewhere =
        target.compute_instance().is_some() && context.compute_instance != target.compute_instance();
    if context.is_hidden || is_elsewhere || !names(list, context.kind) {
        return None;
    }
    let pid = world.visible_pid(world.process(context.process))?;
    let memory = if state.is_memory_unknown { NO_MEMORY } else { state.memory_bytes };
    let gpu_instance = context.gpu_instance.map_or(NO_INSTANCE, |index| world.gpu_instance(index).id);
    let compute = context.compute_instance.map_or(NO_INSTANCE, |index| world.compute_instance(index).id);
    Some(T::from_row(pid, memory, gpu_instance, compute))
}

fn names(list: List, kind: ContextKind) -> bool {
    match list {
        List::Compute => !matches!(kind, ContextKind::Graphics),
        List::Graphics => matches!(kind, ContextKind::Graphics),
        List::Mps => matches!(kind, ContextKind::MpsClient),
        List::All => true,
    }
}

impl Words for ProcessDetailList {
    fn words(&self, to: &mut String) -> fmt::Result {
        write!(to, "{:x},{:x},{:x},0,", self.version, self.mode, self.entries)?;
        to.write_str(if self.rows.is_null() { "0,0" } else { "@" })
    }
}
