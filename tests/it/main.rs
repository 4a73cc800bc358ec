//! Integration tests.

mod arrows;
mod bounded;
mod generate;
mod painted;
mod properties;
mod sealed;
mod wire;
