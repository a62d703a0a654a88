//! How a run ends: the answer, or a failure that says what to do next.

use std::fmt;
use std::process::ExitCode;

/// The verb did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, or: yes (exit 0).
    Yes,
    /// The question was answered with no: not admitted, not met (exit 1).
    No,
}

impl Answer {
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Yes => ExitCode::SUCCESS,
            Self::No => ExitCode::from(1),
        }
    }
}

/// Whose turn it is to fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The user's files or flags (exit 2).
    BadInput,
    /// The machine: permissions, kernel features, missing programs (exit 3).
    Environment,
}

/// The verb could not do its work: what happened, where, and the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// Wrong or unreadable input (exit 2).
    pub(crate) fn bad_input(message: impl fmt::Display) -> Self {
        Self { kind: Kind::BadInput, message: message.to_string(), hint: None }
    }

    /// The machine lacks something (exit 3).
    pub(crate) fn environment(message: impl fmt::Display) -> Self {
        Self { kind: Kind::Environment, message: message.to_string(), hint: None }
    }

    /// Adds what the user can do about it.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Prints to stderr and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        if let Some(hint) = &self.hint {
            eprintln!("  hint: {hint}");
        }
        ExitCode::from(match self.kind {
            Kind::BadInput => 2,
            Kind::Environment => 3,
        })
    }
}

impl From<machine::fault::Fault> for Failure {
    fn from(fault: machine::fault::Fault) -> Self {
        let failure = match fault.blame {
            machine::fault::Blame::Input => Self::bad_input(fault.message),
            machine::fault::Blame::Machine => Self::environment(fault.message),
        };
        failure.hint(fault.hint)
    }
}

impl From<scenario::Fault> for Failure {
    fn from(fault: scenario::Fault) -> Self {
        Self::bad_input(fault.message).hint(fault.hint)
    }
}
