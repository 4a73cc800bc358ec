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
    /// Usage, meters, recorded charges, each in order of project, SKU, class, state and price; then adjustments of earlier periods.
    pub lines: Vec<LineView>,
    /// Usage without a price: billed nothing, and the document cannot be issued (V-11).
    pub unpriced: Vec<UnpricedView>,
    /// Charges in another currency: billed nothing, and named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_billed: Vec<NotBilledView>,
    /// Sum of the lines.
    pub subtotal: String,
    /// One per rate.
    pub taxes: Vec<TaxView>,
    /// Subtotal and taxes.
    pub total: String,
    /// Prepaid credit that paid for it.
    pub credits: Vec<CreditView>,
    /// Brought over from earlier documents in the customer's favour: it pays for this one first (V-11).
    pub carried_in: String,
    /// Left in the customer's favour for the next document: what a negative total and `carried_in` come to beyond this one.
    pub carried_out: String,
    /// What is to be paid; never negative.
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
    /// `usage`, `meter`, `charge` or `adjustment`.
    pub kind: String,
    /// For which project.
    pub project: Option<String>,
    /// What was held or sold; null of a recorded charge.
    pub sku: Option<String>,
    /// The SKU's name, or what a recorded charge is for.
    pub description: String,
    /// How it was bought; null of what is no GPU time.
    pub class: Option<String>,
    /// Billing state, where one was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Unit-seconds after shares; of a meter what was reported; 1 of a recorded charge. Of an adjustment the difference.
    pub quantity: String,
    /// `second`; of a meter the unit it was reported in; `charge`.
    pub unit: String,
    /// The price; of a recorded charge its amount.
    pub unit_price: String,
    /// What one price buys: `hour` or `unit`.
    pub per: String,
    /// Quantity times price, rounded once. Of an adjustment the difference of two such amounts.
    pub amount: String,
    /// What is billed by: `allocation`, `work`, `meter` or `charge` (V-13).
    pub basis: String,
    /// What an adjustment corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrects: Option<CorrectsView>,
    /// The line's part of each tax.
    pub taxes: Vec<LineTaxView>,
    /// Where the price stands; null of a recorded charge.
    pub price: Option<PriceView>,
    /// What the quantity is made of.
    pub details: Vec<DetailView>,
}

/// What an adjustment corrects: a line of a closed period, which comes to something else from all facts now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectsView {
    /// The closed month.
    pub period: String,
    /// The line that stood first; absent where no document had such a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Kind of that line: `usage`, `meter` or `charge`.
    pub kind: String,
    /// What it comes to now.
    pub now: FigureView,
    /// What stood on documents before.
    pub stood: FigureView,
}

/// How much, and what it comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureView {
    /// How much.
    pub quantity: String,
    /// What it comes to.
    pub amount: String,
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

/// What one unit of an allocation gives to a line, or one fact that reported or recorded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetailView {
    /// Which allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<String>,
    /// Which unit of it, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Who said the fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// First charged instant in the line.
    pub start: String,
    /// First instant after the last charged one.
    pub end: String,
    /// As the line's, the added part included.
    pub quantity: String,
    /// Of it, what minimum and granularity added (V-6).
    pub added: String,
}

/// Usage without a price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpricedView {
    /// By which allocation; null of what is no GPU time.
    pub allocation: Option<String>,
    /// What was held or sold.
    pub sku: String,
    /// How it was bought; null of what is no GPU time.
    pub class: Option<String>,
    /// First unpriced instant.
    pub start: String,
    /// First instant after the last one.
    pub end: String,
    /// Unit-seconds after shares, or what was reported.
    pub quantity: String,
    /// The unit it was reported in, where that is not `second`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The closed month it belongs to, where it came late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
}

/// A recorded charge that is billed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotBilledView {
    /// Who recorded it.
    pub source: String,
    /// The id of the fact.
    pub id: String,
    /// What for.
    pub description: String,
    /// How much.
    pub amount: String,
    /// In which currency.
    pub currency: String,
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
