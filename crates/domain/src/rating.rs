//! Rating: from usage to the lines of a document (rules V-4, V-6, V-7, V-11, V-12, V-13, M-5, A-6).
//!
//! [`rate`] is a function of usage, rate cards, period and currency. It reads as the pipeline of rule V-5: what a tenant held is cut
//! at price changes and priced ([`select`](RateCards::select)), minimum and granularity are added at the end of each unit, equal
//! prices are gathered into lines, and each line is rounded once. [`adjust`] compares lines with what stands on documents.

mod adjust;
mod card;
mod charge;
mod conflict;
mod increment;
mod line;
mod meter;
mod period;
mod quantity;
mod select;
mod tax;

pub use adjust::{Adjustment, Figure, Stood, adjust};
pub use card::{Lock, Per, Price, RateCard, Term, UnratedTerm};
pub use charge::{
    Charge, Priced, RateError, Rated, Rating, Sold, UnitUse, Unpriced, gather_units, price, rate,
};
pub use conflict::{CardConflict, check_cards};
pub use line::{
    Basis, ChargeKey, Line, LineKey, LineUse, MeterKey, PriceKey, Terms, UsageKey, UseOf, exact_amount,
    lines_of,
};
pub use meter::{Recorded, Reported, UnpricedMeter, unpriced_meters};
pub use period::{Period, PeriodError};
pub use quantity::Quantity;
pub use select::{Ambiguous, PriceRef, RateCards, Wanted};
pub use tax::{Tax, TaxRate, taxes_on};
