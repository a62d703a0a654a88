//! Streams that are not sorted.

use std::fmt;
use units::Nanos;

/// A request arrives before its predecessor in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrderError {
    /// Index of the request in the stream, from 0.
    pub index: usize,
    /// Arrival of the request.
    pub arrival: Nanos,
    /// Arrival of its predecessor.
    pub previous: Nanos,
}

impl fmt::Display for OutOfOrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, arrival, previous } = self;
        write!(
            f,
            "request {index} arrives at {arrival}, before the previous one at {previous}: sort by arrival"
        )
    }
}

impl std::error::Error for OutOfOrderError {}
