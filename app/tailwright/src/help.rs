//! The list of verbs in the program's help, by how often they are needed.

use clap::Command;
use cli::terminal;
use std::fmt::Write as _;

/// Verbs by group; every visible verb is in one of them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Try it", &["demo"]),
    (
        "Everyday verbs",
        &[
            "import",
            "plan",
            "explain",
            "migrate",
            "apply",
            "export",
            "proxy",
            "verify",
            "load",
            "observe",
            "experiment",
            "profile",
            "trace",
        ],
    ),
    ("Advanced verbs", &["admit", "bound", "ideal", "simulate", "schedule", "lab", "reproduce"]),
    ("A running cluster", &["controller", "agent", "ctl"]),
    ("The program", &["completions", "man", "help"]),
];

/// Column at which descriptions begin.
const INDENT: usize = 15;

/// clap wraps help at this width where the terminal is wider.
const WIDTH_MAX: usize = 100;

/// Replaces the alphabetical list of verbs by the groups.
pub(crate) fn grouped(program: Command, columns: Option<usize>) -> Command {
    let list = list(&program, columns.unwrap_or(WIDTH_MAX).min(WIDTH_MAX));
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn list(program: &Command, width: usize) -> String {
    let mut text = String::new();
    for (heading, verbs) in GROUPS {
        let _ = writeln!(text, "{}{heading}:", if text.is_empty() { "" } else { "\n" });
        for verb in verbs {
            let about = match program.find_subcommand(verb).and_then(Command::get_about) {
                Some(about) => about.to_string(),
                // clap adds this verb itself, when it parses.
                None => "Print this message or the help of a verb".to_owned(),
            };
            let lines = terminal::wrap(&about, width.saturating_sub(INDENT).max(20));
            for (number, line) in lines.iter().enumerate() {
                let verb = if number == 0 { verb } else { "" };
                let _ = writeln!(text, "  {verb:<12} {}", line.trim_start());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use std::collections::BTreeSet;

    #[test]
    fn every_verb_is_in_one_group() {
        let program = crate::Cli::command();
        let visible = program.get_subcommands().filter(|verb| !verb.is_hide_set());
        let verbs: BTreeSet<&str> = visible.map(Command::get_name).chain(["help"]).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), verbs);
        assert_eq!(grouped.len(), verbs.len(), "one verb is in two groups");
    }

    #[test]
    fn lines_fit_the_terminal() {
        let program = crate::Cli::command();
        for width in [40, 80, 100] {
            let text = list(&program, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width} columns:\n{text}");
        }
    }
}
