//! Who issues, who pays, who uses, and who a foreign account is.

use super::words::{Bank, Country, Lines, Tag, TimeZone};
use super::{Kind, before, refuse};
use crate::amount::Unsigned;
use crate::bodies::Problem;
use crate::currency::Currency;
use crate::text::{Name, Text};
use crate::time::{Span, Time};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// `kind: Seller`: who issues invoices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seller {
    /// Always `Seller`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// Legal name.
    pub name: Text,
    /// Country of the seat.
    pub country: Country,
    /// Postal address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Lines>,
    /// VAT number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vat_id: Option<Name>,
    /// Where invoices are paid to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank: Option<Bank>,
    /// Name of the series of invoice numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Name>,
    /// Zone of its periods; none: UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<TimeZone>,
    /// Facts before this give usage, never a charge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub books_open: Option<Time>,
    /// How long after a period's close a fact may still change it; none: 90 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Span>,
}

/// `kind: Customer`: who pays, for one or several tenants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Customer {
    /// Always `Customer`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// Legal name.
    pub name: Text,
    /// Country of the seat.
    pub country: Country,
    /// Currency of its invoices.
    pub currency: Currency,
    /// Taxes of its invoices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tax: Vec<Tax>,
    /// Who invoices it, where there are several sellers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seller: Option<Name>,
    /// Postal address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Lines>,
    /// VAT number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vat_id: Option<Name>,
    /// Its own reference, as its e-invoices need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buyer_reference: Option<Name>,
    /// Its purchase order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purchase_order: Option<Name>,
    /// Terms of payment, as they stand on the invoice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payment_terms: Option<Text>,
    /// Whose zone its periods are in; none: the seller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_zone: Option<PeriodZone>,
}

/// Whose zone a period is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeriodZone {
    /// The seller's.
    Seller,
    /// The tenant's.
    Tenant,
}

/// A tax of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tax {
    /// As it stands on the invoice.
    pub name: Name,
    /// Fraction of the net amount, such as 0.19; 0 to 1.
    pub rate: Unsigned,
}

/// `kind: Tenant`: who uses and is metered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Always `Tenant`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id.
    pub id: Name,
    /// Who pays; none: the tenant itself, which then carries what a customer carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<Name>,
    /// Its name; none: its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Zone of its days in reports; none: UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<TimeZone>,
    /// Its sub-accounts, a tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<Project>,
    /// Without a customer: currency of its invoices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// Without a customer: taxes of its invoices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tax: Vec<Tax>,
    /// Without a customer: who invoices it, where there are several sellers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seller: Option<Name>,
    /// Without a customer: whose zone its periods are in; none: the seller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_zone: Option<PeriodZone>,
}

/// A tenant's sub-account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Its id, unique within the tenant.
    pub id: Name,
    /// The project it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Name>,
    /// Its name; none: its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
}

/// `kind: Mapping`: who an account of another system is, over a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// Always `Mapping`.
    #[serde(default, skip_serializing)]
    pub kind: Tag,
    /// Its id; none: made of source and pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Name>,
    /// The other system, such as `slurm`.
    pub source: Name,
    /// Field of a record to its value, `*` for any.
    pub r#match: BTreeMap<Name, Text>,
    /// Who that is.
    pub tenant: Name,
    /// For which project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Name>,
    /// From when; none: always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// Until when; none: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
}

impl Kind for Seller {
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

impl Kind for Customer {
    fn check(&self) -> Result<(), Problem> {
        taxes(&self.tax)
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

fn taxes(taxes: &[Tax]) -> Result<(), Problem> {
    for (index, tax) in taxes.iter().enumerate() {
        if tax.rate.get() > Decimal::ONE {
            return refuse(
                format!("tax[{index}].rate"),
                format_args!("is {}, expected a fraction such as \"0.19\"", tax.rate),
            );
        }
    }
    Ok(())
}

impl Kind for Tenant {
    fn check(&self) -> Result<(), Problem> {
        let carries = [
            ("currency", self.currency.is_some()),
            ("tax", !self.tax.is_empty()),
            ("seller", self.seller.is_some()),
            ("period_zone", self.period_zone.is_some()),
        ];
        if let (Some(customer), Some((member, _))) =
            (&self.customer, carries.into_iter().find(|(_, is_there)| *is_there))
        {
            return refuse(member, format_args!("stands at the tenant, expected at its customer {customer}"));
        }
        taxes(&self.tax)?;
        self.check_projects()
    }

    fn id(&self) -> String {
        self.id.to_string()
    }
}

impl Tenant {
    fn check_projects(&self) -> Result<(), Problem> {
        let mut parents = BTreeMap::new();
        for (index, project) in self.projects.iter().enumerate() {
            if parents.insert(&project.id, project.parent.as_ref()).is_some() {
                return refuse(
                    format!("projects[{index}].id"),
                    format_args!("`{}` stands twice", project.id),
                );
            }
        }
        for (index, project) in self.projects.iter().enumerate() {
            let (mut above, mut seen) = (project.parent.as_ref(), BTreeSet::from([&project.id]));
            while let Some(parent) = above {
                let Some(next) = parents.get(parent) else {
                    return refuse(
                        format!("projects[{index}].parent"),
                        format_args!("`{parent}` is no project of the tenant"),
                    );
                };
                if !seen.insert(parent) {
                    return refuse(
                        format!("projects[{index}].parent"),
                        format_args!("`{parent}` is below its own child"),
                    );
                }
                above = *next;
            }
        }
        Ok(())
    }
}

impl Kind for Mapping {
    fn check(&self) -> Result<(), Problem> {
        if self.r#match.is_empty() {
            return refuse("match", "is empty, expected at least one field, such as account: \"robotics\"");
        }
        before("to", self.from, self.to)
    }

    fn id(&self) -> String {
        let pattern = || {
            self.r#match.iter().map(|(field, value)| format!("{field}={value}")).collect::<Vec<_>>().join(",")
        };
        self.id.as_ref().map_or_else(|| format!("{}/{}", self.source, pattern()), ToString::to_string)
    }
}
