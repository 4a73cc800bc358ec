//! A device whose processes nothing tells apart: the rule is named, and the parts are never more than the whole.

use super::world::{Script, job};
use super::{Rig, label};
use gpuledger_nvml::{Absent, ProcessKind};

fn unsampled() -> Script {
    let errors = [("process_utilization", Absent::NotSupported)].into();
    Script { errors, gpm: Ok(true), ..Script::default() }
}

#[test]
fn several_processes_have_equal_parts_of_the_device() {
    let jobs = vec![job(7, 0, 100, 500_000), job(8, 0, 100, 100_000), job(9, 0, 100, 0)];
    let mut rig = Rig::new(Script { jobs, ..unsampled() });
    rig.run(0, 24);
    let device = rig.device(10).sm_active_us.unwrap().get();
    let parts: Vec<i64> = [7, 8, 9].map(|pid| rig.process(10, pid).sm_active_us.unwrap().get()).to_vec();
    assert_eq!((device, parts.iter().sum::<i64>()), (6_000_000, 6_000_000));
    assert_eq!(parts, [2_000_000; 3]);
    assert_eq!(label(&rig.process(10, 7).quality, "sm_active_us"), "derived_share(equal)");
}

#[test]
fn a_sole_process_has_all_of_the_device() {
    let mut rig = Rig::new(Script { jobs: vec![job(7, 0, 100, 500_000)], ..unsampled() });
    rig.run(0, 24);
    assert_eq!(rig.process(10, 7).sm_active_us.unwrap().get(), 5_000_000);
    assert_eq!(label(&rig.process(10, 7).quality, "sm_active_us"), "derived_share(sole_process)");
}

#[test]
fn the_server_of_mps_has_no_part_of_its_clients_work() {
    let mut jobs = vec![job(6, 0, 100, 0), job(7, 0, 100, 500_000), job(8, 0, 100, 100_000)];
    jobs[1].kind = ProcessKind::MpsClient;
    jobs[2].kind = ProcessKind::MpsClient;
    let mut rig = Rig::new(Script { jobs, ..unsampled() });
    rig.run(0, 24);
    assert_eq!(rig.process(10, 6).sm_active_us, None);
    assert_eq!(rig.process(10, 7).sm_active_us.unwrap().get(), 3_000_000);
    assert_eq!(rig.process(10, 8).sm_active_us.unwrap().get(), 3_000_000);
}

#[test]
fn a_process_that_comes_in_an_interval_has_no_part_of_it() {
    let jobs = vec![job(7, 0, 100, 500_000), job(8, 14, 100, 500_000)];
    let mut rig = Rig::new(Script { jobs, ..unsampled() });
    rig.run_at(0, 34, 500_000);
    rig.flush();
    let parts = rig.of_pid(7).sm_us + rig.of_pid(8).sm_us;
    assert!(parts <= rig.sum().units[&None].sm_us);
    assert_eq!(rig.of_pid(8).covered_us, 20_000_000, "from 14.5 on");
}
