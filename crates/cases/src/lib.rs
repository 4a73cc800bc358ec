//! The written table of cases in `tests/cases`: events, then what must stand where. `tests/cases/README.md` documents the language.
//!
//! It owns the language and nothing that runs: the rules alone run in this crate's tests, the program on a database in `services/gpuledger/tests/cases`.
//! What ships never links it.

mod device;
mod event;
mod expect;
mod object;
mod read;
mod times;
mod words;

pub use device::Model;
pub use event::Said;
pub use expect::{BalanceRow, Expect, FindingRow, InvoiceRow, UsageRow, asks_for};
pub use object::{PoolLine, TenantLine};
pub use read::{Trouble, read};

use gpuledger_domain::time::Instant;
use std::path::{Path, PathBuf};

/// One case of the table.
#[derive(Clone, Debug)]
pub struct Case {
    /// File and line of its title.
    pub place: String,
    /// Its name, unique in the table.
    pub name: String,
    /// What it shows, in a sentence.
    pub title: String,
    /// Rules of the domain that it holds to.
    pub rules: Vec<String>,
    /// Public reports it is the answer to: rows of `sources.txt`.
    pub shows: Vec<String>,
    /// Whether it needs the program and a database.
    pub on_database: bool,
    /// Whether the order of its events matters, so that it runs in that order only.
    pub fixed: bool,
    /// Tenants by name, with their zones.
    pub tenants: Vec<TenantLine>,
    /// Pools.
    pub pools: Vec<PoolLine>,
    /// What happens and what is asked, in order, each with its line.
    pub steps: Vec<(usize, Step)>,
}

/// One thing that happens in a case.
#[derive(Clone, Debug)]
pub enum Step {
    /// The clock of acceptance from here on.
    Clock(Instant),
    /// Something is said.
    Said(Box<Said>),
    /// What was said is taken in, and the horizon moves here.
    Horizon(Instant),
    /// Business objects are applied.
    Apply {
        /// YAML documents.
        yaml: String,
        /// 0, or 2 where they must be refused.
        exit: i32,
    },
    /// A command of the program, and the exit code it must end with.
    Do {
        /// Its words.
        words: Vec<String>,
        /// 0, or 1 where it must refuse.
        exit: i32,
    },
    /// Something must stand.
    Expect(Expect),
}

impl Case {
    /// The horizon of a case that has one.
    pub fn horizon(&self) -> Option<Instant> {
        let mut horizons = self.steps.iter().filter_map(|(_, step)| match step {
            Step::Horizon(at) => Some(*at),
            _ => None,
        });
        let one = horizons.next();
        if horizons.next().is_some() { None } else { one }
    }

    /// All that is said, in order.
    pub fn said(&self) -> Vec<&Said> {
        self.steps
            .iter()
            .filter_map(|(_, step)| match step {
                Step::Said(said) => Some(said.as_ref()),
                _ => None,
            })
            .collect()
    }

    /// What must stand, each with its line.
    pub fn expects(&self) -> Vec<(usize, &Expect)> {
        self.steps
            .iter()
            .filter_map(|(line, step)| match step {
                Step::Expect(expect) => Some((*line, expect)),
                _ => None,
            })
            .collect()
    }
}

/// The folder of the table.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases")
}

/// Reads every file of the table; all that is wrong is said at once.
///
/// # Errors
/// One line for each thing that is wrong, with file and line.
pub fn read_all() -> Result<Vec<Case>, String> {
    let folder = folder();
    let entries = std::fs::read_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "txt") && !path.ends_with("sources.txt"));
    paths.sort();
    let mut cases: Vec<Case> = Vec::new();
    let mut troubles = Vec::new();
    for path in paths {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&path).map_err(|why| format!("{name}: {why}"))?;
        match read(&name, &text) {
            Ok(more) => cases.extend(more),
            Err(found) => troubles.extend(found.iter().map(ToString::to_string)),
        }
    }
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        troubles.push(format!("two cases are called {}", pair[0]));
    }
    if troubles.is_empty() { Ok(cases) } else { Err(troubles.join("\n")) }
}
