//! Version words of structures: the size in the low bytes, the version in the top one.

/// `nvmlMemory_v2_t`.
pub(crate) const MEMORY_V2: u32 = 0x0200_0028;
/// `nvmlGpuInstanceProfileInfo_v2_t`.
pub(crate) const PROFILE_V2: u32 = 0x0200_0098;
/// `nvmlGpmSupport_t` and `nvmlGpmMetricsGet_t` say a plain 1, without their size (go-nvml issue 176).
pub(crate) const GPM: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::StatsV2;
    use nvml_wrapper_sys::bindings as sys;

    #[test]
    fn version_words_carry_the_size_of_their_structure() {
        let size = |word: u32| usize::try_from(word & 0x00ff_ffff).expect("three bytes");
        assert_eq!(size(MEMORY_V2), size_of::<sys::nvmlMemory_v2_t>());
        assert_eq!(size(PROFILE_V2), size_of::<sys::nvmlGpuInstanceProfileInfo_v2_t>());
    }

    #[test]
    fn structures_have_the_sizes_of_the_header() {
        assert_eq!(size_of::<sys::nvmlMemory_t>(), 24);
        assert_eq!(size_of::<sys::nvmlProcessInfo_t>(), 24);
        assert_eq!(size_of::<sys::nvmlProcessInfo_v2_t>(), 24);
        assert_eq!(size_of::<sys::nvmlProcessInfo_v1_t>(), 16);
        assert_eq!(size_of::<sys::nvmlProcessUtilizationSample_t>(), 32);
        assert_eq!(size_of::<sys::nvmlSample_t>(), 16);
        assert_eq!(size_of::<sys::nvmlFieldValue_t>(), 40);
        assert_eq!(size_of::<sys::nvmlAccountingStats_t>(), 56);
        assert_eq!(size_of::<StatsV2>(), 64);
        assert_eq!(size_of::<sys::nvmlGpuInstanceInfo_t>(), 24);
        assert_eq!(size_of::<sys::nvmlDeviceAttributes_t>(), 40);
        assert_eq!(size_of::<sys::nvmlEventData_t>(), 32);
        assert_eq!(size_of::<sys::nvmlGpmMetric_t>(), 40);
        assert_eq!(size_of::<sys::nvmlPciInfo_t>(), 68);
    }
}
