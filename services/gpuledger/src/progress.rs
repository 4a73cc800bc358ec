//! Progress on a terminal; none in a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A count that moves.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A count without a known end.
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {msg}: {human_pos} lines, {elapsed}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// Where it stands.
    pub(crate) fn set(&mut self, position: u64) {
        self.0.set_position(position);
    }

    /// Takes it off the terminal.
    pub(crate) fn done(&self) {
        self.0.finish_and_clear();
    }
}
