//! A fleet on a library that says what the test wants: what comes late is heard, and who hangs holds up nobody.

use super::*;
use crate::cycle::tests::world::{S, Script, World};
use crate::metrics::Board;
use crate::pods::{Listing, Pods};
use crate::publish::PublishWatch;
use crate::run::labels::tests::listing;
use crate::run::witness::Witness;
use crate::spool::Spool;
use gpuledger_nvml::Identity;
use gpuledger_telemetry::health::Health;
use std::fs;
use std::sync::Mutex;
use std::sync::mpsc::channel;

struct Rig {
    fleet: Fleet,
    node: Node,
    board: Arc<Board>,
    spool: Spool,
    world: World,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn new(world: &World, deadline_ms: u64, library: impl FnMut(Order) -> Report + Send + 'static) -> Self {
        Self::listed(world, deadline_ms, library, None)
    }

    /// With the names of dcgm-exporter where a kubelet has told its pods.
    fn listed(
        world: &World,
        deadline_ms: u64,
        library: impl FnMut(Order) -> Report + Send + 'static,
        latest: Option<Arc<Listing>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let proc_root = folder.path().join("proc");
        fs::create_dir_all(proc_root.join("sys/kernel/random")).unwrap();
        fs::write(proc_root.join("sys/kernel/random/boot_id"), "b1\n").unwrap();
        fs::write(proc_root.join("stat"), "btime 1700000000\n").unwrap();
        let mut settings = Settings {
            node: "n1".to_owned(),
            call_deadline_ms: deadline_ms,
            proc_root,
            dcgm_names: latest.is_some(),
            ..Settings::default()
        };
        settings.spool.folder = folder.path().join("spool");
        let name = Name::new("n1").unwrap();
        let clock: Arc<dyn Clock> = Arc::new(world.clone());
        let spool = Spool::open(settings.spool.clone(), name.clone()).unwrap();
        let (health, stale_us, dcgm) = (Health::default(), settings.stale_us(), settings.dcgm_names);
        let board = Arc::new(Board::new("n1", Arc::clone(&clock), health, stale_us, dcgm));
        let witness = Witness::Asked { pods: Pods::default(), latest, next_us: u64::MAX };
        let watch = PublishWatch::default();
        let node = Node::new(name, &settings, spool.clone(), Arc::clone(&board), watch, witness);
        let fleet = Fleet::of(Lane::start("nvml", library).unwrap(), &settings, clock);
        Self { fleet, node, board, spool, world: world.clone(), _folder: folder }
    }

    /// One cycle at this second.
    fn cycle(&mut self, second: u64) -> Result<(), Trouble> {
        self.world.go_to(second * S);
        self.fleet.cycle(&mut self.node)
    }

    /// Cycles, all at once, until something holds.
    fn cycle_until(&mut self, holds: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(10);
        while !holds(self) {
            assert!(Instant::now() < until, "it does not come");
            drop(self.fleet.cycle(&mut self.node));
        }
    }

    fn shows(&self, text: &str) -> bool {
        self.board.exposition().contains(text)
    }
}

fn world() -> World {
    World::new(Script::default())
}

fn device(world: &World, index: u32, uuid: &str) -> Opened {
    let identity = Identity { uuid: uuid.to_owned(), index, ..world.gpu().identity().unwrap() };
    Opened { index, device: Ok((identity, Box::new(world.gpu()))) }
}

fn failed(index: u32, why: Absent) -> Opened {
    Opened { index, device: Err(why) }
}

fn no_events() -> Report {
    Report::Events(Vec::new(), None)
}

/// A library with one GPU.
fn sound(world: &World) -> impl FnMut(Order) -> Report + Send + 'static {
    let world = world.clone();
    move |order| match order {
        Order::Load => Report::Loaded(None, Ok(vec![device(&world, 0, "GPU-1")])),
        Order::Open => Report::Opened(Ok(vec![device(&world, 0, "GPU-1")])),
        Order::Events => no_events(),
    }
}

#[test]
fn a_device_that_is_opened_late_is_measured() {
    let (world, (open, gate)) = (world(), channel::<()>());
    let opened = world.clone();
    let mut rig = Rig::new(&world, 50, move |order| match order {
        Order::Load => Report::Loaded(None, Ok(vec![failed(0, Absent::TimedOut)])),
        Order::Open => {
            gate.recv().unwrap();
            Report::Opened(Ok(vec![device(&opened, 0, "GPU-1")]))
        }
        Order::Events => no_events(),
    });
    for second in 0..3 {
        assert!(rig.cycle(second).is_ok());
        assert!(rig.fleet.lanes.is_empty());
    }
    open.send(()).unwrap();
    rig.cycle_until(|rig| rig.fleet.lanes.len() == 1);
}

#[test]
fn an_event_that_comes_late_is_not_lost() {
    let (world, (say, gate)) = (world(), channel::<()>());
    let mut sound = sound(&world);
    let mut rig = Rig::new(&world, 50, move |order| match order {
        Order::Events if gate.recv().is_ok() => {
            let xid = DeviceEvent { gpu: "GPU-1".to_owned(), gpu_instance: None, kind: EventKind::Xid(79) };
            Report::Events(vec![xid], None)
        }
        order => sound(order),
    });
    for second in 0..3 {
        assert!(rig.cycle(second).is_ok());
    }
    let xid = "gpuledger_gpu_xid_errors_total{gpu=\"GPU-1\",xid=\"79\"} 1";
    assert!(!rig.shows(xid));
    say.send(()).unwrap();
    rig.cycle_until(|rig| rig.shows(xid));
}

#[test]
fn a_gpu_that_hangs_does_not_slow_down_the_others() {
    let (world, hanging) = (world(), World::new(Script::default()));
    let worlds = (world.clone(), hanging.clone());
    let mut rig = Rig::new(&world, 200, move |order| match order {
        Order::Load => {
            Report::Loaded(None, Ok(vec![device(&worlds.0, 0, "GPU-1"), device(&worlds.1, 1, "GPU-2")]))
        }
        Order::Open => panic!("nobody asks for a handle of a GPU that hangs"),
        Order::Events => no_events(),
    });
    assert!(rig.cycle(0).is_ok());
    let before = world.calls("mig_mode");
    let hang = hanging.hang();
    let began = Instant::now();
    for second in 1..=20 {
        assert!(rig.cycle(second).is_ok());
    }
    assert!(began.elapsed() < Duration::from_secs(3), "one deadline, and not one a cycle");
    rig.cycle_until(|_| world.calls("mig_mode") >= before + 20);
    assert!(
        rig.shows("gpuledger_collector_stalled_calls_total{gpu=\"GPU-2\"} 1"),
        "{}",
        rig.board.exposition()
    );
    drop(hang);
    rig.cycle_until(|_| hanging.calls("mig_mode") >= 3);
}

#[test]
fn a_library_that_loads_and_is_of_no_use_is_loaded_less_and_less_often() {
    let world = world();
    world.edit(|script| {
        script.errors.insert("mig_mode", Absent::Uninitialized);
    });
    let loads = Arc::new(Mutex::new(0));
    let (counted, mut sound) = (Arc::clone(&loads), sound(&world));
    let mut rig = Rig::new(&world, 10_000, move |order| {
        *counted.lock().unwrap() += u32::from(order == Order::Load);
        sound(order)
    });
    for second in 0..60 {
        drop(rig.cycle(second));
    }
    // After 0, 1, 3, 7, 15 and 31 seconds; fewer where the lane is slow to say that it is of no use.
    let loads = *loads.lock().unwrap();
    assert!((3..=6).contains(&loads), "{loads}");
}

#[test]
fn a_new_driver_may_count_its_devices_anew() {
    let world = world();
    let opened = world.clone();
    let mut rig = Rig::new(&world, 10_000, move |order| match order {
        Order::Load => Report::Loaded(
            None,
            Ok(vec![device(&opened, 0, "GPU-1"), device(&opened, 1, "GPU-2"), failed(2, Absent::Unknown)]),
        ),
        Order::Open => Report::Opened(Ok(vec![device(&opened, 0, "GPU-2"), failed(1, Absent::Lost)])),
        Order::Events => no_events(),
    });
    for second in 0..10 {
        assert!(rig.cycle(second).is_ok());
    }
    let state = "gpuledger_gpu_state{gpu=\"GPU-2\",state=\"ok\"} 1";
    assert!(rig.shows(state), "its old place is lost, not it: {}", rig.board.exposition());
}

#[test]
fn at_the_end_the_cycle_under_way_is_heard() {
    let world = world();
    let mut rig = Rig::new(&world, 10_000, sound(&world));
    for second in 0..5 {
        assert!(rig.cycle(second).is_ok());
    }
    rig.world.go_to(5 * S);
    rig.fleet.lanes.values_mut().for_each(DeviceLane::order_cycle);
    rig.fleet.end(&mut rig.node);
    rig.node.end(world.now());
    assert_eq!(world.calls("mig_mode"), 6);
    assert_eq!(rig.spool.status().windows, 1);
    assert!(!rig.shows("timed_out"), "{}", rig.board.exposition());
}

#[test]
fn the_heartbeat_goes_on_when_utc_is_set_back() {
    let world = world();
    let mut rig = Rig::new(&world, 10_000, sound(&world));
    for second in 0..5 {
        assert!(rig.cycle(second).is_ok());
    }
    let before = rig.spool.status().facts;
    world.step_utc(-86_400_000_000);
    for second in 5..130 {
        assert!(rig.cycle(second).is_ok());
    }
    assert!(rig.spool.status().facts >= before + 3, "{} after {before}", rig.spool.status().facts);
}

#[test]
fn with_the_names_of_dcgm_exporter_a_unit_carries_the_pod_it_was_given_to() {
    let world = world();
    let mut rig = Rig::listed(&world, 10_000, sound(&world), Some(listing("train-0")));
    rig.cycle_until(|rig| rig.shows("namespace=\"ml\",pod=\"train-0\"} "));
    assert!(rig.shows("DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-1\""), "{}", rig.board.exposition());
}

#[test]
fn a_gpu_that_the_driver_no_longer_lists_is_let_go_and_one_without_a_name_is_told() {
    let world = world();
    let opened = world.clone();
    let mut rig = Rig::new(&world, 10_000, move |order| match order {
        Order::Load => Report::Loaded(
            None,
            Ok(vec![device(&opened, 0, "GPU-1"), device(&opened, 1, "GPU-2"), failed(2, Absent::Lost)]),
        ),
        Order::Open => Report::Opened(Ok(vec![device(&opened, 0, "GPU-1")])),
        Order::Events => no_events(),
    });
    assert!(rig.cycle(0).is_ok());
    // The backoff of opening lets the first cycle ask at once.
    assert_eq!(rig.fleet.lanes.len(), 1, "the second list has no GPU-2, and nothing in it failed");
    assert_eq!(rig.fleet.nameless(), None);
    assert!(rig.node.has_only(&["GPU-1"]));
}

#[test]
fn a_device_that_was_never_opened_is_told() {
    let world = world();
    let opened = world.clone();
    let devices = move || vec![device(&opened, 0, "GPU-1"), failed(1, Absent::NoPermission)];
    let mut rig = Rig::new(&world, 10_000, move |order| match order {
        Order::Load => Report::Loaded(None, Ok(devices())),
        Order::Open => Report::Opened(Ok(devices())),
        Order::Events => no_events(),
    });
    assert!(rig.cycle(0).is_ok());
    let told = "1 devices cannot be opened; the first is 1: no_permission";
    assert_eq!(rig.fleet.nameless().as_deref(), Some(told));
}

#[test]
fn windows_go_on_while_there_is_no_driver() {
    let world = world();
    let mut rig = Rig::new(&world, 10_000, sound(&world));
    for second in 0..15 {
        assert!(rig.cycle(second).is_ok());
    }
    let (facts, windows) = (rig.spool.status().facts, rig.spool.status().windows);
    for second in 15..60 {
        rig.world.go_to(second * S);
        rig.node.go_on(rig.world.now());
    }
    assert!(rig.spool.status().windows >= windows + 3, "{windows}");
    assert_eq!(rig.spool.status().facts, facts, "nobody has seen an inventory");
}
