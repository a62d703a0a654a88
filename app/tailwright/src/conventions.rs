//! What holds for every verb: where `-` is standard input, that results take the place of nothing that is read, and, in
//! tests, that an option's name has one meaning.
//!
//! docs/reference/conventions.md says the rules; the tests in `conventions/tests.rs` read it and hold the definitions of all verbs to it.

#[cfg(test)]
mod tests;

use clap::{Arg, ArgMatches, Command};
use model::OperationError;
use operation::files::check_apart;
use std::any::TypeId;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use trace::TracePlace;
use trace::recording::segment_files;

/// Verbs whose files are read once, from the beginning to the end.
const STREAMING_VERBS: [&str; 5] = ["info", "convert", "slice", "merge", "load"];

/// Arguments that name a file to be read once, as text.
const TEXT_INPUTS: [&str; 14] = [
    "sources", "cluster", "slos", "groups", "events", "policy", "keep", "old", "new", "plan", "load",
    "hosts", "scenario", "storage",
];

/// What a verb does with `-` in place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DashUse {
    /// It is standard input.
    Input,
    /// It is standard output.
    Output,
    /// It is refused with a message.
    Refused,
}

/// What a verb does with `-` as the value of an argument that names a file.
fn dash_use(verb: &str, argument: &Arg) -> DashUse {
    let id = argument.get_id().as_str();
    let is_trace = argument.get_value_names().is_some_and(|names| names.iter().any(|name| name == "TRACE"));
    match id {
        "output" if is_trace => DashUse::Output,
        "file" | "files" if STREAMING_VERBS.contains(&verb) => DashUse::Input,
        // A proxy reads its files again on SIGHUP.
        _ if TEXT_INPUTS.contains(&id) && verb != "proxy" => DashUse::Input,
        _ => DashUse::Refused,
    }
}

/// Refuses `-` where it is neither standard input nor standard output, and where standard input would be read twice.
///
/// # Errors
///
/// When such a value was given; the message names the argument.
pub(crate) fn check_dashes(program: &Command, matches: &ArgMatches) -> Result<(), OperationError> {
    let mut command = program;
    let mut matches = matches;
    let mut inputs = 0;
    while let Some((name, of_verb)) = matches.subcommand() {
        let Some(verb) = command.find_subcommand(name) else { break };
        (command, matches) = (verb, of_verb);
        for argument in command.get_arguments().filter(|argument| names_file(argument)) {
            let values = matches.try_get_raw(argument.get_id().as_str()).ok().flatten();
            let dashes = values.map_or(0, |values| values.filter(|value| *value == OsStr::new("-")).count());
            match dash_use(name, argument) {
                DashUse::Refused if dashes > 0 => return Err(refused(argument)),
                DashUse::Input => inputs += dashes,
                DashUse::Output | DashUse::Refused => {}
            }
        }
    }
    if inputs > 1 {
        return Err(OperationError::input("standard input can be read once, and - is given twice")
            .hint("write one of them to a file"));
    }
    Ok(())
}

/// Arguments that name what a verb writes. Whatever other files and folders are named is read, or belongs to the program.
const RESULTS: [&str; 10] = [
    "output",
    "report",
    "record",
    "hdr",
    "prometheus_file",
    "slowest",
    "profile",
    "write_hosts",
    "backup",
    "survive_policies",
];

/// The verb, the result and the input whose place it may take: a plan that of the one that it keeps to.
const REPLACEMENTS: [(&str, &str, &str); 1] = [("plan", "output", "keep")];

/// Refuses a command of which a result would take the place of another file that it names.
///
/// # Errors
///
/// When a result is also read, or two results are one.
pub(crate) fn check_results(program: &Command, matches: &ArgMatches) -> Result<(), OperationError> {
    let mut command = program;
    let mut matches = matches;
    let mut verb = "";
    let mut named: Vec<(String, PathBuf)> = Vec::new();
    while let Some((name, of_verb)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else { break };
        (command, matches, verb) = (found, of_verb, name);
        for argument in command.get_arguments().filter(|argument| names_file(argument)) {
            let id = argument.get_id().as_str();
            for value in matches.try_get_raw(id).ok().flatten().into_iter().flatten() {
                let is_result = RESULTS.contains(&id);
                // Behind # an input says whose requests are meant; a result may have it in its name.
                let path =
                    if is_result { PathBuf::from(value) } else { TracePlace::of(Path::new(value)).path };
                let segments = if is_result { None } else { segment_files(&path).ok() };
                let paths = [path].into_iter().chain(segments.into_iter().flatten());
                named.extend(paths.map(|path| (id.to_owned(), path)));
            }
        }
    }
    for (at, (result, path)) in named.iter().enumerate() {
        if !RESULTS.contains(&result.as_str()) {
            continue;
        }
        let others = named.iter().enumerate().filter(|(other, (input, _))| {
            *other != at && !REPLACEMENTS.contains(&(verb, result.as_str(), input.as_str()))
        });
        check_apart(Some(path), others.map(|(_, (_, path))| Some(path.as_path())))?;
    }
    Ok(())
}

fn names_file(argument: &Arg) -> bool {
    argument.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

fn refused(argument: &Arg) -> OperationError {
    let name = match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => argument
            .get_value_names()
            .and_then(|names| names.first())
            .map_or_else(String::new, ToString::to_string),
    };
    OperationError::input(format_args!("{name}: - is no file, and standard input or output will not do here"))
        .hint("give the name of a file; docs/reference/conventions.md says where - is taken")
}
