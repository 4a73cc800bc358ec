//! Loading, the end, and beginning anew.

use crate::sim::{NOTHING, Sim, h100, on};
use gpuledger_nvml::{Absent, Driver, LoadError, Nvml};
use std::path::Path;
use std::time::Duration;

#[test]
fn a_node_without_a_driver_is_told_what_to_do() {
    let error = Nvml::load(Some(Path::new("/nowhere/libnvidia-ml.so.1"))).err().expect("no library");
    assert!(error.to_string().starts_with("cannot load /nowhere/libnvidia-ml.so.1: "), "{error}");
    assert!(error.to_string().contains("install the NVIDIA driver"), "{error}");
    assert_eq!(error.absent(), None);
}

#[test]
fn another_library_is_not_taken_for_nvml() {
    let error = Nvml::load(Some(Path::new("libc.so.6"))).err().expect("not NVML");
    assert!(matches!(error, LoadError::NotNvml { .. }), "{error}");
}

#[test]
fn a_library_without_a_driver_behind_it_says_why() {
    let timeline = "
- {at: 0s, fail: {call: nvmlInit*, for: 1s, returns: DRIVER_NOT_LOADED}}
- {at: 1s, fail: {call: nvmlInit*, for: 1s, returns: LIB_RM_VERSION_MISMATCH}}";
    on("life::a_library_without_a_driver_behind_it_says_why", &h100(timeline), |sim| {
        let load = || Nvml::load(Some(&Sim::library()));
        let absent = load().err().and_then(|error| error.absent());
        assert_eq!(absent, Some(Absent::DriverNotLoaded));
        sim.at_ms(1_500);
        let absent = load().err().and_then(|error| error.absent());
        assert_eq!(absent, Some(Absent::DriverMismatch));
        sim.at_ms(2_500);
        assert!(load().is_ok());
    });
}

#[test]
fn after_the_end_old_devices_answer_nothing_and_a_new_library_does() {
    on("life::after_the_end_old_devices_answer_nothing_and_a_new_library_does", &h100(NOTHING), |sim| {
        let old = sim.nvml();
        let mut gpu = old.gpu(0).expect("a GPU");
        assert_eq!(gpu.gpm_mean(gpuledger_nvml::Scope::Device, 1, sim), Ok(None));
        old.next_event(Duration::ZERO).expect("events");
        assert_eq!(old.shutdown(), Ok(()));
        assert_eq!(old.shutdown(), Ok(()));
        let new = sim.nvml();
        assert_eq!(gpu.power_mw(), Err(Absent::Uninitialized));
        assert_eq!(old.gpu_count(), Err(Absent::Uninitialized));
        assert_eq!(old.next_event(Duration::ZERO), Err(Absent::Uninitialized));
        drop(gpu);
        assert_eq!(new.gpu_count(), Ok(1));
        assert!(new.gpu(0).expect("a GPU").power_mw().is_ok());
    });
}

#[test]
fn a_device_outlives_the_driver_it_came_from() {
    on("life::a_device_outlives_the_driver_it_came_from", &h100(NOTHING), |sim| {
        let gpu = sim.gpu();
        assert!(gpu.power_mw().is_ok());
        drop(gpu);
        assert!(Sim::calls().contains("nvmlShutdown"));
    });
}

#[test]
fn a_reloaded_driver_asks_for_a_new_library() {
    let timeline = "- {at: 10s, reload_driver: {version: 590.44.01, down: 5s}}";
    on("life::a_reloaded_driver_asks_for_a_new_library", &h100(timeline), |sim| {
        let nvml = sim.nvml();
        let gpu = nvml.gpu(0).expect("a GPU");
        sim.at_ms(20_000);
        let absent = gpu.power_mw().expect_err("of another driver");
        assert!(absent.needs_new_library(), "{absent}");
        drop(gpu);
        nvml.shutdown().ok();
        drop(nvml);
        assert_eq!(sim.nvml().versions().map(|versions| versions.driver), Ok("590.44.01".to_owned()));
    });
}
