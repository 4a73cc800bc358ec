//! From facts and objects in a real database to documents: closes, issues, discards, explanations.

mod adjusting;
mod books;
mod closing;
mod issuing;
mod open;
mod sold;
mod states;
