//! The whole product on this machine.

use crate::cli::DemoArgs;
use crate::demo;
use crate::outcome::Outcome;
use anyhow::Result;

/// Runs the demo.
pub(crate) async fn run(args: DemoArgs) -> Result<Outcome> {
    demo::run(args).await
}
