//! The error of burst curves.

use std::fmt;
use units::Nanos;

/// A burst curve cannot be computed or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BurstError {
    /// There are no arrivals: an empty stream has no burst curve.
    Empty,
    /// The arrival at this index (from 0) is earlier than its predecessor.
    Unsorted {
        /// The position of the arrival in the stream.
        index: u64,
    },
    /// The work of all arrivals together exceeds 2^64 thousandths of a base unit.
    Overflow,
    /// Segments that should be merged overlap in time.
    Overlap {
        /// The last arrival of the earlier segment.
        ends: Nanos,
        /// The first arrival of the later segment.
        starts: Nanos,
    },
    /// The safety margin is not a positive finite factor.
    Margin,
}

impl fmt::Display for BurstError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "no arrivals, so no burst curve: expected at least one request"),
            Self::Unsorted { index } => write!(
                f,
                "arrival {index} (counted from 0) is earlier than the one before it: expected arrivals in \
                 order of time; sort the trace first"
            ),
            Self::Overflow => write!(
                f,
                "total work exceeds 1.8e16 bytes or 213 device-days: expected less; cut the trace into \
                 shorter parts"
            ),
            Self::Overlap { ends, starts } => write!(
                f,
                "segments overlap: the earlier ends at {} ns, the later starts at {} ns; expected consecutive \
                 segments, merged in order of time",
                ends.0, starts.0
            ),
            Self::Margin => write!(f, "expected a positive finite safety margin such as 1.1"),
        }
    }
}

impl std::error::Error for BurstError {}
