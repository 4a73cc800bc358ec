//! Quarantine as orders to allocators: raised once for each cause, withdrawn while they wait, followed by their release, published at least once.

use super::Case;
use crate::error::LedgerError;
use gpuledger_domain::fact::Placement;
use gpuledger_domain::ids::GpuId;
use gpuledger_domain::residue::{Order, Slices, Why, lifted_at, orders};
use gpuledger_domain::time::Instant;
use gpuledger_messaging::{KafkaSettings, Producer, ProducerSettings, Record, Topic};
use gpuledger_storage::audit::{PendingRecord, append};
use gpuledger_storage::signals::{self, NewSignal, SignalRow};
use gpuledger_storage::{Db, Tx, violations};
use gpuledger_wire::bodies::Outcome;
use gpuledger_wire::bodies::SignalAcknowledged;
use gpuledger_wire::{canonical_json, decode_structured, encode_binary};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Who raises signals of residue.
const SOURCE: &str = "/gpuledger/residue";
/// Whom a signal concerns where nobody ever held the slices.
const NOBODY: &str = "-";
/// Signals that are published in one transaction.
const MOST: i64 = 100;

/// What becomes of signals.
#[derive(Default)]
pub(super) struct Raised {
    new: Vec<NewSignal>,
    withdrawn: Vec<String>,
    /// Quarantines that are over, each with its release.
    lifted: Vec<(String, NewSignal)>,
}

impl Raised {
    /// Compares what the rules order for a GPU with what stands.
    pub(super) fn of_case(&mut self, case: &Case, standing: &[SignalRow], now: Instant) {
        let Case { history, rules, from } = case;
        let ordered = orders(history, rules, *from);
        let causes: BTreeSet<String> = ordered.iter().map(|order| cause(&history.gpu, &order.why)).collect();
        let none = standing.iter().filter(|row| {
            row.since_us >= from.as_micros() && row.attempts == 0 && !causes.contains(&row.cause)
        });
        self.withdrawn.extend(none.map(|row| row.signal.clone()));
        for order in &ordered {
            // What was over before it was noticed is ordered no more; its violation stays recorded.
            if lifted_at(history, order.slices, order.since).is_none() {
                self.new.extend(quarantine(case, order, now));
            }
        }
        for row in standing {
            let slices = read_slices(row.slices.as_deref().unwrap_or_default());
            if lifted_at(history, slices, Instant::from_micros(row.since_us)).is_some() {
                if row.attempts == 0 {
                    self.withdrawn.push(row.signal.clone());
                } else {
                    self.lifted.extend(release(row, now).map(|release| (row.signal.clone(), release)));
                }
            }
        }
    }

    /// Writes it, with an audit record for each signal that is new or withdrawn.
    pub(super) async fn write(self, tx: &mut Tx, now: Instant) -> Result<(), LedgerError> {
        let over: Vec<String> = self.lifted.iter().map(|(signal, _)| signal.clone()).collect();
        if !over.is_empty() {
            signals::lift(tx, &over, now.as_micros()).await?;
        }
        let mut records = Vec::new();
        if !self.withdrawn.is_empty() {
            let withdrawn = signals::withdraw(tx, &self.withdrawn, now.as_micros()).await?;
            let body = |signal: &String| json!({"signal": signal, "state": "withdrawn"});
            records.extend(withdrawn.iter().map(|signal| audit(&body(signal), now)));
        }
        let new: Vec<NewSignal> =
            self.new.into_iter().chain(self.lifted.into_iter().map(|(_, s)| s)).collect();
        let raised: BTreeSet<String> = signals::raise(tx, &new).await?.into_iter().collect();
        for signal in new.iter().filter(|signal| raised.contains(&signal.signal)) {
            let mut body = json!({
                "signal": signal.signal, "state": "raised", "action": signal.action, "gpu": signal.gpu,
                "slices": signal.slices, "since": Instant::from_micros(signal.since_us).to_string(),
            });
            if let Some(members) = body.as_object_mut().filter(|_| signal.tenant != NOBODY) {
                members.insert("tenant".to_owned(), json!(signal.tenant));
            }
            records.push(audit(&body, now));
        }
        if !records.is_empty() {
            append(tx, &records).await?;
        }
        Ok(())
    }
}

fn audit(body: &serde_json::Value, now: Instant) -> PendingRecord {
    PendingRecord {
        fact_seq: None,
        kind: "signal".to_owned(),
        body: canonical_json(body),
        recorded_at_us: now.as_micros(),
    }
}

/// What raises a quarantine once.
fn cause(gpu: &GpuId, why: &Why) -> String {
    match why {
        Why::Violation { allocation, unit } => json!(["violation", gpu.as_str(), allocation.as_str(), unit]),
        Why::Scrub(scrub) => json!(["scrub", gpu.as_str(), scrub.as_str()]),
    }
    .to_string()
}

/// An id that follows from the cause, so that it is the same however often the cause is found.
fn signal_id(cause: &str) -> String {
    let digest = Sha256::digest(cause.as_bytes());
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("residue-{hex}")
}

/// A violation waits for facts on their way; a scrub that failed does not become better by waiting.
fn quarantine(case: &Case, order: &Order, now: Instant) -> Option<NewSignal> {
    let gpu = &case.history.gpu;
    let limits = case.rules.limits;
    let cause = cause(gpu, &order.why);
    let (settle_us, reason) = match &order.why {
        Why::Violation { allocation, .. } => {
            let reason = format!(
                "allocation {allocation} was given memory slices {} of {gpu} unsanitised",
                order.slices
            );
            (limits.settle_us, reason)
        }
        Why::Scrub(scrub) => {
            (0, format!("scrub {scrub} left memory slices {} of {gpu} unsanitised", order.slices))
        }
    };
    let due = now.plus(settle_us);
    let tenant = order.tenant.as_ref().map_or(NOBODY, |tenant| tenant.as_str());
    let unit = unit(gpu, order.placement);
    let deadline = due.plus(limits.start_within_us);
    let signal = signal_id(&cause);
    let event = event(&signal, "quarantine", tenant, &unit, (now, deadline), &reason)?;
    Some(NewSignal {
        signal,
        cause,
        tenant: tenant.to_owned(),
        action: "quarantine".to_owned(),
        gpu: Some(gpu.to_string()),
        slices: Some(order.slices.to_string()),
        since_us: order.since.as_micros(),
        event,
        raised_at_us: now.as_micros(),
        due_at_us: due.as_micros(),
    })
}

/// The order to let a unit back, after a quarantine that has left.
fn release(row: &SignalRow, now: Instant) -> Option<NewSignal> {
    let cause = json!(["release", row.signal]).to_string();
    let raised = serde_json::from_slice::<serde_json::Value>(&row.event).ok()?;
    let unit = raised.pointer("/data/units/0")?.clone();
    let signal = signal_id(&cause);
    let reason =
        format!("memory slices {} are sanitised, or somebody answers for them", row.slices.as_deref()?);
    let event = event(&signal, "release_quarantine", &row.tenant, &unit, (now, now), &reason)?;
    Some(NewSignal {
        signal,
        cause,
        tenant: row.tenant.clone(),
        action: "release_quarantine".to_owned(),
        gpu: row.gpu.clone(),
        slices: row.slices.clone(),
        since_us: now.as_micros(),
        event,
        raised_at_us: now.as_micros(),
        due_at_us: now.as_micros(),
    })
}

fn unit(gpu: &GpuId, placement: Option<Placement>) -> serde_json::Value {
    match placement {
        None => json!({"gpu": gpu.as_str()}),
        Some(Placement { start, size }) => {
            json!({"gpu": gpu.as_str(), "mig": {"placement": {"start": start, "size": size}}})
        }
    }
}

/// `signal.raised` as one canonical JSON text; none where it would be no event, which names that were accepted before cannot make it.
fn event(
    signal: &str,
    action: &str,
    tenant: &str,
    unit: &serde_json::Value,
    (raised, deadline): (Instant, Instant),
    reason: &str,
) -> Option<Vec<u8>> {
    let event = canonical_json(&json!({
        "specversion": "1.0", "id": signal, "source": SOURCE, "type": "gpuledger.signal.raised.v1", "time": raised.to_string(),
        "data": {"signal": signal, "tenant": tenant, "action": action, "units": [unit], "deadline": deadline.to_string(),
            "reason": reason, "limit": "0", "used": "0", "held": "0"},
    }));
    match decode_structured(&event) {
        Ok(event) => Some(event.canonical_bytes()),
        Err(error) => {
            tracing::error!(%error, signal, "a signal cannot be said");
            None
        }
    }
}

fn read_slices(text: &str) -> Slices {
    let run = |run: &str| -> Option<Vec<u8>> {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        Some((first.parse().ok()?..=last.parse().ok()?).collect())
    };
    text.split(',').filter_map(run).flatten().collect()
}

/// Notes an allocator's answer to a signal. One that nobody raised is no matter of ours.
pub(crate) async fn answer(tx: &mut Tx, said: &SignalAcknowledged, at: Instant) -> Result<(), LedgerError> {
    let outcome = match said.outcome {
        Outcome::Accepted => "accepted",
        Outcome::Effected => "effected",
        Outcome::Refused => "refused",
    };
    if !signals::answer(tx, said.signal.as_str(), outcome, at.as_micros()).await? {
        tracing::warn!(signal = said.signal.as_str(), "an answer to a signal that was not raised here");
    }
    Ok(())
}

/// Alarms violations that are due, and publishes signals that are: each is marked only once the broker has it, so one may be sent twice and none is lost.
pub(crate) async fn publish(
    db: &Db,
    kafka: Option<(&KafkaSettings, &Producer)>,
    now: Instant,
) -> Result<usize, LedgerError> {
    let mut tx = db.begin().await?;
    for row in violations::alarm(&mut tx, now.as_micros()).await? {
        tracing::error!(
            gpu = row.gpu,
            allocation = row.allocation,
            slices = row.detail,
            "residue: granted without the scrub that another tenant needs"
        );
    }
    tx.commit().await?;
    let Some((settings, producer)) = kafka else { return Ok(0) };
    // The try is committed first: a signal that may have left is not withdrawn any more.
    let mut tx = db.begin().await?;
    let due = signals::due(&mut tx, now.as_micros(), MOST).await?;
    let names: Vec<String> = due.iter().map(|row| row.signal.clone()).collect();
    signals::tried(&mut tx, &names).await?;
    tx.commit().await?;
    for row in &due {
        let Ok(event) = decode_structured(&row.event) else { continue };
        let (headers, payload) = encode_binary(&event);
        let topic = settings.topic(Topic::Signals);
        let key = row.tenant.clone().into_bytes();
        producer.send(&Record { topic, key, headers, payload }).await?;
        let mut tx = db.begin().await?;
        signals::published(&mut tx, &row.signal, now.as_micros()).await?;
        tx.commit().await?;
    }
    Ok(due.len())
}

/// A producer for signals; it connects on first use.
pub(crate) fn producer(kafka: &KafkaSettings) -> Result<Producer, LedgerError> {
    Ok(Producer::new(kafka, &ProducerSettings::default())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuledger_wire::EventData;

    #[test]
    fn a_quarantine_of_a_gpu_and_of_any_of_its_slices_can_be_said_r_3() {
        let gpu = GpuId::new("GPU-1");
        let places =
            (0..8).flat_map(|start| (1..=8 - start).map(move |size| Some(Placement { start, size })));
        for placement in places.chain([None]) {
            let at = Instant::from_micros(1_790_863_200_000_000);
            let said = event("s", "quarantine", NOBODY, &unit(&gpu, placement), (at, at), "because");
            let event = decode_structured(&said.unwrap()).unwrap();
            assert!(
                matches!(event.data, EventData::SignalRaised(signal) if signal.units.len() == 1),
                "{placement:?}"
            );
            assert!(event.raw_data["units"][0]["mig"].is_null() == placement.is_none());
        }
    }
}
