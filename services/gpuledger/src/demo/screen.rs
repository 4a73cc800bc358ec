//! What the demo looks like: steps with their time, headings, checks. Colour on a terminal only.

use gpuledger_telemetry::terminal::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Columns of a step's text before its time.
const WIDTH: usize = 88;
/// Lines of a text before it is cut.
const MOST_LINES: usize = 32;

/// Where the demo prints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    colour: bool,
}

/// A step that is being done. It shows itself on a terminal until it is done.
pub(crate) struct Step {
    screen: Screen,
    bar: ProgressBar,
    started: Instant,
}

impl Screen {
    /// Standard output; in colour on a terminal where `NO_COLOR` is not set.
    pub(crate) fn new() -> Self {
        Self {
            colour: Self::is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }

    /// Whether a person looks at standard output.
    pub(crate) fn is_terminal() -> bool {
        std::io::stdout().is_terminal()
    }

    /// A heading, and a word on what follows.
    pub(crate) fn heading(self, title: &str, word: &str) {
        let title = self.paint("1", title);
        say(&if word.is_empty() {
            format!("\n{title}")
        } else {
            format!("\n{title}  {}", self.paint("2", word))
        });
    }

    /// A line of its own.
    pub(crate) fn line(self, text: &str) {
        say(text);
    }

    /// A text of several lines; what is too much of it is left out.
    pub(crate) fn lines(self, text: &str) {
        text.lines().take(MOST_LINES).for_each(|line| self.line(line));
        let more = text.lines().count().saturating_sub(MOST_LINES);
        if more > 0 {
            self.note(&format!("… and {} more", count(more, "line")));
        }
    }

    /// A side note.
    pub(crate) fn note(self, text: &str) {
        say(&self.paint("2", text));
    }

    /// A sentence that holds or does not.
    pub(crate) fn verdict(self, holds: bool, text: &str) {
        say(&format!("{} {text}", self.mark(holds)));
    }

    /// A green check, or a red cross.
    pub(crate) fn mark(self, holds: bool) -> String {
        if holds { self.paint("32", "✓") } else { self.paint("31", "✗") }
    }

    /// Begins a step.
    pub(crate) fn step(self, what: &str) -> Step {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Step { screen: self, bar, started: Instant::now() }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

impl Step {
    /// How far it has come.
    pub(crate) fn tell(&self, how_far: String) {
        self.bar.set_message(how_far);
    }

    /// Says what was done, and how long it took.
    pub(crate) fn done(self, text: &str) {
        self.ended(true, text);
    }

    /// Says what came out, good or bad, and how long it took.
    pub(crate) fn ended(self, holds: bool, text: &str) {
        self.bar.finish_and_clear();
        let took = took(self.started.elapsed());
        say(&format!("  {} {} {took:>8}", self.screen.mark(holds), padded(text)));
    }
}

impl Drop for Step {
    /// A step that broke off leaves nothing on the terminal.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Wide enough that the times stand under each other.
fn padded(text: &str) -> String {
    let missing = WIDTH.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// `1 tenant`, `3 tenants`.
pub(crate) fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

fn took(time: Duration) -> String {
    let millis = time.as_millis();
    if millis < 1000 {
        format!("{millis} ms")
    } else {
        format!("{}.{} s", millis / 1000, millis % 1000 / 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(took(Duration::from_micros(999_999)), "999 ms");
        assert_eq!(took(Duration::from_millis(12_345)), "12.3 s");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| count(number, "bill")), ["0 bills", "1 bill", "2 bills"]);
    }

    #[test]
    fn short_texts_are_padded_and_long_ones_are_not_cut() {
        assert_eq!(padded("✓").chars().count(), WIDTH);
        assert_eq!(padded(&"x".repeat(100)).len(), 100);
    }
}
