//! The one clock: the machine's, or `GPULEDGER_NOW` in tests.

use crate::outcome::Usage;
use anyhow::{Context, Result};
use gpuledger_domain::time::Instant;
use gpuledger_wire::time::parse_time;
use std::time::SystemTime;

/// The server clock of this command.
///
/// # Errors
/// `GPULEDGER_NOW` is set and no RFC 3339 time.
#[expect(clippy::disallowed_methods, reason = "this is the clock everything else is given instants from")]
pub(crate) fn now() -> Result<Instant> {
    match std::env::var("GPULEDGER_NOW") {
        Ok(text) => Ok(parse_time(&text).map_err(|why| Usage(format!("GPULEDGER_NOW {text:?}: {why}")))?),
        Err(_) => {
            let since = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .context("the machine's clock stands before 1970")?;
            Ok(Instant::from_micros(i64::try_from(since.as_micros())?))
        }
    }
}
