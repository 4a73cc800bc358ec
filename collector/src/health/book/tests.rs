use super::*;
use gpuledger_domain::time::Instant;
use gpuledger_nvml::Absent;
use std::cell::RefCell;
use std::convert::Infallible;

fn at(second: u64) -> Stamp {
    let micros = i64::try_from(second * 1_000_000).unwrap();
    Stamp { monotonic_us: second * 1_000_000, real: Instant::from_micros(micros) }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faults.json");
    (folder, file)
}

fn open(file: &Path) -> Book {
    Book::open(file, &name("boot-1"), "550.54.15").unwrap()
}

const GOOD: Signal = Signal::Read { recovery: None, energy_mj: None };

#[test]
fn a_fault_is_taken_back_by_the_run_after() {
    let (_folder, file) = file();
    let mut book = open(&file);
    let mut health = book.health(name("GPU-1"), at(0));
    let changes = health.on(Signal::Failed(Absent::Lost), at(1)).changes;
    book.say(&health, changes, |_| Ok::<(), Infallible>(())).unwrap();
    let mut book = open(&file);
    let mut health = book.health(name("GPU-1"), at(0));
    assert_eq!(health.word(), "fault");
    let changes = health.on(GOOD, at(9)).changes;
    assert_eq!(changes.len(), 1);
    book.say(&health, changes, |_| Ok::<(), Infallible>(())).unwrap();
    assert_eq!(open(&file).health(name("GPU-1"), at(0)).word(), "ok");
}

#[test]
fn a_lasting_fault_ends_with_a_boot_or_another_driver() {
    let (_folder, file) = file();
    let mut book = open(&file);
    let mut health = book.health(name("GPU-1"), at(0));
    let changes = health.on(Signal::DoubleBitError, at(1)).changes;
    book.say(&health, changes, |_| Ok::<(), Infallible>(())).unwrap();
    let after = |boot: &str, driver: &str| {
        let mut health = Book::open(&file, &name(boot), driver).unwrap().health(name("GPU-1"), at(0));
        health.on(GOOD, at(9)).changes.len()
    };
    assert_eq!(after("boot-1", "550.54.15"), 0, "the same run of the driver");
    assert_eq!(after("boot-2", "550.54.15"), 1);
    assert_eq!(after("boot-1", "560.1"), 1);
}

/// A kill between the two writes is the book as the append sees it.
#[test]
fn at_the_instant_of_appending_the_book_names_the_fault_whether_it_begins_or_ends() {
    let (_folder, file) = file();
    let mut book = open(&file);
    let mut health = book.health(name("GPU-1"), at(0));
    let seen = RefCell::new(Vec::new());
    for (signal, second) in [(Signal::Failed(Absent::Lost), 1), (GOOD, 9)] {
        let changes = health.on(signal, at(second)).changes;
        let append = |_: &Change| {
            seen.borrow_mut().push(open(&file).health(name("GPU-1"), at(0)).word());
            Ok::<(), Infallible>(())
        };
        book.say(&health, changes, append).unwrap();
    }
    assert_eq!(*seen.borrow(), ["fault", "fault"]);
}

#[test]
fn what_the_spool_refuses_is_said_later_in_order() {
    let (_folder, file) = file();
    let mut book = open(&file);
    let mut health = book.health(name("GPU-1"), at(0));
    let changes = health.on(Signal::Failed(Absent::Lost), at(1)).changes;
    book.say(&health, changes, |_| Err("full")).unwrap();
    let changes = health.on(GOOD, at(9)).changes;
    book.say(&health, changes, |_| Err("full")).unwrap();
    assert_eq!(book.unsaid(), 2);
    assert_eq!(open(&file).health(name("GPU-1"), at(0)).word(), "fault", "not taken back, so not forgotten");
    let mut said = Vec::new();
    assert!(book.retry(|change| {
        said.push(change.state.state);
        Ok::<(), Infallible>(())
    }));
    assert_eq!(said, [State::Fault, State::Ok]);
}

#[test]
fn a_file_of_something_else_is_named() {
    let (_folder, file) = file();
    fs::write(&file, "[]").unwrap();
    let fault = Book::open(&file, &name("b"), "d").unwrap_err().to_string();
    assert!(fault.contains("faults.json") && fault.contains("a book of faults"), "{fault}");
}
