use crate::sim::*;

const MIB: u64 = 1 << 20;

fn scenario(privilege: &str) -> String {
    format!(
        "{HEAD}privilege: {privilege}\ngpus:\n- {{uuid: GPU-1, model: a100-80}}\n- {{uuid: GPU-2, model: h100-80, mig: on}}\n\
         - {{uuid: GPU-3, model: gb10, unreadable: {{nvmlDeviceGetMemoryInfo_v2: NOT_SUPPORTED}}}}\ntimeline:\n\
         - {{at: 0s, create_instance: {{gpu: 1, profile: 3g.40gb, compute: [{{slices: 1}}, {{slices: 2}}]}}}}\n\
         - {{at: 0s, start: {{pid: 7, on: [{{gpu: 0, memory: 1GiB}}, {{gpu: 1, gi: 1, ci: 0, memory: 2GiB}}]}}}}\n"
    )
}

fn v2(sim: &Sim, device: usize) -> Result<[u64; 4], u32> {
    let mut memory = [0x0200_0028_u64, 0, 0, 0, 0];
    match sim.call("nvmlDeviceGetMemoryInfo_v2", [device, address(&mut memory)]) {
        SUCCESS => Ok([memory[1], memory[2], memory[3], memory[4]]),
        code => Err(code),
    }
}

#[test]
fn the_first_version_counts_what_the_driver_keeps_as_used_and_the_second_does_not() {
    sim(&scenario("root"), |sim| {
        sim.init();
        let mut first = [0_u64; 3];
        sim.ok("nvmlDeviceGetMemoryInfo", [sim.gpu(0), address(&mut first)]);
        let [total, free, used] = first;
        let [total_2, reserved, free_2, used_2] = v2(sim, sim.gpu(0)).unwrap();
        assert_eq!((total, free), (81_920 * MIB, free_2));
        assert_eq!((used_2, used), (1024 * MIB, 1024 * MIB + reserved));
        assert!(reserved > 0);
        assert_eq!((used + free, reserved + used_2 + free_2), (total, total_2));
    });
}

#[test]
fn compute_instances_of_one_gpu_instance_share_its_memory() {
    sim(&scenario("root"), |sim| {
        sim.init();
        let gpu = sim.gpu(1);
        let instances = [0, 1].map(|index| v2(sim, sim.mig(gpu, index)).unwrap());
        assert_eq!(instances[0], instances[1]);
        assert_eq!(instances[0], [40_448 * MIB, 0, 38_400 * MIB, 2048 * MIB]);
        assert_eq!(v2(sim, gpu).unwrap()[3], 2048 * MIB, "the sum of the instances");
        let mut bar = [0_u64; 3];
        sim.ok("nvmlDeviceGetBAR1MemoryInfo", [sim.mig(gpu, 0), address(&mut bar)]);
        assert_eq!(bar[0], bar[1] + bar[2]);
    });
}

#[test]
fn the_sum_over_a_cut_gpu_needs_privilege() {
    sim(&scenario("user"), |sim| {
        sim.init();
        let gpu = sim.gpu(1);
        assert_eq!(v2(sim, gpu), Err(NO_PERMISSION));
        assert!(v2(sim, sim.mig(gpu, 0)).is_ok());
        assert!(v2(sim, sim.gpu(0)).is_ok());
    });
}

#[test]
fn what_a_device_cannot_read_is_refused_by_that_device_only() {
    sim(&scenario("root"), |sim| {
        sim.init();
        assert_eq!(v2(sim, sim.gpu(2)), Err(NOT_SUPPORTED));
        assert!(v2(sim, sim.gpu(0)).is_ok());
    });
}
