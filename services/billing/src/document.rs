//! A document: the members of `invoice show`, in their order. Every number is text; amounts have all places of their currency.

use crate::account::Party;
use serde::{Deserialize, Serialize};

/// An invoice. What is stored is these bytes, written once at the close and once more, with its number, at issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its key: kind, period, tenant and attempt. Never re-used.
    pub id: String,
    /// Given at issue, without gaps.
    pub number: Option<String>,
    /// `invoice`.
    pub kind: String,
    /// `draft`, `issued`, `paid` or `discarded`.
    pub status: String,
    /// RFC 3339; when it was issued.
    pub issued_at: Option<String>,
    /// The day of it in the seller's zone, `2026-11-02`.
    pub issued_on: Option<String>,
    /// Who issues.
    pub seller: Party,
    /// Who pays.
    pub customer: Party,
    /// Who used.
    pub tenant: String,
    /// Name of who used.
    pub tenant_name: String,
    /// The month.
    pub period: String,
    /// The month's edges.
    pub window: WindowView,
    /// ISO 4217 code.
    pub currency: String,
    /// In order of project, SKU, class and price.
    pub lines: Vec<LineView>,
    /// Usage without a price: billed nothing, and the document cannot be issued (V-11).
    pub unpriced: Vec<UnpricedView>,
    /// Sum of the lines.
    pub subtotal: String,
    /// One per rate.
    pub taxes: Vec<TaxView>,
    /// Subtotal and taxes.
    pub total: String,
    /// Prepaid credit that paid for it.
    pub credits: Vec<CreditView>,
    /// Brought over from earlier documents.
    pub carried_in: String,
    /// Left for the next document.
    pub carried_out: String,
    /// What is to be paid.
    pub amount_due: String,
    /// How amounts were rounded, in words.
    pub rounding: String,
    /// Version of the rules it was made by.
    pub rule_set: String,
    /// The facts it was made from (V-3).
    pub facts: FactsView,
}

/// The edges of a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowView {
    /// First instant, RFC 3339.
    pub start: String,
    /// First instant after it, RFC 3339.
    pub end: String,
    /// IANA zone whose month it is.
    pub zone: String,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineView {
    /// The document's id and the number of the line.
    pub id: String,
    /// `usage`.
    pub kind: String,
    /// For which project.
    pub project: Option<String>,
    /// What was held.
    pub sku: String,
    /// The SKU's name.
    pub description: String,
    /// How it was bought.
    pub class: String,
    /// Unit-seconds after shares.
    pub quantity: String,
    /// `second`.
    pub unit: String,
    /// The price.
    pub unit_price: String,
    /// What one price buys: `hour`.
    pub per: String,
    /// Quantity times price, rounded once.
    pub amount: String,
    /// What is billed by: `allocation`.
    pub basis: String,
    /// The line's part of each tax.
    pub taxes: Vec<LineTaxView>,
    /// Where the price stands.
    pub price: PriceView,
    /// What the quantity is made of.
    pub details: Vec<DetailView>,
}

/// A line's part of a tax.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineTaxView {
    /// Which tax.
    pub name: String,
    /// Its part.
    pub amount: String,
}

/// Where a price stands, and its terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceView {
    /// The rate card.
    pub card: String,
    /// Its version.
    pub effective_from: String,
    /// Which of its prices, counted from 0.
    pub index: String,
    /// `at_event` or `at_start`.
    pub lock: String,
    /// Seconds.
    pub granularity: String,
    /// Seconds.
    pub minimum: String,
}

/// What one unit of an allocation gives to a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetailView {
    /// Which allocation.
    pub allocation: String,
    /// Which unit of it, counted from 0.
    pub unit: String,
    /// First charged instant in the line.
    pub start: String,
    /// First instant after the last charged one.
    pub end: String,
    /// Unit-seconds after shares, the added part included.
    pub quantity: String,
    /// Of it, what minimum and granularity added (V-6).
    pub added: String,
}

/// Usage without a price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpricedView {
    /// By which allocation.
    pub allocation: String,
    /// What was held.
    pub sku: String,
    /// How it was bought.
    pub class: String,
    /// First unpriced instant.
    pub start: String,
    /// First instant after the last one.
    pub end: String,
    /// Unit-seconds after shares.
    pub quantity: String,
}

/// One tax.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaxView {
    /// Its name.
    pub name: String,
    /// As a fraction.
    pub rate: String,
    /// Sum of the lines.
    pub base: String,
    /// Base times rate, rounded once.
    pub amount: String,
}

/// Prepaid credit applied to a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditView {
    /// Which credit.
    pub id: String,
    /// How much of it paid.
    pub applied: String,
    /// What is left of it.
    pub remaining: String,
}

/// The facts a document was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactsView {
    /// How many were accepted.
    pub count: String,
    /// SHA-256 over their sorted (source, id, content digest), in hex.
    pub digest: String,
}
