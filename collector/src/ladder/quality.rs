//! How good a reading is (M-8): the label that stands beside it for ever.

use gpuledger_nvml::Absent;
use std::fmt;

/// Quality of a reading, best first. A window that holds readings of several kinds carries the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    /// The mean over the interval, by hardware counters.
    IntervalMean,
    /// The difference of a counter the driver keeps.
    DriverCounter {
        /// Several processes shared the device meanwhile. The vendor names a limit of one process a GPU; what holds then was not
        /// checked on hardware.
        shared: bool,
    },
    /// The mean of the driver's samples of a process.
    DriverSampled {
        /// The processes of one reply were busy for more than the time there was, and were scaled down to it.
        scaled: bool,
    },
    /// The driver's samples of the device, none missing.
    DriverSampledDevice,
    /// Single looks, held for a bounded time.
    PointGauge {
        /// The driver is too old to tell its own reserve from what is used.
        with_reserve: bool,
    },
    /// A part of a device's reading, by a rule.
    DerivedShare(Rule),
    /// Nothing measures this; that it was allocated is known from elsewhere.
    AllocationOnly,
    /// There is no reading.
    Unavailable(Why),
}

/// How a device's reading was divided among processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Exactly one process was there, from the beginning to the end of the interval.
    SoleProcess,
    /// By the driver's samples of each, where it is not proven that they tell clients of MPS apart.
    Sampled,
    /// In equal parts.
    Equal,
}

/// Why there is no reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// NVML said so.
    Nvml(Absent),
    /// The driver knows the process and not this of it.
    NotReported,
    /// The process shares its instance, and nothing tells the processes apart.
    Shared,
    /// The layout of MIG changed while it was read.
    Torn,
    /// Nobody looked for more than three periods.
    Paused,
    /// UTC was set.
    ClockJump,
    /// A counter went back though the driver was not loaded anew.
    CounterReset,
    /// The driver was loaded anew.
    DriverReload,
}

impl Quality {
    /// The plain form of a label without a qualifier.
    pub const POINT: Self = Self::PointGauge { with_reserve: false };
}

impl From<Absent> for Quality {
    fn from(why: Absent) -> Self {
        Self::Unavailable(Why::Nvml(why))
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IntervalMean => "interval_mean",
            Self::DriverCounter { shared: false } => "driver_counter",
            Self::DriverCounter { shared: true } => "driver_counter(shared_unverified)",
            Self::DriverSampled { scaled: false } => "driver_sampled",
            Self::DriverSampled { scaled: true } => "driver_sampled(scaled)",
            Self::DriverSampledDevice => "driver_sampled_device",
            Self::PointGauge { with_reserve: false } => "point_gauge",
            Self::PointGauge { with_reserve: true } => "point_gauge(with_reserve)",
            Self::DerivedShare(Rule::SoleProcess) => "derived_share(sole_process)",
            Self::DerivedShare(Rule::Sampled) => "derived_share(sampled)",
            Self::DerivedShare(Rule::Equal) => "derived_share(equal)",
            Self::AllocationOnly => "allocation_only",
            Self::Unavailable(why) => return write!(f, "unavailable({why})"),
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nvml(why) => return why.fmt(f),
            Self::NotReported => "not_reported",
            // The contract has one word for what a mode cannot give.
            Self::Shared => "not_supported",
            Self::Torn => "torn",
            Self::Paused => "paused",
            Self::ClockJump => "clock_jump",
            Self::CounterReset => "counter_reset",
            Self::DriverReload => "driver_reload",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_words_of_the_contract() {
        for (quality, text) in [
            (Quality::IntervalMean, "interval_mean"),
            (Quality::DriverCounter { shared: true }, "driver_counter(shared_unverified)"),
            (Quality::DerivedShare(Rule::Equal), "derived_share(equal)"),
            (Quality::AllocationOnly, "allocation_only"),
            (Quality::from(Absent::Lost), "unavailable(lost)"),
            (Quality::Unavailable(Why::Shared), "unavailable(not_supported)"),
        ] {
            assert_eq!(quality.to_string(), text);
        }
    }

    #[test]
    fn the_weaker_label_wins() {
        assert!(Quality::IntervalMean < Quality::DriverSampled { scaled: false });
        assert!(Quality::DriverSampled { scaled: false } < Quality::DriverSampled { scaled: true });
        assert!(Quality::POINT < Quality::DerivedShare(Rule::SoleProcess));
        assert!(Quality::AllocationOnly < Quality::from(Absent::NotYet));
    }
}
