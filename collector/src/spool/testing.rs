//! Windows for tests.

use crate::window::ClosedWindow;
use gpuledger_domain::time::{Instant, Window};
use gpuledger_wire::text::Name;

/// The node of the tests.
pub(crate) fn node() -> Name {
    Name::new("n1").unwrap()
}

/// A window without readings over these microseconds.
pub(crate) fn window(start: i64, end: i64) -> ClosedWindow {
    ClosedWindow {
        node: node(),
        boot_id: Name::new("b1").unwrap(),
        window: Window::new(Instant::from_micros(start), Instant::from_micros(end)).unwrap(),
        units: Vec::new(),
        processes: Vec::new(),
        gaps: Vec::new(),
    }
}

/// A folder that is removed with the test; in memory where there is such a place, since these tests sync thousands of times.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
