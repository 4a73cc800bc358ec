use super::super::Cause;
use super::*;

const SECOND: u64 = 1_000_000;

/// Monotonic seconds; the node's clock began at 1,000 seconds of Unix time.
fn at(second: u64) -> Stamp {
    let micros = i64::try_from(second * SECOND).unwrap();
    Stamp { monotonic_us: second * SECOND, real: Instant::from_micros(1_000_000_000 + micros) }
}

fn gpu() -> GpuHealth {
    GpuHealth::new(Name::new("GPU-1").unwrap())
}

fn xid(number: u64) -> Signal {
    Signal::Xid { xid: Xid(number), placement: None, mps: false }
}

const fn read(recovery: Option<Recovery>) -> Signal {
    Signal::Read { recovery, energy_mj: None }
}

/// What was said: second, state, cause.
fn said(verdict: &Verdict) -> Vec<(i64, State, Option<String>)> {
    let row = |change: &Change| {
        let second = (change.at.as_micros() - 1_000_000_000) / 1_000_000;
        (second, change.state.state, change.state.cause.as_ref().map(ToString::to_string))
    };
    verdict.changes.iter().map(row).collect()
}

fn fault(second: i64, cause: &str) -> Vec<(i64, State, Option<String>)> {
    vec![(second, State::Fault, Some(cause.to_owned()))]
}

fn ok(second: i64) -> Vec<(i64, State, Option<String>)> {
    vec![(second, State::Ok, None)]
}

#[test]
fn a_sound_gpu_says_nothing_not_even_that_it_is_sound() {
    let mut health = gpu();
    for second in 0..100 {
        assert_eq!(health.on(read(Some(Recovery::Nothing)), at(second)), Verdict::default());
    }
    assert_eq!(health.word(), "ok");
}

#[test]
fn a_lost_gpu_is_a_hardware_fault_from_that_instant_and_ok_when_it_reads_again() {
    let mut health = gpu();
    assert_eq!(said(&health.on(Signal::Failed(Absent::Lost), at(5))), fault(5, "hardware"));
    assert_eq!(health.word(), "fault");
    for second in 6..60 {
        assert_eq!(health.on(Signal::Failed(Absent::Lost), at(second)), Verdict::default(), "said once");
    }
    assert_eq!(said(&health.on(read(None), at(60))), ok(60));
    assert_eq!(health.word(), "ok");
}

#[test]
fn the_error_of_a_program_faults_nothing() {
    for number in [8, 13, 31, 43, 45, 68, 69] {
        let verdict = gpu().on(xid(number), at(1));
        assert_eq!(verdict.changes, [], "Xid {number}");
        assert_eq!(verdict.notes.len(), 1, "it is logged");
    }
}

#[test]
fn the_error_of_a_program_does_not_classify_a_fault_that_runs() {
    let mut health = gpu();
    assert_eq!(said(&health.on(xid(777), at(1))), fault(1, "unknown"));
    assert_eq!(said(&health.on(xid(31), at(2))), []);
    assert_eq!(health.fault().map(Fault::cause), Some(Cause::Unknown));
}

#[test]
fn an_unknown_fault_becomes_a_hardware_fault_and_never_the_other_way_round() {
    let mut health = gpu();
    assert_eq!(said(&health.on(xid(777), at(1))), fault(1, "unknown"));
    assert_eq!(said(&health.on(xid(79), at(2))), fault(2, "hardware"));
    assert_eq!(said(&health.on(xid(778), at(3))), [], "definite stays definite");
    assert_eq!(said(&health.on(Signal::Failed(Absent::ResetRequired), at(4))), []);
}

#[test]
fn an_unknown_xid_ends_with_the_first_good_cycle_that_is_not_too_fresh() {
    let mut health = gpu();
    health.on(xid(777), at(10));
    assert_eq!(said(&health.on(read(None), at(11))), [], "the cycle may have begun before the error");
    assert_eq!(said(&health.on(read(None), at(12))), ok(12));
}

type Act = fn(&mut GpuHealth) -> Verdict;

#[test]
fn a_hardware_xid_outlasts_good_cycles_until_something_proves_a_repair() {
    let proofs: [(&str, Act); 4] = [
        ("the driver wants nothing", |health| health.on(read(Some(Recovery::Nothing)), at(100))),
        ("the energy counter began anew", |health| {
            health.on(Signal::Read { recovery: None, energy_mj: Some(3) }, at(100))
        }),
        ("the driver was loaded anew", |health| {
            assert_eq!(health.on(Signal::Reloaded, at(99)), Verdict::default());
            health.on(read(None), at(100))
        }),
        ("it was away and came back", |health| {
            health.on(Signal::Failed(Absent::Lost), at(99));
            health.on(read(None), at(100))
        }),
    ];
    for (proof, act) in proofs {
        let mut health = gpu();
        health.on(Signal::Read { recovery: None, energy_mj: Some(5_000) }, at(1));
        assert_eq!(said(&health.on(xid(48), at(2))), fault(2, "hardware"));
        for second in 3..99 {
            let good = Signal::Read { recovery: None, energy_mj: Some(5_000 + second) };
            assert_eq!(said(&health.on(good, at(second))), [], "{proof}: not before");
        }
        assert_eq!(said(&act(&mut health)), ok(100), "{proof}");
    }
}

/// The action is read every ten seconds: what is at hand right after an error may be older than it.
#[test]
fn what_the_driver_wanted_before_the_error_proves_nothing() {
    let mut health = gpu();
    health.on(read(Some(Recovery::Nothing)), at(1));
    health.on(xid(48), at(2));
    for second in 3..17 {
        assert_eq!(said(&health.on(read(Some(Recovery::Nothing)), at(second))), [], "second {second}");
    }
    assert_eq!(said(&health.on(read(Some(Recovery::Nothing)), at(17))), ok(17));
}

#[test]
fn what_the_driver_wants_faults_the_gpu_only_where_work_must_stop() {
    for (action, stops) in [(1, true), (2, true), (3, false), (4, false), (9, false)] {
        let mut health = gpu();
        let verdict = health.on(read(Some(Recovery::from(action))), at(1));
        assert_eq!(said(&verdict), if stops { fault(1, "unknown") } else { vec![] }, "action {action}");
        assert_eq!(verdict.notes, [Note::Recovery(Recovery::from(action))]);
        assert_eq!(health.on(read(Some(Recovery::from(action))), at(2)), Verdict::default(), "said once");
        let over = health.on(read(Some(Recovery::Nothing)), at(9));
        assert_eq!(said(&over), if stops { ok(9) } else { vec![] }, "action {action}");
    }
}

#[test]
fn a_gpu_that_comes_back_and_still_wants_a_reset_stays_in_fault() {
    let mut health = gpu();
    health.on(Signal::Failed(Absent::Lost), at(1));
    assert_eq!(said(&health.on(read(Some(Recovery::Reset)), at(9))), []);
    assert_eq!(health.word(), "fault");
    assert_eq!(said(&health.on(read(Some(Recovery::Nothing)), at(20))), ok(20));
}

#[test]
fn not_being_able_to_look_is_no_fault() {
    let reasons = [Absent::Unknown, Absent::TimedOut, Absent::DriverMismatch, Absent::DriverNotLoaded];
    for why in reasons.into_iter().chain([Absent::Uninitialized, Absent::NoPermission]) {
        let mut health = gpu();
        let verdict = health.on(Signal::Failed(why), at(1));
        assert_eq!((verdict.changes, verdict.notes), (vec![], vec![Note::Blind(why)]));
        assert_eq!(health.blind().map(|blind| blind.why), Some(why));
        assert_eq!(health.on(Signal::Failed(why), at(2)), Verdict::default(), "noted once");
        assert_eq!(health.on(read(None), at(3)).notes, [Note::Sees], "and its end");
        assert_eq!(health.blind(), None);
    }
}

#[test]
fn an_unknown_xid_of_an_instance_leaves_its_neighbours_alone() {
    let placement = Placement { start: 4, size: 4 };
    let mut health = gpu();
    let signal = Signal::Xid { xid: Xid(777), placement: Some(placement), mps: false };
    let verdict = health.on(signal, at(1));
    let wire = verdict.changes[0].state.placement.unwrap();
    assert_eq!((wire.start.get(), wire.size.get()), (4, 4));
    assert_eq!(health.word(), "ok");
    let over = health.on(read(None), at(9));
    assert_eq!(said(&over), ok(9));
    assert_eq!(over.changes[0].state.placement, Some(wire));
}

#[test]
fn a_hardware_xid_of_an_instance_takes_the_device() {
    let signal = Signal::Xid { xid: Xid(95), placement: Some(Placement { start: 0, size: 4 }), mps: false };
    assert_eq!(gpu().on(signal, at(1)).changes[0].state.placement, None);
}

#[test]
fn the_end_of_a_device_fault_clears_its_instances_with_one_word() {
    let mut health = gpu();
    let placement = Placement { start: 0, size: 4 };
    health.on(Signal::Xid { xid: Xid(777), placement: Some(placement), mps: false }, at(1));
    health.on(Signal::Failed(Absent::Lost), at(2));
    let over = health.on(read(None), at(9));
    assert_eq!((said(&over), over.changes[0].state.placement), (ok(9), None));
    assert!(health.instance_faults().is_empty());
}

#[test]
fn under_mps_the_detail_says_that_all_clients_ended() {
    let verdict = gpu().on(Signal::Xid { xid: Xid(777), placement: None, mps: true }, at(1));
    let detail = verdict.changes[0].state.detail.as_deref().unwrap();
    assert_eq!(detail, "Xid 777; it ended every client of the MPS server");
    let application = gpu().on(Signal::Xid { xid: Xid(31), placement: None, mps: true }, at(1));
    assert_eq!(application.notes, [Note::Xid { xid: Xid(31), placement: None, mps: true }]);
}
