//! Temporary.
#![allow(clippy::all, missing_docs, clippy::print_stdout, clippy::unwrap_used, reason = "scratch")]
use gpuledger_collector::clock::{Clock, FileClock, Stamp};
use gpuledger_collector::cycle::{Sampler, SamplerSettings};
use gpuledger_collector::process::Procfs;
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{Driver, Gpu, Nvml};
use std::path::Path;
use std::sync::Arc;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seconds: u64 = args[1].parse().unwrap();
    let start_us: i64 = args[2].parse().unwrap();
    let uptime_us: u64 = args[3].parse().unwrap();
    let phase: u64 = args[4].parse().unwrap();
    let clock_path = std::env::var("NVML_SIM_CLOCK").unwrap();
    let clock = FileClock::create(
        Path::new(&clock_path),
        Stamp { monotonic_us: uptime_us + phase, real: Instant::from_micros(start_us + phase as i64) },
    )
    .unwrap();
    let load = || Nvml::load(Some(Path::new("target/debug/libgpuledger_nvml_sim.so")));
    let mut nvml = Some(load().unwrap());
    let procs = Procfs::open(Path::new(&std::env::var("NVML_SIM_PROC").unwrap()), None).unwrap();
    let geometry = Arc::new(gpuledger_wire::geometry::geometry());
    let n = nvml.as_ref().unwrap().gpu_count().unwrap();
    let mut lanes: Vec<(Option<Box<dyn Gpu>>, Sampler)> =
        (0..n).map(|_| (None, Sampler::new(SamplerSettings::default(), geometry.clone()))).collect();
    let mut t = uptime_us + phase;
    let mut cpu = 0u128;
    while t <= uptime_us + seconds * 1_000_000 {
        clock.sleep_until(t);
        if nvml.is_none() {
            nvml = load().ok();
        }
        let Some(live) = nvml.as_ref() else {
            t += 1_000_000;
            continue;
        };
        let mut reload = false;
        while let Ok(Some(event)) = live.next_event(std::time::Duration::ZERO) {
            if matches!(event.kind, gpuledger_nvml::EventKind::MigChange) {
                for (gpu, sampler) in &mut lanes {
                    if gpu.as_ref().is_some_and(|g| g.identity().is_ok_and(|i| i.uuid == event.gpu)) {
                        sampler.mig_changed(event.gpu_instance);
                    }
                }
            }
        }
        for (index, (gpu, sampler)) in lanes.iter_mut().enumerate() {
            if gpu.is_none() {
                *gpu = live.gpu(index as u32).ok();
            }
            let Some(handle) = gpu else { continue };
            let began = std::time::Instant::now();
            let report = sampler.cycle(handle.as_mut(), &procs, &clock);
            cpu += began.elapsed().as_micros();
            for part in report.parts {
                out(&part);
            }
            if !report.discarded.is_empty() || report.torn || report.trouble.is_some() {
                eprintln!(
                    "{} gpu {index} discarded {:?} torn {} trouble {:?}",
                    t - uptime_us,
                    report.discarded,
                    report.torn,
                    report.trouble
                );
            }
            if report.trouble.is_some_and(|w| w.needs_new_library()) {
                reload = true;
            }
        }
        if reload {
            for (gpu, sampler) in &mut lanes {
                *gpu = None;
                sampler.reloaded();
            }
            let _ = live.shutdown();
            nvml = None;
        }
        t += 1_000_000;
    }
    for (_, sampler) in &mut lanes {
        for part in sampler.flush() {
            out(&part);
        }
    }
    eprintln!("cycles cpu us total {cpu} over {} lane-cycles", seconds * u64::from(n));
}

fn out(part: &gpuledger_collector::window::Part) {
    let row = serde_json::json!({"start": part.window.start().as_micros(), "end": part.window.end().as_micros(), "gpu": part.gpu, "units": part.units, "processes": part.processes, "gaps": part.gaps});
    println!("{row}");
}
