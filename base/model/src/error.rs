//! Errors for people, as opposed to errors that a caller can handle.

use std::fmt;

/// Whose turn it is to act on an [`OperationError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The user: files, flags or values are wrong.
    Input,
    /// The machine: a permission, a program, a kernel feature or a server is missing.
    Machine,
}

/// Why an operation that a user asked for could not be done, in words for that user.
///
/// Libraries keep error types of their own where a caller can react to the cause. This type is for causes that only
/// a person can remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationError {
    /// Whose turn it is.
    pub blame: Blame,
    /// Description of the error and its place.
    pub message: String,
    /// Remedy, if the message does not suggest it.
    pub hint: Option<String>,
}

impl OperationError {
    /// The user's input is wrong or cannot be read.
    pub fn input(message: impl fmt::Display) -> Self {
        Self { blame: Blame::Input, message: message.to_string(), hint: None }
    }

    /// The machine lacks something.
    pub fn machine(message: impl fmt::Display) -> Self {
        Self { blame: Blame::Machine, message: message.to_string(), hint: None }
    }

    /// The same error with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// The same error with what it is about (a file, a workload) in front of the message.
    #[must_use]
    pub fn about(mut self, subject: impl fmt::Display) -> Self {
        self.message = format!("{subject}: {}", self.message);
        self
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hint {
            Some(hint) => write!(f, "{} ({hint})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for OperationError {}
