//! The report for people.

use super::Report;
use super::gpu::GpuReport;
use super::privileges::Held;
use crate::table::{absence, columns, indented};
use std::fmt::Write;

/// The report as text.
pub fn table(report: &Report) -> String {
    let mut text = heading(report);
    for gpu in &report.gpus {
        text.push('\n');
        text.push_str(&section(gpu));
    }
    text.push('\n');
    text.push_str(&privileges(report));
    text
}

fn heading(report: &Report) -> String {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "n/a".to_owned());
    let (driver, nvml) = (or_unknown(&report.driver), or_unknown(&report.nvml));
    let cuda =
        report.cuda.map_or_else(|| "n/a".to_owned(), |cuda| format!("{}.{}", cuda / 1000, cuda % 1000 / 10));
    let count = report.gpus.len();
    let gpus = if count == 1 { "1 GPU".to_owned() } else { format!("{count} GPUs") };
    let mut text = format!("{}: {gpus}, driver {driver}, NVML {nvml}, CUDA {cuda}\n", report.node);
    match &report.attribution {
        None => text.push_str("Processes are attributed.\n"),
        Some(why) => line(&mut text, format_args!("Processes are not attributed: {why}.")),
    }
    text
}

fn section(gpu: &GpuReport) -> String {
    if let Some(why) = &gpu.unreadable {
        return format!("GPU {}  cannot be read: {why}\n", gpu.index);
    }
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut text =
        format!("GPU {}  {}  {}  {}\n", gpu.index, part(&gpu.model), part(&gpu.uuid), part(&gpu.pci_bus_id));
    line(&mut text, format_args!("  MIG {}{}", gpu.mig, instances(gpu)));
    let readings: Vec<Vec<String>> = gpu
        .readings
        .iter()
        .map(|reading| {
            let rung = reading.rung.map_or_else(|| "-".to_owned(), |letter| letter.to_string());
            let source = reading.source.unwrap_or("-").to_owned();
            vec![reading.words.clone(), rung, absence(&reading.quality), source]
        })
        .collect();
    text.push_str(&indented(&columns(&["reading", "rung", "quality", "NVML call"], &[], &readings)));
    text.push_str(&better(gpu));
    text
}

fn instances(gpu: &GpuReport) -> String {
    let one = |instance: &super::Instance| {
        let profile = instance.profile.as_deref().unwrap_or("profile n/a");
        format!("{profile} at {}", absence(&instance.placement))
    };
    let list: Vec<String> = gpu.instances.iter().map(one).collect();
    if list.is_empty() { String::new() } else { format!(": {}", list.join(", ")) }
}

/// What would raise the readings of a GPU. Rungs of one reading that want the same stand together.
fn better(gpu: &GpuReport) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for reading in &gpu.readings {
        for refused in &reading.refused {
            let rung = refused.rung.map_or_else(|| "-".to_owned(), |letter| letter.to_string());
            let row = vec![reading.words.clone(), rung, refused.why.clone(), refused.advice.to_owned()];
            match rows.last_mut().filter(|last| last[0] == row[0] && last[2..] == row[2..]) {
                Some(last) => last[1] = format!("{}, {}", last[1], row[1]),
                None => rows.push(row),
            }
        }
    }
    if rows.is_empty() {
        return "  Nothing better exists.\n".to_owned();
    }
    let list = columns(&["out of reach", "rung", "why", "what it takes"], &[], &rows);
    format!("\n{}", indented(&list))
}

/// How one is given stands only below those that are not held.
fn privileges(report: &Report) -> String {
    let wide = report.privileges.iter().map(|privilege| privilege.name.len()).max().unwrap_or_default();
    let mut text = "Privileges: none is needed, and none is taken\n".to_owned();
    for privilege in &report.privileges {
        let held = match privilege.held {
            Held::Yes => "held",
            Held::No => "not held",
            Held::Unknown => "unknown",
            Held::Needless => "no use",
        };
        line(&mut text, format_args!("  {held:<8}  {:<wide$}  {}", privilege.name, privilege.buys));
        if privilege.held == Held::No {
            line(&mut text, format_args!("  {:<8}  {:<wide$}  how: {}", "", "", privilege.how));
        }
    }
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    writeln!(text, "{arguments}").unwrap_or_default();
}
