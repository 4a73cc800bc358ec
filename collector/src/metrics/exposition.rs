//! The text format of Prometheus, version 0.0.4, with exact decimals.

use gpuledger_telemetry::names::Metric;
use std::fmt::{self, Write};

/// A sample's value: a whole number of some decimal fraction of the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    number: u128,
    places: u32,
}

impl Value {
    pub(super) fn whole(number: impl Into<u128>) -> Self {
        Self { number: number.into(), places: 0 }
    }

    /// Thousandths: milliwatts as watts, millijoules as joules.
    pub(super) fn milli(number: impl Into<u128>) -> Self {
        Self { number: number.into(), places: 3 }
    }

    /// Millionths: microseconds as seconds, parts of a million as a ratio.
    pub(super) fn micro(number: impl Into<u128>) -> Self {
        Self { number: number.into(), places: 6 }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u128.pow(self.places);
        let (whole, rest) = (self.number / unit, self.number % unit);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let width = usize::try_from(self.places).unwrap_or_default();
        let fraction = format!("{rest:0width$}");
        write!(f, "{whole}.{}", fraction.trim_end_matches('0'))
    }
}

/// Metrics as text, family by family.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    /// A family of ours. Its heading appears with its first sample.
    pub(super) fn family(&mut self, metric: Metric) -> Family<'_> {
        let kind = if metric.name.ends_with("_total") { "counter" } else { "gauge" };
        self.named(metric.name, kind, metric.help, metric.labels)
    }

    /// A family by name, with the labels that all of its samples may have.
    pub(super) fn named<'a>(
        &'a mut self,
        name: &'static str,
        kind: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Family<'a> {
        Family { text: &mut self.text, name, kind, help, labels, begun: false }
    }

    /// A histogram without labels: cumulative counts by upper edge, the count of all, and their sum.
    pub(super) fn histogram(&mut self, metric: Metric, buckets: &[(String, u64)], count: u64, sum: Value) {
        let Metric { name, help, .. } = metric;
        self.push(format_args!("# HELP {name} {help}\n# TYPE {name} histogram\n"));
        for (edge, up_to) in buckets {
            self.push(format_args!("{name}_bucket{{le=\"{edge}\"}} {up_to}\n"));
        }
        self.push(format_args!(
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}\n"
        ));
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        self.text.write_fmt(text).unwrap_or_default();
    }

    /// The text.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// A family that is being written.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    begun: bool,
}

impl Family<'_> {
    /// A sample with the values of its labels, in their order. A label whose value is empty is left out, which means the same to Prometheus.
    pub(super) fn sample(&mut self, values: &[&str], value: Value) {
        if !self.begun {
            let Self { name, kind, help, .. } = *self;
            self.push(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
            self.begun = true;
        }
        self.text.push_str(self.name);
        let mut mark = '{';
        for (label, text) in self.labels.iter().zip(values).filter(|(_, text)| !text.is_empty()) {
            self.text.push(mark);
            self.text.push_str(label);
            self.text.push_str("=\"");
            push_escaped(self.text, text);
            self.text.push('"');
            mark = ',';
        }
        if mark == ',' {
            self.text.push('}');
        }
        self.push(format_args!(" {value}\n"));
    }

    /// A sample where there is a value.
    pub(super) fn maybe(&mut self, values: &[&str], value: Option<Value>) {
        if let Some(value) = value {
            self.sample(values, value);
        }
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        self.text.write_fmt(text).unwrap_or_default();
    }
}

fn push_escaped(into: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '\\' => into.push_str(r"\\"),
            '"' => into.push_str("\\\""),
            '\n' => into.push_str(r"\n"),
            other => into.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_telemetry::names::{GPU_POWER, GPU_SM_ACTIVE, NODE_INFO};

    #[test]
    fn values_are_exact_decimals() {
        for (value, text) in [
            (Value::whole(0_u32), "0"),
            (Value::milli(409_692_u32), "409.692"),
            (Value::milli(1_u32), "0.001"),
            (Value::micro(1_500_000_u64), "1.5"),
            (Value::micro(1_000_000_u64), "1"),
            (Value::micro(10_u128.pow(36)), "1000000000000000000000000000000"),
        ] {
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn a_family_has_one_heading_and_none_without_samples() {
        let mut exposition = Exposition::default();
        exposition.family(GPU_POWER).maybe(&["GPU-1"], None);
        let mut family = exposition.family(GPU_SM_ACTIVE);
        family.sample(&["GPU-1"], Value::micro(2_500_000_u32));
        family.sample(&["GPU-2"], Value::whole(0_u32));
        assert_eq!(
            exposition.into_text(),
            "# HELP gpuledger_gpu_sm_active_seconds_total SM-active time of the whole GPU; absent where it cannot be measured.\n\
             # TYPE gpuledger_gpu_sm_active_seconds_total counter\n\
             gpuledger_gpu_sm_active_seconds_total{gpu=\"GPU-1\"} 2.5\n\
             gpuledger_gpu_sm_active_seconds_total{gpu=\"GPU-2\"} 0\n"
        );
    }

    #[test]
    fn label_values_are_escaped_and_empty_ones_left_out() {
        let mut exposition = Exposition::default();
        exposition.family(NODE_INFO).sample(&["a\"b\\c\nd", "", "12"], Value::whole(1_u32));
        let text = exposition.into_text();
        assert!(text.ends_with("gpuledger_node_info{node=\"a\\\"b\\\\c\\nd\",nvml=\"12\"} 1\n"), "{text}");
    }
}
