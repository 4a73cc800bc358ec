use super::*;
use crate::process::{Owner, ProcessId};
use crate::window::{Book, ProcessKey, UnitKey};
use gpuledger_wire::bodies::Body;
use std::sync::Arc;

const S: i64 = 1_000_000;

fn at(second: i64) -> Instant {
    Instant::from_micros(second * S)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn windows(began: i64) -> NodeWindows {
    let mut windows = NodeWindows::new(name("n1"), name("b7"), Frame::new(10 * S), 8 * S, at(began));
    windows.expect(name("GPU-a"));
    windows.expect(name("GPU-b"));
    windows
}

/// What a lane says of the windows that begin at these seconds.
fn parts(gpu: &str, starts: &[i64]) -> Vec<Part> {
    let mut book = Book::new(name(gpu), Frame::new(10 * S));
    for start in starts {
        book.unit(at(*start), UnitKey::Device, Err(Absent::NotSupported));
    }
    book.flush()
}

fn edges(closed: &[ClosedWindow]) -> Vec<(i64, i64)> {
    closed.iter().map(|c| (c.window.start().as_micros() / S, c.window.end().as_micros() / S)).collect()
}

fn gpus(closed: &ClosedWindow) -> Vec<&str> {
    closed.units.iter().map(|unit| unit.gpu.as_str()).collect()
}

#[test]
fn a_window_waits_for_all_lanes() {
    let mut windows = windows(0);
    windows.add(&name("GPU-b"), at(10), parts("GPU-b", &[0]));
    assert_eq!(windows.close(at(13)), []);
    windows.add(&name("GPU-a"), at(10), parts("GPU-a", &[0]));
    let closed = windows.close(at(13));
    assert_eq!(edges(&closed), [(0, 10)]);
    assert_eq!(gpus(&closed[0]), ["GPU-a", "GPU-b"]);
    assert_eq!(closed[0].gaps, []);
}

#[test]
fn a_lane_that_hangs_does_not_hold_the_others_and_is_named() {
    let mut windows = windows(0);
    windows.add(&name("GPU-a"), at(10), parts("GPU-a", &[0]));
    assert_eq!(windows.close(at(17)), []);
    let closed = windows.close(at(18));
    assert_eq!(gpus(&closed[0]), ["GPU-a", "GPU-b"]);
    assert_eq!(closed[0].units[1].quality[&name("sm_active_us")].as_str(), "unavailable(timed_out)");
    assert_eq!(closed[0].gaps[0].reason.as_str(), "timed_out(GPU-b)");
    windows.add(&name("GPU-b"), at(10), parts("GPU-b", &[0]));
    assert_eq!(windows.late(), 1);
}

#[test]
fn a_gpu_that_is_gone_is_not_waited_for() {
    let mut windows = windows(0);
    windows.forget(&name("GPU-b"));
    windows.add(&name("GPU-a"), at(10), parts("GPU-a", &[0]));
    assert_eq!(edges(&windows.close(at(13))), [(0, 10)]);
}

#[test]
fn the_first_window_begins_with_the_agent_and_the_last_ends_with_it() {
    let mut windows = windows(3);
    for gpu in ["GPU-a", "GPU-b"] {
        windows.add(&name(gpu), at(10), parts(gpu, &[3, 10]));
    }
    assert_eq!(edges(&windows.close(at(13))), [(3, 10)]);
    let last = windows.flush(at(14));
    assert_eq!(edges(&last), [(10, 14)]);
    assert_eq!(last[0].units.len(), 2);
    assert_eq!(windows.flush(at(14)), []);
}

#[test]
fn an_end_just_after_an_edge_blames_no_device() {
    let mut windows = windows(0);
    for gpu in ["GPU-a", "GPU-b"] {
        windows.add(&name(gpu), at(10), parts(gpu, &[0]));
    }
    assert_eq!(edges(&windows.flush(at(11))), [(0, 10)], "nobody has looked since 10");
    let mut windows = self::windows(0);
    windows.add(&name("GPU-a"), at(10), parts("GPU-a", &[0, 10]));
    let closed = windows.flush(at(11));
    assert_eq!(edges(&closed), [(0, 10), (10, 11)]);
    assert_eq!(closed[1].gaps[0].reason.as_str(), "timed_out(GPU-b)", "this one hangs");
    let mut windows = self::windows(0);
    for (gpu, told) in [("GPU-a", 10), ("GPU-b", 0)] {
        windows.add(&name(gpu), at(told), parts(gpu, &[0]));
    }
    let reasons: Vec<_> = windows.flush(at(17)).iter().map(|closed| closed.gaps.len()).collect();
    assert_eq!(reasons, [0, 2], "a device that hangs over the end is named: nobody knows when it comes back");
}

#[test]
fn windows_that_nobody_saw_are_not_made_up() {
    let mut windows = windows(0);
    for gpu in ["GPU-a", "GPU-b"] {
        windows.add(&name(gpu), at(10), parts(gpu, &[0]));
    }
    windows.close(at(13));
    for gpu in ["GPU-a", "GPU-b"] {
        windows.add(&name(gpu), at(3_610), parts(gpu, &[10, 3_600]));
    }
    assert_eq!(edges(&windows.close(at(3_613)))[..2], [(10, 20), (3_600, 3_610)]);
}

#[test]
fn a_node_without_gpus_still_proves_that_it_lives() {
    let mut windows = NodeWindows::new(name("n1"), name("b7"), Frame::new(10 * S), 8 * S, at(0));
    assert_eq!(edges(&windows.close(at(10))), [(0, 10)]);
}

#[test]
fn the_event_is_accepted_by_its_own_check() {
    let mut windows = windows(0);
    windows.add(&name("GPU-a"), at(10), parts("GPU-a", &[0]));
    let closed = windows.close(at(18)).remove(0);
    let event = closed.numbered(name("s-1"), Count::new(0).unwrap());
    assert_eq!(event.check(at(18)), Ok(()));
    assert_eq!((event.sequence.get(), event.node.as_str()), (0, "n1"));
}

#[test]
fn processes_stand_in_the_order_of_the_units() {
    let mut windows = windows(0);
    for gpu in ["GPU-b", "GPU-a"] {
        let mut book = Book::new(name(gpu), Frame::new(10 * S));
        for (id, start) in [(1, 4), (2, 0)] {
            let unit = UnitKey::Instance { id, generation: 1 };
            book.unit(at(0), unit, Ok(gpuledger_nvml::Placement { start, size: 4 }));
            let process = ProcessId { pid: 100 + id, started_at: at(0) };
            let owner = Arc::new(Owner::Unknown(crate::process::Unknown::Vanished));
            book.process(at(0), ProcessKey { unit, process }, &owner);
        }
        windows.add(&name(gpu), at(10), book.flush());
    }
    let closed = windows.close(at(13)).remove(0);
    let told = |process: &ProcessReading| (process.gpu.to_string(), process.pid.get());
    let expected = [("GPU-a", 102), ("GPU-a", 101), ("GPU-b", 102), ("GPU-b", 101)];
    let told: Vec<(String, i64)> = closed.processes.iter().map(told).collect();
    assert_eq!(told, expected.map(|(gpu, pid)| (gpu.to_owned(), pid)));
}
