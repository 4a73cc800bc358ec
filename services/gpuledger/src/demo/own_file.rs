//! The user's own file: events of it, and objects for whom it names, so that it can be billed.

use super::folder::Folder;
use crate::commands::import::import;
use crate::outcome::Usage;
use anyhow::{Context, Result};
use gpuledger_domain::rating::Period;
use gpuledger_domain::time::{HOUR_US, Instant};
use gpuledger_import::{Options, Report};
use gpuledger_wire::amount::Unsigned;
use gpuledger_wire::objects::Object;
use gpuledger_wire::time::parse_time;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How far past the end of a month the ledger is taken, so that its last hours are posted.
const PATIENCE_US: i64 = 2 * HOUR_US;
/// What everything is sold in.
const CURRENCY: &str = "USD";

/// What `--from` and `--price` say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnFile {
    /// `sacct`, `openb` or `events`.
    pub(crate) format: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// Price of an hour by SKU.
    pub(crate) prices: BTreeMap<String, Unsigned>,
}

impl OwnFile {
    /// Reads the options.
    ///
    /// # Errors
    /// A price that is none, or one SKU twice.
    pub(crate) fn new(format: &str, path: &Path, prices: &[String]) -> Result<Self> {
        let mut by_sku = BTreeMap::new();
        for text in prices {
            let (sku, price) = price(text)?;
            if by_sku.insert(sku.clone(), price).is_some() {
                return Err(Usage(format!("--price: {sku} stands twice")).into());
            }
        }
        Ok(Self { format: format.to_owned(), path: path.to_owned(), prices: by_sku })
    }

    /// A word on who its tenants are.
    pub(crate) fn word_on_tenants(&self) -> &'static str {
        match self.format.as_str() {
            "openb" => {
                "the trace has no tenants: a pod's request shape stands for one, cpu_milli-memory_mib-num_gpu-gpu_milli"
            }
            "sacct" => "each Slurm account stands for a tenant",
            _ => "tenants are those the events name",
        }
    }

    /// The events of it: the file itself, or what the importer makes of it, with its report.
    ///
    /// # Errors
    /// The file cannot be read, or is something else altogether.
    pub(crate) fn events(&self, folder: &Folder) -> Result<(PathBuf, Option<Report>)> {
        if self.format == "events" {
            return Ok((self.path.clone(), None));
        }
        let path = folder.path().join("events.ndjson");
        let mut file = BufWriter::new(File::create(&path).with_context(|| path.display().to_string())?);
        let report =
            import(&self.format, &self.path, &Options::default(), &mut |event| writeln!(file, "{event}"))?;
        file.flush().with_context(|| path.display().to_string())?;
        Ok((path, Some(report)))
    }

    /// A seller, a tenant for each that was metered, and a rate card with the prices that were given.
    ///
    /// # Errors
    /// None that the options and the ledger do not exclude.
    pub(crate) fn objects(&self, tenants: &BTreeSet<String>) -> Result<Vec<Object>> {
        let mut objects = vec![
            json!({"kind": "Seller", "id": "demo", "name": "Your GPU Cloud", "country": "US", "series": "DEMO"}),
        ];
        objects.extend(tenants.iter().map(|id| json!({"kind": "Tenant", "id": id, "currency": CURRENCY})));
        if !self.prices.is_empty() {
            let price = |(sku, price): (&String, &Unsigned)| json!({"sku": sku, "per": "hour", "price": price.to_string()});
            objects.push(json!({
                "kind": "RateCard", "id": "demo", "currency": CURRENCY, "effective_from": "1970-01-01T00:00:00Z",
                "tenants": ["*"], "prices": self.prices.iter().map(price).collect::<Vec<Value>>(),
            }));
        }
        objects.iter().map(|object| Ok(Object::from_json(object)?)).collect()
    }
}

/// `SKU=PRICE`; the SKU may be a pattern with `*`.
fn price(text: &str) -> Result<(String, Unsigned)> {
    let wrong =
        |why: String| Usage(format!("--price {text}: {why}, want SKU=PRICE such as h100=2.40 or '*=1.50'"));
    let (sku, price) = text.rsplit_once('=').ok_or_else(|| wrong("has no `=`".into()))?;
    if sku.is_empty() {
        return Err(wrong("names no SKU".into()).into());
    }
    Ok((sku.to_owned(), Unsigned::parse(price).map_err(|why| wrong(format!("{price:?} {why}")))?))
}

/// How far to take the ledger: past the end of the newest event's month where that is over, else to the newest event. None: no event.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn horizon(path: &Path, now: Instant) -> Result<Option<Instant>> {
    let Some(newest) = newest(path, now)? else { return Ok(None) };
    let over = Period::containing(newest, chrono_tz::UTC)
        .and_then(|month| month.window(chrono_tz::UTC).ok())
        .map(|month| month.end().plus(PATIENCE_US))
        .filter(|end| *end <= now);
    Ok(Some(over.unwrap_or(newest)))
}

/// The newest time of an event that is not in the future.
fn newest(path: &Path, now: Instant) -> Result<Option<Instant>> {
    #[derive(Deserialize)]
    struct Timed {
        time: String,
    }
    let name = || path.display().to_string();
    let file = File::open(path).map_err(|error| Usage(format!("{}: {error}", name())))?;
    let mut newest = None;
    for line in BufReader::new(file).split(b'\n') {
        let line = line.with_context(name)?;
        // What is no event is parked with its reason when it is replayed.
        let time = serde_json::from_slice::<Timed>(&line).ok().and_then(|event| parse_time(&event.time).ok());
        newest = newest.max(time.filter(|time| *time <= now));
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        parse_time(text).unwrap()
    }

    #[test]
    fn prices_are_read_and_wrong_ones_say_what_is_right() {
        let own = OwnFile::new("openb", Path::new("x"), &["*=1.50".into(), "v100m32=2".into()]).unwrap();
        let prices: Vec<String> = own.prices.iter().map(|(sku, price)| format!("{sku} {price}")).collect();
        assert_eq!(prices, ["* 1.50", "v100m32 2"]);
        for wrong in ["h100", "=1", "h100=-1", "h100=1,50", "h100=NaN"] {
            let error = OwnFile::new("openb", Path::new("x"), &[wrong.into()]).unwrap_err();
            assert!(error.is::<Usage>() && error.to_string().contains("SKU=PRICE"), "{error}");
        }
        assert!(OwnFile::new("openb", Path::new("x"), &["a=1".into(), "a=2".into()]).is_err());
    }

    #[test]
    fn objects_are_made_for_any_name() {
        let own = OwnFile::new("sacct", Path::new("x"), &["gpu=2".into()]).unwrap();
        let tenants = ["a: b #c".to_owned(), "0123".to_owned()].into();
        let names: Vec<String> = own.objects(&tenants).unwrap().iter().map(Object::id).collect();
        assert_eq!(names, ["demo", "0123", "a: b #c", "demo"]);
    }

    #[test]
    fn the_ledger_is_taken_past_the_end_of_a_month_that_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.ndjson");
        let lines = "{\"time\":\"2026-03-05T00:00:00Z\"}\nnonsense\n{\"time\":\"9999-01-01T00:00:00Z\"}\n";
        std::fs::write(&path, lines).unwrap();
        let horizon = |now| horizon(&path, at(now)).unwrap();
        assert_eq!(horizon("2026-05-01T00:00:00Z"), Some(at("2026-04-01T02:00:00Z")));
        assert_eq!(
            horizon("2026-03-20T00:00:00Z"),
            Some(at("2026-03-05T00:00:00Z")),
            "the month is not over"
        );
        assert_eq!(horizon("2026-01-01T00:00:00Z"), None);
    }
}
