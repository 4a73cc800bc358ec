//! The arrows that must not exist between the rooms of the house (ARCHITECTURE.md), read from cargo metadata, and what
//! every package takes from the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// The one package that composes the services into a program.
const COMPOSITION: &str = "gpuledger";
/// The tests may open any door.
const TESTS: &str = "gpuledger-tests";
/// A library that knows what only one room may know, and that room.
const OWNERS: [(&str, &str, &str); 7] = [
    ("object_store", "gpuledger-archive", "only archive speaks to object stores"),
    ("parquet", "gpuledger-archive", "only archive speaks Parquet"),
    ("sqlx", "gpuledger-storage", "only storage speaks SQL"),
    ("rdkafka", "gpuledger-messaging", "only messaging speaks Kafka"),
    ("actix-web", "gpuledger-api", "only api knows HTTP"),
    ("jsonwebtoken", "gpuledger-api", "only api checks and mints tokens"),
    ("nvml-wrapper-sys", "gpuledger-nvml", "only collector/nvml knows NVML"),
];
/// The simulator of NVML, met through its C interface alone; tests may use its parts.
const SIMULATOR: &str = "gpuledger-nvml-sim";
/// Reads the table of cases; for tests alone.
const CASES: &str = "gpuledger-cases";
/// All that `domain` may import: numbers, calendars and error types. No I/O, no serde, no async.
const DOMAIN_MAY: [&str; 7] =
    ["chrono", "chrono-tz", "num-bigint", "num-rational", "num-traits", "rust_decimal", "thiserror"];
/// What a node agent links: none of it may lead to the database.
const ON_NODES: [&str; 7] = [
    "gpuledger-collector",
    "gpuledger-domain",
    "gpuledger-footprint",
    "gpuledger-messaging",
    "gpuledger-nvml",
    "gpuledger-telemetry",
    "gpuledger-wire",
];

/// Packages with lints of their own: inside a room, for the calls into C, or from it, that the workspace's lints forbid.
const OWN_LINTS: [&str; 4] =
    ["gpuledger-footprint", "gpuledger-nvml", "gpuledger-nvml-sim", "gpuledger-topic-ids"];

/// A package of the workspace, as far as the rules look.
#[derive(Debug, Default)]
struct Room {
    /// Folder of the manifest, relative to the root: `crates/domain`.
    folder: String,
    /// Names of what it imports, development aside.
    imports: BTreeSet<String>,
    /// Names of what only its tests import.
    dev: BTreeSet<String>,
}

type House = BTreeMap<String, Room>;

fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("the tests lie in a folder of the workspace")?.to_path_buf())
}

fn house() -> Result<House> {
    let root = root()?;
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec()?;
    let mut house = House::new();
    for package in &metadata.packages {
        let folder = package.manifest_path.parent().context("a manifest lies in a folder")?;
        let folder = folder.strip_prefix(&metadata.workspace_root)?;
        let mut room = Room { folder: folder.to_string(), ..Room::default() };
        for dependency in &package.dependencies {
            let dev = dependency.kind == DependencyKind::Development;
            let names = if dev { &mut room.dev } else { &mut room.imports };
            names.insert(dependency.name.clone());
        }
        house.insert(package.name.to_string(), room);
    }
    Ok(house)
}

impl Room {
    fn is_service(&self) -> bool {
        self.folder.starts_with("services/")
    }

    fn is_library(&self) -> bool {
        self.folder.starts_with("crates/")
    }

    /// Lies inside another package's folder, and so belongs to that room.
    fn within(&self, other: &Room) -> bool {
        self.folder.strip_prefix(&other.folder).is_some_and(|rest| rest.starts_with('/'))
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.imports.union(&self.dev)
    }
}

/// Every arrow of the house that must not exist, with its reason.
fn forbidden(house: &House) -> Vec<String> {
    let mut found = Vec::new();
    for (name, room) in house {
        if name == TESTS {
            continue;
        }
        found.extend(owned_by_another(house, name, room));
        found.extend(inner_rooms(house, name, room));
        found.extend(to_services(house, name, room));
        match name.as_str() {
            "gpuledger-domain" => {
                found.extend(beyond(name, &room.imports, &DOMAIN_MAY, "domain is pure rules"))
            }
            "gpuledger-painter" => {
                let ours = room.imports.iter().filter(|i| house.contains_key(*i)).cloned().collect();
                found.extend(beyond(name, &ours, &["gpuledger-domain"], "the second method stands alone"));
            }
            "gpuledger-tlog" => {
                let ours = room.imports.iter().filter(|i| house.contains_key(*i)).cloned().collect();
                found.extend(beyond(name, &ours, &[], "an auditor uses the log's formats without us"));
            }
            _ => {}
        }
        if ON_NODES.contains(&name.as_str()) && reaches(house, name, "gpuledger-storage") {
            found.push(format!("{name} reaches gpuledger-storage: a node agent never sees the database"));
        }
    }
    found
}

fn owned_by_another(house: &House, name: &str, room: &Room) -> Vec<String> {
    let owns = |owner: &str| name == owner || house.get(owner).is_some_and(|o| room.within(o));
    let broken = OWNERS.iter().filter(|(library, owner, _)| !owns(owner) && room.all().any(|i| i == library));
    broken.map(|(library, _, why)| format!("{name} imports {library}: {why}")).collect()
}

/// A package inside a room is that room's affair; what the room ships never imports its simulator.
fn inner_rooms(house: &House, name: &str, room: &Room) -> Vec<String> {
    let mut found = Vec::new();
    if room.imports.contains(SIMULATOR) {
        found.push(format!("{name} imports {SIMULATOR}: it stands on the other side of the C interface"));
    }
    if room.imports.contains(CASES) {
        found.push(format!(
            "{name} imports {CASES}: the table of cases is for tests, and nothing that ships links it"
        ));
    }
    for (import, inner) in room.all().filter_map(|i| house.get_key_value(i)) {
        let outer = house.iter().find(|(_, outer)| inner.within(outer));
        if let Some((outer, _)) = outer.filter(|(outer, o)| *outer != name && !room.within(o)) {
            found.push(format!("{name} imports {import}, which lies inside {outer}"));
        }
    }
    found
}

fn to_services(house: &House, name: &str, room: &Room) -> Vec<String> {
    let services = room.all().filter(|i| house.get(*i).is_some_and(Room::is_service));
    let may = |_: &&String| !(room.is_library() || room.is_service() && name != COMPOSITION);
    let why = "services meet at a topic or a table, never in code, and no library knows them";
    services.filter(|s| !may(s)).map(|s| format!("{name} imports {s}: {why}")).collect()
}

fn beyond(name: &str, imports: &BTreeSet<String>, allowed: &[&str], why: &str) -> Vec<String> {
    let extra = imports.iter().filter(|i| !allowed.contains(&i.as_str()));
    extra.map(|i| format!("{name} imports {i}: {why}")).collect()
}

/// Whether a chain of imports leads from one package to the other.
fn reaches(house: &House, from: &str, to: &str) -> bool {
    let (mut open, mut seen) = (vec![from.to_owned()], BTreeSet::new());
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if let Some(room) = house.get(&name).filter(|_| seen.insert(name.clone())) {
            open.extend(room.imports.iter().cloned());
        }
    }
    false
}

/// What a manifest should take from the workspace and does not.
fn not_inherited(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for key in ["version", "edition", "rust-version", "license", "publish"] {
        if !text.lines().any(|line| line == format!("{key}.workspace = true")) {
            found.push(format!("has no `{key}.workspace = true`"));
        }
    }
    let mut section = "";
    let mut lints = false;
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section == "[lints]" {
            lints |= line == "workspace = true";
        } else if section.ends_with("dependencies]") && is_entry(line) && !is_shared(line) {
            found.push(format!("`{line}` is not from the one dependency table"));
        }
    }
    if text.contains("[lints.") {
        // A table of its own must at least ask a reason of each unsafe block.
        lints = text.contains("undocumented_unsafe_blocks = \"deny\"");
    }
    if !lints {
        found.push("has no `[lints] workspace = true`".to_owned());
    }
    found
}

/// A line that begins a key; the rest are comments, blank, or go on with a list.
fn is_entry(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphanumeric()) && line.contains('=')
}

/// From the one dependency table, or a package inside this one's folder.
fn is_shared(line: &str) -> bool {
    line.contains("workspace = true") || line.contains("path = \"") && !line.contains("..")
}

/// Lines of the sources below a folder that contain one of the words, as `file:line: text`.
fn lines_with(folder: &Path, words: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(lines_with(&path, words)?);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let hits = text.lines().enumerate().filter(|(_, line)| words.iter().any(|w| line.contains(w)));
            found.extend(hits.map(|(n, line)| format!("{}:{}: {}", path.display(), n + 1, line.trim())));
        }
    }
    Ok(found)
}

#[test]
fn no_forbidden_arrow() -> Result<()> {
    let found = forbidden(&house()?);
    assert!(found.is_empty(), "forbidden arrows:\n{}", found.join("\n"));
    Ok(())
}

#[test]
fn domain_is_pure() -> Result<()> {
    let words = [
        "std::fs",
        "std::net",
        "std::io",
        "std::process",
        "std::env",
        "SystemTime",
        "Instant::now",
        "Utc::now",
    ];
    let found = lines_with(&root()?.join("crates/domain/src"), &words)?;
    assert!(found.is_empty(), "domain has no I/O and no clock:\n{}", found.join("\n"));
    Ok(())
}

#[test]
fn painter_shares_no_code_with_attribution() -> Result<()> {
    let found = lines_with(&root()?.join("crates/painter/src"), &["domain::attribution", "attribution::"])?;
    assert!(found.is_empty(), "the second method must not call the first:\n{}", found.join("\n"));
    Ok(())
}

#[test]
fn every_package_inherits_from_the_workspace() -> Result<()> {
    let mut found = Vec::new();
    for (name, room) in house()? {
        let path = root()?.join(&room.folder).join("Cargo.toml");
        let text = std::fs::read_to_string(&path)?;
        found.extend(not_inherited(&text).into_iter().map(|what| format!("{name}: {what}")));
        if text.contains("[lints.") && !OWN_LINTS.contains(&name.as_str()) {
            found.push(format!("{name}: has lints of its own"));
        }
        let suffix = name.trim_start_matches("gpuledger-");
        if !room.folder.ends_with(suffix) {
            found.push(format!("{name} lies in {}: the folder is the package's suffix", room.folder));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

fn room(folder: &str, imports: &[&str]) -> Room {
    Room {
        folder: folder.to_owned(),
        imports: imports.iter().map(|&i| i.to_owned()).collect(),
        ..Room::default()
    }
}

fn small_house(changed: &str, more: &str) -> House {
    let mut house = House::new();
    let rooms = [
        ("gpuledger-domain", room("crates/domain", &["chrono"])),
        ("gpuledger-wire", room("crates/wire", &["gpuledger-domain", "serde"])),
        ("gpuledger-archive", room("crates/archive", &["gpuledger-domain", "object_store", "parquet"])),
        ("gpuledger-painter", room("crates/painter", &["gpuledger-domain", "num-rational"])),
        ("gpuledger-storage", room("crates/storage", &["gpuledger-wire", "sqlx"])),
        ("gpuledger-tlog", room("crates/tlog", &["sha2"])),
        ("gpuledger-messaging", room("crates/messaging", &["gpuledger-wire", "gpuledger-ids", "rdkafka"])),
        ("gpuledger-ids", room("crates/messaging/ids", &["rdkafka"])),
        ("gpuledger-collector", room("collector", &["gpuledger-messaging", "gpuledger-nvml"])),
        ("gpuledger-nvml", room("collector/nvml", &["nvml-wrapper-sys"])),
        (SIMULATOR, room("collector/nvml-sim", &["serde"])),
        ("gpuledger-ledger", room("services/ledger", &["gpuledger-storage"])),
        ("gpuledger-api", room("services/api", &["gpuledger-storage", "actix-web"])),
        ("gpuledger", room("services/gpuledger", &["gpuledger-api", "gpuledger-ledger"])),
        (TESTS, room("tests", &["gpuledger-api", "sqlx"])),
    ];
    house.extend(rooms.map(|(name, room)| (name.to_owned(), room)));
    if let Some(room) = house.get_mut(changed) {
        room.imports.insert(more.to_owned());
    }
    house
}

#[test]
fn the_rules_accept_the_house_and_see_each_forbidden_arrow() {
    assert_eq!(forbidden(&small_house("", "")), Vec::<String>::new());
    let arrows = [
        ("gpuledger-domain", "serde"),
        ("gpuledger-domain", "gpuledger-wire"),
        ("gpuledger-painter", "gpuledger-wire"),
        ("gpuledger-tlog", "gpuledger-domain"),
        ("gpuledger-collector", "gpuledger-storage"),
        ("gpuledger-collector", "nvml-wrapper-sys"),
        ("gpuledger-collector", SIMULATOR),
        ("gpuledger-ledger", "gpuledger-nvml"),
        ("gpuledger-ledger", CASES),
        ("gpuledger-messaging", "gpuledger-storage"),
        ("gpuledger-api", "gpuledger-ledger"),
        ("gpuledger-storage", "gpuledger-ledger"),
        ("gpuledger-ledger", "sqlx"),
        ("gpuledger-ledger", "parquet"),
        ("gpuledger-api", "object_store"),
        ("gpuledger", "rdkafka"),
        ("gpuledger-wire", "gpuledger-ids"),
        ("gpuledger-ledger", "actix-web"),
    ];
    for (from, to) in arrows {
        assert!(!forbidden(&small_house(from, to)).is_empty(), "{from} -> {to} passed");
    }
}

#[test]
fn a_manifest_of_its_own_mind_is_seen() {
    let own = "[package]\nname = \"x\"\nedition = \"2021\"\n[dependencies]\nserde = \"1\"\nchrono.workspace = true\n";
    let found = not_inherited(own).join("\n");
    for what in ["edition", "license", "serde", "lints"] {
        assert!(found.contains(what), "{what} is not in: {found}");
    }
    assert!(!found.contains("chrono"), "{found}");
}
