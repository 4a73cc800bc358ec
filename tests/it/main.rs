//! Integration tests.

mod arrows;
mod generate;
mod painted;
mod properties;
mod wire;
