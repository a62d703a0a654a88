//! Parse errors with their position.

use std::fmt;

/// A text that describes no distribution or arrival pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// The column at which the text is not understood, from 1, in characters.
    pub column: usize,
    /// Description of the expected text.
    pub message: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for ExpressionError {}
