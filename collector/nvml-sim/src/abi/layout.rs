//! The structures of `nvml.h`, checked for their size when this is compiled.
//!
//! Names and order of the fields are those of the header; most comments stand there.

use std::ffi::{c_char, c_double, c_int, c_uint, c_ulonglong, c_void};
use std::mem::size_of;

/// The version word of a structure: its size with the version in the top byte.
const fn version_word(size: usize, version: u32) -> c_uint {
    // Sizes here are below a hundred thousand, so the three lower bytes hold them.
    let [low, middle, high, ..] = size.to_le_bytes();
    c_uint::from_le_bytes([low, middle, high, version.to_le_bytes()[0]])
}

/// A fixed field of text, ended by a zero byte.
pub(super) fn text<const N: usize>(value: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (cell, byte) in field.iter_mut().take(N - 1).zip(value.bytes()) {
        *cell = c_char::from_ne_bytes([byte]);
    }
    field
}

/// A structure that the client may hand in uninitialised: plain numbers only, so that any bytes are a value of it.
///
/// # Safety
/// Every bit pattern must be valid.
pub(super) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ident = $size:literal;)*) => { $(
        const _: () = assert!(size_of::<$name>() == $size);
        // SAFETY: made of integers, floating point numbers, raw pointers and arrays of them; each bit pattern is valid.
        unsafe impl Plain for $name {}
    )* };
}

plain! {
    PciInfo = 68; Memory = 24; MemoryV2 = 40; Bar1Memory = 24; ProcessInfoV1 = 16; ProcessInfo = 24;
    ProcessDetailList = 24; ProcessDetail = 32; Attributes = 40; Utilization = 8; Sample = 16;
    ProcessUtilization = 32; ProcessesUtilization = 24; ProcessUtilizationLong = 40; AccountingStats = 56;
    AccountingCounters = 64; FieldValue = 40; EventData = 32; EventDataV1 = 24; Placement = 8;
    GpuInstanceProfile = 48; GpuInstanceProfileV2 = 152; GpuInstanceProfileV3 = 152; GpuInstanceInfo = 24;
    ComputeInstanceProfile = 36; ComputeInstanceProfileV2 = 136; ComputeInstanceProfileV3 = 140;
    ComputeInstanceInfo = 32; GpmMetric = 40; GpmHeader = 24; GpmSupport = 8; Temperature = 12;
}
// SAFETY: integers.
unsafe impl Plain for c_uint {}
// SAFETY: integers.
unsafe impl Plain for c_int {}
// SAFETY: integers.
unsafe impl Plain for c_ulonglong {}
// SAFETY: integers.
unsafe impl Plain for usize {}

/// `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PciInfo {
    pub(super) bus_id_legacy: [c_char; 16],
    pub(super) domain: c_uint,
    pub(super) bus: c_uint,
    pub(super) device: c_uint,
    pub(super) pci_device_id: c_uint,
    pub(super) pci_sub_system_id: c_uint,
    pub(super) bus_id: [c_char; 32],
}

/// `nvmlMemory_t`: what the driver keeps counts as used.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) total: c_ulonglong,
    pub(super) free: c_ulonglong,
    pub(super) used: c_ulonglong,
}

/// `nvmlMemory_v2_t`: what the driver keeps stands apart.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct MemoryV2 {
    pub(super) version: c_uint,
    pub(super) total: c_ulonglong,
    pub(super) reserved: c_ulonglong,
    pub(super) free: c_ulonglong,
    pub(super) used: c_ulonglong,
}

impl MemoryV2 {
    pub(super) const VERSION: c_uint = version_word(size_of::<Self>(), 2);
}

/// `nvmlBAR1Memory_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Bar1Memory {
    pub(super) total: c_ulonglong,
    pub(super) free: c_ulonglong,
    pub(super) used: c_ulonglong,
}

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessInfoV1 {
    pub(super) pid: c_uint,
    pub(super) used_gpu_memory: c_ulonglong,
}

/// `nvmlProcessInfo_v2_t`, which is also the record of the `_v3` lists.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessInfo {
    pub(super) pid: c_uint,
    pub(super) used_gpu_memory: c_ulonglong,
    pub(super) gpu_instance_id: c_uint,
    pub(super) compute_instance_id: c_uint,
}

/// `nvmlProcessDetail_v1_t`, which is also what drivers 535.43 to 535.86 write through the `_v3` lists.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessDetail {
    pub(super) pid: c_uint,
    pub(super) used_gpu_memory: c_ulonglong,
    pub(super) gpu_instance_id: c_uint,
    pub(super) compute_instance_id: c_uint,
    pub(super) used_gpu_cc_protected_memory: c_ulonglong,
}

/// `nvmlProcessDetailList_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessDetailList {
    pub(super) version: c_uint,
    pub(super) mode: c_uint,
    pub(super) entries: c_uint,
    pub(super) rows: *mut ProcessDetail,
}

impl ProcessDetailList {
    pub(super) const VERSION: c_uint = version_word(size_of::<Self>(), 1);
}

/// `nvmlDeviceAttributes_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Attributes {
    pub(super) multiprocessors: c_uint,
    pub(super) copy_engines: c_uint,
    pub(super) decoders: c_uint,
    pub(super) encoders: c_uint,
    pub(super) jpeg_engines: c_uint,
    pub(super) ofa_engines: c_uint,
    pub(super) gpu_instance_slices: c_uint,
    pub(super) compute_instance_slices: c_uint,
    pub(super) memory_size_mb: c_ulonglong,
}

/// `nvmlUtilization_t`, per cent.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Utilization {
    pub(super) gpu: c_uint,
    pub(super) memory: c_uint,
}

/// `nvmlSample_t`; the value is a union of eight bytes, and integers lie in its lower half.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) timestamp_us: c_ulonglong,
    pub(super) value: c_ulonglong,
}

/// `nvmlProcessUtilizationSample_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessUtilization {
    pub(super) pid: c_uint,
    pub(super) timestamp_us: c_ulonglong,
    pub(super) sm: c_uint,
    pub(super) memory: c_uint,
    pub(super) encoder: c_uint,
    pub(super) decoder: c_uint,
}

/// `nvmlProcessesUtilizationInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessesUtilization {
    pub(super) version: c_uint,
    pub(super) count: c_uint,
    pub(super) last_seen_us: c_ulonglong,
    pub(super) rows: *mut ProcessUtilizationLong,
}

impl ProcessesUtilization {
    pub(super) const VERSION: c_uint = version_word(size_of::<Self>(), 1);
}

/// `nvmlProcessUtilizationInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ProcessUtilizationLong {
    pub(super) timestamp_us: c_ulonglong,
    pub(super) pid: c_uint,
    pub(super) sm: c_uint,
    pub(super) memory: c_uint,
    pub(super) encoder: c_uint,
    pub(super) decoder: c_uint,
    pub(super) jpeg: c_uint,
    pub(super) ofa: c_uint,
}

/// `nvmlAccountingStats_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct AccountingStats {
    pub(super) gpu_percent: c_uint,
    pub(super) memory_percent: c_uint,
    pub(super) memory_bytes_max: c_ulonglong,
    pub(super) time_ms: c_ulonglong,
    pub(super) start_us: c_ulonglong,
    pub(super) is_running: c_uint,
    pub(super) reserved: [c_uint; 5],
}

/// `nvmlAccountingStats_v2_t`, which has no version word: the client writes the pid.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct AccountingCounters {
    pub(super) pid: c_uint,
    pub(super) is_running: c_uint,
    pub(super) gpu_percent: c_uint,
    pub(super) memory_percent: c_uint,
    pub(super) memory_bytes_max: c_ulonglong,
    pub(super) samples: c_uint,
    pub(super) gpu_percent_hundredths: c_ulonglong,
    pub(super) memory_percent_hundredths: c_ulonglong,
    pub(super) time_ms: c_ulonglong,
    pub(super) start_us: c_ulonglong,
}

/// `nvmlFieldValue_t`; integers lie in the lower bytes of the union.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FieldValue {
    pub(super) field: c_uint,
    pub(super) scope: c_uint,
    pub(super) timestamp_us: i64,
    pub(super) latency_us: i64,
    pub(super) value_type: c_uint,
    pub(super) code: c_uint,
    pub(super) value: c_ulonglong,
}

/// `nvmlEventData_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct EventData {
    pub(super) device: usize,
    pub(super) event_type: c_ulonglong,
    pub(super) data: c_ulonglong,
    pub(super) gpu_instance_id: c_uint,
    pub(super) compute_instance_id: c_uint,
}

/// What `nvmlEventSetWait` without a version writes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct EventDataV1 {
    pub(super) device: usize,
    pub(super) event_type: c_ulonglong,
    pub(super) data: c_ulonglong,
}

/// `nvmlGpuInstancePlacement_t` and `nvmlComputeInstancePlacement_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Placement {
    pub(super) start: c_uint,
    pub(super) size: c_uint,
}

/// `nvmlGpuInstanceProfileInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct GpuInstanceProfile {
    pub(super) id: c_uint,
    pub(super) is_p2p_supported: c_uint,
    pub(super) slices: c_uint,
    pub(super) instances: c_uint,
    pub(super) multiprocessors: c_uint,
    pub(super) copy_engines: c_uint,
    pub(super) decoders: c_uint,
    pub(super) encoders: c_uint,
    pub(super) jpeg_engines: c_uint,
    pub(super) ofa_engines: c_uint,
    pub(super) memory_size_mb: c_ulonglong,
}

/// `nvmlGpuInstanceProfileInfo_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct GpuInstanceProfileV2 {
    pub(super) version: c_uint,
    pub(super) id: c_uint,
    pub(super) is_p2p_supported: c_uint,
    pub(super) slices: c_uint,
    pub(super) instances: c_uint,
    pub(super) multiprocessors: c_uint,
    pub(super) copy_engines: c_uint,
    pub(super) decoders: c_uint,
    pub(super) encoders: c_uint,
    pub(super) jpeg_engines: c_uint,
    pub(super) ofa_engines: c_uint,
    pub(super) memory_size_mb: c_ulonglong,
    pub(super) name: [c_char; 96],
}

impl GpuInstanceProfileV2 {
    pub(super) const VERSION: c_uint = version_word(size_of::<Self>(), 2);
}

/// `nvmlGpuInstanceProfileInfo_v3_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct GpuInstanceProfileV3 {
    pub(super) version: c_uint,
    pub(super) id: c_uint,
    pub(super) slices: c_uint,
    pub(super) instances: c_uint,
    pub(super) multiprocessors: c_uint,
    pub(super) copy_engines: c_uint,
    pub(super) decoders: c_uint,
    pub(super) encoders: c_uint,
    pub(super) jpeg_engines: c_uint,
    pub(super) ofa_engines: c_uint,
    pub(super) memory_size_mb: c_ulonglong,
    pub(super) name: [c_char; 96],
    pub(super) capabilities: c_uint,
}

impl GpuInstanceProfileV3 {
    pub(super) const VERSION: c_uint = version_word(size_of::<Self>(), 3);
}

/// `nvmlGpuInstanceInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct GpuInstanceInfo {
    pub(super) device: usize,
    pub(super) id: c_uint,
    pub(super) profile_id: c_uint,
    pub(super) placement: Placement,
}

/// `nvmlComputeInstanceProfileInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ComputeInstanceProfile {
    pub(super) id: c_uint,
    pub(super) slices: c_uint,
    pub(super) instances: c_uint,
    pub(super) multiprocessors: c_uint,
    pub(super) engines: [c_uint; 5],
}

/// `nvmlComputeInstanceProfileInfo_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ComputeInstanceProfileV2 {
    pub(super) version: c_uint,
    pub(super) body: ComputeInstanceProfile,
    pub(super) name: [c_char; 96],
}

impl ComputeInstanceProfileV2 {
    pub(super) const VERSION: c_uint = version_word(size_of::<Self>(), 2);
}

/// `nvmlComputeInstanceProfileInfo_v3_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ComputeInstanceProfileV3 {
    pub(super) version: c_uint,
    pub(super) body: ComputeInstanceProfile,
    pub(super) name: [c_char; 96],
    pub(super) capabilities: c_uint,
}

impl ComputeInstanceProfileV3 {
    pub(super) const VERSION: c_uint = version_word(size_of::<Self>(), 3);
}

/// `nvmlComputeInstanceInfo_t` of `_v2`: with its place on the axis of compute slices.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ComputeInstanceInfo {
    pub(super) device: usize,
    pub(super) gpu_instance: usize,
    pub(super) id: c_uint,
    pub(super) profile_id: c_uint,
    pub(super) placement: Placement,
}

/// What `nvmlGpmMetricsGet` is given before its rows. The rows follow; how many lie there depends on the client's header, so only
/// `count` of them may be touched.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct GpmHeader {
    pub(super) version: c_uint,
    pub(super) count: c_uint,
    pub(super) first: usize,
    pub(super) second: usize,
}

/// `nvmlGpmMetric_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct GpmMetric {
    pub(super) id: c_uint,
    pub(super) code: c_uint,
    pub(super) value: c_double,
    pub(super) short_name: *const c_void,
    pub(super) long_name: *const c_void,
    pub(super) unit: *const c_void,
}

/// `nvmlGpmSupport_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct GpmSupport {
    pub(super) version: c_uint,
    pub(super) is_supported: c_uint,
}

/// `nvmlTemperature_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Temperature {
    pub(super) version: c_uint,
    pub(super) sensor: c_uint,
    pub(super) celsius: c_int,
}

impl Temperature {
    pub(super) const VERSION: c_uint = version_word(size_of::<Self>(), 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_words_are_those_of_the_header() {
        assert_eq!(MemoryV2::VERSION, 0x0200_0028);
        assert_eq!(ProcessDetailList::VERSION, 0x0100_0018);
        assert_eq!(ProcessesUtilization::VERSION, 0x0100_0018);
        assert_eq!(GpuInstanceProfileV2::VERSION, 0x0200_0098);
        assert_eq!(GpuInstanceProfileV3::VERSION, 0x0300_0098);
        assert_eq!(ComputeInstanceProfileV2::VERSION, 0x0200_0088);
        assert_eq!(ComputeInstanceProfileV3::VERSION, 0x0300_008c);
        assert_eq!(Temperature::VERSION, 0x0100_000c);
    }

    #[test]
    fn text_is_cut_so_that_its_end_fits() {
        let field: [c_char; 4] = text("abcdef");
        assert_eq!(field.map(|byte| byte.to_ne_bytes()[0]), *b"abc\0");
    }
}
