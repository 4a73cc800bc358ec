//! Limits of use, and what is sanitised between tenants.

use super::words::{OneOrMany, Tag};
use super::{Kind, refuse};
use crate::amount::Unsigned;
use crate::bodies::Problem;
use crate::text::Name;
use crate::time::Span;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::residue;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;

/// `kind: Quota`: limits of a tenant or project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// Always `Quota`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Whose.
    pub tenant: Name,
    /// Of which project; none: of the tenant as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// The limits.
    pub limits: Vec<Limit>,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Of what.
    pub resource: Resource,
    /// Of which SKU; none: of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sku: Option<Name>,
    /// Calendar period over which use adds up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<LimitPeriod>,
    /// Or rolling window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// Notifies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soft: Option<Unsigned>,
    /// Acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hard: Option<Unsigned>,
    /// What happens at the hard limit.
    #[serde(default)]
    pub on_hard: OnHard,
    /// How long before it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Span>,
    /// What a reservation gets while use is not known.
    #[serde(default)]
    pub fail: FailMode,
}

/// What a limit is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Units at once.
    ConcurrentUnits,
    /// Whole-GPU hours.
    GpuHours,
    /// Net amount.
    Spend,
}

/// Calendar period of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitPeriod {
    /// A calendar day.
    Day,
    /// A week from Monday.
    Week,
    /// A calendar month.
    Month,
    /// A calendar year.
    Year,
}

/// What happens at a hard limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnHard {
    /// Nothing new is granted.
    #[default]
    Deny,
    /// What runs is taken back too.
    Preempt,
}

/// What a reservation gets while use is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// A grant.
    Open,
    /// A denial.
    #[default]
    Closed,
}

/// `kind: Residue`: which GPUs are sanitised between tenants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residue {
    /// Always `Residue`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// Which GPUs.
    pub gpus: GpuSet,
    /// What is done about it.
    #[serde(default)]
    pub mode: ResidueMode,
    /// Tenants among whom no scrub is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trust_groups: Vec<Vec<Name>>,
    /// From release to the start of a scrub; none: 1 minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_within: Option<Span>,
    /// From release to a scrub that passed; none: 10 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_within: Option<Span>,
    /// How long a violation waits for facts on their way before it is alarmed; none: 1 minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle: Option<Span>,
}

impl Residue {
    /// The set as the rules see it.
    pub fn rule(&self) -> residue::Set {
        let defaults = residue::Limits::default();
        let or = |span: Option<Span>, default_us: i64| span.map_or(default_us, Span::micros);
        let group = |group: &Vec<Name>| group.iter().map(|tenant| TenantId::new(tenant)).collect();
        residue::Set {
            id: self.id.to_string(),
            gpus: self.gpus.0.iter().cloned().collect(),
            rules: residue::Rules {
                mode: match self.mode {
                    ResidueMode::Off => residue::Mode::Off,
                    ResidueMode::Observe => residue::Mode::Observe,
                    ResidueMode::Enforce => residue::Mode::Enforce,
                },
                trust_groups: self.trust_groups.iter().map(group).collect(),
                limits: residue::Limits {
                    start_within_us: or(self.start_within, defaults.start_within_us),
                    pass_within_us: or(self.pass_within, defaults.pass_within_us),
                    settle_us: or(self.settle, defaults.settle_us),
                },
            },
        }
    }
}

/// A set of GPUs: UUIDs, nodes or models; the one entry `*` is all of them. Read from one text or a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuSet(pub Vec<String>);

impl GpuSet {
    /// Whether it is all GPUs.
    pub fn is_all(&self) -> bool {
        self.0.iter().any(|entry| entry == "*")
    }
}

impl<'de> Deserialize<'de> for GpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany).map(Self)
    }
}

/// What is done about residue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResidueMode {
    /// Nothing.
    Off,
    /// Findings.
    #[default]
    Observe,
    /// Findings and quarantine.
    Enforce,
}

impl Kind for Quota {
    fn check(&self) -> Result<(), Problem> {
        let mut seen = BTreeSet::new();
        for (index, limit) in self.limits.iter().enumerate() {
            limit.check(&format!("limits[{index}]"))?;
            if !seen.insert((limit.resource, &limit.sku, limit.period, limit.window)) {
                return refuse(format!("limits[{index}].resource"), "has two limits over the same time");
            }
        }
        Ok(())
    }

    fn id(&self) -> String {
        self.project
            .as_ref()
            .map_or_else(|| self.tenant.to_string(), |project| format!("{}/{project}", self.tenant))
    }
}

impl Limit {
    fn check(&self, path: &str) -> Result<(), Problem> {
        if self.soft.is_none() && self.hard.is_none() {
            return refuse(format!("{path}.hard"), "is missing, expected `soft`, `hard` or both");
        }
        if self.soft.zip(self.hard).is_some_and(|(soft, hard)| soft > hard) {
            return refuse(format!("{path}.soft"), "is above `hard`");
        }
        match (self.resource, self.period.is_some() || self.window.is_some()) {
            (Resource::ConcurrentUnits, true) => {
                refuse(format!("{path}.period"), "has no meaning for units at once")
            }
            (Resource::GpuHours | Resource::Spend, false) => {
                refuse(format!("{path}.period"), "is missing, expected a `period` or a `window`")
            }
            _ if self.period.is_some() && self.window.is_some() => {
                refuse(format!("{path}.window"), "stands beside `period`, expected one of them")
            }
            _ => Ok(()),
        }
    }
}

impl Kind for Residue {
    fn check(&self) -> Result<(), Problem> {
        if self.gpus.0.is_empty() {
            return refuse("gpus", "is empty, expected \"*\" or a list of UUIDs, nodes or models");
        }
        if let Some(index) = self.gpus.0.iter().position(String::is_empty) {
            return refuse(format!("gpus[{index}]"), "is empty, expected a UUID, a node or a model");
        }
        if self.gpus.is_all() && self.gpus.0.len() > 1 {
            return refuse("gpus", "names others beside \"*\", which is all of them");
        }
        for (index, group) in self.trust_groups.iter().enumerate() {
            let tenants: BTreeSet<&Name> = group.iter().collect();
            if tenants.len() < 2 {
                return refuse(format!("trust_groups[{index}]"), "has fewer than two tenants");
            }
        }
        if let Some((start, pass)) = self.start_within.zip(self.pass_within).filter(|(s, p)| s > p) {
            return refuse("start_within", format!("{start} is above `pass_within`, {pass}"));
        }
        Ok(())
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}
