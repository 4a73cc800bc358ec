//! Who pays whom: what a close needs to know about a tenant besides its usage.

use chrono_tz::Tz;
use gpuledger_domain::ids::TenantId;
use gpuledger_domain::money::Currency;
use gpuledger_domain::rating::TaxRate;
use gpuledger_domain::time::Instant;
use serde::{Deserialize, Serialize};

/// A legal person as a document prints it. What is not known is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// Its object's id; a tenant that pays for itself has the tenant's.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Postal address, line by line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub address: Vec<String>,
    /// ISO 3166 country.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// VAT identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vat_id: Option<String>,
    /// Where to pay (sellers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<String>,
    /// What the buyer wants to read on it (customers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buyer_reference: Option<String>,
    /// The buyer's order (customers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purchase_order: Option<String>,
    /// Zone of its dates (sellers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// When to pay (customers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment_terms: Option<String>,
}

/// A tenant's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Who used.
    pub tenant: TenantId,
    /// The tenant's name.
    pub tenant_name: String,
    /// Who issues.
    pub seller: Party,
    /// The seller's number series; none: one a year.
    pub series: Option<String>,
    /// The seller's zone: dates on documents.
    pub seller_zone: Tz,
    /// From when usage is charged.
    pub books_open: Option<Instant>,
    /// Who pays.
    pub customer: Party,
    /// In what.
    pub currency: Currency,
    /// Taxes on the sum of the lines.
    pub taxes: Vec<TaxRate>,
    /// The zone whose months are the periods: the seller's, or the tenant's by choice (V-2).
    pub period_zone: Tz,
}
