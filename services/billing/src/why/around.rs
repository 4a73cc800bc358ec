//! Facts that decide a line without naming its allocations: where a job or pod was placed, and the states of its devices.

use crate::document::LineView;
use crate::error::BillingError;
use gpuledger_books::facts::decode;
use gpuledger_domain::fact::{
    Fact, FactBody, GrantUnit, MigUnit, Placed, PlacedOf, PlacedUnit, Placement, Runtime,
};
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::facts::StoredFact;
use gpuledger_storage::index::{self, Asked, Entry, kind};
use gpuledger_wire::time::parse_time;
use std::collections::{BTreeMap, BTreeSet};

/// When the line charges each allocation: from the first charged instant up to the last.
type Charged = BTreeMap<String, (i64, i64)>;

/// The facts around `own`, which name the line's allocations: each once, and none of `own`.
pub(crate) async fn around(
    connection: &mut PgConnection,
    line: &LineView,
    own: &[StoredFact],
) -> Result<Vec<StoredFact>, BillingError> {
    let charged = charged(line);
    let facts = decode(own)?;
    let placed = placements(connection, &facts, &charged).await?;
    let all: Vec<Fact> = facts.into_iter().chain(decode(&placed)?).collect();
    let states = states(connection, &all, &charged).await?;
    let known: BTreeSet<i64> = own.iter().map(|fact| fact.seq).collect();
    let found: BTreeMap<i64, StoredFact> =
        placed.into_iter().chain(states).map(|fact| (fact.seq, fact)).collect();
    Ok(found.into_values().filter(|fact| !known.contains(&fact.seq)).collect())
}

fn charged(line: &LineView) -> Charged {
    let mut charged = Charged::new();
    for part in &line.details {
        let at = |text: &str| parse_time(text).ok().map(Instant::as_micros);
        if let (Some(allocation), Some(start), Some(end)) = (&part.allocation, at(&part.start), at(&part.end))
        {
            let window = charged.entry(allocation.clone()).or_insert((start, end));
            *window = (window.0.min(start), window.1.max(end));
        }
    }
    charged
}

/// Placements addressed by the job or pod of a grant, from the grant on while it is charged.
async fn placements(
    connection: &mut PgConnection,
    facts: &[Fact],
    charged: &Charged,
) -> Result<Vec<StoredFact>, BillingError> {
    let mut asked: Vec<Asked> = Vec::new();
    let mut until = i64::MIN;
    for fact in facts {
        let FactBody::Granted(grant) = &fact.body else { continue };
        let Some((_, end)) = charged.get(grant.allocation.as_str()) else { continue };
        until = until.max(*end);
        asked.extend(names(&grant.runtime).map(|name| (name, fact.at.as_micros())));
    }
    let found = index::since(connection, &kind::PLACED.to_string(), &asked).await?;
    load(connection, found.iter().filter(|entry| entry.at_us < until)).await
}

fn names(runtime: &Runtime) -> impl Iterator<Item = String> + '_ {
    let job = runtime.slurm_job.iter().map(|job| format!("job:{job}"));
    job.chain(runtime.pod_uid.iter().map(|pod| format!("pod:{pod}")))
}

/// States of the devices while they are charged, and the one that stood when that began.
async fn states(
    connection: &mut PgConnection,
    facts: &[Fact],
    charged: &Charged,
) -> Result<Vec<StoredFact>, BillingError> {
    let units = units(facts, charged);
    let asked: Vec<Asked> = units.iter().map(|unit| (format!("gpu:{}", unit.gpu), unit.from_us)).collect();
    let mut found = index::latest(connection, &kind::OK.to_string(), &asked).await?;
    // A GPU that works clears what was said before.
    let cleared = |entry: &Entry| {
        let same = |ok: &&Entry| (&ok.subject, ok.asked_us) == (&entry.subject, entry.asked_us);
        found.iter().filter(same).any(|ok| ok.at_us >= entry.at_us)
    };
    let mut stood = index::latest(connection, &kind::STATE.to_string(), &asked).await?;
    stood.retain(|entry| !cleared(entry));
    found.extend(stood);
    let until: BTreeMap<&Asked, i64> =
        asked.iter().zip(&units).map(|(asked, unit)| (asked, unit.until_us)).collect();
    let since = index::since(connection, &format!("{}{}", kind::OK, kind::STATE), &asked).await?;
    found.extend(since.into_iter().filter(|entry| {
        until.get(&(entry.subject.clone(), entry.asked_us)).is_some_and(|until| entry.at_us < *until)
    }));
    let loaded = load(connection, found.iter()).await?;
    let decoded = decode(&loaded)?;
    let concerns = |fact: &Fact| match &fact.body {
        FactBody::UnitState(state) => {
            units.iter().any(|unit| unit.gpu == state.gpu.as_str() && touch(unit.placement, state.placement))
        }
        _ => false,
    };
    Ok(loaded.into_iter().zip(decoded).filter(|(_, fact)| concerns(fact)).map(|(stored, _)| stored).collect())
}

/// A device that is charged.
struct Device {
    gpu: String,
    /// None: all of it, or not known which part.
    placement: Option<Placement>,
    from_us: i64,
    until_us: i64,
}

fn units(facts: &[Fact], charged: &Charged) -> Vec<Device> {
    let all = charged.values().copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let mut devices = Vec::new();
    for fact in facts {
        let (units, window): (Vec<&PlacedUnit>, _) = match &fact.body {
            FactBody::Granted(grant) => {
                let placed = grant.units.iter().filter_map(|unit| match unit {
                    GrantUnit::Placed(unit) => Some(unit),
                    GrantUnit::Unplaced { .. } => None,
                });
                (placed.collect(), charged.get(grant.allocation.as_str()).copied())
            }
            FactBody::Placed(Placed { of: PlacedOf::Allocation(allocation), units }) => {
                (units.iter().collect(), charged.get(allocation.as_str()).copied())
            }
            FactBody::Placed(Placed { of: PlacedOf::Runtime(_), units }) => (units.iter().collect(), all),
            _ => continue,
        };
        let Some((from_us, until_us)) = window else { continue };
        devices.extend(units.into_iter().map(|unit| Device {
            gpu: unit.gpu.to_string(),
            placement: unit.mig.as_ref().and_then(|MigUnit { placement, .. }| *placement),
            from_us,
            until_us,
        }));
    }
    devices
}

fn touch(a: Option<Placement>, b: Option<Placement>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return true };
    a.start < b.start + b.size && b.start < a.start + a.size
}

async fn load(
    connection: &mut PgConnection,
    entries: impl Iterator<Item = &Entry>,
) -> Result<Vec<StoredFact>, BillingError> {
    let seqs: BTreeSet<i64> = entries.map(|entry| entry.fact_seq).collect();
    Ok(index::load(connection, &seqs.into_iter().collect::<Vec<_>>()).await?)
}
