//! The one error of parsers: why a connection cannot be followed any further.

use std::fmt;

/// Names the field that breaks the protocol or exceeds a limit, what was expected, and what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A field has a value that means nothing in its place.
    Value {
        /// The name of the field.
        field: &'static str,
        /// The values that would have been right, in words.
        expected: &'static str,
        /// The value in the message.
        found: u64,
    },
    /// A number is larger than a limit allows.
    AboveLimit {
        /// The name of what was counted or read.
        field: &'static str,
        /// The largest number that is accepted.
        max: u64,
        /// The number in the message, or the first number above the limit.
        found: u64,
    },
    /// The message ends before a field that it must have.
    TooShort {
        /// The name of the field.
        field: &'static str,
        /// The length of the field in bytes.
        needed: u64,
        /// The bytes that the message has left.
        left: u64,
    },
    /// A line of text does not have the form of its command.
    Line {
        /// The name of the line, or of the word in it.
        field: &'static str,
        /// The form that would have been right, in words.
        expected: &'static str,
    },
    /// A reply answers no request that is outstanding.
    Unsolicited {
        /// The kind of reply.
        field: &'static str,
        /// The identifier in the reply, or how many requests came before it.
        id: u64,
    },
    /// The protocol allows it, but the traffic behind it could not be read and so not be held to limits.
    Unsupported {
        /// What a peer asked for.
        what: &'static str,
        /// What its user can do instead.
        remedy: &'static str,
    },
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { field, expected, found } => {
                write!(f, "{field}: expected {expected}, found {found:#x}")
            }
            Self::AboveLimit { field, max, found } => write!(f, "{field}: at most {max}, found {found}"),
            Self::TooShort { field, needed, left } => {
                write!(f, "{field}: needs {needed} bytes, the message has {left} left")
            }
            Self::Line { field, expected } => write!(f, "{field}: expected {expected}"),
            Self::Unsolicited { field, id } => {
                write!(f, "{field} {id}: no outstanding request that it could answer")
            }
            Self::Unsupported { what, remedy } => write!(f, "{what} is refused: {remedy}"),
        }
    }
}

impl std::error::Error for ProtocolError {}
