//! Places at which tests kill the process, as a power cut would.

use fail::fail_point;

/// With `NAME=return` in `FAILPOINTS` the process goes no further than here, whatever it holds open, until it is killed; `NAME=2*off->return` lets it pass
/// twice before. Without the feature this is empty.
pub(crate) fn point(name: &'static str) {
    fail_point!(name, |_| stay(name));
    // Without the feature the macro is empty.
    let _ = name;
}

#[cfg(feature = "failpoints")]
fn stay(name: &'static str) {
    tracing::warn!(point = name, "held at a failpoint until it is killed");
    loop {
        std::thread::park();
    }
}
