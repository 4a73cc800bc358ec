//! What is sold, at which price, and what it costs.

use super::words::Tag;
use super::{Kind, before, refuse};
use crate::amount::Unsigned;
use crate::bodies::{Class, Problem};
use crate::currency::Currency;
use crate::number::UnitCount;
use crate::text::{Name, Text};
use crate::time::{Span, Time};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `kind: Sku`: a priced kind of unit under one id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sku {
    /// Always `Sku`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// As it stands on the invoice; none: its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// By what other systems call it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub r#match: Vec<Matcher>,
}

/// What another system calls a SKU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matcher {
    /// The NVML name.
    Model(Name),
    /// The Slurm resource, such as `gpu:h100`.
    Gres(Name),
    /// The Kubernetes label of the product.
    Label(Name),
}

/// `kind: RateCard`: prices from a time on. The same id with a later start is its next version (V-12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateCard {
    /// Always `RateCard`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// Currency of its prices.
    pub currency: Currency,
    /// From when.
    pub effective_from: Time,
    /// For whom: ids of tenants, or `*`.
    pub tenants: Vec<Name>,
    /// The prices.
    pub prices: Vec<Price>,
    /// Least net amount of a period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_spend: Option<Unsigned>,
    /// Part of the price credited for lost time (V-9).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_credits: Option<ServiceCredits>,
}

/// One price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Id of a SKU, or a pattern with `*`.
    pub sku: Name,
    /// Only for this class; none: for every class without a price of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// What is counted.
    pub per: Per,
    /// Price of one `per`; none: `tiers` say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Unsigned>,
    /// Quantity without charge per tenant, SKU and period, in `per`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<Unsigned>,
    /// Prices by quantity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tiers: Option<Tiers>,
    /// Charged time is rounded up to a multiple of it (V-6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granularity: Option<Span>,
    /// Least charged time of an allocation's unit (V-6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Span>,
    /// Which price holds when it changes (V-7); none: `at_event`.
    #[serde(default)]
    pub lock: Lock,
    /// Billing states that are charged; none: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billed_states: Option<Vec<Name>>,
}

/// What a price is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// An hour of one unit.
    Hour,
    /// One of the unit in which usage is reported.
    Unit,
}

/// Prices by quantity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tiers {
    /// What a step's price holds for.
    pub mode: TierMode,
    /// In order of `up_to`; only the last has none.
    pub steps: Vec<Tier>,
}

/// What a step's price holds for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierMode {
    /// The quantity inside the step.
    Graduated,
    /// The whole quantity, once it reaches into the step.
    Volume,
}

/// One step of a tiered price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Last quantity of the step, in `per`; none: no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Unsigned>,
    /// Its price.
    pub price: Unsigned,
}

/// Which price holds when it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lock {
    /// The one of each instant.
    #[default]
    AtEvent,
    /// The one of the allocation's start.
    AtStart,
}

/// Part of the price credited for lost time: 0 to 1 each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceCredits {
    /// For faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Unsigned>,
    /// For maintenance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Unsigned>,
    /// For unobserved time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unobserved: Option<Unsigned>,
}

/// `kind: Commitment`: capacity bought for a time, used or not (V-8).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commitment {
    /// Always `Commitment`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// Whose.
    pub tenant: Name,
    /// Of what.
    pub sku: Name,
    /// How many units at once.
    pub quantity: UnitCount,
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// Price of a unit and hour.
    pub price: Unsigned,
    /// Price of a unit and hour above the quantity; none: the rate card's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overage_price: Option<Unsigned>,
}

/// `kind: Credit`: money paid ahead, or a favour (V-10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credit {
    /// Always `Credit`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// Whose.
    pub tenant: Name,
    /// Which of the two.
    pub r#type: CreditType,
    /// How much.
    pub amount: Unsigned,
    /// In which currency.
    pub currency: Currency,
    /// Smallest first.
    pub priority: u32,
    /// Usage from then on.
    pub from: Time,
    /// Usage until then; none: no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

/// What kind of credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreditType {
    /// Pays the gross.
    Prepaid,
    /// A line before tax.
    Promotional,
}

/// `kind: FleetCost`: what a SKU costs the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetCost {
    /// Always `FleetCost`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Of what.
    pub sku: Name,
    /// What is counted.
    pub per: Per,
    /// Cost of one `per`.
    pub cost: Unsigned,
    /// In which currency; none: the rate card's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// From when; none: always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
}

impl Kind for Sku {
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

impl Kind for RateCard {
    fn check(&self) -> Result<(), Problem> {
        if self.tenants.is_empty() {
            return refuse("tenants", "is empty, expected tenants or \"*\"");
        }
        let mut seen = BTreeSet::new();
        for (index, price) in self.prices.iter().enumerate() {
            price.check(&format!("prices[{index}]"))?;
            if !seen.insert((&price.sku, price.class)) {
                return refuse(
                    format!("prices[{index}].sku"),
                    format_args!("`{}` has two equal prices (V-12)", price.sku),
                );
            }
        }
        self.service_credits.as_ref().map_or(Ok(()), ServiceCredits::check)
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

impl Price {
    fn check(&self, path: &str) -> Result<(), Problem> {
        match (&self.price, &self.tiers) {
            (Some(_), None) => {}
            (None, Some(tiers)) => tiers.check(path)?,
            _ => return refuse(format!("{path}.price"), "expected one of `price` and `tiers`"),
        }
        if self.granularity.is_some_and(|span| span.micros() == 0) {
            return refuse(format!("{path}.granularity"), "is 0, expected one such as 1s");
        }
        Ok(())
    }
}

impl Tiers {
    fn check(&self, path: &str) -> Result<(), Problem> {
        let Some((last, steps)) = self.steps.split_last() else {
            return refuse(format!("{path}.tiers.steps"), "is empty, expected at least one step");
        };
        if last.up_to.is_some() {
            return refuse(
                format!("{path}.tiers.steps[{}].up_to", steps.len()),
                "ends the last step, expected no end",
            );
        }
        let mut before = Decimal::ZERO;
        for (index, step) in steps.iter().enumerate() {
            match step.up_to {
                Some(up_to) if up_to.get() > before => before = up_to.get(),
                _ => {
                    return refuse(
                        format!("{path}.tiers.steps[{index}].up_to"),
                        format_args!("expected more than {before}"),
                    );
                }
            }
        }
        Ok(())
    }
}

impl ServiceCredits {
    fn check(&self) -> Result<(), Problem> {
        for (member, part) in
            [("fault", self.fault), ("maintenance", self.maintenance), ("unobserved", self.unobserved)]
        {
            if let Some(part) = part.filter(|part| part.get() > Decimal::ONE) {
                return refuse(
                    format!("service_credits.{member}"),
                    format_args!("is {part}, expected 0 to 1"),
                );
            }
        }
        Ok(())
    }
}

impl Kind for Commitment {
    fn check(&self) -> Result<(), Problem> {
        before("to", Some(self.from), Some(self.to))
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

impl Kind for Credit {
    fn check(&self) -> Result<(), Problem> {
        before("to", Some(self.from), self.to)
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

impl Kind for FleetCost {
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn id(&self) -> String {
        self.sku.to_string()
    }
}
