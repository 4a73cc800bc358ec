//! Rating: from usage to the lines of a document (rules V-4, V-6, V-7, V-11, V-12, M-5).
//!
//! [`rate`] is a function of usage, rate cards, period and currency. It reads as the pipeline of rule V-5: what a tenant held is cut
//! at price changes and priced ([`select`](RateCards::select)), minimum and granularity are added at the end of each unit, equal
//! prices are gathered into lines, and each line is rounded once.

mod card;
mod charge;
mod conflict;
mod increment;
mod line;
mod period;
mod select;
mod tax;

pub use card::{Lock, Per, Price, RateCard, Term, UnratedTerm};
pub use charge::{Charge, Priced, RateError, Rated, Rating, UnitUse, Unpriced, gather_units, price, rate};
pub use conflict::{CardConflict, check_cards};
pub use line::{Line, LineKey, LineKind, LineUse, lines_of};
pub use period::{Period, PeriodError};
pub use select::{Ambiguous, PriceRef, RateCards, Wanted};
pub use tax::{Tax, TaxRate, taxes_on};
