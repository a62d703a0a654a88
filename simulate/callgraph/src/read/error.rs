//! Treatment of unreadable records.

use std::fmt;

/// Treatment of records that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BadRecords {
    /// The record ends reading with an error.
    #[default]
    Fatal,
    /// The record is left out and counted.
    Counted,
}

/// Reading ended before the end of the file.
#[derive(Debug)]
pub struct SpanReadError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line that cannot be read, from 1.
    pub line: u64,
    /// Expectation, and the text found.
    pub message: String,
}

impl fmt::Display for SpanReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for SpanReadError {}
