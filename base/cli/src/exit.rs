//! How a run ends: exit codes for answers, and a message with a remedy for errors.

use crate::terminal::{Talk, output_lost, talk, visible_line};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};
use model::{Blame, OperationError};
use operation::text::nearest_word;
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
pub fn said_instead(program: Command, instead: clap::Error) -> ExitCode {
    if instead.use_stderr() {
        let arguments: Vec<String> =
            std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let shown: Vec<String> = arguments.iter().map(|argument| visible_line(argument)).collect();
        if arguments == shown {
            with_nearest_word(program, &arguments, instead).exit();
        }
        // clap repeats arguments verbatim, so control characters in them would reach the terminal.
        let error = program.clone().try_get_matches_from(&shown).err();
        let message = match error {
            Some(error) => with_nearest_word(program, &shown, error).to_string(),
            None => instead.kind().to_string(),
        };
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

/// Replaces clap's suggestions, which may be several and far from what was typed, by the nearest word, if
/// there is one.
fn with_nearest_word(mut program: Command, arguments: &[String], mut error: clap::Error) -> clap::Error {
    program.build();
    let command = command_of(&mut program, arguments);
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    if let Some(given) = text(&error, ContextKind::InvalidSubcommand) {
        let names = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let nearest = nearest_word(&given, names).map(|name| ContextValue::Strings(vec![name.to_owned()]));
        replace(&mut error, ContextKind::SuggestedSubcommand, nearest);
    } else if let Some(given) = text(&error, ContextKind::InvalidValue) {
        let known = match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(known)) => known.clone(),
            _ => Vec::new(),
        };
        let nearest = nearest_word(&given, known.iter().map(String::as_str));
        let nearest = nearest.map(|value| ContextValue::String(value.to_owned()));
        replace(&mut error, ContextKind::SuggestedValue, nearest);
    } else if let Some(given) = text(&error, ContextKind::InvalidArg).filter(|given| given.starts_with("--"))
        && error.kind() == clap::error::ErrorKind::UnknownArgument
    {
        let flag = nearest_flag(command, given.trim_start_matches('-'));
        replace(&mut error, ContextKind::SuggestedArg, flag.map(ContextValue::String));
        // A misspelt flag is no file behind `--`.
        replace(&mut error, ContextKind::Suggested, None);
        replace(&mut error, ContextKind::SuggestedSubcommand, None);
        replace(&mut error, ContextKind::Usage, Some(ContextValue::StyledStr(command.render_usage())));
    }
    error
}

fn replace(error: &mut clap::Error, kind: ContextKind, value: Option<ContextValue>) {
    match value {
        Some(value) => drop(error.insert(kind, value)),
        None => drop(error.remove(kind)),
    }
}

/// Returns the command that the arguments lead to.
fn command_of<'a>(program: &'a mut Command, arguments: &[String]) -> &'a mut Command {
    let mut command = program;
    for argument in arguments.iter().skip(1) {
        if command.find_subcommand(argument).is_some() {
            command = command.find_subcommand_mut(argument).expect("it was found");
        }
    }
    command
}

/// Returns the flag, `--NAME`, whose name or former name is nearest.
fn nearest_flag(command: &Command, given: &str) -> Option<String> {
    let names = |flag: &Arg| {
        let mut names: Vec<String> = flag.get_long().into_iter().map(str::to_owned).collect();
        names.extend(flag.get_all_aliases().into_iter().flatten().map(str::to_owned));
        names
    };
    let flags: Vec<(String, String)> = command
        .get_arguments()
        .filter(|flag| !flag.is_hide_set())
        .filter_map(|flag| Some((flag.get_long()?.to_owned(), names(flag))))
        .flat_map(|(long, names)| names.into_iter().map(move |name| (name, long.clone())))
        .collect();
    let nearest = nearest_word(given, flags.iter().map(|(name, _)| name.as_str()))?;
    flags.iter().find(|(name, _)| name == nearest).map(|(_, long)| format!("--{long}"))
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
    fn suggestions_are_the_nearest_word_or_none() {
        let knob = Arg::new("policy").long("method").alias("policy").value_parser(["worst-case", "replayed"]);
        let plan = Command::new("plan").arg(knob).arg(Arg::new("orders").long("order"));
        let program =
            Command::new("x").subcommand(plan).subcommands(["explain", "experiment"].map(Command::new));
        let said = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
            let error = program.clone().try_get_matches_from(&arguments).expect_err("it is wrong");
            with_nearest_word(program.clone(), &arguments, error).to_string()
        };
        for (arguments, tip) in [
            (&["x", "plna"][..], Some("'plan'")),
            (&["x", "expalin"], Some("'explain'")),
            (&["x", "zzz"], None),
            (&["x", "plan", "--polcy", "a"], Some("'--method'")),
            (&["x", "plan", "--procedure", "a"], None),
            (&["x", "plan", "--method", "worst"], Some("'worst-case'")),
            (&["x", "plan", "--method", "other"], None),
        ] {
            let text = said(arguments);
            let tips: Vec<&str> = text.lines().filter(|line| line.contains("tip:")).collect();
            let is_right = match tip {
                Some(tip) => tips.len() == 1 && tips[0].matches('\'').count() == 2 && tips[0].contains(tip),
                None => tips.is_empty(),
            };
            assert!(is_right, "{arguments:?}: {text}");
        }
    }

    #[test]
    fn parsers_speak_of_numbers() {
        let message = "x.toml: invalid type: floating point `1000.0`, expected u64\nin `run.requests`";
        let expected = "x.toml: invalid type: floating point `1000.0`, expected a whole number from 0\nin `run.requests`";
        assert_eq!(in_plain_words(message), expected);
    }
}
