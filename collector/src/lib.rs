//! The node agent.

pub mod clock;
pub mod health;
pub mod metrics;
pub mod placed;
pub mod pods;
pub mod process;
pub mod publish;
pub mod sink;
pub mod spool;
pub mod topology;
