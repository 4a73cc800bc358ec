//! The node agent.

pub mod cli;
pub mod clock;
pub mod cycle;
pub mod driver;
pub mod health;
pub mod integrate;
pub mod ladder;
mod lanes;
pub mod metrics;
pub mod placed;
pub mod pods;
pub mod probe;
pub mod process;
pub mod publish;
pub mod run;
pub mod sample;
pub mod settings;
pub mod sink;
pub mod spool;
mod table;
pub mod topology;
pub mod window;
