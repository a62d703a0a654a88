//! How a run ends: exit codes for answers, and a message with a remedy for errors.

use crate::terminal::{Talk, output_lost, talk, visible_line};
use clap::Command;
use model::{Blame, OperationError};
use std::io::ErrorKind;
use std::process::ExitCode;

/// Outcome of a verb that completed its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerbAnswer {
    /// Done, or the answer is yes (exit 0).
    Yes,
    /// The answer is no: not admitted, not met (exit 1).
    No,
}

impl VerbAnswer {
    pub fn exit_code(self) -> ExitCode {
        match self {
            Self::Yes => ExitCode::SUCCESS,
            Self::No => ExitCode::from(1),
        }
    }
}

/// The exit code of bad input.
const INPUT: u8 = 2;
/// Exit code of a machine that lacks something, and of an interrupted run.
pub const MACHINE: u8 = 3;

/// Prints clap's message in place of running a verb. Returns the exit code: 2 for bad usage; 0 for help,
/// which goes to standard output like a verb's results.
pub fn said_instead(program: Command, instead: &clap::Error) -> ExitCode {
    if instead.use_stderr() {
        let arguments: Vec<String> =
            std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let shown: Vec<String> = arguments.iter().map(|argument| visible_line(argument)).collect();
        if arguments == shown {
            instead.exit();
        }
        // clap repeats arguments verbatim, so control characters in them would reach the terminal.
        let error = program.try_get_matches_from(shown).err();
        let message = error.map_or_else(|| instead.kind().to_string(), |error| error.to_string());
        talk(Talk::Plain, message.trim_end());
        return ExitCode::from(INPUT);
    }
    match machine::standard_output().and_then(|_| instead.print()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            output_lost(&error);
            ExitCode::from(MACHINE)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints an error to stderr and gives its exit code: 2 for wrong input, 3 for what the machine lacks.
pub fn report(error: &OperationError) -> ExitCode {
    talk(Talk::Error, in_plain_words(&error.message));
    if let Some(hint) = &error.hint {
        talk(Talk::Hint, hint);
    }
    ExitCode::from(match error.blame {
        Blame::Input => INPUT,
        Blame::Machine => MACHINE,
    })
}

/// Type names in parser messages, and their description for the author of the file.
const TYPE_NAMES: [(&str, &str); 8] = [
    ("expected u64", "expected a whole number from 0"),
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u8", "expected a whole number from 0 to 255"),
    ("expected usize", "expected a whole number from 0"),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("number would be zero for non-zero type", "expected a whole number above 0"),
];

/// Replaces Rust type names in a message by plain descriptions.
fn in_plain_words(message: &str) -> String {
    TYPE_NAMES.iter().fold(message.to_owned(), |message, (name, words)| message.replace(name, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsers_speak_of_numbers() {
        let message = "x.toml: invalid type: floating point `1000.0`, expected u64\nin `run.requests`";
        let expected = "x.toml: invalid type: floating point `1000.0`, expected a whole number from 0\nin `run.requests`";
        assert_eq!(in_plain_words(message), expected);
    }
}
