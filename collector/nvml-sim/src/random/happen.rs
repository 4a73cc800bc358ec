//! What is drawn, and how often.

use super::node::Node;
use crate::code::ReturnCode;
use crate::scenario::{
    Action, AnyGpu, AtGpu, Bytes, Change, ChangeMig, Delay, Fail, GarbageRow, GarbageRows, Jump, JumpClock,
    Leaves, ReloadDriver, SetEnergy, Span, WrongEcho, Xid,
};

type Happening = fn(&mut Node);

/// What may happen, with its weight.
const HAPPENINGS: [(u64, Happening); 21] = [
    (14, start),
    (12, reuse_pid),
    (12, stop),
    (4, leave_behind),
    (4, reap),
    (12, change),
    (10, create),
    (6, destroy),
    (6, recreate),
    (3, lose),
    (4, recover),
    (4, reset_energy),
    (2, clear_accounting),
    (5, delay),
    (5, fail),
    (4, tear),
    (3, xid),
    (2, lie),
    (2, revoke),
    (1, reload_driver),
    (2, change_mig),
];

/// A jump is rare and moves what is reported about all that follows: it comes apart, in one scenario of eight.
const JUMPS_PERCENT: u64 = 12;

/// Something every two to nine seconds in the mean, until the length is reached.
pub(super) fn fill(node: &mut Node, length_us: u64) {
    let pause_us = node.draw.between(4_000_000, 18_000_000);
    for gpu in 0..node.gpus.len() {
        if node.gpus[gpu].is_mig_on {
            create_at(node, gpu);
            create_at(node, gpu);
        }
    }
    for _ in 0..node.gpus.len() {
        node.start(None);
    }
    let mut jump_us = node.draw.chance(JUMPS_PERCENT).then(|| node.draw.between(0, length_us));
    loop {
        node.wait(10_000, pause_us);
        if node.now_us >= length_us {
            return;
        }
        if jump_us.take_if(|at| *at <= node.now_us).is_some() {
            jump_clock(node);
        }
        happening(node)(node);
    }
}

fn happening(node: &mut Node) -> Happening {
    let all: u64 = HAPPENINGS.iter().map(|(weight, _)| weight).sum();
    let mut left = node.draw.between(0, all - 1);
    for (weight, happening) in HAPPENINGS {
        if left < weight {
            return happening;
        }
        left -= weight;
    }
    start
}

fn start(node: &mut Node) {
    node.start(None);
}

fn stop(node: &mut Node) {
    if let Some(pid) = node.any_process() {
        node.stop(pid, Leaves::Nothing);
    }
}

/// Within a sampling period mostly.
fn reuse_pid(node: &mut Node) {
    let pid = match node.any_process() {
        Some(pid) if node.draw.chance(60) => {
            node.stop(pid, Leaves::Nothing);
            node.wait(20_000, 800_000);
            Some(pid)
        }
        _ => {
            let ended = node.ended.clone();
            node.draw.pick(&ended).copied()
        }
    };
    if let Some(pid) = pid.filter(|pid| !node.processes.contains_key(pid) && !node.left.contains_key(pid)) {
        node.wait(20_000, 40_000);
        node.start(Some(pid));
        node.case("a PID reused");
    }
}

fn leave_behind(node: &mut Node) {
    let leaves = node.draw.pick(&[Leaves::Zombie, Leaves::Rows, Leaves::Stuck]).copied();
    if let (Some(pid), Some(leaves)) = (node.any_process(), leaves) {
        node.stop(pid, leaves);
        node.case("memory held by a dead process");
    }
}

fn reap(node: &mut Node) {
    if let Some(pid) = node.left.keys().next().copied() {
        node.reap(pid);
    }
}

fn change(node: &mut Node) {
    let Some(pid) = node.any_process() else { return };
    let Some(which) = node.processes.get(&pid).and_then(|places| places.len().checked_sub(1)) else { return };
    let Some((place, bytes)) = node.resize(pid, which) else { return };
    let sm = node.draw.chance(60).then(|| node.load());
    let memory_unknown = node.draw.chance(5).then(|| node.draw.chance(50));
    node.step(Action::Change(Change {
        pid,
        gpu: place.gpu,
        gi: place.gi,
        memory: Some(Bytes(bytes)),
        memory_unknown,
        sm,
    }));
}

fn create(node: &mut Node) {
    if let Some(gpu) = node.any_gpu().filter(|gpu| node.gpus[*gpu].is_mig_on) {
        create_at(node, gpu);
    }
}

fn create_at(node: &mut Node, gpu: usize) {
    if node.create(gpu).is_some() {
        node.case("an instance created");
    }
}

fn destroy(node: &mut Node) {
    let Some(gpu) = node.any_gpu() else { return };
    let alive = node.gpus[gpu].instances.clone();
    if let Some(instance) = node.draw.pick(&alive).copied() {
        node.destroy(gpu, instance);
        node.case("an instance destroyed");
    }
}

/// The same place, ids and UUID, mostly within a sampling period.
fn recreate(node: &mut Node) {
    let Some(gpu) = node.any_gpu() else { return };
    let alive = node.gpus[gpu].instances.clone();
    if let Some(instance) = node.draw.pick(&alive).copied() {
        node.destroy(gpu, instance);
        node.wait(1_000, 1_200_000);
        node.make(gpu, instance);
        node.case("an instance recreated under its ids");
        if node.draw.chance(70) {
            node.start(None);
        }
    }
}

fn lose(node: &mut Node) {
    let Some(gpu) = node.any_gpu() else { return };
    node.gpus[gpu].is_gone = true;
    node.forget(gpu);
    if node.draw.chance(70) {
        node.step(Action::Lose(AtGpu { gpu }));
        node.case("a GPU lost");
    } else {
        node.step(Action::RequireReset(AtGpu { gpu }));
        node.case("a GPU that wants a reset");
    }
}

fn recover(node: &mut Node) {
    let gone: Vec<usize> = (0..node.gpus.len()).filter(|gpu| node.gpus[*gpu].is_gone).collect();
    if let Some(gpu) = node.draw.pick(&gone).copied() {
        node.recover(gpu);
        node.case("a GPU back");
        if node.gpus[gpu].is_mig_on {
            create_at(node, gpu);
        }
    }
}

fn reset_energy(node: &mut Node) {
    if let Some(gpu) = node.any_gpu() {
        node.step(Action::SetEnergy(SetEnergy { gpu, to_mj: 0 }));
        node.case("an energy counter reset");
    }
}

fn clear_accounting(node: &mut Node) {
    if let Some(gpu) = node.any_gpu() {
        node.step(Action::ClearAccounting(AtGpu { gpu }));
        node.case("accounting cleared");
    }
}

const READINGS: [&str; 9] = [
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetProcessUtilization",
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlGpm*",
    "nvmlDeviceGetSamples",
    "nvmlGpuInstanceGetInfo",
    "*",
];

/// Calls that read the driver's rings, all of them among them.
const RINGS: [&str; 3] = ["nvmlDeviceGetProcessUtilization", "nvmlDeviceGetSamples", "*"];

fn reading(node: &mut Node) -> String {
    node.draw.pick(&READINGS).copied().unwrap_or("*").to_owned()
}

fn delay(node: &mut Node) {
    let (call, gpu) = (reading(node), node.any_gpu());
    let (nth, times) = (node.draw.between(1, 20), node.draw.between(1, 3));
    let by = Span(node.draw.between(1, 4000) * 1000);
    node.step(Action::Delay(Delay { call, gpu, gi: None, nth, times: Some(times), lasts: None, by }));
    node.case("calls delayed");
}

fn fail(node: &mut Node) {
    let (call, gpu) = (reading(node), node.any_gpu());
    let returns = node.draw.pick(&[3, 4, 6, 10, 15, 999]).copied().map_or(ReturnCode::UNKNOWN, ReturnCode);
    // `NOT_FOUND` is what the rings of an idle GPU answer: no failure, and of a busy one a lie that nobody can see through.
    let is_idle = returns == ReturnCode(6) && RINGS.contains(&call.as_str());
    let returns = if is_idle { ReturnCode::UNKNOWN } else { returns };
    let (nth, times) = (node.draw.between(1, 20), node.draw.between(1, 6));
    node.step(Action::Fail(Fail { call, gpu, gi: None, nth, times: Some(times), lasts: None, returns }));
    node.case("calls failed");
}

/// A call takes so long that something changes in the middle of what it belongs to.
fn tear(node: &mut Node) {
    let second_us = 1_000_000;
    node.now_us = node.now_us.next_multiple_of(second_us);
    let (gpu, nth) = (node.any_gpu(), node.draw.between(1, 12));
    let by = Span(30_000);
    node.step(Action::Delay(Delay {
        call: "*".to_owned(),
        gpu,
        gi: None,
        nth,
        times: Some(1),
        lasts: None,
        by,
    }));
    node.wait(20_000, 29_000);
    const CHANGES: [Happening; 4] = [recreate, reuse_pid, stop, start];
    let change = node.draw.pick(&CHANGES).copied().unwrap_or(stop);
    change(node);
    node.case("a change in the middle of a cycle");
}

fn xid(node: &mut Node) {
    let Some(gpu) = node.any_gpu() else { return };
    let number = node.draw.pick(&[13, 31, 43, 48, 63, 74, 79, 94, 119]).copied().unwrap_or(13);
    let gi = node.gpus[gpu].instances.first().map(|instance| instance.gi).filter(|_| number != 79);
    node.step(Action::Xid(Xid { gpu, number, gi, ci: gi.map(|_| 0) }));
    node.case("a critical error");
}

fn lie(node: &mut Node) {
    let Some(gpu) = node.any_gpu() else { return };
    let lasts = Some(Span(node.draw.between(1_000_000, 20_000_000)));
    if node.draw.chance(50) {
        let pid = u32::try_from(node.draw.between(0, u64::from(u32::MAX))).unwrap_or(0);
        let rows = vec![GarbageRow { pid, sm: 37_100, timestamp: None }];
        node.step(Action::GarbageRows(GarbageRows { gpu, rows, lasts }));
        node.case("rows that cannot be true");
    } else {
        node.step(Action::WrongEcho(WrongEcho { gpu, metric: 5, lasts }));
        node.case("a metric under a wrong number");
    }
}

fn revoke(node: &mut Node) {
    let gpu = node.any_gpu();
    node.step(Action::Revoke(AnyGpu { gpu }));
    node.wait(500_000, 20_000_000);
    node.step(Action::Restore(AnyGpu { gpu }));
    node.case("access revoked");
}

fn reload_driver(node: &mut Node) {
    let version = node.draw.chance(50).then(|| "580.119.02".to_owned());
    let cuda = version.as_ref().map(|_| 13_000);
    let down = Span(node.draw.between(0, 8_000_000));
    for gpu in 0..node.gpus.len() {
        node.forget(gpu);
    }
    node.step(Action::ReloadDriver(ReloadDriver { version, cuda, down }));
    node.now_us += down.0;
    node.case("a driver reload");
}

fn change_mig(node: &mut Node) {
    let Some(gpu) = node.any_gpu().filter(|gpu| node.gpus[*gpu].model.mig.is_some()) else { return };
    let on = !node.gpus[gpu].is_mig_on;
    node.clear(gpu, |_| true);
    node.forget(gpu);
    node.gpus[gpu].is_mig_on = on;
    node.step(Action::ChangeMig(ChangeMig { gpu, on, pending: false }));
    node.case("a change of MIG mode");
    if on {
        create_at(node, gpu);
        create_at(node, gpu);
    }
}

fn jump_clock(node: &mut Node) {
    let us = i64::try_from(node.draw.between(1, 120)).unwrap_or(1) * 1_000_000;
    let by = Jump(if node.draw.chance(50) { us } else { -us });
    node.step(Action::JumpClock(JumpClock { by }));
    node.case("a jump of the real-time clock");
}
