//! The log on a real Postgres: appended, published, cut off between any two steps, rewritten by a superuser.

mod chain;
mod log;
mod rewritten;
mod steps;
mod witnessed;
