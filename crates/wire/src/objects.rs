//! Business objects: what `apply -f` reads, several documents a file, in YAML or its subset JSON (contract.md, section 2).

mod customers;
mod documents;
mod limits;
mod pools;
mod prices;
mod words;

pub use customers::{Customer, Mapping, PeriodZone, Project, Seller, Tax, Tenant};
pub use documents::{ObjectFault, parse_documents};
pub use limits::{FailMode, GpuSet, Limit, LimitPeriod, OnHard, Quota, Residue, ResidueMode, Resource};
pub use pools::{IdlePolicy, Pool, PoolPolicy};
pub use prices::{
    Commitment, Credit, CreditType, FleetCost, Lock, Matcher, Per, Price, RateCard, ServiceCredits, Sku,
    Tier, TierMode, Tiers,
};
pub use words::{Bank, Country, Lines, Tag, TimeZone};

use crate::bodies::Problem;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A kind of business object.
pub(crate) trait Kind: DeserializeOwned {
    /// Checks what one member alone does not show.
    fn check(&self) -> Result<(), Problem>;

    /// What names it among its kind; a later object of the same id is its next version.
    fn id(&self) -> String;
}

/// A stored object that the types no longer read.
#[derive(Debug, thiserror::Error)]
#[error("{kind}: {field}: {problem}")]
pub struct StoredFault {
    /// Its kind.
    pub kind: String,
    /// Path of the member.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// One business object.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Object {$(
            $(#[$doc])*
            $name($name),
        )*}

        /// Every kind, in the order of the contract.
        pub const KINDS: &[&str] = &[$(stringify!($name)),*];

        impl Object {
            /// Its kind, such as `RateCard`.
            pub const fn kind(&self) -> &'static str {
                match self {$(Self::$name(_) => stringify!($name),)*}
            }

            /// What names it among its kind; a later object of the same id is its next version.
            pub fn id(&self) -> String {
                match self {$(Self::$name(object) => Kind::id(object),)*}
            }

            /// The object as JSON with its `kind`: what is stored and shown. Decimals are text.
            ///
            /// # Errors
            /// Never for an object that was read; the JSON writer's own error otherwise.
            pub fn to_json(&self) -> serde_json::Result<Value> {
                let mut value = match self {$(Self::$name(object) => serde_json::to_value(object)?,)*};
                if let Value::Object(members) = &mut value {
                    members.insert("kind".to_owned(), self.kind().into());
                }
                Ok(value)
            }

            /// Reads what [`Object::to_json`] wrote.
            ///
            /// # Errors
            /// The kind is unknown, or a member is not what it was.
            pub fn from_json(value: &Value) -> Result<Self, StoredFault> {
                let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
                match kind {
                    $(stringify!($name) => from_json(kind, value).map(Self::$name),)*
                    _ => Err(unknown_kind(kind)),
                }
            }

            fn from_document(kind: &str, document: &documents::Document<'_>) -> Result<Self, ObjectFault> {
                match kind {
                    $(stringify!($name) => document.read().map(Self::$name),)*
                    _ => Err(document.fault("kind", format_args!("`{kind}` is unknown, expected one of {}", KINDS.join(", ")))),
                }
            }
        }

        $(impl From<$name> for Object {
            fn from(object: $name) -> Self {
                Self::$name(object)
            }
        })*
    };
}

kinds! {
    /// Who issues invoices.
    Seller,
    /// Who pays.
    Customer,
    /// Who uses.
    Tenant,
    /// Who a foreign account is.
    Mapping,
    /// A priced kind of unit.
    Sku,
    /// Prices.
    RateCard,
    /// Capacity bought for a time.
    Commitment,
    /// Money or favour to be used up.
    Credit,
    /// Limits of use.
    Quota,
    /// How a shared unit is divided.
    Pool,
    /// Which GPUs are sanitised between tenants.
    Residue,
    /// What a SKU costs the operator.
    FleetCost,
}

fn from_json<T: Kind>(kind: &str, value: &Value) -> Result<T, StoredFault> {
    let fault = |field: String, problem: String| StoredFault { kind: kind.to_owned(), field, problem };
    let object: T = serde_path_to_error::deserialize(value)
        .map_err(|error| fault(error.path().to_string(), error.into_inner().to_string()))?;
    object.check().map_err(|problem| fault(problem.member, problem.problem))?;
    Ok(object)
}

fn unknown_kind(kind: &str) -> StoredFault {
    let problem = format!("`{kind}` is unknown, expected one of {}", KINDS.join(", "));
    StoredFault { kind: kind.to_owned(), field: "kind".to_owned(), problem }
}

fn before<T: PartialOrd + std::fmt::Display>(
    member: &str,
    from: Option<T>,
    to: Option<T>,
) -> Result<(), Problem> {
    match (from, to) {
        (Some(from), Some(to)) if from >= to => {
            Err(Problem { member: member.to_owned(), problem: format!("{to} is not after `from` {from}") })
        }
        _ => Ok(()),
    }
}

fn refuse<T>(member: impl Into<String>, problem: impl std::fmt::Display) -> Result<T, Problem> {
    Err(Problem { member: member.into(), problem: problem.to_string() })
}

#[cfg(test)]
mod tests;
