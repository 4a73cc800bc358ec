//! Metrics of a process, in a registry of its own, so that tests do not meet each other's numbers.

use prometheus::core::Collector;
use prometheus::{
    Encoder, Error, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::names::{BUILD_INFO, Metric};

/// Content type of the exposition. Prometheus 3 refuses a scrape without the exact one.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Buckets in seconds from a millisecond to a minute, for requests and transactions.
pub const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The registry of a process. Cheap to clone; clones are the same registry.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// An empty registry with the binary's version.
    ///
    /// # Errors
    /// As the other registrations; not for a valid version text.
    pub fn new(version: &str) -> Result<Self, Error> {
        let metrics = Self::default();
        metrics.gauges(BUILD_INFO)?.with_label_values(&[version]).set(1);
        Ok(metrics)
    }

    /// A counter for each value of its labels.
    ///
    /// # Errors
    /// A metric registered twice.
    pub fn counters(&self, metric: Metric) -> Result<IntCounterVec, Error> {
        self.add(IntCounterVec::new(options(metric), metric.labels)?, metric)
    }

    /// A gauge without labels, in whole numbers.
    ///
    /// # Errors
    /// A metric registered twice, or one that declares labels.
    pub fn gauge(&self, metric: Metric) -> Result<IntGauge, Error> {
        self.add(IntGauge::with_opts(options(metric))?, metric)
    }

    /// A gauge for each value of its labels, in whole numbers.
    ///
    /// # Errors
    /// As [`Metrics::counters`].
    pub fn gauges(&self, metric: Metric) -> Result<IntGaugeVec, Error> {
        self.add(IntGaugeVec::new(options(metric), metric.labels)?, metric)
    }

    /// Durations in seconds for each value of its labels.
    ///
    /// # Errors
    /// As [`Metrics::counters`].
    pub fn durations(&self, metric: Metric) -> Result<HistogramVec, Error> {
        self.add(HistogramVec::new(buckets(metric), metric.labels)?, metric)
    }

    /// All metrics as text; send it with [`CONTENT_TYPE`].
    ///
    /// # Errors
    /// A metric without samples or with inconsistent ones, which registration rules out.
    pub fn render(&self) -> Result<String, Error> {
        let mut bytes = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut bytes)?;
        String::from_utf8(bytes).map_err(|fault| Error::Msg(format!("metrics are not UTF-8: {fault}")))
    }

    fn add<C: Collector + Clone + 'static>(&self, collector: C, metric: Metric) -> Result<C, Error> {
        let registered = self.registry.register(Box::new(collector.clone()));
        registered.map_err(|fault| Error::Msg(format!("register {}: {fault}", metric.name)))?;
        Ok(collector)
    }
}

fn options(metric: Metric) -> Opts {
    Opts::new(metric.name, metric.help)
}

fn buckets(metric: Metric) -> HistogramOpts {
    HistogramOpts::from(options(metric)).buckets(SECONDS.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn the_exposition_has_help_type_and_samples() {
        let metrics = Metrics::new("1.2.3").unwrap();
        metrics.counters(names::LEDGER_FACTS).unwrap().with_label_values(&["accepted"]).inc_by(7);
        metrics
            .durations(names::HTTP_REQUESTS)
            .unwrap()
            .with_label_values(&["GET", "/v1/usage", "200"])
            .observe(0.3);
        let text = metrics.render().unwrap();
        for line in [
            "gpuledger_build_info{version=\"1.2.3\"} 1",
            "# TYPE gpuledger_ledger_facts_total counter",
            "gpuledger_ledger_facts_total{outcome=\"accepted\"} 7",
            "gpuledger_http_request_duration_seconds_count{method=\"GET\",route=\"/v1/usage\",status=\"200\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert_eq!(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    }

    #[test]
    fn a_metric_registered_twice_is_named() {
        let metrics = Metrics::default();
        metrics.gauge(names::LEDGER_PARKED).unwrap();
        let fault = metrics.gauge(names::LEDGER_PARKED).unwrap_err();
        assert!(fault.to_string().contains(names::LEDGER_PARKED.name), "{fault}");
    }

    #[test]
    fn two_registries_do_not_meet() {
        let (one, other) = (Metrics::default(), Metrics::default());
        one.gauge(names::LEDGER_PARKED).unwrap().set(1);
        other.gauge(names::LEDGER_PARKED).unwrap();
        assert!(other.render().unwrap().contains("gpuledger_ledger_parked_events 0"));
    }
}
