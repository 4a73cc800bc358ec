//! The words of one line.

use std::collections::VecDeque;

/// Words still to be read, and options of the form `name=value` apart.
#[derive(Clone)]
pub(super) struct Words<'t> {
    words: VecDeque<&'t str>,
    options: Vec<(&'t str, &'t str)>,
}

impl<'t> Words<'t> {
    /// Splits a line; a word with `=` whose name is one of `options` is an option.
    pub(super) fn new(line: &'t str, options: &[&str]) -> Self {
        let mut read = Self { words: VecDeque::new(), options: Vec::new() };
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((name, value))
                    if options.contains(&name)
                        || (name.starts_with("label.") && options.contains(&"label")) =>
                {
                    read.options.push((name, value));
                }
                _ => read.words.push_back(word),
            }
        }
        read
    }

    /// The next word.
    pub(super) fn next(&mut self, what: &str) -> Result<&'t str, String> {
        self.words.pop_front().ok_or_else(|| format!("ends too early, expected {what}"))
    }

    /// Takes the next word where it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let there = self.words.front() == Some(&word);
        if there {
            self.words.pop_front();
        }
        there
    }

    /// What is left.
    pub(super) fn rest(&mut self) -> Vec<&'t str> {
        self.words.drain(..).collect()
    }

    /// The value of an option.
    pub(super) fn option(&self, name: &str) -> Option<&'t str> {
        self.options.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// All options whose names begin so.
    pub(super) fn options_of(&self, prefix: &str) -> impl Iterator<Item = (&'t str, &'t str)> + '_ {
        self.options
            .iter()
            .filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, *value)))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Nothing may be left.
    pub(super) fn end(&mut self) -> Result<(), String> {
        match self.words.pop_front() {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` is not understood here")),
        }
    }
}
