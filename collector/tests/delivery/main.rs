//! Delivery as a whole: a child process keeps windows and sends them, and is killed wherever it may be.
//!
//! The child is this test binary again, told by its environment to be one (see `child`).

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says why it is skipped"
)]

mod child;
mod http;
mod kafka;
mod kills;
mod outage;
mod server;
mod truth;

/// A folder that is removed with the test; in memory where there is such a place, since these tests sync thousands of times.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
