use crate::sim::*;

const COMPUTE: &str = "nvmlDeviceGetComputeRunningProcesses_v3";
const GRAPHICS: &str = "nvmlDeviceGetGraphicsRunningProcesses_v3";
const MPS: &str = "nvmlDeviceGetMPSComputeRunningProcesses_v3";

/// (pid, memory, GPU instance, compute instance).
type Row = (u32, u64, u32, u32);

const NONE: u32 = u32::MAX;

fn list(sim: &Sim, name: &str, device: usize) -> Result<Vec<Row>, u32> {
    let (mut count, mut rows) = ([16_u32], [0_u64; 48]);
    match sim.call(name, [device, address(&mut count), address(&mut rows)]) {
        SUCCESS => {}
        code => return Err(code),
    }
    let halves = halves(&rows);
    let rows = halves.chunks(6).zip(rows.chunks(3)).take(usize::try_from(count[0]).unwrap());
    Ok(rows.map(|(half, whole)| (half[0], whole[1], half[4], half[5])).collect())
}

fn scenario(head: &str) -> String {
    format!(
        "{HEAD}{head}gpus:\n- {{uuid: GPU-1, model: h100-80}}\n- {{uuid: GPU-2, model: h100-80, mig: on}}\ntimeline:\n\
         - {{at: 0s, create_instance: {{gpu: 1, profile: 3g.40gb}}}}\n\
         - {{at: 0s, create_instance: {{gpu: 1, profile: 3g.40gb, compute: [{{slices: 1}}, {{slices: 2}}]}}}}\n\
         - {{at: 0s, start: {{pid: 7, comm: train, ns_pid: 1, on: [{{gpu: 0, memory: 1GiB}}, {{gpu: 1, gi: 2, ci: 1, memory: 2GiB}}]}}}}\n\
         - {{at: 0s, start: {{pid: 8, on: [{{gpu: 0, memory_unknown: true, kind: graphics}}]}}}}\n\
         - {{at: 0s, start: {{pid: 9, on: [{{gpu: 0, memory: 1MiB, kind: mps_server}}]}}}}\n\
         - {{at: 0s, start: {{pid: 10, on: [{{gpu: 0, memory: 3GiB, kind: mps_client}}]}}}}\n\
         - {{at: 0s, start: {{pid: 11, on: [{{gpu: 0, memory: 1GiB, hidden: true}}]}}}}\n\
         - {{at: 10s, stop: {{pid: 7}}}}\n- {{at: 10s, stop: {{pid: 9, leaves: zombie}}}}\n\
         - {{at: 11s, start: {{pid: 7, on: [{{gpu: 0, memory: 4GiB}}]}}}}\n"
    )
}

#[test]
fn each_list_names_its_own_sort_of_context() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let compute = list(sim, COMPUTE, gpu).unwrap();
        assert_eq!(
            compute,
            [(7, 1 << 30, NONE, NONE), (9, 1 << 20, NONE, NONE), (10, 3 << 30, NONE, NONE)],
            "server and client of MPS are in it, the hidden one is not"
        );
        assert_eq!(list(sim, GRAPHICS, gpu).unwrap(), [(8, u64::MAX, NONE, NONE)]);
        assert_eq!(list(sim, MPS, gpu).unwrap(), [(10, 3 << 30, NONE, NONE)]);
    });
}

#[test]
fn the_size_call_counts_and_too_little_room_is_left_alone() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let mut count = [0_u32];
        assert_eq!(sim.call(COMPUTE, [gpu, address(&mut count), 0]), INSUFFICIENT_SIZE);
        assert_eq!(count, [3]);
        let mut rows = [0xaaaa_u64; 9];
        count[0] = 2;
        assert_eq!(sim.call(COMPUTE, [gpu, address(&mut count), address(&mut rows)]), INSUFFICIENT_SIZE);
        assert_eq!((count, rows), ([3], [0xaaaa; 9]));
        let empty = sim.mig(sim.gpu(1), 0);
        count[0] = 0;
        assert_eq!(sim.call(COMPUTE, [empty, address(&mut count), 0]), SUCCESS, "none is no error");
        assert_eq!(count, [0]);
    });
}

#[test]
fn a_cut_gpu_names_all_and_a_mig_device_its_own() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(1);
        let row = (7, 2 << 30, 2, 1);
        assert_eq!(list(sim, COMPUTE, gpu).unwrap(), [row]);
        let lists = [0, 1, 2].map(|index| list(sim, COMPUTE, sim.mig(gpu, index)).unwrap());
        assert_eq!(lists, [vec![], vec![], vec![row]]);
    });
}

#[test]
fn a_cut_gpu_names_none_to_the_unprivileged() {
    sim(&scenario("privilege: user\n"), |sim| {
        sim.init();
        let gpu = sim.gpu(1);
        assert_eq!(list(sim, COMPUTE, gpu), Err(NO_PERMISSION));
        assert_eq!(list(sim, COMPUTE, sim.mig(gpu, 2)).unwrap().len(), 1);
    });
}

#[test]
fn open_modules_translate_into_the_namespace_and_closed_ones_do_not() {
    sim(&scenario("namespace: container\nopen_kernel_modules: true\n"), |sim| {
        sim.init();
        let pids: Vec<u32> = list(sim, COMPUTE, sim.gpu(0)).unwrap().iter().map(|row| row.0).collect();
        assert_eq!(pids, [1], "the others are not visible there");
    });
}

#[test]
fn closed_modules_tell_the_numbers_of_the_host() {
    sim(&scenario("namespace: container\n"), |sim| {
        sim.init();
        assert_eq!(list(sim, COMPUTE, sim.gpu(0)).unwrap()[0].0, 7);
    });
}

#[test]
fn a_process_goes_and_its_pid_comes_back_while_a_zombie_stays() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let pids = |at_ms| {
            sim.set_ms(at_ms);
            list(sim, COMPUTE, gpu).unwrap().iter().map(|row| row.0).collect::<Vec<_>>()
        };
        assert_eq!(pids(9_999), [7, 9, 10]);
        let start = || std::fs::read_to_string(sim.folder().join("proc/7/stat")).ok();
        let before = start();
        assert_eq!(pids(10_000), [9, 10]);
        assert_eq!(start(), None, "/proc follows each call");
        assert_eq!(pids(11_000), [9, 10, 7]);
        assert!(before.is_some() && start().is_some() && before != start());
    });
}

#[test]
fn the_detail_list_has_rows_of_32_bytes_and_modes() {
    sim(&scenario(""), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let mut rows = [0_u64; 16];
        // Version and mode, number, rows.
        let mut list = [0x0100_0018_u64 | 2 << 32, 0, 0];
        assert_eq!(
            sim.call("nvmlDeviceGetRunningProcessDetailList", [gpu, address(&mut list)]),
            INSUFFICIENT_SIZE
        );
        assert_eq!(list[1] & 0xffff_ffff, 1);
        list[2] = u64::try_from(address(&mut rows)).unwrap();
        list[0] = 0x0100_0018;
        list[1] = 4;
        sim.ok("nvmlDeviceGetRunningProcessDetailList", [gpu, address(&mut list)]);
        assert_eq!((list[1] & 0xffff_ffff, rows[0] & 0xffff_ffff, rows[4] & 0xffff_ffff), (3, 7, 9));
    });
}

#[test]
fn the_name_of_a_process_is_known_while_it_lives() {
    sim(&scenario(""), |sim| {
        sim.init();
        assert_eq!(sim.text("nvmlSystemGetProcessName", [7]), Ok("train".to_owned()));
        assert_eq!(sim.text("nvmlSystemGetProcessName", [99]), Err(NOT_FOUND));
    });
}
