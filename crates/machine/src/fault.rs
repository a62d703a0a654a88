//! What keeps a program from doing its work on a machine, with the remedy.

use std::fmt;

/// Whose turn it is to fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The user's files or flags, or the caller's values.
    Input,
    /// The machine: permissions, missing programs, servers that are not there, what somebody else has set up.
    Machine,
}

/// What went wrong and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Whose turn it is.
    pub blame: Blame,
    /// What and where.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Fault {
    /// Wrong input.
    pub fn input(message: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self { blame: Blame::Input, message: message.to_string(), hint: hint.to_string() }
    }

    /// The machine lacks something.
    pub fn machine(message: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self { blame: Blame::Machine, message: message.to_string(), hint: hint.to_string() }
    }

    /// Says what it is about: a file, a workload.
    #[must_use]
    pub fn of(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.hint)
    }
}

impl std::error::Error for Fault {}
