//! Why a whole file could not be imported. A single bad row is not an error: it is listed in the report.

use std::io;

/// The file, not a row of it, is wrong; or reading or writing failed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Reading the input failed.
    #[error("{file}: cannot read: {cause}")]
    Read {
        /// Which file.
        file: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The sink refused an event.
    #[error("cannot write the events of {file}: {cause}")]
    Write {
        /// The file being imported.
        file: String,
        /// What the sink said.
        #[source]
        cause: io::Error,
    },
    /// The file is of another format, or its header lacks what is needed.
    #[error("{file}:{line}: {message}")]
    Format {
        /// Which file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// What is wrong and what would be right.
        message: String,
    },
    /// An option does not fit the file.
    #[error("{file}: {message}")]
    Option {
        /// Which file.
        file: String,
        /// Which option, and what would be right.
        message: String,
    },
}
