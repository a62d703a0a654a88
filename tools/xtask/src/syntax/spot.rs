//! Positions in the tree: a file and a line.

use std::fmt;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) path: String,
    /// The first line is 1.
    pub(crate) line: usize,
}

impl fmt::Display for Spot {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}:{}", self.path, self.line)
    }
}

/// The line that a piece of syntax begins on, counted from 1.
pub(crate) fn line_of(span: proc_macro2::Span) -> usize {
    span.start().line
}
