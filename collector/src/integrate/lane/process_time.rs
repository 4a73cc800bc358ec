//! SM-active time of processes.

use super::{Integrator, Piece};
use crate::cycle::{Accounted, Observation};
use crate::integrate::accounts::{Read, Step};
use crate::integrate::derive::{divide, parts};
use crate::integrate::roster::Entry;
use crate::integrate::rows::{Busy, Discard, Row, Told};
use crate::integrate::{HELD_PERIODS, SAMPLE_US};
use crate::ladder::{Ladder, Quality, Rule, Rung, Want, Why};
use crate::window::{Measure, ProcessKey, Span, Subject, UnitKey};
use gpuledger_domain::time::Instant;
use gpuledger_nvml::{Absent, ProcessKind};
use std::ops::Range;

impl Integrator {
    pub(super) fn process_pieces(
        &mut self,
        at: Instant,
        seen: &Observation,
        ladder: &Ladder,
        pieces: &[Piece],
    ) -> Vec<Discard> {
        // The ring moves on with each reply, whoever uses it.
        let newest_us = self.newest_sample(seen);
        match ladder.rung(Want::ProcessSm) {
            Rung::Accounting => self.by_accounting(at, seen),
            Rung::ProcessSamples => return self.by_rows(at, seen, newest_us),
            Rung::Derived => pieces.iter().for_each(|piece| self.by_share(at, *piece)),
            _ => {}
        }
        Vec::new()
    }

    fn newest_sample(&mut self, seen: &Observation) -> Option<u64> {
        let read = seen.samples.as_ref()?;
        let samples = read.value.as_ref().ok()?;
        let latest_us = read.at_us.saturating_add(SAMPLE_US);
        let stamped = samples.iter().filter_map(|sample| {
            Some((self.time.monotonic_us(sample.timestamp_us, self.scale)?, sample.timestamp_us))
        });
        let (at_us, stamp_us) = stamped.filter(|(at_us, _)| *at_us <= latest_us).max()?;
        self.newest_stamp_us = stamp_us;
        Some(at_us)
    }

    fn by_rows(&mut self, at: Instant, seen: &Observation, newest_us: Option<u64>) -> Vec<Discard> {
        let Some(read) = &seen.rows else { return Vec::new() };
        let no_list = seen.processes.value.as_ref().err().map(|why| Quality::Unavailable(*why));
        let (reply, why) =
            (read.value.as_ref().ok(), read.value.as_ref().err().map(|why| Quality::from(*why)));
        // A number in a row means nobody without a list of who has it: the next question asks for this time again.
        let (Some(reply), None) = (reply, no_list) else {
            for key in self.lately(read.at_us) {
                let label = why.or(no_list).unwrap_or(Quality::from(Absent::NotYet));
                self.book.absent(at, Subject::Process(key), Measure::Sm, label);
            }
            return Vec::new();
        };
        let row = |row: &gpuledger_nvml::UtilizationRow| Row {
            pid: row.pid,
            at_us: self.time.monotonic_us(row.timestamp_us, self.scale),
            percent: row.sm_percent,
        };
        let rows: Vec<Row> = reply.rows.iter().map(row).collect();
        let since_us = self.rows.since_us(read.at_us);
        let sample_us = spacing(seen, |stamp_us| self.time.monotonic_us(stamp_us, self.scale));
        let roster = &self.roster;
        let is_known = |pid| {
            let last_us = rows.iter().filter(|row| row.pid == pid).filter_map(|row| row.at_us).max();
            known(roster.iter(), pid, since_us..last_us.unwrap_or(0).saturating_sub(sample_us))
        };
        let told = self.rows.read(&rows, newest_us, read.at_us, is_known);
        self.tell_rows(at, &told, since_us);
        told.discarded.iter().map(|(_, why)| *why).collect()
    }

    fn tell_rows(&mut self, at: Instant, told: &Told, since_us: u64) {
        let Some(whole) = told.cover else { return };
        let Some(cover) = whole.after(self.floor_us) else { return };
        let on_device: Vec<(ProcessKey, Entry)> = self
            .roster
            .iter()
            .filter(|(key, entry)| key.unit == UnitKey::Device && lived_after(entry, since_us))
            .map(|(key, entry)| (*key, entry.clone()))
            .collect();
        for (key, entry) in on_device {
            let pid = key.process.pid;
            let busy = told.busy.iter().find(|busy| busy.pid == pid);
            if busy.is_none() && told.discarded.iter().any(|(other, _)| *other == pid) {
                if self.roster.is_listed(&key) {
                    let label = Quality::from(Absent::Implausible);
                    self.book.absent(at, Subject::Process(key), Measure::Sm, label);
                }
            } else if let Some(span) = self.lifetime(key, &entry, cover, busy) {
                let most = u128::from(span.length_us()) * 1_000_000;
                // What began before the floor was busy there too, at the same share as far as is known.
                let is_cut = span.from_us() == cover.from_us();
                let since = |busy: &Busy| if is_cut { part(busy.amount, cover, whole) } else { busy.amount };
                let amount = busy.map_or(0, |busy| since(busy).min(most));
                let label = sampled(&entry, told.is_scaled);
                self.add(Subject::Process(key), Measure::Sm, span, amount, label);
            }
        }
    }

    /// The part of a time in which a process can have lived: from its start, or else the last list without it, to its last sample or the
    /// last list with it.
    fn lifetime(&self, key: ProcessKey, entry: &Entry, cover: Span, busy: Option<&Busy>) -> Option<Span> {
        // One that was seen before it started did so by a clock that was set since.
        let started_us = self.scale.monotonic_us(key.process.started_at);
        let started_us = if started_us <= entry.first_us { started_us } else { 0 };
        let from_us = cover.from_us().max(entry.absent_us.unwrap_or(0)).max(started_us);
        let last_us = busy.map_or(0, |busy| busy.at_us).max(entry.seen_us);
        // Without a list nobody knows who lives.
        let to_us = if self.roster.is_listed(&key) { cover.to_us() } else { cover.to_us().min(last_us) };
        // One that came and went between two looks has its samples, and no more is known of it.
        Span::new(from_us, to_us).or_else(|| busy.and_then(|_| Span::new(cover.from_us(), to_us)))
    }

    fn by_accounting(&mut self, at: Instant, seen: &Observation) {
        let Some(read) = &seen.accounted else { return };
        let is_shared = self.roster.is_shared(UnitKey::Device);
        for accounted in &read.value {
            match accounted.counters {
                Ok(_) => self.account(at, *accounted, read.at_us, is_shared),
                // Right after it began accounting may not know it yet; of one that ended, nobody knows when it did.
                Err(why) => {
                    let entry = self.roster.get(&accounted.process);
                    if entry.is_some_and(|entry| entry.gone_us.is_none()) {
                        let subject = Subject::Process(accounted.process);
                        self.book.absent(at, subject, Measure::Sm, Quality::from(why));
                    }
                }
            }
        }
    }

    fn account(&mut self, at: Instant, accounted: Accounted, read_us: u64, is_shared: bool) {
        let (Ok(counters), Some(entry)) = (accounted.counters, self.roster.get(&accounted.process)) else {
            return;
        };
        let start_us = self.time.monotonic_us(counters.start_us, self.scale);
        let born_us = entry.absent_us.map(|absent_us| start_us.map_or(absent_us, |at| at.max(absent_us)));
        let by_life = start_us.zip(accounted.life_us).map(|(start_us, life_us)| start_us + life_us);
        let ended_us = match (by_life, entry.gone_us) {
            (Some(end_us), Some(gone_us)) => Some(end_us.clamp(entry.seen_us, gone_us)),
            // Dead and still listed: a zombie.
            (Some(end_us), None) => Some(end_us.min(read_us)),
            (None, Some(_)) => Some(entry.seen_us),
            (None, None) => None,
        };
        let read = Read { counters, at_us: ended_us.unwrap_or(read_us), born_us };
        let subject = Subject::Process(accounted.process);
        let limit_us = HELD_PERIODS * self.periods.slow_us;
        match self.accounts.read(accounted.process, read) {
            Step::Busy(span, amount) if span.length_us() <= limit_us => {
                let quality = Quality::DriverCounter { shared: is_shared };
                if let Some(over) = span.after(self.floor_us) {
                    self.add(subject, Measure::Sm, over, part(amount, over, span), quality);
                }
            }
            Step::Reset => {
                let label = Quality::Unavailable(Why::CounterReset);
                self.book.absent(at, subject, Measure::Sm, label);
            }
            Step::Busy(..) | Step::Seed | Step::Nothing => {}
        }
    }

    fn by_share(&mut self, at: Instant, piece: Piece) {
        match divide(&self.roster, piece.unit) {
            Ok(division) => {
                let label = Quality::DerivedShare(division.rule);
                let amounts = parts(piece.amount, division.among.len());
                for (key, amount) in division.among.iter().zip(amounts) {
                    // Samples lag behind the list, by a second on an idle device.
                    let first_us = self.roster.get(key).map_or(0, |entry| entry.first_us);
                    if let Some(span) = piece.span.after(first_us) {
                        let amount = part(amount, span, piece.span);
                        self.add(Subject::Process(*key), Measure::Sm, span, amount, label);
                    }
                }
            }
            Err(why) => {
                let lately = self.lately(piece.span.to_us());
                for key in lately.into_iter().filter(|key| key.unit == piece.unit) {
                    self.book.absent(at, Subject::Process(key), Measure::Sm, why);
                }
            }
        }
    }
}

/// The part of an amount that accrued evenly over all of a time.
fn part(amount: u128, of: Span, whole: Span) -> u128 {
    amount * u128::from(of.length_us()) / u128::from(whole.length_us())
}

/// Whether a row's number means one process, live or ended since the question's instant, and not before the row's last sample began: that one is
/// of another process, which came and went under this number between two lists.
fn known<'a>(
    entries: impl Iterator<Item = (&'a ProcessKey, &'a Entry)>,
    pid: u32,
    over: Range<u64>,
) -> Result<(), Discard> {
    let of_pid = entries.filter(|(key, _)| key.process.pid == pid && key.unit == UnitKey::Device);
    let lived: Vec<&Entry> =
        of_pid.map(|(_, entry)| entry).filter(|entry| lived_after(entry, over.start)).collect();
    match lived.as_slice() {
        [] => Err(Discard::UnknownPid),
        [one] if lived_after(one, over.end) => Ok(()),
        _ => Err(Discard::ReusedPid),
    }
}

/// Time between two of the driver's samples, as the device's own show it.
fn spacing(seen: &Observation, at: impl Fn(u64) -> Option<u64>) -> u64 {
    let samples = seen.samples.as_ref().and_then(|read| read.value.as_ref().ok());
    let stamps: Vec<u64> =
        samples.into_iter().flatten().filter_map(|sample| at(sample.timestamp_us)).collect();
    let apart = stamps.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).filter(|us| *us > 0);
    apart.min().unwrap_or(SAMPLE_US).min(SAMPLE_US)
}

fn lived_after(entry: &Entry, at_us: u64) -> bool {
    entry.gone_us.is_none_or(|gone_us| gone_us > at_us)
}

fn sampled(entry: &Entry, scaled: bool) -> Quality {
    match entry.kind {
        // That the driver tells clients of one MPS server apart was never shown on hardware.
        ProcessKind::MpsClient => Quality::DerivedShare(Rule::Sampled),
        ProcessKind::Compute | ProcessKind::Graphics => Quality::DriverSampled { scaled },
    }
}
