//! How a process shows what it does and how it ends: logs, metrics, health, shutdown.

pub mod health;
pub mod logs;
pub mod metrics;
pub mod names;
pub mod shutdown;
pub mod terminal;
