use crate::child::{impatient, sink, spool};
use crate::truth::window;
use gpuledger_collector::publish::Publisher;
use gpuledger_collector::spool::*;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
fn rss() -> String {
    std::fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .filter(|l| l.starts_with("VmRSS") || l.starts_with("Threads"))
        .collect::<Vec<_>>()
        .join(" ")
}
#[test]
#[ignore]
fn measure() {
    for (place, sync) in [("/var/tmp", Sync::Each), ("/var/tmp", Sync::Never), ("/dev/shm", Sync::Each)] {
        let folder = tempfile::tempdir_in(place).unwrap();
        let s = Spool::open(
            SpoolSettings { folder: folder.path().join("s"), sync, ..SpoolSettings::default() },
            crate::truth::name("n1"),
        )
        .unwrap();
        let t = Instant::now();
        for n in 0..1000 {
            s.append_window(window(n)).unwrap();
        }
        println!("{place} {sync:?} {:?} per window, {} bytes", t.elapsed() / 1000, s.status().bytes / 1000);
    }
    println!("before {}", rss());
    let which = std::env::var("WHICH").unwrap();
    let folder = crate::folder();
    let s = spool(&folder.path().join("s"), 64 << 20);
    for n in 0..3000 {
        s.append_window(window(n)).unwrap();
    }
    println!("spooled {}", rss());
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut settings = impatient();
    settings.batch_records = 64;
    settings.batch_bytes = 256 << 10;
    let p = Publisher::new(s.clone(), sink(&which), settings);
    println!("sink {}", rss());
    let stop = CancellationToken::new();
    let stop2 = stop.clone();
    let s2 = s.clone();
    let t = Instant::now();
    std::thread::spawn(move || {
        while s2.status().waiting > 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        println!("sent {} {:?}", rss(), t.elapsed());
        stop2.cancel();
    });
    println!("{:?}", rt.block_on(p.run(stop)));
}
