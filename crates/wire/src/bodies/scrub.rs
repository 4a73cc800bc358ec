//! Sanitising between tenants, with its evidence.

use super::{Body, Placement, Problem};
use crate::number::Count;
use crate::text::{Name, Text};
use crate::time::Time;
use gpuledger_domain::time::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `scrub.started`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScrubStarted {
    /// The scrubber's name of it.
    pub scrub: Name,
    /// Which GPU.
    pub gpu: Name,
    /// None: the whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

impl Body for ScrubStarted {}

/// `scrub.finished`: the event's time is its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScrubFinished {
    /// The scrubber's name of it.
    pub scrub: Name,
    /// Which GPU.
    pub gpu: Name,
    /// None: the whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// When it began, not after the event's time.
    pub started_at: Time,
    /// How it ended.
    pub result: ScrubResult,
    /// How thorough it was.
    pub class: ScrubClass,
    /// What was done, in order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// With what.
    pub tool: Tool,
    /// On what.
    pub platform: Platform,
    /// How much of the memory was reached.
    pub coverage: Coverage,
    /// How it was checked.
    pub verification: Verification,
    /// A signed statement of the tool or device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Text>,
    /// Who ran it.
    pub operator: Name,
    /// Who approved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<Name>,
}

/// How a scrub ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ScrubResult {
    /// Done and clean, as its verification shows.
    Passed,
    /// Residue remains or may remain.
    Failed,
    /// Broken off.
    Incomplete,
    /// Not done, on purpose.
    Skipped,
}

/// How thorough a scrub is, in the words of NIST SP 800-88.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ScrubClass {
    /// Against ordinary means of recovery.
    Clear,
    /// Against laboratory means.
    Purge,
}

/// One step of a scrub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// What was done, such as `overwrite` or `reset`.
    pub method: Name,
    /// First instant.
    pub started_at: Time,
    /// First instant after it.
    pub finished_at: Time,
    /// Exit code of the program that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// The scrubbing program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: Name,
    /// Digest of its binary.
    pub digest: Name,
}

/// What the scrub ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Platform {
    /// Driver version.
    pub driver: Name,
    /// VBIOS version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vbios: Option<Name>,
    /// Whether MIG mode was on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig_mode: Option<bool>,
    /// Whether the driver scrubs memory as it frees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrub_on_free: Option<bool>,
}

/// How much of the memory was reached, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// All there is.
    pub bytes_total: Count,
    /// Reached.
    pub bytes_covered: Count,
    /// Held by driver or firmware, out of reach.
    pub bytes_reserved: Count,
}

/// How the result was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// How much was read back.
    pub method: Method,
    /// Bytes read back.
    pub bytes_read: Count,
    /// Bytes that were not as they should be.
    pub mismatches: Count,
    /// Digest of what was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Name>,
    /// What became of a pattern planted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Name>,
}

/// How much was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Method {
    /// All of it.
    Full,
    /// A sample.
    Sampled,
    /// Nothing.
    None,
}

impl Body for ScrubFinished {
    fn check(&self, at: Instant) -> Result<(), Problem> {
        if self.started_at.get() > at {
            let problem =
                format_args!("{} is after the event's time {at}, which is the scrub's end", self.started_at);
            return Err(Problem::new("started_at", problem));
        }
        Ok(())
    }
}

/// `quarantine.released`: a named person lets units out of quarantine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuarantineReleased {
    /// Which GPU.
    pub gpu: Name,
    /// None: the whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Who answers for it.
    pub approver: Name,
    /// Why.
    pub reason: Text,
}

impl Body for QuarantineReleased {}
