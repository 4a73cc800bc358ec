//! What stands between initialisation and shutdown, and what stays beyond.

use super::argument::Argument;
use super::code::Code;
use super::events::Sets;
use super::gpm::Samples;
use super::record::Record;
use super::since::{self, Release};
use crate::clock::{CLOCK_VARIABLE, START_VARIABLE, SimClock};
use crate::injection::Injector;
use crate::procfs::{FakeProc, PROC_VARIABLE};
use crate::scenario::{self, Fault};
use crate::world::World;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Name of the variable with the path of the scenario.
pub(super) const SCENARIO_VARIABLE: &str = "NVML_SIM_SCENARIO";
/// Name of the variable with the path of the record of calls.
pub(super) const RECORD_VARIABLE: &str = "NVML_SIM_RECORD";

const VARIABLES: [&str; 5] =
    [SCENARIO_VARIABLE, CLOCK_VARIABLE, START_VARIABLE, PROC_VARIABLE, RECORD_VARIABLE];

/// The simulated node: it stays when the library is shut down and initialised again, as a node does.
pub(super) struct Host {
    variables: [Option<OsString>; VARIABLES.len()],
    pub(super) world: World,
    pub(super) injector: Injector,
    clock: SimClock,
    procfs: Option<Mutex<FakeProc>>,
    record: Option<Record>,
}

/// An initialised library.
pub(super) struct Engine {
    pub(super) host: Arc<Host>,
    pub(super) sets: Mutex<Sets>,
    pub(super) samples: Mutex<Samples>,
    /// Which driver was loaded when it was initialised.
    pub(super) driver_epoch: u32,
    /// Its release.
    pub(super) release: Release,
}

struct Library {
    users: u32,
    engine: Option<Arc<Engine>>,
    host: Option<Arc<Host>>,
}

static LIBRARY: RwLock<Library> = RwLock::new(Library { users: 0, engine: None, host: None });

/// Why there is no node to simulate.
#[derive(Debug, thiserror::Error)]
enum HostError {
    #[error("{SCENARIO_VARIABLE} is not set, expected the path of a scenario")]
    NoScenario,
    #[error("{0}")]
    Scenario(#[from] Fault),
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
}

/// The library as it was initialised. A call holds it to its end, so that one that takes long keeps no lock.
pub(super) fn current() -> Result<Arc<Engine>, Code> {
    let library = LIBRARY.read().unwrap_or_else(PoisonError::into_inner);
    library.engine.clone().ok_or(Code::UNINITIALIZED)
}

/// Counts one user more; the first one loads the scenario.
pub(super) fn initialise(name: &str, arguments: &[&dyn Argument]) -> Result<(), Code> {
    let mut library = LIBRARY.write().unwrap_or_else(PoisonError::into_inner);
    if library.engine.is_none() {
        let variables = VARIABLES.map(std::env::var_os);
        let known = library.host.take().filter(|host| host.variables == variables);
        let host = match known {
            Some(host) => host,
            None => Arc::new(load(variables).map_err(complain)?),
        };
        library.host = Some(Arc::clone(&host));
        host.record(name, arguments);
        library.engine = Some(Arc::new(Engine::new(host, name)?));
    }
    library.users += 1;
    Ok(())
}

/// Counts one user less; the last one ends it.
pub(super) fn shut_down() -> Result<(), Code> {
    let mut library = LIBRARY.write().unwrap_or_else(PoisonError::into_inner);
    library.users = library.users.checked_sub(1).ok_or(Code::UNINITIALIZED)?;
    if library.users == 0
        && let Some(engine) = library.engine.take()
    {
        engine.host.record("nvmlShutdown", &[]);
    }
    Ok(())
}

/// NVML can only return a number; without a word to the person who set the simulator up, a wrong path would be a riddle.
fn complain(error: HostError) -> Code {
    eprintln!("gpuledger-nvml-sim: {error}");
    Code::UNKNOWN
}

/// A lock whose holder may have panicked: what these guard is whole between any two statements.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn load(variables: [Option<OsString>; VARIABLES.len()]) -> Result<Host, HostError> {
    let [scenario, clock, _, proc, record] = &variables;
    let path = Path::new(scenario.as_ref().ok_or(HostError::NoScenario)?);
    let mut scenario = scenario::read_file(path)?;
    let named = |name: &str, value: &Option<OsString>| {
        let value = value.as_deref().unwrap_or_default().display().to_string();
        let what = format!("{name}={value}");
        move |source| HostError::Io { what, source }
    };
    let clock = SimClock::from_environment(&mut scenario).map_err(named(CLOCK_VARIABLE, clock))?;
    let world = World::new(scenario).map_err(|fault| Fault { file: path.display().to_string(), ..fault })?;
    let record = match record {
        None => None,
        Some(path) => Some(Record::open(Path::new(path)).map_err(named(RECORD_VARIABLE, record))?),
    };
    Ok(Host {
        injector: Injector::new(&world),
        procfs: proc.as_ref().map(|root| Mutex::new(FakeProc::new(Path::new(root)))),
        world,
        clock,
        record,
        variables,
    })
}

impl Host {
    /// Where the timeline stands.
    pub(super) fn now_us(&self) -> Result<u64, Code> {
        self.clock.now_us(&self.world).map_err(|_| Code::UNKNOWN)
    }

    /// Lets a call take its time. Hold no lock.
    pub(super) fn pass(&self, by_us: u64) -> Result<(), Code> {
        self.clock.pass(by_us).map_err(|_| Code::UNKNOWN)
    }

    /// Whether nobody needs to wait for the clock to be moved on.
    pub(super) fn is_real_time(&self) -> bool {
        matches!(self.clock, SimClock::Real { .. })
    }

    /// Makes `/proc` equal to an instant.
    pub(super) fn refresh_procfs(&self, t_us: u64) -> Result<(), Code> {
        let Some(procfs) = &self.procfs else { return Ok(()) };
        lock(procfs).refresh(&self.world, t_us).map_err(|_| Code::UNKNOWN)
    }

    /// Adds a call to the record.
    pub(super) fn record(&self, name: &str, arguments: &[&dyn Argument]) {
        if let Some(record) = &self.record {
            record.line(name, arguments);
        }
    }
}

impl Engine {
    /// Whether it was not shut down.
    pub(super) fn is_current(self: &Arc<Self>) -> bool {
        current().is_ok_and(|engine| Arc::ptr_eq(&engine, self))
    }

    fn new(host: Arc<Host>, name: &str) -> Result<Self, Code> {
        let before_us = host.now_us()?;
        let verdict = host.injector.consult(&host.world, name, None, None, before_us);
        host.pass(verdict.delay_us)?;
        verdict.returns.map_or(Ok(()), Err)?;
        let t_us = host.now_us()?;
        host.refresh_procfs(t_us)?;
        let driver = host.world.driver(t_us).ok_or(Code::DRIVER_NOT_LOADED)?;
        Ok(Self {
            driver_epoch: driver.epoch,
            release: since::release(&driver.driver.version),
            sets: Mutex::default(),
            samples: Mutex::default(),
            host: Arc::clone(&host),
        })
    }
}
