//! The question about two samples.

use crate::absent::{Absent, Reading};
use crate::calls::{Handle, function};
use crate::code::check;
use crate::share::from_percent;
use crate::values::Ppm;
use crate::versions::GPM;
use nvml_wrapper_sys::bindings as sys;
use std::ffi::c_uint;

type Sample = Handle<sys::nvmlGpmSample_st>;

const SM_UTIL: c_uint = sys::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL;

const NO_METRIC: sys::nvmlGpmMetric_t = sys::nvmlGpmMetric_t {
    metricId: 0,
    nvmlReturn: 0,
    value: 0.0,
    metricInfo: sys::nvmlGpmMetric_t__bindgen_ty_1 {
        shortName: std::ptr::null_mut(),
        longName: std::ptr::null_mut(),
        unit: std::ptr::null_mut(),
    },
};

/// The array of metrics has another length in each header (98, 210, 333, 477 so far) under one version of the structure. A library that
/// believes in a longer one than ours finds room for it.
#[repr(C)]
struct Roomy {
    asked: sys::nvmlGpmMetricsGet_t,
    room: [sys::nvmlGpmMetric_t; 302],
}

/// Share of the time between two samples in which the multiprocessors were busy. One metric a call: with several, bindings of one header read
/// wrong values from drivers of another (datadog-agent issues 47669, 52019).
pub(super) fn sm_active(table: &sys::NvmlLib, before: Sample, after: Sample) -> Reading<Ppm> {
    let call = function(&table.nvmlGpmMetricsGet)?;
    let mut question = Roomy {
        asked: sys::nvmlGpmMetricsGet_t {
            version: GPM,
            numMetrics: 1,
            sample1: before.raw(),
            sample2: after.raw(),
            metrics: [NO_METRIC; 210],
        },
        room: [NO_METRIC; 302],
    };
    question.asked.metrics[0].metricId = SM_UTIL;
    // SAFETY: function and samples are NVML's (see `calls`); the structure is the first thing in `question`, with more room after it than
    // any header's.
    let code = unsafe { call((&raw mut question).cast()) };
    check(code)?;
    answer(&question.asked.metrics[0])
}

/// Only the answer to what was asked counts.
fn answer(metric: &sys::nvmlGpmMetric_t) -> Reading<Ppm> {
    if metric.metricId != SM_UTIL {
        return Err(Absent::Implausible);
    }
    check(metric.nvmlReturn)?;
    from_percent(metric.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(id: c_uint, code: c_uint, value: f64) -> sys::nvmlGpmMetric_t {
        sys::nvmlGpmMetric_t { metricId: id, nvmlReturn: code, value, ..NO_METRIC }
    }

    #[test]
    fn the_answer_to_another_question_is_not_believed() {
        assert_eq!(answer(&metric(SM_UTIL, 0, 50.0)), Ok(Ppm(500_000)));
        assert_eq!(answer(&metric(3, 0, 50.0)), Err(Absent::Implausible));
    }

    #[test]
    fn the_metric_has_a_return_code_of_its_own() {
        assert_eq!(answer(&metric(SM_UTIL, 3, 0.0)), Err(Absent::NotSupported));
        assert_eq!(answer(&metric(SM_UTIL, 0, f64::NAN)), Err(Absent::Implausible));
    }

    #[test]
    fn there_is_room_for_the_longest_header() {
        assert!(size_of::<Roomy>() >= 19_104);
    }
}
