use crate::sim::*;

fn scenario() -> String {
    format!(
        "{HEAD}gpus:\n- {{uuid: GPU-1, model: a100-80}}\n- {{uuid: GPU-2, model: a100-80, mig: on}}\ntimeline:\n\
         - {{at: 0s, create_instance: {{gpu: 1, profile: 7g.80gb}}}}\n\
         - {{at: 10s, start: {{pid: 7, on: [{{gpu: 0, sm: 50%}}]}}}}\n\
         - {{at: 10s, start: {{pid: 8, on: [{{gpu: 0, sm: 25%}}]}}}}\n\
         - {{at: 30s, garbage_rows: {{gpu: 0, for: 1s, rows: [{{pid: 9, sm: 37100}}]}}}}\n"
    )
}

/// (pid, timestamp, SM per cent) of each row.
fn processes(sim: &Sim, gpu: usize, since_us: u64) -> Result<Vec<(u32, u64, u32)>, u32> {
    let (mut count, mut rows) = ([100_u32], vec![0_u64; 400]);
    let since = usize::try_from(since_us).unwrap();
    match sim.call("nvmlDeviceGetProcessUtilization", [gpu, address(&mut rows), address(&mut count), since]) {
        SUCCESS => {}
        code => return Err(code),
    }
    let halves = halves(&rows);
    let rows = halves.chunks(8).zip(rows.chunks(4)).take(usize::try_from(count[0]).unwrap());
    Ok(rows.map(|(half, whole)| (half[0], whole[1], half[4])).collect())
}

#[test]
fn the_size_call_says_a_hundred_whether_busy_or_idle() {
    sim(&scenario(), |sim| {
        sim.init();
        for at_ms in [5_000, 20_000] {
            sim.set_ms(at_ms);
            let mut count = [0_u32];
            let call = ["nvmlDeviceGetProcessUtilization"];
            assert_eq!(sim.call(call[0], [sim.gpu(0), 0, address(&mut count), 0]), INSUFFICIENT_SIZE);
            assert_eq!(count, [100]);
        }
    });
}

#[test]
fn an_idle_gpu_has_no_rows_and_a_busy_one_only_newer_ones() {
    sim(&scenario(), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        sim.set_ms(5_000);
        assert_eq!(processes(sim, gpu, 0), Err(NOT_FOUND));
        sim.set_ms(25_000);
        let stamp = sim.world().stamp_us(25_000_000);
        assert_eq!(processes(sim, gpu, 0).unwrap(), [(7, stamp, 50), (8, stamp, 25)]);
        assert_eq!(processes(sim, gpu, stamp), Err(NOT_FOUND), "a row is answered once");
        sim.set_ms(26_000);
        assert_eq!(processes(sim, gpu, stamp).unwrap().len(), 2);
    });
}

#[test]
fn rows_that_cannot_be_true_stand_beside_the_true_ones() {
    sim(&scenario(), |sim| {
        sim.init();
        sim.set_ms(30_500);
        let rows = processes(sim, sim.gpu(0), 0).unwrap();
        assert_eq!((rows.len(), rows[2].0, rows[2].2), (3, 9, 37_100));
    });
}

#[test]
fn the_newer_list_has_the_same_rows_in_another_layout() {
    sim(&scenario(), |sim| {
        sim.init();
        sim.set_ms(25_000);
        let gpu = sim.gpu(0);
        let mut rows = [0_u64; 500];
        // Version and number, last seen, rows.
        let mut list = [0x0100_0018_u64, 0, 0];
        let name = "nvmlDeviceGetProcessesUtilizationInfo";
        assert_eq!(sim.call(name, [gpu, address(&mut list)]), INSUFFICIENT_SIZE);
        assert_eq!(list[0] >> 32, 100);
        list[2] = u64::try_from(address(&mut rows)).unwrap();
        sim.ok(name, [gpu, address(&mut list)]);
        let words = halves(&rows);
        assert_eq!(list[0] >> 32, 2);
        assert_eq!((rows[0], words[2], words[3]), (sim.world().stamp_us(25_000_000), 7, 50));
    });
}

#[test]
fn the_ring_of_the_device_is_told_and_is_empty_at_rest() {
    sim(&scenario(), |sim| {
        sim.init();
        let gpu = sim.gpu(0);
        let ask = |of: usize| {
            let (mut kind, mut count, mut rows) = ([9_u32], [72_u32], [0_u64; 144]);
            let code = sim.call(
                "nvmlDeviceGetSamples",
                [gpu, of, 0, address(&mut kind), address(&mut count), address(&mut rows)],
            );
            (code, kind[0], count[0], rows[1])
        };
        sim.set_ms(5_000);
        assert_eq!(ask(1).0, NOT_FOUND);
        assert_eq!(ask(0), (SUCCESS, 1, 30, 45_000), "power is sampled at rest, too");
        sim.set_ms(40_000);
        assert_eq!(ask(1), (SUCCESS, 1, 72, 75));
    });
}

#[test]
fn nothing_of_it_is_supported_with_mig_on() {
    sim(&scenario(), |sim| {
        sim.init();
        sim.set_ms(20_000);
        let gpu = sim.gpu(1);
        let mut room = [0_u64; 8];
        for device in [gpu, sim.mig(gpu, 0)] {
            assert_eq!(
                sim.call("nvmlDeviceGetUtilizationRates", [device, address(&mut room)]),
                NOT_SUPPORTED
            );
            assert_eq!(processes(sim, device, 0), Err(NOT_SUPPORTED));
        }
        sim.ok("nvmlDeviceGetPowerUsage", [gpu, address(&mut room)]);
        let instance = sim.call("nvmlDeviceGetPowerUsage", [sim.mig(gpu, 0), address(&mut room)]);
        assert_eq!(instance, NOT_SUPPORTED);
    });
}

#[test]
fn fields_are_answered_one_by_one() {
    sim(&scenario(), |sim| {
        sim.init();
        sim.set_ms(20_000);
        let gpu = sim.gpu(0);
        // Field, scope; timestamp; latency; type, code; value.
        let mut values = [0_u64; 15];
        (values[0], values[5], values[10]) = (83, 9999, 230);
        sim.ok("nvmlDeviceGetFieldValues", [gpu, 3, address(&mut values)]);
        let mut energy = [0_u64];
        sim.ok("nvmlDeviceGetTotalEnergyConsumption", [gpu, address(&mut energy)]);
        assert_eq!((values[3], values[4]), (3, energy[0]), "unsigned long long, success");
        assert_eq!(values[8] >> 32, u64::from(NOT_SUPPORTED));
        assert_eq!((values[13], values[14]), (1, 0), "no recovery action");
    });
}
