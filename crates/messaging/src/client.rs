//! The client library's own messages, sent to our log.

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// Context of clients that need nothing but logging.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Logging;

impl ClientContext for Logging {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // Said twenty times a second while a broker is away, and each broker's own failure is reported beside it.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            tracing::debug!(target: "librdkafka", %error, reason, "kafka client");
        } else {
            tracing::warn!(target: "librdkafka", %error, reason, "kafka client");
        }
    }
}

/// One line of the library. Lost connections are daily life and librdkafka calls them errors: they are warnings here.
pub(crate) fn log(level: RDKafkaLogLevel, facility: &str, message: &str) {
    match level {
        RDKafkaLogLevel::Emerg | RDKafkaLogLevel::Alert | RDKafkaLogLevel::Critical => {
            tracing::error!(target: "librdkafka", facility, message);
        }
        RDKafkaLogLevel::Error | RDKafkaLogLevel::Warning => {
            tracing::warn!(target: "librdkafka", facility, message);
        }
        RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
            tracing::info!(target: "librdkafka", facility, message);
        }
        RDKafkaLogLevel::Debug => tracing::debug!(target: "librdkafka", facility, message),
    }
}
