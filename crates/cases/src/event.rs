//! One line that says something, in the form of CloudEvents.

use super::device::{listed, scope, unit};
use super::times::{Written, instant, micros};
use super::words::Words;
use gpuledger_domain::time::Instant;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Something that was said.
#[derive(Clone, Debug)]
pub struct Said {
    /// The event's id, unique in its case unless the line gives one.
    pub id: String,
    /// When it happened.
    pub at: Instant,
    /// The event, as structured JSON.
    pub json: Value,
}

/// Options a line may carry; other words with `=` are part of a unit or instance.
const OPTIONS: [&str; 25] = [
    "id",
    "job",
    "pod",
    "pool",
    "class",
    "project",
    "commitment",
    "label",
    "boot",
    "nodes",
    "seq",
    "stream",
    "reason",
    "adapter",
    "in",
    "out",
    "cached",
    "requests",
    "kv",
    "units",
    "period",
    "detail",
    "result",
    "covered",
    "read",
];

/// Options of a telemetry window.
const OF_WINDOWS: [&str; 4] = ["id", "boot", "seq", "stream"];

/// What the lines of one case have in common.
#[derive(Debug, Default)]
pub(super) struct Speaker {
    said: usize,
    sequences: BTreeMap<String, u64>,
}

/// A body under construction: its type and data.
struct Body {
    kind: &'static str,
    data: Value,
}

impl Speaker {
    /// Reads `10:05 slurm: grant a acme G1`; several events where the line says `every`.
    pub(super) fn read(&mut self, line: &str, date: &str) -> Result<Vec<Said>, String> {
        // In a window names of jobs and pods belong to readings.
        let is_window = line.split_whitespace().nth(2) == Some("window");
        let mut words = Words::new(line, if is_window { &OF_WINDOWS } else { &OPTIONS });
        let at = instant(words.next("a time")?, date)?;
        let speaker = words.next("who says it")?;
        let speaker = speaker
            .strip_suffix(':')
            .ok_or_else(|| format!("`{speaker}` is nobody, expected such as `slurm:`"))?;
        let verb = words.next("what is said")?;
        self.said += 1;
        let id = words.option("id").map_or_else(|| format!("e{:02}", self.said), str::to_owned);
        let times = repeated(&mut words, &at, date)?;
        let many = times.len() > 1;
        let mut said = Vec::new();
        for (number, time) in times.into_iter().enumerate() {
            let mut words = words.clone();
            let body = self.body(verb, speaker, &time, date, &mut words)?;
            words.end()?;
            let id = if many { format!("{id}.{}", number + 1) } else { id.clone() };
            let json = json!({"specversion": "1.0", "id": id, "source": source(speaker), "type": format!("gpuledger.{}.v1", body.kind),
                "time": time.text, "data": body.data});
            said.push(Said { id, at: time.at, json });
        }
        Ok(said)
    }

    fn body(
        &mut self,
        verb: &str,
        speaker: &str,
        at: &Written,
        date: &str,
        words: &mut Words<'_>,
    ) -> Result<Body, String> {
        let body = |kind, data| Ok(Body { kind, data });
        match verb {
            "inventory" => body("node.inventory", inventory(speaker, words)?),
            "alive" => {
                body("telemetry.window", self.window(speaker, at.at.plus(-10_000_000), at.at, words, &[])?)
            }
            "window" => body("telemetry.window", self.readings(speaker, date, words)?),
            "decommission" => body("node.decommissioned", decommission(words.next("a node or GPU")?)),
            "state" => body("unit.state", state(words)?),
            "grant" => body("allocation.granted", grant(words)?),
            "placed" => body("allocation.placed", placed(words)?),
            "becomes" => body(
                "allocation.state",
                json!({"allocation": words.next("an allocation")?, "state": words.next("a state")?}),
            ),
            "transfer" => body("allocation.transferred", transfer(words)?),
            "release" => body("allocation.released", release(words)?),
            "snapshot" => body("allocation.snapshot", snapshot(words)),
            "scrub-starts" => body("scrub.started", scrub(words)?.into()),
            "scrub-ends" => body("scrub.finished", scrub_ends(words, date)?),
            "unquarantine" => body("quarantine.released", unquarantine(words)?),
            "work" => body("work.reported", work(words, date)?),
            "usage" => body("usage.reported", usage(words, date)?),
            "charge" => body("charge.recorded", charge(words)?),
            other => {
                Err(format!("`{other}` says nothing, expected such as grant, release, inventory or state"))
            }
        }
    }

    fn window(
        &mut self,
        node: &str,
        start: Instant,
        end: Instant,
        words: &Words<'_>,
        readings: &[Reading],
    ) -> Result<Value, String> {
        let stream = words.option("stream").map_or_else(|| format!("stream-{node}"), str::to_owned);
        let next = self.sequences.entry(stream.clone()).or_insert(0);
        let sequence = match words.option("seq") {
            Some(number) => number.parse().map_err(|_| format!("`{number}` is no sequence"))?,
            None => *next,
        };
        *next = sequence + 1;
        let of = |process: bool| {
            readings.iter().filter(|r| r.process == process).map(|r| r.data.clone()).collect::<Vec<_>>()
        };
        Ok(
            json!({"node": node, "boot_id": words.option("boot").unwrap_or("b1"), "stream": stream, "sequence": sequence,
            "start": start.to_string(), "end": end.to_string(), "units": of(false), "processes": of(true), "gaps": []}),
        )
    }

    /// `window 10:00..10:01 G1 sm=20s, G1 job=4711 sm=20s`
    fn readings(&mut self, node: &str, date: &str, words: &mut Words<'_>) -> Result<Value, String> {
        let (start, end) = span(words.next("a span such as 10:00..10:01")?, date)?;
        let length_us = end.at.since(start.at);
        let text = words.rest().join(" ");
        let readings: Result<Vec<Reading>, String> = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| Reading::read(part, &start, length_us))
            .collect();
        self.window(node, start.at, end.at, words, &readings?)
    }
}

/// Reading of a unit or of a process.
struct Reading {
    process: bool,
    data: Value,
}

impl Reading {
    /// `G1@0+4 job=4711 sm=20s covered=30s`, or `G1 sm=none(not_supported)`.
    fn read(text: &str, start: &Written, length_us: i64) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut data = scope(words.next().ok_or("a reading names no unit")?)?;
        data.insert("covered_us".to_owned(), json!(length_us));
        let mut quality = Map::new();
        let mut process = false;
        for word in words {
            let (name, value) = word
                .split_once('=')
                .ok_or_else(|| format!("`{word}` is no reading, expected such as sm=20s"))?;
            match (name, value.strip_prefix("none(").and_then(|v| v.strip_suffix(')'))) {
                ("sm", Some(why)) => {
                    drop(quality.insert("sm_active_us".to_owned(), json!(format!("unavailable({why})"))))
                }
                ("sm", None) => {
                    data.insert("sm_active_us".to_owned(), json!(whole(value)?));
                    quality.insert("sm_active_us".to_owned(), json!("interval_mean"));
                }
                ("covered", _) => drop(data.insert("covered_us".to_owned(), json!(whole(value)?))),
                ("job", _) => drop(data.insert("slurm_job".to_owned(), json!(value))),
                ("pod", _) => drop(data.insert("pod_uid".to_owned(), json!(value))),
                ("container", _) => drop(data.insert("container".to_owned(), json!(value))),
                ("pid", _) => drop(data.insert(
                    "pid".to_owned(),
                    json!(value.parse::<u32>().map_err(|_| format!("`{value}` is no pid"))?),
                )),
                _ => {
                    return Err(format!(
                        "`{word}` is no reading, expected such as sm=20s, covered=30s, job=4711 or pid=100"
                    ));
                }
            }
            process |= ["job", "pod", "container", "pid"].contains(&name);
        }
        if process {
            data.entry("pid").or_insert(json!(100));
            data.insert("started_at".to_owned(), json!(start.at.plus(-60_000_000).to_string()));
        }
        data.insert("quality".to_owned(), Value::Object(quality));
        Ok(Self { process, data: Value::Object(data) })
    }
}

fn whole(text: &str) -> Result<i64, String> {
    i64::try_from(micros(text)?).map_err(|_| format!("`{text}` is too long"))
}

/// Whose events these are: `n1` a node, `ops` the platform, `gw…` a gateway, all others allocators.
fn source(speaker: &str) -> String {
    let is_node = speaker
        .strip_prefix('n')
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()) && !rest.is_empty());
    match speaker {
        _ if is_node => format!("/nodes/{speaker}/collector"),
        "ops" => "/platform/ops".to_owned(),
        _ if speaker.starts_with("gw") => format!("/gateways/{speaker}"),
        _ => format!("/allocators/{speaker}"),
    }
}

/// `every 15m until 12:00` right behind the verb: from the line's time to that one, both included.
fn repeated(words: &mut Words<'_>, first: &Written, date: &str) -> Result<Vec<Written>, String> {
    if !words.take("every") {
        return Ok(vec![first.clone()]);
    }
    let step =
        i64::try_from(micros(words.next("a length such as 15m")?)?).map_err(|_| "the step is too long")?;
    if !words.take("until") || step <= 0 {
        return Err("expected `every 15m until 12:00`".to_owned());
    }
    let last = instant(words.next("a time")?, date)?.at;
    let mut times = Vec::new();
    let mut at = first.at;
    while at <= last {
        times.push(Written { at, text: at.to_string() });
        at = at.plus(step);
    }
    Ok(times)
}

/// `10:00..10:05`
pub(super) fn span(word: &str, date: &str) -> Result<(Written, Written), String> {
    let (start, end) =
        word.split_once("..").ok_or_else(|| format!("`{word}` is no span, expected such as 10:00..10:05"))?;
    Ok((instant(start, date)?, instant(end, date)?))
}

fn inventory(node: &str, words: &mut Words<'_>) -> Result<Value, String> {
    let boot = words.option("boot").unwrap_or("b1");
    let text = words.rest().join(" ");
    let gpus: Result<Vec<Value>, String> = match text.as_str() {
        "nothing" => Ok(Vec::new()),
        _ => text.split(',').enumerate().map(|(index, entry)| listed(entry, index)).collect(),
    };
    Ok(json!({"node": node, "boot_id": boot, "gpus": gpus?}))
}

fn decommission(what: &str) -> Value {
    if source(what).starts_with("/nodes/") { json!({"node": what}) } else { json!({"gpu": what}) }
}

fn state(words: &mut Words<'_>) -> Result<Value, String> {
    let mut data = scope(words.next("a GPU")?)?;
    data.insert("state".to_owned(), json!(words.next("ok, fault or maintenance")?));
    if let Some(cause) = words.rest().first() {
        data.insert("cause".to_owned(), json!(cause));
    }
    Ok(Value::Object(data))
}

fn insert_options(data: &mut Value, words: &Words<'_>, names: &[&str]) {
    for name in names {
        if let Some(value) = words.option(name) {
            data[*name] = json!(value);
        }
    }
}

fn runtime(words: &Words<'_>) -> Option<Value> {
    let mut members = Map::new();
    for (option, member) in [("job", "slurm_job"), ("pod", "pod_uid")] {
        if let Some(value) = words.option(option) {
            members.insert(member.to_owned(), json!(value));
        }
    }
    (!members.is_empty()).then_some(Value::Object(members))
}

/// `grant a acme [shared] G1 …`
fn grant(words: &mut Words<'_>) -> Result<Value, String> {
    let (allocation, tenant) = (words.next("an allocation")?, words.next("a tenant")?);
    let mode = if words.take("shared") { "shared" } else { "exclusive" };
    let units: Result<Vec<Value>, String> = words.rest().into_iter().map(unit).collect();
    let class = words.option("class").unwrap_or("on_demand");
    let mut data =
        json!({"allocation": allocation, "tenant": tenant, "units": units?, "mode": mode, "class": class});
    insert_options(&mut data, words, &["project", "pool", "commitment"]);
    if let Some(runtime) = runtime(words) {
        data["runtime"] = runtime;
    }
    let labels: Map<String, Value> =
        words.options_of("label.").map(|(name, value)| (name.to_owned(), json!(value))).collect();
    if !labels.is_empty() {
        data["labels"] = Value::Object(labels);
    }
    Ok(data)
}

/// `placed a G1 …`, or `placed job=4711 G1 …`
fn placed(words: &mut Words<'_>) -> Result<Value, String> {
    let mut data = match runtime(words) {
        Some(runtime) => json!({"runtime": runtime}),
        None => json!({"allocation": words.next("an allocation, or job=")?}),
    };
    let units: Result<Vec<Value>, String> = words.rest().into_iter().map(unit).collect();
    data["units"] = json!(units?);
    Ok(data)
}

fn transfer(words: &mut Words<'_>) -> Result<Value, String> {
    let mut data = json!({"allocation": words.next("an allocation")?, "tenant": words.next("a tenant")?});
    insert_options(&mut data, words, &["project"]);
    Ok(data)
}

fn release(words: &mut Words<'_>) -> Result<Value, String> {
    let mut data = json!({"allocation": words.next("an allocation")?});
    insert_options(&mut data, words, &["reason"]);
    Ok(data)
}

/// `snapshot a b`, `snapshot nothing`, `snapshot nodes=n1,n2 a`
fn snapshot(words: &mut Words<'_>) -> Value {
    let live: Vec<&str> = words.rest().into_iter().filter(|word| *word != "nothing").collect();
    match words.option("nodes") {
        Some(nodes) => json!({"scope": {"nodes": nodes.split(',').collect::<Vec<_>>()}, "allocations": live}),
        None => json!({"allocations": live}),
    }
}

fn scrub(words: &mut Words<'_>) -> Result<Map<String, Value>, String> {
    let name = words.next("a scrub")?;
    let mut data = scope(words.next("a GPU")?)?;
    data.insert("scrub".to_owned(), json!(name));
    Ok(data)
}

/// `scrub-ends s1 G1@0+4 since 10:10`
fn scrub_ends(words: &mut Words<'_>, date: &str) -> Result<Value, String> {
    let mut data = scrub(words)?;
    if !words.take("since") {
        return Err("expected `since` and when the scrub began".to_owned());
    }
    let since = instant(words.next("a time")?, date)?;
    let bytes = 1_000_000;
    let result = words.option("result").unwrap_or("passed");
    // `covered=` and `read=` are thousands of the million bytes there are.
    let covered = words.option("covered").map_or(Ok(bytes), whole_thousands)?;
    let read = words.option("read").map_or(Ok(bytes), whole_thousands)?;
    let more = json!({"started_at": since.text, "result": result, "class": "clear", "steps": [],
        "tool": {"name": "scrubber", "version": "1", "digest": "d"}, "platform": {"driver": "580"},
        "coverage": {"bytes_total": bytes, "bytes_covered": covered, "bytes_reserved": 0},
        "verification": {"method": "full", "bytes_read": read, "mismatches": 0}, "operator": "op"});
    if let Value::Object(more) = more {
        data.extend(more);
    }
    Ok(Value::Object(data))
}

fn whole_thousands(text: &str) -> Result<i64, String> {
    let thousands: i64 = text.parse().map_err(|_| format!("`{text}` is no number of thousands of bytes"))?;
    Ok(thousands * 1_000)
}

fn unquarantine(words: &mut Words<'_>) -> Result<Value, String> {
    let mut data = scope(words.next("a GPU")?)?;
    data.insert("approver".to_owned(), json!("op"));
    data.insert("reason".to_owned(), json!("looked at"));
    Ok(Value::Object(data))
}

/// `work chat acme 10:00..10:01 in=100 out=50`
fn work(words: &mut Words<'_>, date: &str) -> Result<Value, String> {
    let (pool, tenant) = (words.next("a pool")?, words.next("a tenant")?);
    let (start, end) = span(words.next("a span such as 10:00..10:01")?, date)?;
    let mut data = json!({"pool": pool, "tenant": tenant, "start": start.text, "end": end.text});
    insert_options(&mut data, words, &["project", "adapter", "units"]);
    let kinds = [
        ("in", "input_tokens"),
        ("out", "output_tokens"),
        ("cached", "cached_tokens"),
        ("requests", "requests"),
    ];
    for (option, member) in kinds {
        if let Some(value) = words.option(option) {
            data[member] =
                json!(value.parse::<u64>().map_err(|_| format!("`{value}` is no count of {member}"))?);
        }
    }
    if let Some(value) = words.option("kv") {
        data["kv_byte_us"] = json!(value);
    }
    Ok(data)
}

/// `usage acme storage-gib 12.5 gib_hour 10:00..11:00`
fn usage(words: &mut Words<'_>, date: &str) -> Result<Value, String> {
    let (tenant, sku) = (words.next("a tenant")?, words.next("a SKU")?);
    let (quantity, unit) = (words.next("a quantity")?, words.next("a unit")?);
    let (start, end) = span(words.next("a span such as 10:00..11:00")?, date)?;
    let mut data = json!({"tenant": tenant, "sku": sku, "quantity": quantity, "unit": unit, "start": start.text, "end": end.text});
    insert_options(&mut data, words, &["project"]);
    Ok(data)
}

/// `charge acme 10.00 EUR for setup`
fn charge(words: &mut Words<'_>) -> Result<Value, String> {
    let (tenant, amount, currency) =
        (words.next("a tenant")?, words.next("an amount")?, words.next("a currency")?);
    if !words.take("for") {
        return Err("expected `for` and what the charge is for".to_owned());
    }
    let mut data = json!({"tenant": tenant, "amount": amount, "currency": currency, "description": words.rest().join(" ")});
    insert_options(&mut data, words, &["project", "period"]);
    Ok(data)
}
