//! Places at which tests kill the process, and faults of the disk that tests ask for. Without the feature `failpoints` all of it is empty.

use fail::fail_point;
use std::io;

/// With `NAME=return` in `FAILPOINTS` the process goes no further than here and stays until it is killed from outside;
/// with `NAME=return(abort)` it ends at once, as by SIGKILL. `NAME=2*off->return` lets it pass twice before.
pub(crate) fn point(name: &'static str) {
    fail_point!(name, |action| halt(name, action.as_deref()));
    // Without the feature the macro is empty.
    let _ = name;
}

/// With `NAME=return(17)` only so many bytes of the next write reach the file, and the process ends there.
pub(crate) fn torn_at(name: &'static str) -> Option<usize> {
    fail_point!(name, |action| action.and_then(|bytes| bytes.parse().ok()));
    let _ = name;
    None
}

/// With `NAME=return` the disk is full.
pub(crate) fn disk(name: &'static str) -> io::Result<()> {
    fail_point!(name, |_| Err(io::ErrorKind::StorageFull.into()));
    let _ = name;
    Ok(())
}

#[cfg(feature = "failpoints")]
fn halt(name: &'static str, action: Option<&str>) {
    if action == Some("abort") {
        std::process::abort();
    }
    tracing::warn!(point = name, "held at a failpoint until it is killed");
    loop {
        std::thread::park();
    }
}
