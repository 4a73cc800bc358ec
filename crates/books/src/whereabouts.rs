//! Which nodes a fact speaks of: the nodes of the GPUs it names, and of those its allocation was granted. Entitlement asks this (I-5).

use crate::error::BooksError;
use crate::facts::decode;
use gpuledger_domain::fact::FactBody;
use gpuledger_domain::ids::{GpuId, NodeId, Source};
use gpuledger_domain::time::Instant;
use gpuledger_storage::PgConnection;
use gpuledger_storage::facts::load_by_subjects;
use std::collections::{BTreeMap, BTreeSet};

/// GPUs that `subjects` (of one event) lead to, each with the node of the latest inventory that names it. GPUs no inventory has named
/// are left out: who may speak of them is not known yet.
///
/// # Errors
/// The database, or a fact that cannot be read.
pub async fn whereabouts(
    connection: &mut PgConnection,
    subjects: &[String],
) -> Result<BTreeMap<GpuId, NodeId>, BooksError> {
    let of_kind =
        |prefix: &str| subjects.iter().filter(|s| s.starts_with(prefix)).cloned().collect::<Vec<_>>();
    let grants = decode(&load_by_subjects(connection, &of_kind("alloc:")).await?)?;
    let mut gpus: BTreeSet<String> = of_kind("gpu:").into_iter().collect();
    gpus.extend(grants.iter().flat_map(|fact| fact.body.gpus()).map(|gpu| format!("gpu:{gpu}")));
    let named: Vec<String> = gpus.iter().cloned().collect();
    let facts = decode(&load_by_subjects(connection, &named).await?)?;
    let mut latest: BTreeMap<&GpuId, (Instant, &NodeId)> = BTreeMap::new();
    for fact in &facts {
        let FactBody::Inventory(inventory) = &fact.body else { continue };
        for listed in inventory.gpus.iter().filter(|g| gpus.contains(&format!("gpu:{}", g.gpu))) {
            let standing = latest.entry(&listed.gpu).or_insert((fact.at, &inventory.node));
            if standing.0 <= fact.at {
                *standing = (fact.at, &inventory.node);
            }
        }
    }
    Ok(latest.into_iter().map(|(gpu, (_, node))| (gpu.clone(), node.clone())).collect())
}

/// Who granted the allocations among `subjects`.
///
/// # Errors
/// The database, or a fact that cannot be read.
pub async fn grantors(
    connection: &mut PgConnection,
    subjects: &[String],
) -> Result<BTreeSet<Source>, BooksError> {
    let named: Vec<String> = subjects.iter().filter(|s| s.starts_with("alloc:")).cloned().collect();
    let facts = decode(&load_by_subjects(connection, &named).await?)?;
    let grants = facts.into_iter().filter(|fact| matches!(fact.body, FactBody::Granted(_)));
    Ok(grants.map(|fact| fact.source).collect())
}
