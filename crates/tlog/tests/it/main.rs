//! The log from outside: vectors of the formats, proofs of every small tree, parsers under any bytes, whole folders and what is done to them.

mod cloudflare;
mod folders;
mod log;
mod mutations;
mod notes;
mod parsers;
mod proofs;
mod tamper;
mod vectors;
