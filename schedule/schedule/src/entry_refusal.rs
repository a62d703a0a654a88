//! Why a request that waited was not admitted.

use std::fmt;

/// Why a request was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryRefusal {
    /// It was not among the oldest within the time that it was given.
    TimedOut,
    /// It was cancelled before it came or while it waited.
    Cancelled,
    /// As many waited as may wait, and it was the youngest. Only [`AsyncGate`](crate::AsyncGate) has such a number.
    Overloaded,
}

impl fmt::Display for EntryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "the request was not admitted within the time given",
            Self::Cancelled => "the request was cancelled before it was admitted",
            Self::Overloaded => "as many requests wait as may wait, and this one is the youngest",
        })
    }
}

impl std::error::Error for EntryRefusal {}
