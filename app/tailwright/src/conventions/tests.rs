//! The definitions of all verbs, held to docs/reference/conventions.md.

use crate::Cli;
use crate::conventions::{DashUse, dash_use, names_file};
use crate::formats;
use crate::schemas;
use clap::{Arg, Command, CommandFactory};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An argument of a verb that has its options in full.
struct Occurrence {
    verb: String,
    argument: Arg,
}

impl Occurrence {
    /// The name of its value without the sign of a list.
    fn value(&self) -> Option<String> {
        let names = self.argument.get_value_names()?;
        let takes_value = self.argument.get_action().takes_values();
        takes_value.then(|| names[0].trim_end_matches(",…").to_owned())
    }

    fn help(&self) -> String {
        self.argument.get_help().map_or_else(String::new, ToString::to_string)
    }
}

fn program() -> Command {
    let mut program = Cli::command();
    program.build();
    program
}

/// Every verb that people see and that is no mere group, with the words that lead to it.
fn verbs() -> Vec<(String, Command)> {
    fn add(command: &Command, path: &str, verbs: &mut Vec<(String, Command)>) {
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
        {
            add(verb, format!("{path} {}", verb.get_name()).trim_start(), verbs);
        }
        if !command.has_subcommands() {
            verbs.push((path.to_owned(), command.clone()));
        }
    }
    let mut verbs = Vec::new();
    add(&program(), "", &mut verbs);
    verbs
}

/// The long options by name.
fn options() -> BTreeMap<String, Vec<Occurrence>> {
    let mut options: BTreeMap<String, Vec<Occurrence>> = BTreeMap::new();
    for (verb, command) in verbs() {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            if let Some(long) = argument.get_long().filter(|long| !["help", "version"].contains(long)) {
                let occurrence = Occurrence { verb: verb.clone(), argument: argument.clone() };
                options.entry(long.to_owned()).or_default().push(occurrence);
            }
        }
    }
    options
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The rows of the table below a heading of docs/reference/conventions.md.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = read("docs/reference/conventions.md");
    let section =
        page.split("\n## ").find(|section| section.starts_with(heading)).expect("the heading is there");
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// The words of a meaning with which every description begins: those in bold, or all where none are.
fn held_words(meaning: &str) -> &str {
    meaning.strip_prefix("**").and_then(|rest| rest.split_once("**")).map_or(meaning, |(bold, _)| bold)
}

#[test]
fn meanings_are_whole_phrases() {
    let unfinished = ["a", "an", "and", "by", "for", "of", "or", "so", "such", "that", "the", "to", "which"];
    for row in table("Options") {
        let meaning = row[2].replace("**", "");
        let last = meaning.split_whitespace().last().unwrap_or_default();
        assert!(!unfinished.contains(&last), "{}: '{meaning}' is cut off", row[0]);
        assert!(meaning.split_whitespace().count() > 1, "{}: '{meaning}' says too little", row[0]);
    }
}

#[test]
fn an_option_of_several_verbs_has_one_meaning_and_one_value() {
    let rows: BTreeMap<String, (String, String)> = table("Options")
        .into_iter()
        .map(|row| {
            let name = row[0].trim_matches('`').split('`').next().unwrap_or_default();
            (name.trim_start_matches("--").to_owned(), (row[1].trim_matches('`').to_owned(), row[2].clone()))
        })
        .collect();
    let options = options();
    let mut wrong = Vec::new();
    for (name, occurrences) in &options {
        let Some((value, meaning)) = rows.get(name) else {
            if occurrences.len() > 1 {
                let verbs: Vec<&str> = occurrences.iter().map(|at| at.verb.as_str()).collect();
                wrong.push(format!("--{name} of {verbs:?} is not in docs/reference/conventions.md"));
            }
            continue;
        };
        for at in occurrences {
            let found = at.value().unwrap_or_default();
            let is_file = value == "a file" && (found.contains('.') || found == "TRACE" || found == "FOLDER");
            if found != *value && !is_file {
                wrong.push(format!("{} --{name}: the value is {found}, not {value}", at.verb));
            }
            if !at.help().starts_with(held_words(meaning)) {
                wrong.push(format!("{} --{name}: '{}' does not begin with '{meaning}'", at.verb, at.help()));
            }
        }
    }
    wrong.extend(
        rows.keys()
            .filter(|name| options.get(*name).is_none_or(|all| all.len() < 2))
            .map(|name| format!("--{name} is in docs/reference/conventions.md and not in several verbs")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of possible values, where there are such.
fn choices(argument: &Arg) -> Option<BTreeSet<String>> {
    let values = argument.get_value_parser().possible_values()?;
    Some(values.map(|value| value.get_name().to_owned()).collect())
}

#[test]
fn an_option_of_several_verbs_is_parsed_in_one_way() {
    for (name, occurrences) in options() {
        let widest = occurrences.iter().max_by_key(|at| choices(&at.argument).map_or(0, |all| all.len()));
        let widest = widest.expect("an option is somewhere");
        for at in &occurrences {
            let one = at.argument.get_value_parser();
            let other = widest.argument.get_value_parser();
            let is_part =
                choices(&at.argument).zip(choices(&widest.argument)).is_some_and(|(a, b)| a.is_subset(&b));
            assert!(
                one.type_id() == other.type_id() || is_part,
                "--{name} is parsed differently by {} and {}",
                at.verb,
                widest.verb
            );
        }
    }
}

#[test]
fn a_name_of_a_value_has_one_type() {
    use std::any::TypeId;
    let types: &[(&str, &[TypeId])] = &[
        ("TIME", &[TypeId::of::<units::Nanos>(), TypeId::of::<units::Seconds>()]),
        ("SIZE", &[TypeId::of::<units::Bytes>()]),
        ("RATE", &[TypeId::of::<units::ByteRate>()]),
        ("N/TIME", &[TypeId::of::<f64>()]),
        ("SHARE", &[TypeId::of::<f64>()]),
        ("FACTOR", &[TypeId::of::<f64>()]),
        ("PERCENT", &[TypeId::of::<units::Percentile>()]),
        ("FOLDER", &[TypeId::of::<PathBuf>()]),
        ("LAW", &[TypeId::of::<arrivals::TimeDistribution>()]),
    ];
    for (name, occurrences) in options() {
        for at in occurrences {
            let value = at.value().unwrap_or_default();
            let of_type = at.argument.get_value_parser().type_id();
            for (known, allowed) in types {
                let has_type = allowed.iter().any(|allowed| of_type == *allowed);
                assert_eq!(value == *known, value == *known && has_type, "{} --{name}: {value}", at.verb);
                let is_quantity = !["N/TIME", "SHARE", "FACTOR", "FOLDER"].contains(known);
                assert!(
                    !(is_quantity && has_type && value != *known),
                    "{} --{name}: {value} is a {known}",
                    at.verb
                );
            }
            let is_number = [TypeId::of::<f64>()].iter().any(|number| of_type == *number);
            let known = ["N/TIME", "SHARE", "FACTOR", "ALPHA", "RPM"].contains(&value.as_str());
            assert!(!is_number || known, "{} --{name}: {value} is a number of what?", at.verb);
        }
    }
}

/// What follows `tailwright` in a line, up to whatever else the shell does with it.
fn commands(line: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for (start, _) in line.match_indices("tailwright ") {
        let rest = &line[start + "tailwright ".len()..];
        let ends = ["  #", " # ", " | ", " > ", "`", "   ", " && "];
        let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        found.push(rest[..end].split_whitespace().collect());
    }
    found
}

/// The verb that words name, as far as they do.
fn verb_of<'a>(program: &'a Command, words: &[&str]) -> Option<&'a Command> {
    let mut command = program;
    for word in words {
        match command.find_subcommand(word) {
            Some(verb) => command = verb,
            None => break,
        }
    }
    (command.get_name() != program.get_name()).then_some(command)
}

fn has_option(command: &Command, name: &str) -> bool {
    let own = command.get_arguments().any(|argument| argument.get_long() == Some(name));
    own || command.get_subcommands().any(|verb| has_option(verb, name))
}

/// The options in lines that call the program, where the verb has no such option.
fn unknown_options(program: &Command, text: &str) -> Vec<String> {
    let mut unknown = Vec::new();
    // A command that goes on in the next line.
    let text = text.replace("\\\n", " ");
    for line in text.lines() {
        for words in commands(&line.split_whitespace().collect::<Vec<_>>().join(" ")) {
            let Some(verb) = verb_of(program, &words) else { continue };
            for word in words.iter().filter_map(|word| word.strip_prefix("--")) {
                let name: String =
                    word.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
                if !name.is_empty()
                    && !has_option(verb, &name)
                    && !["help", "version"].contains(&name.as_str())
                {
                    unknown.push(format!("{} has no --{name}: {line}", verb.get_name()));
                }
            }
        }
    }
    unknown
}

#[test]
fn options_in_documents_exist() {
    let program = program();
    let mut files: Vec<PathBuf> = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("there are documents").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                files.push(path);
            }
        }
    }
    let options = options();
    let mut unknown = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("documents can be read");
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        unknown.extend(unknown_options(&program, &text).into_iter().map(|line| format!("{name}: {line}")));
        for span in text.split('`').skip(1).step_by(2).filter(|span| span.starts_with("--")) {
            let option: String =
                span.chars().skip(2).take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            if !option.is_empty()
                && !options.contains_key(&option)
                && !FOREIGN_OPTIONS.contains(&option.as_str())
            {
                unknown.push(format!("{name}: nothing has --{option}"));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

/// Options of other programs that documents name alone.
const FOREIGN_OPTIONS: [&str; 5] = ["release", "help", "version", "bench", "import"];

#[test]
fn options_in_examples_exist() {
    let program = program();
    for (verb, command) in verbs() {
        let help = after_help(&command);
        let unknown = unknown_options(&program, &help);
        assert!(unknown.is_empty(), "{verb} --help: {}", unknown.join("\n"));
    }
}

/// Every verb and group of verbs that people see but the program itself, with the words that lead to it.
fn verbs_and_groups() -> Vec<(String, Command)> {
    fn add(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set())
        {
            let path = format!("{path} {}", verb.get_name()).trim_start().to_owned();
            add(verb, &path, found);
            found.push((path, verb.clone()));
        }
    }
    let mut found = Vec::new();
    add(&program(), "", &mut found);
    found
}

/// What the help of a command says behind its options.
fn after_help(command: &Command) -> String {
    command.get_after_help().map_or_else(String::new, ToString::to_string)
}

#[test]
fn every_help_has_examples_and_exit_codes() {
    let mut lacking = Vec::new();
    for (verb, command) in verbs_and_groups() {
        let help = after_help(&command);
        let example = help.lines().any(|line| line.trim_start().starts_with(&format!("tailwright {verb}")));
        if !example || !help.contains("Examples") {
            lacking.push(format!("{verb}: no example"));
        }
        if !help.lines().any(|line| line.starts_with("Exit codes: ")) {
            lacking.push(format!("{verb}: no exit codes"));
        }
    }
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
}

/// A paragraph is one line, which the terminal breaks: two lines of text in a row would be broken in their middles. What is
/// indented fits 80 columns.
#[test]
fn paragraphs_of_helps_fit_every_terminal() {
    let mut broken = Vec::new();
    for (verb, command) in verbs_and_groups() {
        let help = after_help(&command);
        let lines: Vec<&str> = help.lines().collect();
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        for pair in lines.windows(2).filter(|pair| is_text(pair[0]) && is_text(pair[1])) {
            broken.push(format!("{verb}: {} / {}", pair[0], pair[1]));
        }
        for line in lines.iter().filter(|line| line.starts_with(' ') && line.chars().count() > 80) {
            // A remark may be broken.
            if !line.contains('#') {
                broken.push(format!("{verb}: {line}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Where a terminal is narrow, a remark may be broken, and a command not.
#[test]
fn commands_of_examples_fit_a_terminal() {
    let mut wide = Vec::new();
    for (verb, command) in verbs() {
        let help = after_help(&command);
        for line in help.lines().filter(|line| line.trim_start().starts_with("tailwright ")) {
            let indent = line.len() - line.trim_start().len();
            let words = line.trim_start().split("  ").next().unwrap_or_default();
            if indent + words.chars().count() > 80 {
                wide.push(format!("{verb}: {words}"));
            }
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn every_document_is_in_the_table_and_no_other() {
    let mut listed = BTreeSet::new();
    for row in table("JSON") {
        for name in row[1].split('`').skip(1).step_by(2) {
            listed.insert(name.to_owned());
        }
    }
    let made: BTreeSet<String> = formats::all().iter().map(|format| format.name.to_owned()).collect();
    let unknown: Vec<_> = made.iter().filter(|name| !listed.contains(*name)).collect();
    assert!(unknown.is_empty(), "not in docs/reference/conventions.md: {unknown:?}");
    let is_name = |name: &&String| {
        !name.starts_with('-')
            && !["up", "status", "down", "run", "info", "callgraph", "curves", "kernel show"]
                .contains(&name.as_str())
    };
    let gone: Vec<_> = listed.iter().filter(is_name).filter(|name| !made.contains(*name)).collect();
    assert!(gone.is_empty(), "only in docs/reference/conventions.md: {gone:?}");
}

#[test]
fn schemas_are_those_of_the_types() {
    let folder = root().join("docs/schemas");
    let mut files: BTreeSet<String> = BTreeSet::new();
    for entry in std::fs::read_dir(&folder).expect("there are schemas").flatten() {
        files.insert(entry.file_name().to_string_lossy().into_owned());
    }
    for (file, text) in schemas::files() {
        let written = std::fs::read_to_string(folder.join(&file)).unwrap_or_default();
        assert!(
            written == text,
            "docs/schemas/{file} is not what the program writes: run `cargo run -- schemas docs/schemas`"
        );
        files.remove(&file);
    }
    assert!(files.is_empty(), "nothing prints these: {files:?}");
}

#[test]
fn outputs_take_no_dash_but_for_traces() {
    for (verb, command) in verbs() {
        let name = command.get_name().to_owned();
        for argument in command.get_arguments().filter(|argument| names_file(argument)) {
            let id = argument.get_id().as_str();
            let expected = match id {
                "output"
                    if verb.starts_with("trace ")
                        && !["trace assumptions", "trace split"].contains(&verb.as_str()) =>
                {
                    DashUse::Output
                }
                "output" | "report" | "record" | "hdr" | "slowest" | "profile" => DashUse::Refused,
                _ => continue,
            };
            assert_eq!(dash_use(&name, argument), expected, "{verb} {id}");
        }
    }
}

/// Whatever a verb writes is in the list by which results are kept apart from what is read.
#[test]
fn every_result_is_known_as_one() {
    let folders_of_files = ["folder", "dir"];
    for (verb, command) in verbs() {
        for argument in command.get_arguments().filter(|argument| names_file(argument)) {
            let id = argument.get_id().as_str();
            let help = argument.get_help().map(ToString::to_string);
            let writes =
                help.is_some_and(|help| ["Write ", "Record "].iter().any(|word| help.starts_with(word)));
            let is_known = crate::conventions::RESULTS.contains(&id) || folders_of_files.contains(&id);
            assert!(!writes || is_known, "{verb}: {id} is written, and not in RESULTS");
        }
    }
}

#[test]
fn every_verb_has_a_page_and_every_option_is_in_it() {
    let pages = crate::manual::pages(Cli::command());
    for (verb, command) in verbs() {
        let file = format!("tailwright-{}.1", verb.replace(' ', "-"));
        let page = pages.iter().find(|page| page.file == file).unwrap_or_else(|| panic!("no {file}"));
        assert!(page.text.contains(".SH NAME") && page.text.contains(".SH SYNOPSIS"), "{file}");
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            if let Some(long) = argument.get_long() {
                let option = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(page.text.contains(&option), "{file}: {option}");
            }
        }
    }
}
