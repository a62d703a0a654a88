//! The error of every parser of this crate.

use std::fmt;

/// A quantity that could not be read: what was given and what would have been accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    given: String,
    expected: &'static str,
}

impl ParseError {
    /// `given` is the offending text, `expected` completes the sentence "expected …".
    pub fn new(given: &str, expected: &'static str) -> Self {
        Self { given: given.to_owned(), expected }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read '{}': expected {}", self.given, self.expected)
    }
}

impl std::error::Error for ParseError {}
