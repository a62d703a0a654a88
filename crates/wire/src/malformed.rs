//! Why a connection cannot be followed any further.

use std::fmt;

/// The field that is wrong, what was expected and what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// A value that has no meaning here.
    Value {
        /// What was read.
        field: &'static str,
        /// What would have been right.
        expected: &'static str,
        /// What stood there.
        found: u64,
    },
    /// More than a limit allows.
    Above {
        /// What was counted or read.
        field: &'static str,
        /// The most that is accepted.
        max: u64,
        /// What it was, or the first number beyond the limit.
        found: u64,
    },
    /// The message ends before a field that it must have.
    Short {
        /// The field.
        field: &'static str,
        /// Bytes that the field needs.
        needed: u64,
        /// Bytes that the message has left.
        left: u64,
    },
    /// A line that cannot be read.
    Line {
        /// What was read.
        field: &'static str,
        /// What would have been right.
        expected: &'static str,
    },
    /// A reply to something that was not asked.
    Unasked {
        /// Which kind of reply.
        field: &'static str,
        /// Its id as it stands in the message, or how many requests came before it.
        id: u64,
    },
    /// Allowed by the protocol, but traffic behind it could not be held to limits.
    Refused {
        /// What was asked for.
        what: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { field, expected, found } => {
                write!(f, "{field}: expected {expected}, found {found:#x}")
            }
            Self::Above { field, max, found } => write!(f, "{field}: at most {max}, found {found}"),
            Self::Short { field, needed, left } => {
                write!(f, "{field}: needs {needed} bytes, the message has {left} left")
            }
            Self::Line { field, expected } => write!(f, "{field}: expected {expected}"),
            Self::Unasked { field, id } => {
                write!(f, "{field} {id}: no outstanding request that it could answer")
            }
            Self::Refused { what, remedy } => write!(f, "{what} is refused: {remedy}"),
        }
    }
}

impl std::error::Error for Malformed {}
