//! Billing: closes periods into drafts, issues documents, renders them, and explains their lines.
//!
//! Owns documents, closes and number series. Amounts come from `gpuledger_domain::rating` and from nowhere else; a document is built
//! once, at the close, and everything shown later is read back from it. Reads usage through the books and never computes attribution
//! itself. Knows neither HTTP nor SQL.

pub mod account;
pub mod catalogue;
mod close;
mod correct;
pub mod document;
mod draft;
mod error;
mod history;
mod issue;
mod late;
mod ledgers;
mod rated;
mod read;
pub mod render;
pub mod sold;
mod stood;
mod text;
mod trail;
mod unpriced;
pub mod usage;
pub mod why;

pub use close::{CloseReport, Closed, Refused, close_period};
pub use draft::{Contents, Correction, Frozen, draft};
pub use error::BillingError;
pub use issue::{Issue, IssueReport, discard, issue};
pub use late::Late;
pub use read::{Which, explain, list, show};
pub use unpriced::unpriced_findings;
