//! How a run ends: exit codes for answers, and a message with a remedy for errors.

use crate::terminal::{Talk, talk};
use model::{Blame, OperationError};
use std::process::ExitCode;

/// How a verb that did its work answers the question that it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VerbAnswer {
    /// Done, or: yes (exit 0).
    Yes,
    /// The question was answered with no: not admitted, not met (exit 1).
    No,
}

impl VerbAnswer {
    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Yes => ExitCode::SUCCESS,
            Self::No => ExitCode::from(1),
        }
    }
}

/// The exit code of what the machine lacks, and of what was interrupted.
pub(crate) const MACHINE: u8 = 3;

/// Prints an error to stderr and gives its exit code: 2 for wrong input, 3 for what the machine lacks.
pub(crate) fn report(error: &OperationError) -> ExitCode {
    talk(Talk::Error, &error.message);
    if let Some(hint) = &error.hint {
        talk(Talk::Hint, hint);
    }
    ExitCode::from(match error.blame {
        Blame::Input => 2,
        Blame::Machine => MACHINE,
    })
}
