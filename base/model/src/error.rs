//! Errors for people to act on, as opposed to errors that a caller can handle.

use std::fmt;

/// Party that must act on an [`OperationError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The user: files, flags or values are wrong.
    Input,
    /// The machine: a permission, a program, a kernel feature or a server is missing.
    Machine,
}

/// Failure of an operation that the user requested, described for that user.
///
/// Libraries keep error types of their own where a caller can react to the cause. This type is for causes
/// that only a person can remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationError {
    /// Party that must act.
    pub blame: Blame,
    /// Description of the error and its place.
    pub message: String,
    /// Remedy, if the message does not suggest it.
    pub hint: Option<String>,
}

impl OperationError {
    /// Creates an error in the user's input: wrong or unreadable.
    pub fn input(message: impl fmt::Display) -> Self {
        Self { blame: Blame::Input, message: message.to_string(), hint: None }
    }

    /// Creates an error for something that the machine lacks.
    pub fn machine(message: impl fmt::Display) -> Self {
        Self { blame: Blame::Machine, message: message.to_string(), hint: None }
    }

    /// Returns the error with a remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Returns the error with its subject (a file, a workload) in front of the message.
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
