//! An hour without a service, and in the middle of it a full disk.

use crate::child::{command, impatient, say, sink, spool};
use crate::folder;
use crate::server::{Events, Mood};
use crate::truth;
use gpuledger_collector::publish::Publisher;
use gpuledger_collector::spool::Reason;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use tokio_util::sync::CancellationToken;

/// Windows of an hour.
const HOUR: i64 = 360;
/// While these are offered, the disk is full.
const FULL: std::ops::Range<i64> = 120..240;

/// Fills the disk, or makes room again.
fn disk(folder: &Path, real: bool, full: bool) {
    let filler = folder.join("filler");
    match (real, full) {
        (true, true) => {
            let mut file = fs::File::create(filler).unwrap();
            // In small pieces, to the last byte.
            while file.write_all(&[0; 512]).is_ok() {}
        }
        (true, false) => fs::remove_file(filler).unwrap(),
        (false, true) => fail::cfg("spool::disk", "return").unwrap(),
        (false, false) => fail::remove("spool::disk"),
    }
}

#[test]
#[ignore = "not a test: the process that has an outage"]
fn child() {
    let Ok(folder) = std::env::var("DELIVERY_FOLDER") else { return };
    let folder = Path::new(&folder);
    let real = std::env::var("DELIVERY_DISK").unwrap() == "real";
    let spool = spool(&folder.join("spool"), 16 << 20);
    let to = std::env::var("DELIVERY_SINK").unwrap();
    let publisher = Publisher::new(spool.clone(), sink(&to), impatient());
    let stop = CancellationToken::new();
    let running = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(publisher.run(stop))
        }
    });
    let mut not_kept = 0;
    for n in 0..HOUR {
        if n == FULL.start || n == FULL.end {
            disk(folder, real, n == FULL.start);
        }
        if let Err(why) = spool.append_window(truth::window(n)) {
            assert_eq!(why.reason(), Reason::DiskFull, "{why}");
            not_kept += 1;
        }
    }
    say(&format!("not kept {not_kept}"));
    say("hour over");
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    stop.cancel();
    say(&format!("left {}", running.join().unwrap().left));
}

fn outage(mut command: Command, folder: &Path, disk: &str) {
    let events = Events::start(Mood::Away);
    command.env("DELIVERY_FOLDER", folder).env("DELIVERY_DISK", disk);
    command.env("DELIVERY_SINK", format!("http {}", events.url()));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut not_kept, mut left) = (0, None);
    let mut input = child.stdin.take().unwrap();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        if let Some(count) = line.strip_prefix("not kept ") {
            not_kept = count.parse::<i64>().unwrap();
        } else if line == "hour over" {
            assert_eq!(events.arrived(|arrived| arrived.count()), 0);
            events.become_(Mood::Kind);
            writeln!(input, "go on").unwrap();
        } else if let Some(count) = line.strip_prefix("left ") {
            left = Some(count.to_owned());
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(left.as_deref(), Some("0"));
    events.arrived(|arrived| {
        arrived.assert_exactly_once(&(0..HOUR).collect());
        // A few may still find room in what is left of a block.
        assert!((100..=FULL.end - FULL.start).contains(&not_kept), "{not_kept} windows were not kept");
        assert_eq!(arrived.gaps().get("disk_full"), Some(&not_kept));
        assert_eq!(arrived.count(), usize::try_from(HOUR - not_kept).unwrap());
    });
}

#[test]
fn an_hour_without_a_service_and_a_disk_that_says_it_is_full() {
    let folder = folder();
    outage(command("outage::child"), folder.path(), "failpoint");
}

/// On a small file system of its own, where the system lets us have one.
#[test]
fn an_hour_without_a_service_and_a_disk_that_is_full() {
    let folder = folder();
    let mount = "mount -t tmpfs -o size=1m tmpfs \"$DELIVERY_FOLDER\"";
    let own = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.env("DELIVERY_FOLDER", folder.path());
        command
    };
    if !own(mount).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!(
            "SKIPPED: no file system of our own can be mounted here; the full disk is played by a failpoint only"
        );
        return;
    }
    let plain = command("outage::child");
    let mut command = own(&format!("{mount} && exec \"$0\" \"$@\""));
    command.arg(plain.get_program()).args(plain.get_args());
    outage(command, folder.path(), "real");
}
