//! Public formats to NDJSON events on standard output.

use crate::cli::ImportArgs;
use crate::outcome::{Outcome, Usage};
use crate::progress::Progress;
use anyhow::{Context, Result};
use gpuledger_import::{
    ImportError, Options, Report, SkuRule, TenantRule, azure_llm, nvidia_smi, openb, sacct,
};
use gpuledger_telemetry::terminal::say_err;
use gpuledger_wire::objects::{Mapping, Matcher, Object, Sku, parse_documents};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Imports files; what could not be mapped is listed on standard error.
pub(crate) fn run(args: &ImportArgs) -> Result<Outcome> {
    let mut options = options(args)?;
    let progress = Arc::new(Mutex::new(Progress::new("importing")));
    let told = Arc::clone(&progress);
    options.progress = Some(Box::new(move |at| {
        if let Ok(mut bar) = told.lock() {
            bar.set(at.rows);
        }
    }));
    let imported = all(args, &options);
    if let Ok(bar) = progress.lock() {
        bar.done();
    }
    imported
}

fn all(args: &ImportArgs, options: &Options) -> Result<Outcome> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for path in &args.paths {
        let report = import(&args.format, path, options, &mut |event| writeln!(out, "{event}"))?;
        for unmapped in &report.unmapped {
            say_err(&unmapped.to_string());
        }
        say_err(&format!("{}: {report}", path.display()));
    }
    out.flush().context("standard output")?;
    Ok(Outcome::Done)
}

/// Imports one file of a format into a sink.
pub(crate) fn import(
    format: &str,
    path: &Path,
    options: &Options,
    sink: &mut dyn FnMut(serde_json::Value) -> std::io::Result<()>,
) -> Result<Report> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| Usage(format!("{name}: {error}")))?;
    let reader = BufReader::new(file);
    let report = match format {
        "azure-llm" => azure_llm(reader, &name, options, sink),
        "openb" => openb(reader, &name, options, sink),
        "sacct" => sacct(reader, &name, options, sink),
        _ => nvidia_smi(reader, &name, options, sink),
    };
    report.map_err(|error| match error {
        ImportError::Read { .. } | ImportError::Write { .. } => error.into(),
        ImportError::Format { .. } | ImportError::Option { .. } => Usage(error.to_string()).into(),
    })
}

fn options(args: &ImportArgs) -> Result<Options> {
    let mut options = Options {
        tenant_column: args.tenant_key.clone(),
        node: args.node.clone(),
        tenant: args.tenant.clone(),
        pool: args.pool.clone(),
        ..Options::default()
    };
    options.zone = args
        .zone
        .parse()
        .map_err(|_| Usage(format!("--zone {}: want an IANA name such as Europe/Berlin", args.zone)))?;
    if let Some(start) = args.start {
        let at = chrono::DateTime::from_timestamp_micros(start.as_micros())
            .ok_or_else(|| Usage(format!("--start {start}: out of range")))?;
        options.trace_start = at;
        options.at = Some(at);
    }
    if let Some(path) = &args.mapping {
        read_rules(path, &mut options)?;
    }
    Ok(options)
}

/// Reads `kind: Mapping` and `kind: Sku` documents.
fn read_rules(path: &Path, options: &mut Options) -> Result<()> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Usage(format!("{name}: {error}")))?;
    let objects = parse_documents(&text, &name)
        .map_err(|faults| Usage(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?;
    for object in objects {
        match object {
            Object::Mapping(mapping) => options.tenants.push(tenant_rule(&mapping)),
            Object::Sku(sku) => options.skus.push(sku_rule(&sku)),
            other => {
                return Err(Usage(format!(
                    "{name}: {} {}: want kind Mapping or Sku here",
                    other.kind(),
                    other.id()
                ))
                .into());
            }
        }
    }
    Ok(())
}

fn tenant_rule(mapping: &Mapping) -> TenantRule {
    TenantRule {
        source: mapping.source.to_string(),
        matches: mapping
            .r#match
            .iter()
            .map(|(field, value)| (field.to_string(), value.to_string()))
            .collect(),
        tenant: mapping.tenant.to_string(),
        project: mapping.project.as_ref().map(ToString::to_string),
        from: mapping.from.map(|from| from.get()),
    }
}

fn sku_rule(sku: &Sku) -> SkuRule {
    let mut rule = SkuRule { sku: sku.id.to_string(), gres: Vec::new(), labels: Vec::new() };
    for matcher in &sku.r#match {
        match matcher {
            Matcher::Gres(name) => rule.gres.push(name.to_string()),
            Matcher::Label(name) => rule.labels.push(name.to_string()),
            Matcher::Model(_) => {}
        }
    }
    rule
}
