//! Work, usage and charges that others report, and disputes.

use super::{Body, Problem, from_parts, ordered};
use crate::amount::{Amount, Unsigned};
use crate::currency::{Currency, Period};
use crate::number::{BigCount, Count};
use crate::text::{Name, Text};
use crate::time::Time;
use gpuledger_domain::time::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// `work.reported`: what a shared server did for a tenant over a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkReported {
    /// Which pool.
    pub pool: Name,
    /// For whom.
    pub tenant: Name,
    /// For which project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// First instant.
    pub start: Time,
    /// First instant after it.
    pub end: Time,
    /// Adapter served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter: Option<Name>,
    /// Tokens read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Count>,
    /// Tokens written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Count>,
    /// Tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<Count>,
    /// Requests served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Count>,
    /// Key-value cache held, in bytes times microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_byte_us: Option<BigCount>,
    /// Work in a unit of the pool's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<Unsigned>,
}

impl Body for WorkReported {
    fn check(&self, _at: Instant) -> Result<(), Problem> {
        ordered("", self.start, self.end)
    }
}

/// `usage.reported`: metered usage of something else that is sold (V-13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReported {
    /// Whose.
    pub tenant: Name,
    /// For which project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// What.
    pub sku: Name,
    /// How much, as text.
    pub quantity: Unsigned,
    /// Of which unit, such as `gib_hour`.
    pub unit: Name,
    /// First instant.
    pub start: Time,
    /// First instant after it.
    pub end: Time,
    /// For reports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<Name, Text>,
}

impl Body for UsageReported {
    fn check(&self, _at: Instant) -> Result<(), Problem> {
        ordered("", self.start, self.end)
    }
}

/// `charge.recorded`: one charge as an amount (V-13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChargeRecorded {
    /// Whose.
    pub tenant: Name,
    /// For which project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// What for, as it stands on the invoice.
    pub description: Text,
    /// How much, net, as text; negative: in the tenant's favour.
    pub amount: Amount,
    /// In which currency.
    pub currency: Currency,
    /// In which billing period; none: the one of the event's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
}

impl Body for ChargeRecorded {}

/// What a dispute was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisputeSubject {
    /// An allocation.
    Allocation(Name),
    /// A line of an invoice.
    Line(Name),
}

/// `dispute.resolved`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(extend("not" = {"required": ["allocation", "line"]}))]
pub struct DisputeResolved {
    /// `allocation` or `line`.
    #[serde(flatten)]
    pub about: DisputeSubject,
    /// What was decided.
    pub outcome: Name,
    /// Why.
    pub reason: Text,
    /// Who answers for it.
    pub approver: Name,
}

#[derive(Deserialize)]
struct DisputeParts {
    allocation: Option<Name>,
    line: Option<Name>,
    outcome: Name,
    reason: Text,
    approver: Name,
}

impl TryFrom<DisputeParts> for DisputeResolved {
    type Error = &'static str;

    fn try_from(parts: DisputeParts) -> Result<Self, &'static str> {
        let about = match (parts.allocation, parts.line) {
            (Some(allocation), None) => DisputeSubject::Allocation(allocation),
            (None, Some(line)) => DisputeSubject::Line(line),
            _ => return Err("names both or neither of `allocation` and `line`, expected one"),
        };
        Ok(Self { about, outcome: parts.outcome, reason: parts.reason, approver: parts.approver })
    }
}

impl<'de> Deserialize<'de> for DisputeResolved {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_parts::<DisputeParts, _, _>(deserializer)
    }
}

impl Body for DisputeResolved {}
