//! Windows for tests.

use gpuledger_domain::time::Instant;
use gpuledger_wire::bodies::TelemetryWindow;
use gpuledger_wire::number::Count;
use gpuledger_wire::text::Name;
use gpuledger_wire::time::Time;

/// The node of the tests.
pub(crate) fn node() -> Name {
    Name::new("n1").unwrap()
}

/// A window without readings over these microseconds.
pub(crate) fn window(start: i64, end: i64) -> TelemetryWindow {
    TelemetryWindow {
        node: node(),
        boot_id: Name::new("b1").unwrap(),
        stream: Name::new("unset").unwrap(),
        sequence: Count::new(0).unwrap(),
        start: Time(Instant::from_micros(start)),
        end: Time(Instant::from_micros(end)),
        units: Vec::new(),
        processes: Vec::new(),
        gaps: Vec::new(),
    }
}

/// A folder that is removed with the test; in memory where there is such a place, since these tests sync thousands of times.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
