//! What is asked of which GPU: the objects of `kind: Residue` as the rules see them.

use crate::ids::{GpuId, NodeId, TenantId};
use crate::sku::model_slug;
use crate::time::MINUTE_US;
use std::collections::BTreeSet;

/// What is done about residue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Nothing.
    Off,
    /// Findings.
    #[default]
    Observe,
    /// Findings and quarantine.
    Enforce,
}

/// How long what may take, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From release to the start of a scrub.
    pub start_within_us: i64,
    /// From release to a scrub that passed.
    pub pass_within_us: i64,
    /// How long a violation waits for facts on their way before it is alarmed and its quarantine signalled.
    pub settle_us: i64,
}

impl Default for Limits {
    /// 1 and 10 minutes as R-5 has them, and 1 minute for facts on their way.
    fn default() -> Self {
        Self { start_within_us: MINUTE_US, pass_within_us: 10 * MINUTE_US, settle_us: MINUTE_US }
    }
}

/// What is asked of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// What is done.
    pub mode: Mode,
    /// Tenants among whom no scrub is needed.
    pub trust_groups: Vec<BTreeSet<TenantId>>,
    /// How long what may take.
    pub limits: Limits,
}

impl Rules {
    /// Whether the two are in one trust group.
    pub fn trust(&self, one: &TenantId, other: &TenantId) -> bool {
        self.trust_groups.iter().any(|group| group.contains(one) && group.contains(other))
    }
}

/// Rules for some GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Its id.
    pub id: String,
    /// UUIDs, nodes, NVML names of models or their slugs; `*` is all.
    pub gpus: BTreeSet<String>,
    /// What is asked of them.
    pub rules: Rules,
}

/// All sets. What no set names is observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets(pub Vec<Set>);

impl Sets {
    /// The rules of a GPU, by the set that names it most closely: by UUID, then node, then model, then `*`; of several the one with the smallest id.
    pub fn of(&self, gpu: &GpuId, node: &NodeId, model: &str) -> Rules {
        let slug = model_slug(model);
        let names: [&[&str]; 4] = [&[gpu.as_str()], &[node.as_str()], &[model, slug.as_str()], &["*"]];
        let closest = names.iter().find_map(|names| {
            let named = self.0.iter().filter(|set| names.iter().any(|name| set.gpus.contains(*name)));
            named.min_by_key(|set| &set.id)
        });
        closest.map(|set| set.rules.clone()).unwrap_or_default()
    }
}
