use crate::sim::*;
use std::time::{Duration, Instant};

fn scenario() -> String {
    format!(
        "{HEAD}gpus:\n- {{uuid: GPU-1, model: h100-80}}\n- {{uuid: GPU-2, model: h100-80}}\ntimeline:\n\
         - {{at: 0s, delay: {{call: nvmlDeviceGetPowerUsage, gpu: 0, by: 1s}}}}\n"
    )
}

#[test]
fn a_call_that_takes_long_holds_up_no_other_gpu() {
    sim_in_real_time(&scenario(), |sim| {
        sim.init();
        let (slow, quick) = (sim.gpu(0), sim.gpu(1));
        std::thread::scope(|scope| {
            let begin = Instant::now();
            let waiting = scope.spawn(|| sim.number("nvmlDeviceGetPowerUsage", slow));
            for _ in 0..20 {
                assert!(sim.number("nvmlDeviceGetPowerUsage", quick).is_ok());
            }
            sim.init();
            assert!(!waiting.is_finished(), "even initialising does not wait for it");
            assert!(waiting.join().unwrap().is_ok());
            assert!(begin.elapsed() >= Duration::from_secs(1));
        });
    });
}

#[test]
fn a_wait_takes_as_long_as_it_says() {
    sim_in_real_time(&scenario(), |sim| {
        sim.init();
        let set = sim.handle("nvmlEventSetCreate", []);
        sim.ok("nvmlDeviceRegisterEvents", [sim.gpu(0), 8, set]);
        let begin = Instant::now();
        let mut data = [0_u64; 4];
        assert_eq!(sim.call("nvmlEventSetWait_v2", [set, address(&mut data), 250]), TIMEOUT);
        assert!(begin.elapsed() >= Duration::from_millis(250));
    });
}
