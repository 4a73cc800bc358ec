//! The time of the timeline: the machine's, or a file that somebody drives.
//!
//! The clock file is 16 bytes, little endian: `u64` microseconds since boot by the monotonic clock, `i64` microseconds of Unix time. It is read with one
//! `read_exact_at` and written with one `write_all_at`.

use crate::scenario::{Scenario, Timestamps};
use crate::world::World;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// What a clock file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Microseconds since boot.
    pub monotonic_us: u64,
    /// Microseconds of Unix time.
    pub realtime_us: i64,
}

/// An opened clock file.
#[derive(Debug)]
pub struct FileClock {
    file: File,
}

impl FileClock {
    /// Opens a clock file.
    ///
    /// # Errors
    /// It is not there, or may not be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::options().read(true).write(true).open(path)? })
    }

    /// Makes a clock file, or sets one.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path, stamp: Stamp) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let clock = Self { file };
        clock.write(stamp)?;
        Ok(clock)
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is shorter than 16 bytes, or cannot be read.
    pub fn read(&self) -> io::Result<Stamp> {
        let mut bytes = [0; 16];
        self.file.read_exact_at(&mut bytes, 0)?;
        let [monotonic, realtime] = [0, 8].map(|at| std::array::from_fn(|i| bytes[at + i]));
        Ok(Stamp { monotonic_us: u64::from_le_bytes(monotonic), realtime_us: i64::from_le_bytes(realtime) })
    }

    /// Writes it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, stamp: Stamp) -> io::Result<()> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&stamp.monotonic_us.to_le_bytes());
        bytes[8..].copy_from_slice(&stamp.realtime_us.to_le_bytes());
        self.file.write_all_at(&bytes, 0)
    }

    /// Moves both of its times on.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn advance(&self, by_us: u64) -> io::Result<()> {
        let stamp = self.read()?;
        self.write(Stamp {
            monotonic_us: stamp.monotonic_us.saturating_add(by_us),
            realtime_us: stamp.realtime_us.saturating_add_unsigned(by_us),
        })
    }

    fn shift_realtime(&self, by_us: i64) -> io::Result<()> {
        let stamp = self.read()?;
        self.write(Stamp { realtime_us: stamp.realtime_us.saturating_add(by_us), ..stamp })
    }
}

/// The clock of a loaded simulator.
#[derive(Debug)]
pub enum SimClock {
    /// The machine's.
    Real {
        /// When the process first asked.
        since: Instant,
        /// Where the timeline stood then.
        t_us: u64,
    },
    /// A file.
    File {
        /// The file.
        clock: FileClock,
        /// Microseconds since boot at which the timeline begins.
        origin_us: u64,
        /// Sum of the jumps of the timeline that were made in the file; `i64::MIN` before the first look.
        jumped_us: AtomicI64,
    },
}

/// Name of the variable with the path of the clock file.
pub const CLOCK_VARIABLE: &str = "NVML_SIM_CLOCK";
/// Name of the variable with the Unix time in microseconds at which a timeline on the machine's clock begins.
pub const START_VARIABLE: &str = "NVML_SIM_START";

impl SimClock {
    /// The clock the environment asks for. On the machine's clock the scenario is moved to begin at the whole second of [`START_VARIABLE`], or of now.
    ///
    /// # Errors
    /// The file cannot be opened, or the start is no number or later than now.
    pub fn from_environment(scenario: &mut Scenario) -> io::Result<Self> {
        if let Some(path) = std::env::var_os(CLOCK_VARIABLE) {
            return Ok(Self::file(FileClock::open(Path::new(&path))?, scenario));
        }
        let start = match std::env::var(START_VARIABLE) {
            Ok(text) => Some(text.parse().map_err(|_| {
                io::Error::other(format!("{START_VARIABLE}={text}: expected Unix time in microseconds"))
            })?),
            Err(_) => None,
        };
        Self::real(scenario, start)
    }

    /// A clock on a file.
    pub fn file(clock: FileClock, scenario: &Scenario) -> Self {
        Self::File { clock, origin_us: scenario.uptime.0, jumped_us: AtomicI64::new(i64::MIN) }
    }

    /// The machine's clock; the scenario is moved there.
    ///
    /// # Errors
    /// The start is later than now.
    pub fn real(scenario: &mut Scenario, start_us: Option<i64>) -> io::Result<Self> {
        let now_us = unix_now_us();
        let start_us = start_us.unwrap_or(now_us);
        let start_us = start_us - start_us.rem_euclid(1_000_000);
        let t_us = u64::try_from(now_us - start_us)
            .map_err(|_| io::Error::other("the timeline begins later than now"))?;
        scenario.start.0 = start_us;
        if scenario.driver.timestamps == Timestamps::Boottime
            && let Some(up_us) = machine_uptime_us()
        {
            scenario.uptime.0 = up_us.saturating_sub(t_us) / 1_000_000 * 1_000_000;
        }
        Ok(Self::Real { since: Instant::now(), t_us })
    }

    /// Where the timeline stands. Jumps of the real-time clock that it has passed are made in the file; the machine's clock is left alone.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn now_us(&self, world: &World) -> io::Result<u64> {
        match self {
            Self::Real { since, t_us } => {
                let passed = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
                Ok(t_us.saturating_add(passed))
            }
            Self::File { clock, origin_us, jumped_us } => {
                let now_us = clock.read()?.monotonic_us.saturating_sub(*origin_us);
                if world.has_clock_jumps() {
                    let offset = world.clock_offset_us(now_us);
                    let before = jumped_us.swap(offset, Ordering::Relaxed);
                    if before != i64::MIN && before != offset {
                        clock.shift_realtime(offset - before)?;
                    }
                }
                Ok(now_us)
            }
        }
    }

    /// Lets time pass: moves the file on, or sleeps. Hold no lock that other calls need.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn pass(&self, by_us: u64) -> io::Result<()> {
        match self {
            Self::Real { .. } => std::thread::sleep(Duration::from_micros(by_us)),
            Self::File { clock, .. } => clock.advance(by_us)?,
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the simulator asks the machine for the time"
)]
fn unix_now_us() -> i64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Microseconds since boot, from `/proc/uptime`; hundredths of a second.
fn machine_uptime_us() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, hundredths) = text.split_whitespace().next()?.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + hundredths.parse::<u64>().ok()? * 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::read;

    const HEAD: &str = "name: t\nuptime: 1h\nstart: 2026-10-01T00:00:00Z\ngpus: [{uuid: GPU-1, model: t4}]\n";

    fn set(dir: &Path, text: &str, t_us: u64) -> (World, SimClock, FileClock) {
        let scenario = read(text, "t.yaml").unwrap();
        let path = dir.join("clock");
        let world = World::new(scenario).unwrap();
        let stamp = Stamp { monotonic_us: world.since_boot_us(t_us), realtime_us: world.steady_us(t_us) };
        let ours = FileClock::create(&path, stamp).unwrap();
        let clock = SimClock::file(FileClock::open(&path).unwrap(), world.scenario());
        (world, clock, ours)
    }

    #[test]
    fn the_timeline_follows_the_monotonic_time_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (world, clock, ours) = set(dir.path(), HEAD, 5);
        assert_eq!(clock.now_us(&world).unwrap(), 5);
        clock.pass(250).unwrap();
        assert_eq!(clock.now_us(&world).unwrap(), 255);
        assert_eq!(ours.read().unwrap().realtime_us, world.steady_us(255));
        ours.write(Stamp { monotonic_us: 0, realtime_us: 0 }).unwrap();
        assert_eq!(clock.now_us(&world).unwrap(), 0, "before the start it stands at the start");
    }

    #[test]
    fn a_jump_moves_the_real_time_of_the_file_once_and_not_the_timeline() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("{HEAD}timeline:\n- {{at: 10s, jump_clock: {{by: -5m}}}}\n");
        let (world, clock, ours) = set(dir.path(), &text, 9_000_000);
        assert_eq!(clock.now_us(&world).unwrap(), 9_000_000);
        ours.advance(2_000_000).unwrap();
        for _ in 0..2 {
            assert_eq!(clock.now_us(&world).unwrap(), 11_000_000);
        }
        assert_eq!(ours.read().unwrap().realtime_us, world.realtime_us(11_000_000));
        assert_eq!(world.realtime_us(11_000_000), world.steady_us(11_000_000) - 300_000_000);
    }

    #[test]
    fn a_timeline_on_the_clock_of_the_machine_begins_where_it_is_told() {
        let mut scenario = read(HEAD, "t.yaml").unwrap();
        let now = unix_now_us();
        let clock = SimClock::real(&mut scenario, Some(now - 30_000_000)).unwrap();
        let world = World::new(scenario).unwrap();
        let t = clock.now_us(&world).unwrap();
        assert!((30_000_000..40_000_000).contains(&t), "{t}");
        let off = world.realtime_us(t) - now;
        assert!((0..5_000_000).contains(&off), "{off}");
        assert!(SimClock::real(&mut read(HEAD, "t.yaml").unwrap(), Some(now + 60_000_000)).is_err());
    }
}
