//! Logs: one line an event on standard error, for people or for machines.

use serde::Deserialize;
use tracing::Subscriber;
use tracing::subscriber::{SetGlobalDefaultError, set_global_default};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For a terminal.
    #[default]
    Human,
    /// One JSON object a line, the event's fields at the top level.
    Json,
}

/// Why logs could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is not one.
    #[error(
        "log filter {filter:?} is not understood: {source}; right would be for example \"info,gpuledger_ledger=debug\""
    )]
    Filter {
        /// The filter as given.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// Logs were set up before.
    #[error("logs are set up twice: {0}")]
    Twice(#[from] SetGlobalDefaultError),
}

/// Sends this process's events to standard error, standard output being for results. `filter` is in the syntax of
/// `RUST_LOG`: levels by target, `info` for all.
///
/// # Errors
/// [`LogError`] when the filter cannot be read or logs are set up already.
pub fn init(format: LogFormat, filter: &str) -> Result<(), LogError> {
    set_global_default(subscriber(format, filter, std::io::stderr)?)?;
    Ok(())
}

fn subscriber<W>(
    format: LogFormat,
    filter: &str,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let levels = EnvFilter::builder()
        .parse(filter)
        .map_err(|source| LogError::Filter { filter: filter.to_owned(), source })?;
    let all = Registry::default().with(levels);
    Ok(match format {
        LogFormat::Human => Box::new(all.with(fmt::layer().with_ansi(false).with_writer(writer))),
        LogFormat::Json => Box::new(all.with(fmt::layer().json().flatten_event(true).with_writer(writer))),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, filter: &str) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = subscriber(format, filter, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "quiet", "hidden");
            tracing::info!(target: "ledger", tenant = "acme", rows = 3, "posted");
        });
        let bytes = captured.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_lines_carry_the_fields_at_the_top_and_the_filter_holds() {
        let text = logged(LogFormat::Json, "warn,ledger=info");
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in [r#""level":"INFO""#, r#""message":"posted""#, r#""tenant":"acme""#, r#""rows":3"#] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn human_lines_hold_no_escape_codes() {
        let text = logged(LogFormat::Human, "info");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("posted tenant=\"acme\"") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_bad_filter_is_named() {
        let fault = subscriber(LogFormat::Human, "ledger=loud", io::sink).err().unwrap();
        assert!(fault.to_string().contains("ledger=loud"), "{fault}");
    }
}
