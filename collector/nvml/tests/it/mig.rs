//! MIG instances.

use crate::sim::{NOTHING, h100, mig, on};
use gpuledger_nvml::{Absent, MigInstance, Placement, Scope};

const DRIVER: &str = "580.105.08";

fn ids(instances: &[MigInstance]) -> Vec<(u32, u32, u32)> {
    instances.iter().map(|it| (it.index, it.gpu_instance, it.compute_instance)).collect()
}

#[test]
fn an_instance_is_described_whole() {
    let timeline = "- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 4, gi: 2}}";
    on("mig::an_instance_is_described_whole", &mig(DRIVER, "h100-80", timeline), |sim| {
        let instances = sim.gpu().instances().expect("instances");
        let [it] = &instances[..] else { panic!("{instances:?}") };
        assert!(it.uuid.starts_with("MIG-"), "{}", it.uuid);
        assert_eq!((it.gpu_instance, it.compute_instance), (2, 0));
        assert_eq!(it.profile.as_deref(), Ok("3g.40gb"));
        assert_eq!(it.compute_profile, None);
        assert_eq!(it.placement, Ok(Placement { start: 4, size: 4 }));
        assert_eq!((it.compute_slices, it.multiprocessors), (Ok(3), Ok(60)));
        assert_eq!(it.memory_bytes, Ok(40_448 << 20));
    });
}

#[test]
fn holes_among_the_places_are_not_the_end() {
    let timeline = "
- {at: 0s, create_instance: {gpu: 0, profile: 1g.10gb, start: 0, gi: 9, compute: [{index: 1}]}}
- {at: 0s, create_instance: {gpu: 0, profile: 1g.10gb, start: 1, gi: 7, compute: [{index: 5}]}}";
    on("mig::holes_among_the_places_are_not_the_end", &mig(DRIVER, "h100-80", timeline), |sim| {
        let instances = sim.gpu().instances().expect("instances");
        assert_eq!(ids(&instances), [(5, 7, 0), (1, 9, 0)]);
    });
}

#[test]
fn a_part_of_a_gpu_instance_has_a_profile_of_its_own() {
    let timeline = "- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1, compute: [{slices: 1}, {slices: 2}]}}";
    on("mig::a_part_of_a_gpu_instance_has_a_profile_of_its_own", &mig(DRIVER, "a100-80", timeline), |sim| {
        let mut gpu = sim.gpu();
        let instances = gpu.instances().expect("instances");
        let parts: Vec<_> = instances.iter().map(|it| it.compute_profile.as_deref()).collect();
        assert_eq!(parts, [Some("1c.3g.40gb"), Some("2c.3g.40gb")]);
        assert!(instances.iter().all(|it| it.profile.as_deref() == Ok("3g.40gb")));
        assert!(instances.iter().all(|it| it.compute_slices == Ok(3)));
        assert_eq!(instances[0].placement, instances[1].placement);
    });
}

#[test]
fn without_privilege_a_place_is_found_where_only_one_is_possible() {
    let timeline = "
- {at: 0s, create_instance: {gpu: 0, profile: 4g.40gb, start: 0, gi: 1}}
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 4, gi: 2, compute: [{slices: 1}, {slices: 2}]}}
- {at: 10s, destroy_instance: {gpu: 0, gi: 1}}
- {at: 20s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}";
    let scenario = mig(DRIVER, "a100-80", timeline) + "privilege: user\n";
    on("mig::without_privilege_a_place_is_found_where_only_one_is_possible", &scenario, |sim| {
        let instances = sim.gpu().instances().expect("instances");
        let [four, three, other] = &instances[..] else { panic!("{instances:?}") };
        assert_eq!((four.profile.as_deref(), &four.compute_profile), (Ok("4g.40gb"), &None));
        assert_eq!(four.placement, Ok(Placement { start: 0, size: 4 }));
        assert_eq!(
            (three.profile.as_deref(), three.compute_profile.as_deref()),
            (Ok("3g.40gb"), Some("1c.3g.40gb"))
        );
        assert_eq!(three.placement, Ok(Placement { start: 4, size: 4 }), "the other takes the rest");
        assert_eq!(other.placement, three.placement, "of the same GPU instance");
        assert_eq!(three.memory_bytes.map(|bytes| bytes > 0), Ok(true));
        for (ms, devices) in [(15_000, 2), (25_000, 3)] {
            sim.at_ms(ms);
            let instances = sim.gpu().instances().expect("instances");
            assert_eq!(instances.len(), devices);
            assert!(instances.iter().all(|it| it.placement == Err(Absent::NoPermission)), "{instances:?}");
        }
    });
}

#[test]
fn drivers_without_names_of_profiles_name_the_devices() {
    let timeline = "- {at: 0s, create_instance: {gpu: 0, profile: 1g.10gb+me, start: 3, gi: 7}}";
    on(
        "mig::drivers_without_names_of_profiles_name_the_devices",
        &mig("470.42.01", "a100-80", timeline),
        |sim| {
            let instances = sim.gpu().instances().expect("instances");
            assert_eq!(instances[0].profile.as_deref(), Ok("1g.10gb+me"));
            assert_eq!(instances[0].placement, Ok(Placement { start: 3, size: 1 }));
        },
    );
}

#[test]
fn memory_is_that_of_the_gpu_instance() {
    let timeline = "
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1, compute: [{slices: 1}, {slices: 2}]}}
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 4, gi: 2}}
- {at: 0s, start: {pid: 10, on: [{gpu: 0, gi: 1, ci: 0, memory: 1GiB}]}}
- {at: 0s, start: {pid: 11, on: [{gpu: 0, gi: 1, ci: 1, memory: 2GiB}]}}";
    on("mig::memory_is_that_of_the_gpu_instance", &mig(DRIVER, "h100-80", timeline), |sim| {
        let mut gpu = sim.gpu();
        let unasked = gpu.memory(Scope::GpuInstance(1)).expect("memory");
        gpu.instances().expect("instances");
        let first = gpu.memory(Scope::GpuInstance(1)).expect("memory");
        assert_eq!(first, unasked);
        assert_eq!(first.used, 3 << 30);
        assert!(first.total <= 40_448 << 20);
        assert_eq!(gpu.memory(Scope::GpuInstance(2)).map(|memory| memory.used), Ok(0));
        assert_eq!(gpu.memory(Scope::GpuInstance(3)), Err(Absent::NotFound));
    });
}

#[test]
fn without_privilege_the_device_has_no_memory_and_its_instances_have() {
    let timeline = "- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}";
    let scenario = mig(DRIVER, "h100-80", timeline) + "privilege: user\n";
    on("mig::without_privilege_the_device_has_no_memory_and_its_instances_have", &scenario, |sim| {
        let gpu = sim.gpu();
        assert_eq!(gpu.memory(Scope::Device), Err(Absent::NoPermission));
        assert!(gpu.memory(Scope::GpuInstance(1)).is_ok());
    });
}

#[test]
fn a_reconfiguration_is_seen_by_a_device_that_is_open() {
    let timeline = "
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}
- {at: 10s, destroy_instance: {gpu: 0, gi: 1}}
- {at: 20s, create_instance: {gpu: 0, profile: 4g.40gb, start: 0, gi: 1}}";
    on("mig::a_reconfiguration_is_seen_by_a_device_that_is_open", &mig(DRIVER, "h100-80", timeline), |sim| {
        let mut gpu = sim.gpu();
        assert_eq!(gpu.instances().expect("instances")[0].profile.as_deref(), Ok("3g.40gb"));
        sim.at_ms(15_000);
        assert_eq!(gpu.memory(Scope::GpuInstance(1)), Err(Absent::NotFound));
        assert_eq!(gpu.instances(), Ok(vec![]));
        sim.at_ms(25_000);
        assert_eq!(gpu.instances().expect("instances")[0].profile.as_deref(), Ok("4g.40gb"));
        assert!(gpu.memory(Scope::GpuInstance(1)).is_ok());
    });
}

#[test]
fn an_instance_that_goes_while_they_are_read_is_left_out() {
    let timeline = "
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 0, gi: 1}}
- {at: 0s, create_instance: {gpu: 0, profile: 3g.40gb, start: 4, gi: 2}}
- {at: 0s, delay: {call: nvmlDeviceGetUUID, gi: 1, by: 2s}}
- {at: 1s, destroy_instance: {gpu: 0, gi: 1}}";
    on(
        "mig::an_instance_that_goes_while_they_are_read_is_left_out",
        &mig(DRIVER, "h100-80", timeline),
        |sim| {
            let instances = sim.gpu().instances().expect("instances");
            assert_eq!(instances.iter().map(|it| it.gpu_instance).collect::<Vec<_>>(), [2]);
        },
    );
}

#[test]
fn a_device_with_mig_off_has_no_instances() {
    on("mig::a_device_with_mig_off_has_no_instances", &h100(NOTHING), |sim| {
        assert_eq!(sim.gpu().instances(), Ok(vec![]));
    });
}
