//! The process lists.

mod row;

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, Slot};
use crate::library::Library;
use crate::list::list;
use crate::values::{ProcessKind, ProcessRow};
use nvml_wrapper_sys::bindings as sys;
use row::Raw;
use std::collections::BTreeMap;
use std::ffi::c_uint;

/// So many processes take one call; more take two.
const EXPECTED: c_uint = 32;

type List<T> = Slot<unsafe extern "C" fn(sys::nvmlDevice_t, *mut c_uint, *mut T) -> sys::nvmlReturn_t>;

/// One list in its three versions.
struct Versions<'a> {
    third: &'a List<sys::nvmlProcessInfo_t>,
    second: &'a List<sys::nvmlProcessInfo_v2_t>,
    first: &'a List<sys::nvmlProcessInfo_v1_t>,
}

/// The processes of a device or MIG device, each (pid, GPU instance, compute instance) once.
pub(crate) fn read(library: &Library, device: Handle<sys::nvmlDevice_st>) -> Reading<Vec<ProcessRow>> {
    let table = library.table()?;
    let long_records = library.driver().is_some_and(|driver| driver.has_long_process_records());
    let mps = Versions {
        third: &table.nvmlDeviceGetMPSComputeRunningProcesses_v3,
        second: &table.nvmlDeviceGetMPSComputeRunningProcesses_v2,
        first: &table.nvmlDeviceGetMPSComputeRunningProcesses,
    };
    let compute = Versions {
        third: &table.nvmlDeviceGetComputeRunningProcesses_v3,
        second: &table.nvmlDeviceGetComputeRunningProcesses_v2,
        first: &table.nvmlDeviceGetComputeRunningProcesses,
    };
    let graphics = Versions {
        third: &table.nvmlDeviceGetGraphicsRunningProcesses_v3,
        second: &table.nvmlDeviceGetGraphicsRunningProcesses_v2,
        first: &table.nvmlDeviceGetGraphicsRunningProcesses,
    };
    let rows = |versions, kind| believed(&one_list(&versions, device, long_records)?, kind);
    let compute = rows(compute, ProcessKind::Compute)?;
    let mps = where_there_is(rows(mps, ProcessKind::MpsClient))?;
    let graphics = where_there_is(rows(graphics, ProcessKind::Graphics))?;
    Ok(merged([mps, compute, graphics].concat()))
}

/// Every process once. Of the same one in several lists the first kind stands, with the most memory that any of them knows.
pub(crate) fn merged(rows: Vec<ProcessRow>) -> Vec<ProcessRow> {
    let mut once: BTreeMap<_, ProcessRow> = BTreeMap::new();
    for row in rows {
        let key = (row.pid, row.gpu_instance, row.compute_instance);
        let kept = once.entry(key).or_insert(row);
        kept.kind = kept.kind.min(row.kind);
        kept.memory_bytes = kept.memory_bytes.max(row.memory_bytes);
    }
    once.into_values().collect()
}

/// Not every model has an MPS or a graphics list, nor has every driver.
fn where_there_is(rows: Reading<Vec<ProcessRow>>) -> Reading<Vec<ProcessRow>> {
    match rows {
        Err(Absent::NotSupported | Absent::NoFunction) => Ok(Vec::new()),
        rows => rows,
    }
}

/// The newest version that the library has and this driver fills in rightly.
fn one_list(
    versions: &Versions<'_>,
    device: Handle<sys::nvmlDevice_st>,
    long_records: bool,
) -> Reading<Vec<Raw>> {
    let none = Err(Absent::NoFunction);
    let third = if long_records { none } else { rows(versions.third, device, row::NO_ROW) };
    third
        .or_else(|absent| only_if_missing(absent, || rows(versions.second, device, row::NO_ROW)))
        .or_else(|absent| only_if_missing(absent, || rows(versions.first, device, row::NO_ROW_V1)))
}

fn only_if_missing<T>(absent: Absent, older: impl FnOnce() -> Reading<T>) -> Reading<T> {
    if absent == Absent::NoFunction { older() } else { Err(absent) }
}

fn rows<T: Copy + Into<Raw>>(
    slot: &List<T>,
    device: Handle<sys::nvmlDevice_st>,
    empty: T,
) -> Reading<Vec<Raw>> {
    Ok(list(slot, device, empty, EXPECTED)?.into_iter().map(Into::into).collect())
}

fn believed(rows: &[Raw], kind: ProcessKind) -> Reading<Vec<ProcessRow>> {
    rows.iter().map(|raw| raw.believed(kind)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, kind: ProcessKind, memory_bytes: Option<u64>) -> ProcessRow {
        ProcessRow { pid, memory_bytes, kind, gpu_instance: None, compute_instance: None }
    }

    #[test]
    fn a_process_in_several_lists_is_named_once_with_the_memory_that_is_known() {
        let rows = merged(vec![
            row(7, ProcessKind::MpsClient, None),
            row(7, ProcessKind::Compute, Some(5)),
            row(9, ProcessKind::Compute, Some(2)),
            row(7, ProcessKind::Graphics, Some(3)),
        ]);
        assert_eq!(rows, [row(7, ProcessKind::MpsClient, Some(5)), row(9, ProcessKind::Compute, Some(2))]);
    }

    #[test]
    fn a_process_in_two_instances_stands_in_both() {
        let first = ProcessRow {
            gpu_instance: Some(1),
            compute_instance: Some(0),
            ..row(7, ProcessKind::Compute, None)
        };
        let second = ProcessRow { compute_instance: Some(1), ..first };
        assert_eq!(merged(vec![second, first]), [first, second]);
    }

    #[test]
    fn only_a_list_that_a_model_lacks_may_be_missing() {
        assert_eq!(where_there_is(Err(Absent::NotSupported)), Ok(vec![]));
        assert_eq!(where_there_is(Err(Absent::NoPermission)), Err(Absent::NoPermission));
        assert_eq!(where_there_is(Err(Absent::Lost)), Err(Absent::Lost));
    }
}
