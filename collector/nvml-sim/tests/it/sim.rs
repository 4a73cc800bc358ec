//! A loaded simulator. Each test runs in a process of its own, as the library takes what it simulates from the environment and is loaded once a process.

use gpuledger_nvml_sim::clock::{FileClock, Stamp};
use gpuledger_nvml_sim::world::World;
use libloading::Library;
use std::ffi::{CString, c_uint};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const UNINITIALIZED: u32 = 1;
pub(crate) const INVALID_ARGUMENT: u32 = 2;
pub(crate) const NOT_SUPPORTED: u32 = 3;
pub(crate) const NO_PERMISSION: u32 = 4;
pub(crate) const NOT_FOUND: u32 = 6;
pub(crate) const INSUFFICIENT_SIZE: u32 = 7;
pub(crate) const DRIVER_NOT_LOADED: u32 = 9;
pub(crate) const TIMEOUT: u32 = 10;
pub(crate) const FUNCTION_NOT_FOUND: u32 = 13;
pub(crate) const GPU_IS_LOST: u32 = 15;
pub(crate) const LIB_RM_VERSION_MISMATCH: u32 = 18;
pub(crate) const VERSION_MISMATCH: u32 = 25;
pub(crate) const UNKNOWN: u32 = 999;

/// One GPU of each kind, for scenarios that begin with it.
pub(crate) const HEAD: &str = "name: test\nuptime: 1h\nstart: 2026-10-01T00:00:00Z\n";

const FOLDER: &str = "GPULEDGER_TEST_SIM";

/// A simulator that is loaded and not yet initialised.
pub(crate) struct Sim {
    library: Library,
    folder: PathBuf,
    clock: FileClock,
    world: World,
}

/// Runs a test on a scenario, with a clock file at its start, in a process of its own.
pub(crate) fn sim<F: FnOnce(&Sim)>(scenario: &str, test: F) {
    run(scenario, "NVML_SIM_CLOCK", test);
}

/// The same on the machine's clock.
pub(crate) fn sim_in_real_time<F: FnOnce(&Sim)>(scenario: &str, test: F) {
    run(scenario, "NO_CLOCK", test);
}

fn run<F: FnOnce(&Sim)>(scenario: &str, clock: &str, test: F) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return test(&Sim::load(Path::new(&folder)));
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("scenario.yaml"), scenario).unwrap();
    let world = World::load(&at("scenario.yaml")).unwrap();
    FileClock::create(&at("clock"), stamp(&world, 0)).unwrap();
    let name = std::any::type_name::<F>().split_once("::").unwrap().1.trim_end_matches("::{{closure}}");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .env("NVML_SIM_SCENARIO", at("scenario.yaml"))
        .env(clock, at("clock"))
        .env("NVML_SIM_PROC", at("proc"))
        .env("NVML_SIM_RECORD", at("record"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{name} did not run: {text}");
}

/// The built library, beside this binary. The one a folder above is only as new as the last `cargo build`.
pub(crate) fn library_path() -> PathBuf {
    let binary = std::env::current_exe().unwrap();
    let path = binary.with_file_name("libgpuledger_nvml_sim.so");
    assert!(path.exists(), "{} is missing", path.display());
    path
}

fn stamp(world: &World, t_us: u64) -> Stamp {
    Stamp { monotonic_us: world.since_boot_us(t_us), realtime_us: world.realtime_us(t_us) }
}

impl Sim {
    fn load(folder: &Path) -> Self {
        // SAFETY: the library is ours; its initialisers do nothing.
        let library = unsafe { Library::new(library_path()) }.unwrap();
        let clock = FileClock::open(&folder.join("clock")).unwrap();
        let world = World::load(&folder.join("scenario.yaml")).unwrap();
        Self { library, folder: folder.to_owned(), clock, world }
    }

    /// The scenario worked out by ourselves.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// The folder of this run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets the clock to an instant of the timeline in milliseconds.
    pub(crate) fn set_ms(&self, t_ms: u64) {
        self.clock.write(stamp(&self.world, t_ms * 1000)).unwrap();
    }

    /// Where the clock stands on the timeline in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.clock.read().unwrap().monotonic_us - self.world.scenario().uptime.0) / 1000
    }

    /// Calls a function by its name; arguments that it does not have are not looked at.
    pub(crate) fn call<const N: usize>(&self, name: &str, arguments: [usize; N]) -> u32 {
        let mut all = [0; 6];
        all[..N].copy_from_slice(&arguments);
        let [a, b, c, d, e, f] = all;
        type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> c_uint;
        // SAFETY: on x86-64 and arm64 integers and pointers go in registers, and a function reads those it has.
        let function = unsafe { self.library.get::<Function>(name.as_bytes()) };
        let function = function.unwrap_or_else(|_| panic!("{name} is not exported"));
        // SAFETY: each test hands in room for what the function writes.
        unsafe { function(a, b, c, d, e, f) }
    }

    /// Calls a function that must succeed.
    #[track_caller]
    pub(crate) fn ok<const N: usize>(&self, name: &str, arguments: [usize; N]) {
        assert_eq!(self.call(name, arguments), SUCCESS, "{name}");
    }

    /// Initialises.
    #[track_caller]
    pub(crate) fn init(&self) {
        self.ok("nvmlInit_v2", []);
    }

    /// The handle of a GPU.
    #[track_caller]
    pub(crate) fn gpu(&self, index: usize) -> usize {
        self.handle("nvmlDeviceGetHandleByIndex_v2", [index])
    }

    /// The handle of a MIG device.
    #[track_caller]
    pub(crate) fn mig(&self, gpu: usize, index: usize) -> usize {
        self.handle("nvmlDeviceGetMigDeviceHandleByIndex", [gpu, index])
    }

    /// A handle that a function writes behind its arguments.
    #[track_caller]
    pub(crate) fn handle<const N: usize>(&self, name: &str, arguments: [usize; N]) -> usize {
        let mut handle = [0_usize];
        let mut all = [0; 6];
        all[..N].copy_from_slice(&arguments);
        all[N] = address(&mut handle);
        self.ok(name, all);
        handle[0]
    }

    /// A number of 32 bits that a function writes behind a handle.
    pub(crate) fn number(&self, name: &str, device: usize) -> Result<u32, u32> {
        let mut number = [0_u32; 2];
        match self.call(name, [device, address(&mut number)]) {
            SUCCESS => Ok(number[0]),
            code => Err(code),
        }
    }

    /// Text that a function writes behind its arguments.
    pub(crate) fn text<const N: usize>(&self, name: &str, arguments: [usize; N]) -> Result<String, u32> {
        let mut room = [0xff_u8; 96];
        let mut all = [0; 6];
        all[..N].copy_from_slice(&arguments);
        (all[N], all[N + 1]) = (address(&mut room), room.len());
        match self.call(name, all) {
            SUCCESS => Ok(std::ffi::CStr::from_bytes_until_nul(&room).unwrap().to_str().unwrap().to_owned()),
            code => Err(code),
        }
    }

    /// The text of a return code.
    pub(crate) fn error_text(&self, code: u32) -> String {
        type Function = unsafe extern "C" fn(c_uint) -> *const std::ffi::c_char;
        // SAFETY: this is the function's signature.
        let function = unsafe { self.library.get::<Function>(b"nvmlErrorString") }.unwrap();
        // SAFETY: any number may be asked for.
        let text = unsafe { function(code) };
        // SAFETY: the library answers with static texts.
        unsafe { std::ffi::CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    }

    /// Text as an argument.
    pub(crate) fn by_text(&self, name: &str, text: &str) -> Result<usize, u32> {
        let text = CString::new(text).unwrap();
        let mut handle = [0_usize];
        match self.call(name, [text.as_ptr().expose_provenance(), address(&mut handle)]) {
            SUCCESS => Ok(handle[0]),
            code => Err(code),
        }
    }
}

/// The address of room for an answer.
pub(crate) fn address<T>(room: &mut [T]) -> usize {
    room.as_mut_ptr().expose_provenance()
}

/// Bytes as 32-bit words: what structures are looked at by.
pub(crate) fn halves(words: &[u64]) -> Vec<u32> {
    words
        .iter()
        .flat_map(|word| {
            let bytes = word.to_le_bytes();
            [0, 4].map(|at| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i])))
        })
        .collect()
}
