//! A bare loop over a recorded list of calls: what the simulator itself costs a client.

use libloading::Library;
use std::ffi::{CString, c_uint};
use std::fmt;
use std::path::{Path, PathBuf};

/// Most arguments of one call.
const ARGUMENTS: usize = 6;
/// Room for one answer, in words of eight bytes: the longest structure of any client's header, and the longest list a scenario makes.
const ROOM_WORDS: usize = 16_384;

/// What a replay cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Calls in one pass, those that begin and end the library left out.
    pub calls: u64,
    /// Number of passes.
    pub passes: u32,
    /// CPU time of reading the scenario and initialising, mean of the passes, in microseconds.
    pub init_cpu_us: u64,
    /// CPU time of all calls, mean of the passes, in microseconds.
    pub calls_cpu_us: u64,
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, passes, init_cpu_us, calls_cpu_us } = self;
        write!(f, "calls={calls} passes={passes} init_cpu_us={init_cpu_us} calls_cpu_us={calls_cpu_us}")
    }
}

/// Why a replay cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The record cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The record.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of it is none.
    #[error("{}:{line}: `{word}` is no argument, expected #hex, -, *, [words] or \"text\", at most {ARGUMENTS} of them", path.display())]
    Line {
        /// The record.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What stands there.
        word: String,
    },
    /// The library cannot be loaded, or lacks a function of the record.
    #[error("{}: {source}", path.display())]
    Library {
        /// The library.
        path: PathBuf,
        /// Why.
        source: libloading::Error,
    },
    /// It does not initialise.
    #[error("{}: nvmlInit_v2 returned {code}", path.display())]
    Init {
        /// The library.
        path: PathBuf,
        /// Its return code.
        code: c_uint,
    },
    /// The system does not say how much CPU time the process used.
    #[error("CPU time of the process is out of its range")]
    Cpu,
}

/// All functions of NVML by one signature: on x86-64 and arm64 the first six integers and pointers go in registers, and a callee reads those it
/// has.
type Function = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize) -> c_uint;

enum Word {
    Number(usize),
    Room,
    Words(Vec<Option<u32>>),
    Text(CString),
}

struct Call {
    function: Function,
    arguments: Vec<Word>,
}

/// Loads the library and performs the recorded calls again, `times` times, each time from a fresh initialisation. Waiting for events is done with no
/// timeout: it costs a client time and no CPU.
///
/// # Errors
/// The record or the library cannot be read.
pub fn replay(record: &Path, library: &Path, times: u32) -> Result<Replayed, ReplayError> {
    let in_library = |source| ReplayError::Library { path: library.to_owned(), source };
    // SAFETY: the library is a simulator of ours; its initialisers do nothing.
    let loaded = unsafe { Library::new(library) }.map_err(in_library)?;
    let calls = read(record, &loaded, library)?;
    let (init, shutdown) = (
        find(&loaded, "nvmlInit_v2").map_err(in_library)?,
        find(&loaded, "nvmlShutdown").map_err(in_library)?,
    );
    let mut rooms = Rooms::new();
    let (mut init_us, mut calls_us) = (0, 0);
    for _ in 0..times {
        let start = cpu_us()?;
        match perform(init, [0; ARGUMENTS]) {
            0 => {}
            code => return Err(ReplayError::Init { path: library.to_owned(), code }),
        }
        let ready = cpu_us()?;
        for call in &calls {
            perform(call.function, rooms.arguments(&call.arguments));
        }
        let done = cpu_us()?;
        init_us += ready - start;
        calls_us += done - ready;
        perform(shutdown, [0; ARGUMENTS]);
    }
    let passes = u64::from(times.max(1));
    let number = u64::try_from(calls.len()).unwrap_or(u64::MAX);
    Ok(Replayed {
        calls: number,
        passes: times,
        init_cpu_us: init_us / passes,
        calls_cpu_us: calls_us / passes,
    })
}

fn perform(function: Function, [a, b, c, d, e, f]: [usize; ARGUMENTS]) -> c_uint {
    // SAFETY: a function of the library by its name, with the arguments a client once gave it; pointers lead to rooms that are longer than any answer.
    unsafe { function(a, b, c, d, e, f) }
}

fn find(library: &Library, name: &str) -> Result<Function, libloading::Error> {
    // SAFETY: the names of a record are functions of NVML; see `Function` for their signature.
    unsafe { library.get::<Function>(name.as_bytes()) }.map(|symbol| *symbol)
}

fn cpu_us() -> Result<u64, ReplayError> {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(used.tv_sec).map_err(|_| ReplayError::Cpu)?;
    let nanoseconds = u64::try_from(used.tv_nsec).map_err(|_| ReplayError::Cpu)?;
    Ok(seconds * 1_000_000 + nanoseconds / 1000)
}

fn read(record: &Path, loaded: &Library, library: &Path) -> Result<Vec<Call>, ReplayError> {
    let text = std::fs::read_to_string(record)
        .map_err(|source| ReplayError::Read { path: record.to_owned(), source })?;
    let mut calls = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let mut words = text.split(' ');
        let name = words.next().unwrap_or_default();
        if name.is_empty() || name.starts_with("nvmlInit") || name == "nvmlShutdown" {
            continue;
        }
        let function =
            find(loaded, name).map_err(|source| ReplayError::Library { path: library.to_owned(), source })?;
        let wrong =
            |word: &str| ReplayError::Line { path: record.to_owned(), line: line + 1, word: word.to_owned() };
        let mut arguments =
            words.map(|word| argument(word).ok_or_else(|| wrong(word))).collect::<Result<Vec<_>, _>>()?;
        if arguments.len() > ARGUMENTS {
            return Err(wrong(text));
        }
        if name.starts_with("nvmlEventSetWait")
            && let Some(Word::Number(timeout_ms)) = arguments.last_mut()
        {
            *timeout_ms = 0;
        }
        calls.push(Call { function, arguments });
    }
    Ok(calls)
}

fn argument(word: &str) -> Option<Word> {
    match word {
        "-" => return Some(Word::Number(0)),
        "*" => return Some(Word::Room),
        _ => {}
    }
    if let Some(number) = word.strip_prefix('#') {
        return usize::from_str_radix(number, 16).ok().map(Word::Number);
    }
    if let Some(text) = word.strip_prefix('"') {
        return CString::new(text.strip_suffix('"')?).ok().map(Word::Text);
    }
    let words = word.strip_prefix('[')?.strip_suffix(']')?.split(',');
    let words: Option<Vec<_>> = words
        .map(|word| if word == "@" { Some(None) } else { u32::from_str_radix(word, 16).ok().map(Some) })
        .collect();
    words.filter(|words| words.len() < ROOM_WORDS).map(Word::Words)
}

/// Where answers go: one room an argument, and one more for what a structure points to.
struct Rooms {
    rooms: [Vec<u64>; ARGUMENTS],
    beyond: Vec<u64>,
}

impl Rooms {
    fn new() -> Self {
        let room = || vec![0; ROOM_WORDS];
        Self { rooms: std::array::from_fn(|_| room()), beyond: room() }
    }

    fn arguments(&mut self, words: &[Word]) -> [usize; ARGUMENTS] {
        let mut arguments = [0; ARGUMENTS];
        let beyond = self.beyond.as_mut_ptr().expose_provenance();
        for ((argument, word), room) in arguments.iter_mut().zip(words).zip(&mut self.rooms) {
            *argument = match word {
                Word::Number(number) => *number,
                Word::Text(text) => text.as_ptr().expose_provenance(),
                Word::Room => room.as_mut_ptr().expose_provenance(),
                Word::Words(words) => {
                    lay(room, words, beyond);
                    room.as_mut_ptr().expose_provenance()
                }
            };
        }
        arguments
    }
}

/// Lays words of four bytes into a room; a pointer takes the next whole word of eight.
fn lay(room: &mut [u64], words: &[Option<u32>], beyond: usize) {
    let mut place = 0;
    for word in words {
        match word {
            Some(word) => {
                let (cell, is_upper) = (&mut room[place / 2], place % 2 == 1);
                let word = u64::from(*word);
                *cell = if is_upper { *cell & 0xffff_ffff | word << 32 } else { *cell & !0xffff_ffff | word };
                place += 1;
            }
            None => {
                let whole = place.div_ceil(2);
                room[whole] = u64::try_from(beyond).unwrap_or_default();
                place = 2 * whole + 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lie_as_c_lays_them() {
        let mut room = [u64::MAX; 4];
        lay(&mut room, &[Some(0x0100_0018), Some(2), Some(5), None], 0xabc);
        assert_eq!(room, [0x0000_0002_0100_0018, 0xffff_ffff_0000_0005, 0xabc, u64::MAX]);
    }

    #[test]
    fn an_argument_is_read_or_refused() {
        assert!(matches!(argument("#1f"), Some(Word::Number(0x1f))));
        assert!(matches!(argument("-"), Some(Word::Number(0))));
        assert!(matches!(argument("[a,@]"), Some(Word::Words(words)) if words == [Some(10), None]));
        assert!(matches!(argument("\"GPU-1\""), Some(Word::Text(text)) if text.as_c_str() == c"GPU-1"));
        assert!(argument("nonsense").is_none());
        assert!(argument("\"open").is_none());
    }
}
