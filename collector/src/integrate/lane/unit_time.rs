//! SM-active time of units.

use super::{Integrator, Piece};
use crate::cycle::Observation;
use crate::integrate::hold::Hold;
use crate::integrate::ring::Sample;
use crate::integrate::{HELD_PERIODS, SAMPLE_US};
use crate::ladder::{Ladder, Quality, Rung, Want};
use crate::window::{Measure, Span, Subject, UnitKey};
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{Absent, GpmMean, Ppm};

impl Integrator {
    pub(super) fn unit_pieces(&mut self, at: Instant, seen: &Observation, ladder: &Ladder) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (unit, reading) in &seen.gpm {
            match reading {
                Ok(Some(mean)) => pieces.extend(self.by_counters(*unit, *mean)),
                // Of a layout that changed meanwhile nobody knows whether the instance is there.
                _ if seen.torn && *unit != UnitKey::Device => {}
                Ok(None) => self.no_time(at, *unit, Quality::from(Absent::NotYet)),
                Err(why) => self.no_time(at, *unit, Quality::from(*why)),
            }
        }
        match ladder.rung(Want::DeviceSm) {
            Rung::DeviceSamples => pieces.extend(self.by_samples(at, seen)),
            Rung::Gauge => pieces.extend(self.by_gauge(at, seen)),
            Rung::Gpm => {}
            _ => self.no_time(at, UnitKey::Device, ladder.absence(Want::DeviceSm)),
        }
        if ladder.mig && !seen.torn && ladder.rung(Want::InstanceSm) != Rung::Gpm {
            let label = ladder.absence(Want::InstanceSm);
            seen.instances.iter().for_each(|live| self.no_time(at, live.unit, label));
        }
        pieces
    }

    /// The value is the mean of the time between the two samples; so long as the samples are close enough to be believed.
    fn by_counters(&self, unit: UnitKey, mean: GpmMean) -> Option<Piece> {
        let span = Span::new(mean.from_us, mean.to_us)?;
        let held = span.length_us() > HELD_PERIODS * self.periods.sample_us;
        if held || mean.from_us < self.floor_us {
            return None;
        }
        let busy = u128::from(mean.sm_active.min(Ppm::ALL).0);
        let amount = busy * u128::from(span.length_us());
        Some(Piece { unit, span, amount, quality: Quality::IntervalMean })
    }

    fn by_samples(&mut self, at: Instant, seen: &Observation) -> Vec<Piece> {
        let Some(read) = &seen.samples else { return Vec::new() };
        let samples = match &read.value {
            Ok(samples) => samples,
            Err(why) => {
                self.no_time(at, UnitKey::Device, Quality::from(*why));
                return Vec::new();
            }
        };
        let samples: Vec<Sample> = samples
            .iter()
            .filter_map(|sample| {
                let at_us = self.time.monotonic_us(sample.timestamp_us, self.scale)?;
                Some(Sample { at_us, percent: sample.percent })
            })
            .collect();
        let pieces = self.ring.read(&samples, read.at_us);
        pieces
            .into_iter()
            .filter_map(|(span, percent)| {
                let span = span.after(self.floor_us)?;
                let amount = u128::from(percent) * 10_000 * u128::from(span.length_us());
                let quality = Quality::DriverSampledDevice;
                Some(Piece { unit: UnitKey::Device, span, amount, quality })
            })
            .collect()
    }

    /// A single look speaks of a second at most; the rest of the period is not covered.
    fn by_gauge(&mut self, at: Instant, seen: &Observation) -> Option<Piece> {
        let read = seen.gauge.as_ref()?;
        let told = self.gauge.as_mut().and_then(|hold| hold.advance(read.at_us));
        match read.value {
            Ok(busy) => self.gauge = Some(Hold::new(busy.min(Ppm::ALL).0, read.at_us, SAMPLE_US)),
            Err(why) => self.no_time(at, UnitKey::Device, Quality::from(why)),
        }
        let (span, busy) = told?;
        let amount = u128::from(busy) * u128::from(span.length_us());
        Some(Piece { unit: UnitKey::Device, span, amount, quality: Quality::POINT })
    }

    fn no_time(&mut self, at: Instant, unit: UnitKey, why: Quality) {
        self.book.absent(at, Subject::Unit(unit), Measure::Sm, why);
    }
}
