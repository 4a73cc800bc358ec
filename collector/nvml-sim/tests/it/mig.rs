use crate::sim::*;

fn scenario(head: &str) -> String {
    format!(
        "{HEAD}{head}gpus:\n- {{uuid: GPU-1, model: a100-80, mig: on}}\n- {{uuid: GPU-2, model: a100-80}}\n- {{uuid: GPU-3, model: t4}}\ntimeline:\n\
         - {{at: 0s, create_instance: {{gpu: 0, profile: 3g.40gb, start: 4, gi: 1, compute: [{{index: 0}}]}}}}\n\
         - {{at: 0s, create_instance: {{gpu: 0, profile: 2g.20gb, gi: 5, compute: [{{slices: 1, ci: 3, index: 4}}]}}}}\n\
         - {{at: 10s, destroy_instance: {{gpu: 0, gi: 5}}}}\n\
         - {{at: 20s, create_instance: {{gpu: 0, profile: 1g.10gb, gi: 8, compute: [{{index: 4}}]}}}}\n"
    )
}

#[test]
fn holes_in_the_list_are_not_found_and_the_end_is_not_asked_for() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        assert_eq!(sim.number("nvmlDeviceGetMaxMigDeviceCount", gpu), Ok(7));
        let mut out = [0_usize];
        let codes: Vec<u32> = (0..8)
            .map(|index| sim.call("nvmlDeviceGetMigDeviceHandleByIndex", [gpu, index, address(&mut out)]))
            .collect();
        assert_eq!(codes, [0, NOT_FOUND, NOT_FOUND, NOT_FOUND, 0, NOT_FOUND, NOT_FOUND, INVALID_ARGUMENT]);
    });
}

#[test]
fn the_three_mig_modes_are_told_apart() {
    sim(&scenario(""), |sim| {
        sim.init();
        let mode = |gpu| {
            let mut mode = [9_u32, 9];
            let pending = address(&mut mode[1..]);
            let code = sim.call("nvmlDeviceGetMigMode", [sim.gpu(gpu), address(&mut mode), pending]);
            (code, mode)
        };
        assert_eq!(mode(0), (SUCCESS, [1, 1]));
        assert_eq!(mode(1), (SUCCESS, [0, 0]));
        assert_eq!(mode(2).0, NOT_SUPPORTED);
        assert_eq!(sim.number("nvmlDeviceGetMaxMigDeviceCount", sim.gpu(1)), Ok(0));
    });
}

#[test]
fn a_handle_dies_with_its_instance_and_is_reused_for_another() {
    sim(&scenario(""), |sim| {
        sim.init();
        let device = sim.mig(sim.gpu(0), 4);
        let ids = || {
            (
                sim.number("nvmlDeviceGetGpuInstanceId", device),
                sim.number("nvmlDeviceGetComputeInstanceId", device),
            )
        };
        assert_eq!(ids(), (Ok(5), Ok(3)));
        assert_eq!(
            sim.text("nvmlDeviceGetName", [device]),
            Ok("NVIDIA A100-SXM4-80GB MIG 1c.2g.20gb".to_owned())
        );
        sim.set_ms(10_000);
        assert_eq!(ids().0, Err(INVALID_ARGUMENT));
        sim.set_ms(20_000);
        assert_eq!(ids(), (Ok(8), Ok(0)), "the same handle, another instance");
    });
}

#[test]
fn a_mig_device_leads_to_its_gpu_and_back_by_uuid() {
    sim(&scenario(""), |sim| {
        sim.init();
        let (gpu, device) = (sim.gpu(0), sim.mig(sim.gpu(0), 0));
        assert_eq!(sim.handle("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", [device]), gpu);
        let uuid = sim.text("nvmlDeviceGetUUID", [device]).unwrap();
        assert!(uuid.starts_with("MIG-"), "{uuid}");
        assert_eq!(sim.by_text("nvmlDeviceGetHandleByUUID", &uuid), Ok(device));
        assert_eq!(sim.by_text("nvmlDeviceGetHandleByUUID", "GPU-1"), Ok(gpu));
        assert_eq!(sim.by_text("nvmlDeviceGetHandleByUUID", "MIG-none"), Err(NOT_FOUND));
        assert_eq!(sim.by_text("nvmlDeviceGetHandleByPciBusId_v2", "0000:10:00.0"), Ok(gpu));
        let is_mig = [gpu, device].map(|handle| sim.number("nvmlDeviceIsMigDeviceHandle", handle));
        assert_eq!(is_mig, [Ok(0), Ok(1)]);
    });
}

#[test]
fn before_driver_470_the_uuid_is_made_of_ids() {
    sim(&scenario("driver: {version: 460.32.03}\n"), |sim| {
        sim.init();
        let device = sim.mig(sim.gpu(0), 4);
        assert_eq!(sim.text("nvmlDeviceGetUUID", [device]), Ok("MIG-GPU-1/5/3".to_owned()));
        assert_eq!(sim.by_text("nvmlDeviceGetHandleByUUID", "MIG-GPU-1/5/3"), Ok(device));
    });
}

#[test]
fn attributes_are_of_mig_devices_only() {
    sim(&scenario(""), |sim| {
        sim.init();
        let mut attributes = [0_u64; 5];
        let gpu = sim.gpu(0);
        assert_eq!(sim.call("nvmlDeviceGetAttributes_v2", [gpu, address(&mut attributes)]), NOT_SUPPORTED);
        sim.ok("nvmlDeviceGetAttributes_v2", [sim.mig(gpu, 4), address(&mut attributes)]);
        let words = halves(&attributes);
        assert_eq!((words[0], words[6], words[7], attributes[4]), (14, 2, 1, 19_968));
    });
}

fn placement(sim: &Sim, gpu: usize, id: usize) -> Result<[u32; 4], u32> {
    let mut instance = [0_usize];
    match sim.call("nvmlDeviceGetGpuInstanceById", [gpu, id, address(&mut instance)]) {
        SUCCESS => {}
        code => return Err(code),
    }
    let mut info = [0_u64; 3];
    sim.ok("nvmlGpuInstanceGetInfo", [instance[0], address(&mut info)]);
    assert_eq!(usize::try_from(info[0]).unwrap(), gpu);
    let words = halves(&info);
    Ok([words[2], words[3], words[4], words[5]])
}

#[test]
fn placements_are_told_to_the_privileged() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        assert_eq!(placement(sim, gpu, 1), Ok([1, 9, 4, 4]), "id, profile id, start, size");
        assert_eq!(placement(sim, gpu, 5), Ok([5, 14, 0, 2]));
        assert_eq!(placement(sim, gpu, 3), Err(NOT_FOUND));
        let instance = sim.handle("nvmlDeviceGetGpuInstanceById", [gpu, 5]);
        let compute = sim.handle("nvmlGpuInstanceGetComputeInstanceById", [instance, 3]);
        let mut info = [0_u64; 4];
        sim.ok("nvmlComputeInstanceGetInfo_v2", [compute, address(&mut info)]);
        let words = halves(&info);
        assert_eq!((info[1], &words[4..]), (u64::try_from(instance).unwrap(), &[3, 0, 0, 1][..]));
        sim.set_ms(10_000);
        assert_eq!(
            sim.call("nvmlGpuInstanceGetInfo", [instance, address(&mut [0_u64; 3])]),
            INVALID_ARGUMENT
        );
    });
}

#[test]
fn placements_are_not_told_to_others() {
    sim(&scenario("privilege: user\n"), |sim| {
        sim.init();
        assert_eq!(placement(sim, sim.gpu(0), 1), Err(NO_PERMISSION));
    });
}

#[test]
fn profiles_are_asked_by_number_and_answer_with_their_id() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let mut info = [0_u64; 6];
        sim.ok("nvmlDeviceGetGpuInstanceProfileInfo", [gpu, 2, address(&mut info)]);
        let words = halves(&info);
        assert_eq!((words[0], words[2], words[3], words[4], info[5]), (9, 3, 2, 42, 40_192));
        for (version, name_at) in [(0x0200_0098_u64, 7), (0x0300_0098, 6)] {
            let mut info = [0_u64; 19];
            info[0] = version;
            sim.ok("nvmlDeviceGetGpuInstanceProfileInfoV", [gpu, 2, address(&mut info)]);
            let name: Vec<u8> = info[name_at..].iter().flat_map(|word| word.to_le_bytes()).take(11).collect();
            assert_eq!(name, b"MIG 3g.40gb");
        }
        let off = sim.call("nvmlDeviceGetGpuInstanceProfileInfo", [sim.gpu(1), 2, address(&mut info)]);
        assert_eq!(off, NOT_SUPPORTED);
    });
}

#[test]
fn places_that_are_free_are_counted() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let left = |profile| {
            let mut number = [9_u32];
            sim.ok("nvmlDeviceGetGpuInstanceRemainingCapacity", [gpu, profile, address(&mut number)]);
            number[0]
        };
        // Taken: memory slices 0 and 1, and 4 to 7.
        assert_eq!((left(9), left(14), left(19)), (0, 1, 2));
        let (mut count, mut rows) = ([0_u32], [0_u32; 8]);
        sim.ok("nvmlDeviceGetGpuInstancePossiblePlacements_v2", [gpu, 14, 0, address(&mut count)]);
        assert_eq!(count, [3]);
        sim.ok(
            "nvmlDeviceGetGpuInstancePossiblePlacements_v2",
            [gpu, 14, address(&mut rows), address(&mut count)],
        );
        assert_eq!(rows[..6], [0, 2, 2, 2, 4, 2]);
        let mut handles = [0_usize; 7];
        sim.ok("nvmlDeviceGetGpuInstances", [gpu, 9, address(&mut handles), address(&mut count)]);
        assert_eq!((count, handles[1]), ([1], 0));
        assert_eq!(handles[0], sim.handle("nvmlDeviceGetGpuInstanceById", [gpu, 1]));
    });
}
