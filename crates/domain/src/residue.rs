//! Residue: who held each memory slice last, and whether it was sanitised before somebody else got it (rules ).
//!
//! A residue domain is one memory slice of one GPU; a whole GPU is all of its slices, whether MIG is on or off. [`histories`] gathers from the facts what
//! each slice went through; [`History::judge`] says of each grant what was left on each of its slices; [`findings`] and [`orders`] say what follows. All
//! are functions of the set of facts, the rules and the horizon. Units without a device have no residue domain.
//!
//! What a slice went through is seen per slice and never per MIG instance, so a new layout changes nothing.

mod findings;
mod history;
mod order;
mod proof;
mod rules;
mod slices;
mod verdict;

#[cfg(test)]
mod tests;

pub use findings::{findings, lateness};
pub use history::{Cause, History, Hold, Lifted, Scrub, Unknown, histories};
pub use order::{Order, Why, lifted_at, orders};
pub use proof::{Between, Side, between};
pub use rules::{Limits, Mode, Rules, Set, Sets};
pub use slices::Slices;
pub use verdict::{Judged, Last, Left, Verdict};
