//! Orders to the allocator and its answers.

use super::{Body, SignalUnit};
use crate::amount::Unsigned;
use crate::text::{Name, Text};
use crate::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `signal.raised`: an order to the allocator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignalRaised {
    /// Its id, one over all deliveries.
    pub signal: Name,
    /// Whom it concerns.
    pub tenant: Name,
    /// Which project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// What is to be done.
    pub action: Action,
    /// To which units; none: all of the tenant's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<SignalUnit>,
    /// Until when.
    pub deadline: Time,
    /// Why.
    pub reason: Text,
    /// The limit that was reached.
    pub limit: Unsigned,
    /// What was consumed.
    pub used: Unsigned,
    /// What is held by reservations.
    pub held: Unsigned,
}

/// What an allocator is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Action {
    /// Grant nothing new.
    DenyNew,
    /// Slow down.
    Throttle,
    /// Take back.
    Preempt,
    /// Back to normal.
    Resume,
    /// Keep units from tenants.
    Quarantine,
    /// Let units back.
    ReleaseQuarantine,
}

impl Body for SignalRaised {}

/// `signal.acknowledged`: an allocator's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignalAcknowledged {
    /// Which signal.
    pub signal: Name,
    /// What became of it.
    pub outcome: Outcome,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Outcome {
    /// Will be done.
    Accepted,
    /// Is done.
    Effected,
    /// Will not be done.
    Refused,
}

impl Body for SignalAcknowledged {}
