//! The whole product on this machine.

use crate::cli::DemoArgs;
use crate::outcome::Outcome;
use crate::settings::Settings;
use anyhow::Result;

/// Runs the demo.
pub(crate) async fn run(_settings: Settings, _args: DemoArgs) -> Result<Outcome> {
    Ok(Outcome::Done)
}
