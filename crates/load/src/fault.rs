//! Why there is no run.

use std::fmt;

/// Whose turn it is to fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The caller's: a workload that cannot be.
    Input,
    /// The machine's: a server that is not there, a namespace that may not be entered.
    Machine,
}

/// What went wrong and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What and where.
    pub message: String,
    /// What to do about it.
    pub hint: String,
    /// Whose turn it is.
    pub blame: Blame,
}

impl Fault {
    /// Wrong input.
    pub(crate) fn input(message: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self { blame: Blame::Input, message: message.to_string(), hint: hint.to_string() }
    }

    /// The machine or a server lacks something.
    pub(crate) fn machine(message: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self { blame: Blame::Machine, message: message.to_string(), hint: hint.to_string() }
    }

    /// Says which workload it is about.
    pub(crate) fn of(mut self, workload: &str) -> Self {
        self.message = format!("workload {workload}: {}", self.message);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.hint)
    }
}

impl std::error::Error for Fault {}
