//! From facts and objects in a real database to documents: closes, issues, discards, explanations.

mod books;
mod closing;
mod issuing;
