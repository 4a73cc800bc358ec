//! Measured time as the rules want it: packed hours as rollups by unit and process owner.

use crate::error::BooksError;
use gpuledger_domain::fact::Placement;
use gpuledger_domain::ids::{GpuId, NodeId};
use gpuledger_domain::measured::{Minute, Owner, Rollup};
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::hours::{self, Filter, HourKey, Used};
use std::collections::BTreeMap;

/// The rollups of a filter, by hour, node, GPU, unit and owner; of each unit and hour the unit itself stands before its owners. Hours that are
/// not packed yet are not in them: `serve` packs an hour some minutes after it is over, `replay` before it ends.
///
/// # Errors
/// The database, or a row that cannot be read.
pub async fn load(connection: &mut PgConnection, filter: &Filter<'_>) -> Result<Vec<Rollup>, BooksError> {
    let mut rollups = Vec::new();
    for row in hours::load(connection, filter).await? {
        // The unit's readings stand in the row of its first owner, so this is the order of the rollups.
        rollups.extend(row.unit.map(|unit| rollup(&row.key, Owner::Unit, &unit)));
        rollups.extend(row.used.map(|used| rollup(&row.key, owner_of(&row.key.owner), &used)));
    }
    Ok(rollups)
}

fn rollup(key: &HourKey, owner: Owner, used: &Used) -> Rollup {
    Rollup {
        node: NodeId::new(&key.node),
        gpu: GpuId::new(&key.gpu),
        placement: key.placement.map(|(start, size)| Placement { start, size }),
        owner,
        hour: Instant::from_micros(key.hour_us),
        minutes: minutes(used),
        memory_bytes_max: used.memory_bytes_max,
        quality: used.quality.to_map(),
    }
}

fn minutes(used: &Used) -> BTreeMap<u8, Minute> {
    let of = |(minute, covered_us)| {
        let read = Minute {
            sm_active_us: used.sm_active_us.get(minute),
            memory_byte_us: used.memory_byte_us.get(minute),
            energy_mj: used.energy_mj.get(minute),
            covered_us,
        };
        (minute, read)
    };
    used.covered_us.iter().map(of).collect()
}

/// The owner of a row by its text.
fn owner_of(text: &str) -> Owner {
    let name = |rest: &str| rest.to_owned();
    match text.split_once(':') {
        Some(("job", id)) => Owner::Job(name(id)),
        Some(("pod", id)) => Owner::Pod(name(id)),
        Some(("container", id)) => Owner::Container(name(id)),
        Some((_, process)) => Owner::Process(name(process)),
        None => Owner::Process(name(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_told_by_their_kind() {
        assert_eq!(owner_of("job:47"), Owner::Job("47".to_owned()));
        assert_eq!(owner_of("pod:a:b"), Owner::Pod("a:b".to_owned()));
        assert_eq!(owner_of("container:c"), Owner::Container("c".to_owned()));
        assert_eq!(owner_of("pid:boot/7/1"), Owner::Process("boot/7/1".to_owned()));
    }
}
