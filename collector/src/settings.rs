//! Settings of the collector: one TOML file and `GPULEDGER_COLLECTOR_…` variables. Unknown keys and all faults are reported at once.
//!
//! A key of a table is written with two underscores in a variable: `GPULEDGER_COLLECTOR_SPOOL__MAX_BYTES`.

use crate::cycle::SamplerSettings;
use crate::publish::PublishSettings;
use crate::sink::SinkSettings;
use crate::spool::SpoolSettings;
use figment::error::Kind;
use figment::providers::{Env, Format, Toml};
use figment::value::{Dict, Value};
use figment::{Figment, Metadata};
use gpuledger_wire::text::Name;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Read where `--config` names no file and this one is there.
pub const USUAL_FILE: &str = "/etc/gpuledger/collector.toml";
/// What variables begin with.
pub const PREFIX: &str = "GPULEDGER_COLLECTOR_";

/// Shortest sample period in milliseconds: GPM wants 100 ms between two samples.
const LEAST_PERIOD_MS: u64 = 100;
/// Longest sample period: the driver's rings hold about 12 s, and a pause above 10 s is a gap.
const MOST_PERIOD_MS: u64 = 10_000;
/// Longest window: windows are cut at UTC minutes anyway.
const MOST_WINDOW_S: u64 = 60;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("settings: {}", .faults.join("; "))]
pub struct SettingsError {
    /// Every fault, each with the key, where it stands, and what would be right.
    pub faults: Vec<String>,
}

/// What a collector needs to know.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Name of this node in events; it is also what the node's token may speak for. The host name where nothing is set.
    pub node: String,
    /// The NVML library. Where nothing is set the dynamic linker finds `libnvidia-ml.so.1`.
    pub nvml_library: Option<PathBuf>,
    /// Where procfs is mounted; in a container the host's, such as `/host/proc`.
    pub proc_root: PathBuf,
    /// File that holds the time of a simulated node, which the collector then drives.
    pub clock_file: Option<PathBuf>,
    /// Milliseconds from one sample to the next: 100 to 10000. Above 5000 memory time is too coarse for billing.
    pub sample_period_ms: u64,
    /// Seconds of a telemetry window: 1 to 60, a divisor of 60.
    pub window_seconds: u64,
    /// Milliseconds that one call to the driver may take before its GPU counts as stalled.
    pub call_deadline_ms: u64,
    /// Socket of the kubelet's pod resources. That there is none is normal.
    pub pod_resources_socket: PathBuf,
    /// Address of `/metrics`, `/healthz` and `/readyz`; port 0 is any free one.
    pub metrics_bind: SocketAddr,
    /// Also the names and labels of dcgm-exporter. Off, because beside one they double every sum.
    pub dcgm_names: bool,
    /// Log filter, such as `info` or `info,gpuledger_collector=debug`.
    pub log: String,
    /// Logs as JSON, one object a line.
    pub log_json: bool,
    /// Where events wait until they are acknowledged.
    pub spool: SpoolSettings,
    /// How fast they are sent.
    pub publish: PublishSettings,
    /// Where events go: one of `kafka`, `http`, `file`. `run` needs it.
    pub sink: Option<SinkSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            node: String::new(),
            nvml_library: None,
            proc_root: PathBuf::from("/proc"),
            clock_file: None,
            sample_period_ms: 1_000,
            window_seconds: 10,
            call_deadline_ms: 2_000,
            pod_resources_socket: PathBuf::from("/var/lib/kubelet/pod-resources/kubelet.sock"),
            metrics_bind: SocketAddr::from(([127, 0, 0, 1], 9835)),
            dcgm_names: false,
            log: "info".to_owned(),
            log_json: false,
            spool: SpoolSettings::default(),
            publish: PublishSettings::default(),
            sink: None,
        }
    }
}

impl Settings {
    /// Reads the settings of this process: the file, then the variables, which win.
    ///
    /// # Errors
    /// Every unknown key and wrong value, and a file that is named and not there.
    pub fn load(file: Option<&Path>) -> Result<Self, SettingsError> {
        if let Some(missing) = file.filter(|file| !file.is_file()) {
            return Err(SettingsError { faults: vec![format!("{} is no file", missing.display())] });
        }
        let file = file.unwrap_or(Path::new(USUAL_FILE));
        // `config` is how the command line is told, not a setting.
        let variables = Env::prefixed(PREFIX).ignore(&["config"]).split("__");
        Self::from_figment(&Figment::new().merge(Toml::file(file)).merge(variables))
    }

    fn from_figment(figment: &Figment) -> Result<Self, SettingsError> {
        let faults = faults(figment);
        if !faults.is_empty() {
            return Err(SettingsError { faults });
        }
        let all = |fault: figment::Error| SettingsError { faults: told(fault, figment) };
        let mut settings: Self = figment.extract().map_err(all)?;
        if settings.node.is_empty() {
            settings.node = host_name();
        }
        let faults = settings.out_of_bounds();
        if faults.is_empty() { Ok(settings) } else { Err(SettingsError { faults }) }
    }

    fn out_of_bounds(&self) -> Vec<String> {
        let between = |key: &str, value: u64, low: u64, high: u64| {
            let fault = format!("{key} is {value}, {low} to {high} is right");
            (!(low..=high).contains(&value)).then_some(fault)
        };
        let node = Name::new(&self.node).err().map(|why| format!("node {:?} {why}", self.node));
        let divides = self.window_seconds > 0 && 60 % self.window_seconds == 0;
        let uneven = format!("window_seconds is {}, a divisor of 60 is right", self.window_seconds);
        [
            node,
            between("sample_period_ms", self.sample_period_ms, LEAST_PERIOD_MS, MOST_PERIOD_MS),
            between("window_seconds", self.window_seconds, 1, MOST_WINDOW_S).or((!divides).then_some(uneven)),
            between("call_deadline_ms", self.call_deadline_ms, 100, 60_000),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Sample period in microseconds.
    pub const fn period_us(&self) -> u64 {
        self.sample_period_ms * 1_000
    }

    /// How long one call to the driver may take.
    pub const fn call_deadline(&self) -> Duration {
        Duration::from_millis(self.call_deadline_ms)
    }

    /// How often is sampled, and into which windows.
    pub fn sampling(&self) -> SamplerSettings {
        let window_us = i64::try_from(self.window_seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        let usual = SamplerSettings::default();
        let period_us = self.period_us();
        SamplerSettings { period_us, slow_period_us: usual.slow_period_us.max(period_us), window_us }
    }

    /// A file of this collector beside its spool: `spool.NAME`.
    pub fn beside_the_spool(&self, name: &str) -> PathBuf {
        self.spool.folder.with_extension(name)
    }

    /// Age in microseconds at which figures are too old to be shown: three periods, at least five seconds.
    pub fn stale_us(&self) -> u64 {
        (3 * self.period_us()).max(5_000_000)
    }
}

/// Every fault of every key: each is read alone, since reading all at once stops at the first. What is missing beside it is no fault of it.
fn faults(figment: &Figment) -> Vec<String> {
    let given: Dict = match figment.extract() {
        Ok(given) => given,
        Err(fault) => return told(fault, figment),
    };
    let alone =
        |(key, value): (String, Value)| Figment::from((key.as_str(), value)).extract::<Settings>().err();
    let is_own = |fault: &figment::Error| !matches!(fault.kind, Kind::MissingField(_));
    leaves("", given)
        .into_iter()
        .filter_map(alone)
        .filter(is_own)
        .flat_map(|fault| told(fault, figment))
        .collect()
}

/// The values of a table and of the tables in it, each with the dots of its key.
fn leaves(above: &str, table: Dict) -> Vec<(String, Value)> {
    let one = |(key, value): (String, Value)| {
        let key = if above.is_empty() { key } else { format!("{above}.{key}") };
        match value {
            Value::Dict(_, table) if !table.is_empty() => leaves(&key, table),
            value => vec![(key, value)],
        }
    };
    table.into_iter().flat_map(one).collect()
}

/// Each fault with its key as it is written where it stands: `spool.size in /etc/gpuledger/collector.toml file: unknown field, …`.
fn told(fault: figment::Error, figment: &Figment) -> Vec<String> {
    let one = |fault: figment::Error| {
        let path = fault.path.join(".");
        let key = match figment.find_metadata(&path) {
            _ if path.is_empty() => return fault.to_string(),
            Some(metadata) if metadata.name.contains("environment") => {
                format!("{PREFIX}{}", fault.path.join("__").to_uppercase())
            }
            Some(Metadata { source: Some(source), .. }) => format!("{path} in {source}"),
            Some(_) | None => path,
        };
        format!("{key}: {}", fault.kind)
    };
    fault.into_iter().map(one).collect()
}

/// The host name as the kernel has it; empty where it does not say, which the check then names.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, SettingsError> {
        Settings::from_figment(&Figment::from(Toml::string(text)))
    }

    #[test]
    fn nothing_set_is_enough() {
        let settings = read("").unwrap();
        assert!(!settings.node.is_empty(), "the host name");
        assert_eq!((settings.period_us(), settings.stale_us()), (1_000_000, 5_000_000));
        assert_eq!(settings.metrics_bind.to_string(), "127.0.0.1:9835");
        assert!(!settings.dcgm_names);
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let text = "nod = \"n1\"\nsample_period_ms = \"soon\"\nmetrics_bind = \"here\"\n[spool]\nsize = 1\nmax_bytes = \"x\"\n\
            [sink.kafka]\nsecurity = { sasl = { mechanism = \"NONE\" } }";
        let faults = read(text).unwrap_err().faults;
        assert_eq!(faults.len(), 6, "{faults:?}");
        for key in ["nod", "sample_period_ms", "metrics_bind", "spool.size", "spool.max_bytes", "sink.kafka"]
        {
            assert!(faults.iter().any(|fault| fault.starts_with(key)), "{key}: {faults:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let faults = read("[sink.kafka]\nclient_id = \"c\"").unwrap_err().faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("bootstrap"), "{faults:?}");
    }

    #[test]
    fn values_out_of_bounds_are_named_with_what_is_right() {
        let faults =
            read("sample_period_ms = 50\nwindow_seconds = 7\ncall_deadline_ms = 0").unwrap_err().faults;
        let expected = [
            "sample_period_ms is 50, 100 to 10000 is right",
            "window_seconds is 7, a divisor of 60 is right",
            "call_deadline_ms is 0, 100 to 60000 is right",
        ];
        assert_eq!(faults, expected);
        assert_eq!(read("window_seconds = 0").unwrap_err().faults, ["window_seconds is 0, 1 to 60 is right"]);
    }

    #[test]
    fn a_node_name_that_cannot_travel_is_refused() {
        assert!(read("node = \"a\\u0007b\"").unwrap_err().to_string().contains("control character"));
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let fault = Settings::load(Some(Path::new("/nonexistent/c.toml"))).unwrap_err();
        assert_eq!(fault.to_string(), "settings: /nonexistent/c.toml is no file");
    }

    #[test]
    fn the_example_of_the_guide_is_read() {
        let guide = include_str!("../../docs/guides/collector.md");
        let toml = guide.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let settings = read(toml).unwrap();
        assert_eq!(settings.node, "n1");
        assert!(matches!(settings.sink, Some(SinkSettings::Kafka(_))));
    }
}
