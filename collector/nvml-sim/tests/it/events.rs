use crate::sim::*;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

const XID: usize = 0x8;
const MIG_CHANGE: usize = 0x100;

fn scenario(head: &str) -> String {
    format!(
        "{HEAD}{head}gpus:\n- {{uuid: GPU-1, model: h100-80, mig: on}}\n- {{uuid: GPU-2, model: t4}}\ntimeline:\n\
         - {{at: 5s, xid: {{gpu: 0, number: 13}}}}\n\
         - {{at: 10s, create_instance: {{gpu: 0, profile: 3g.40gb, gi: 1}}}}\n\
         - {{at: 20s, xid: {{gpu: 0, number: 43, gi: 1, ci: 0}}}}\n\
         - {{at: 20s, xid: {{gpu: 0, number: 79}}}}\n\
         - {{at: 30s, double_bit: {{gpu: 1}}}}\n"
    )
}

fn set(sim: &Sim, gpu: usize, types: usize) -> usize {
    let set = sim.handle("nvmlEventSetCreate", []);
    sim.ok("nvmlDeviceRegisterEvents", [sim.gpu(gpu), types, set]);
    set
}

/// (type, data, GPU instance) of the next event.
fn wait(sim: &Sim, set: usize, timeout_ms: usize) -> Result<(u64, u64, u32), u32> {
    let mut data = [0_u64; 4];
    match sim.call("nvmlEventSetWait_v2", [set, address(&mut data), timeout_ms]) {
        SUCCESS => Ok((data[1], data[2], halves(&data)[6])),
        code => Err(code),
    }
}

#[test]
fn events_of_one_instant_all_come_once_and_in_order() {
    sim(&scenario(""), |sim| {
        sim.init();
        sim.set_ms(6_000);
        let set = set(sim, 0, XID);
        assert_eq!(wait(sim, set, 0), Err(TIMEOUT), "what was before is not told");
        sim.set_ms(25_000);
        assert_eq!(wait(sim, set, 0), Ok((8, 43, 1)));
        assert_eq!(wait(sim, set, 0), Ok((8, 79, u32::MAX)));
        assert_eq!(wait(sim, set, 0), Err(TIMEOUT));
    });
}

#[test]
fn a_set_hears_only_what_was_registered() {
    sim(&scenario(""), |sim| {
        sim.init();
        let changes = set(sim, 0, MIG_CHANGE);
        let other = set(sim, 1, XID);
        sim.set_ms(40_000);
        assert_eq!(wait(sim, changes, 0).map(|event| event.0), Ok(0x100));
        assert_eq!(wait(sim, changes, 0), Err(TIMEOUT));
        assert_eq!(wait(sim, other, 0), Err(TIMEOUT));
    });
}

#[test]
fn events_of_instances_are_for_the_privileged() {
    sim(&scenario("privilege: user\n"), |sim| {
        sim.init();
        let set = set(sim, 0, XID);
        sim.set_ms(25_000);
        let numbers = [wait(sim, set, 0), wait(sim, set, 0)].map(|event| event.unwrap().1);
        assert_eq!(numbers, [13, 79]);
    });
}

#[test]
fn what_a_device_does_not_offer_cannot_be_registered() {
    sim(&scenario(""), |sim| {
        sim.init();
        let set = sim.handle("nvmlEventSetCreate", []);
        let register = |device, types| sim.call("nvmlDeviceRegisterEvents", [device, types, set]);
        assert_eq!(register(sim.gpu(1), MIG_CHANGE), NOT_SUPPORTED, "a T4 has no MIG");
        assert_eq!(register(sim.gpu(0), XID | MIG_CHANGE), SUCCESS);
        sim.set_ms(10_000);
        assert_eq!(register(sim.mig(sim.gpu(0), 0), XID), NOT_SUPPORTED);
        sim.ok("nvmlEventSetFree", [set]);
        assert_eq!(register(sim.gpu(0), XID), INVALID_ARGUMENT);
        assert_eq!(wait(sim, set, 0), Err(INVALID_ARGUMENT));
    });
}

/// Moves the clock on by tenths of a second until a wait is over; when it began is not known here.
fn drive<T>(sim: &Sim, waiting: ScopedJoinHandle<'_, T>) -> T {
    while !waiting.is_finished() {
        sim.set_ms(sim.now_ms() + 100);
        std::thread::sleep(Duration::from_millis(2));
    }
    waiting.join().unwrap()
}

#[test]
fn a_wait_blocks_until_the_clock_has_passed() {
    sim(&scenario(""), |sim| {
        sim.init();
        let set = set(sim, 0, XID);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(sim, set, 3_000));
            std::thread::sleep(Duration::from_millis(30));
            assert!(!waiting.is_finished(), "the clock stands");
            assert_eq!(drive(sim, waiting), Err(TIMEOUT));
            assert!((3_000..5_000).contains(&sim.now_ms()), "{}", sim.now_ms());
            let waiting = scope.spawn(|| wait(sim, set, 600_000));
            assert_eq!(drive(sim, waiting), Ok((8, 13, u32::MAX)));
        });
    });
}

#[test]
fn a_wait_holds_up_nobody_else() {
    sim(&scenario(""), |sim| {
        sim.init();
        let set = set(sim, 0, XID);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(sim, set, 1_000));
            for _ in 0..100 {
                assert_eq!(sim.number("nvmlDeviceGetIndex", sim.gpu(1)), Ok(1));
            }
            assert!(!waiting.is_finished());
            assert_eq!(drive(sim, waiting), Err(TIMEOUT));
        });
    });
}
