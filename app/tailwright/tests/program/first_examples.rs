//! The first example of each verb's help works when it is pasted after `tailwright demo`.

use crate::support::Folder;
use std::process::Command;

/// First examples that are not run here, by command, with the reason.
const NOT_RUN: [(&str, &str); 14] = [
    ("proxy", "serves a storage server, and runs until SIGTERM"),
    ("load", "sends requests to the servers of load.toml"),
    ("observe", "requires root and a server at the port"),
    ("profile", "measures a disk for minutes"),
    ("demo", "comes before all others"),
    ("schedule", "plays services for minutes"),
    ("schedule demo", "plays services for a minute"),
    ("schedule bench", "plays services for minutes, from a scenario of the source tree"),
    ("schedule kernel", "requires root and sched_ext"),
    ("lab up", "requires root and the programs of all servers"),
    ("lab device", "serves until a signal ends it"),
    ("lab down", "requires root, and would remove a lab that is in use"),
    ("trace callgraph", "requires spans, which the demo does not have"),
    ("help", "prints help"),
];

/// Exit codes other than 0 that help documents for a first example.
/// `lab cluster` measures in the clock, and misses SLOs where the CPUs are busy.
const ANSWERS_NO: [(&str, i32); 5] =
    [("lab status", 1), ("lab cluster", 1), ("trace assumptions", 1), ("import", 1), ("export", 1)];

/// Returns the first command of the examples in a help text, and those up to the first of the verb itself.
fn first_example(help: &str, verb: &str) -> Option<String> {
    let mut lines = help.lines().skip_while(|line| !line.starts_with("Examples")).skip(1);
    let mut commands = Vec::new();
    loop {
        let mut command = lines.next().filter(|line| line.starts_with("  "))?.trim().to_owned();
        while let Some(begun) = command.strip_suffix('\\') {
            command = format!("{}{}", begun, lines.next()?.trim());
        }
        // Words behind three blanks say what the command does.
        let command = command.split("   ").next().unwrap_or_default().to_owned();
        let is_own = command.starts_with(&format!("tailwright {verb}"));
        commands.push(command);
        if is_own {
            return Some(commands.join(" &&\n"));
        }
    }
}

/// Returns the commands below a help text.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = lines.take_while(|line| !line.is_empty());
    let names = rows.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_first_example_of_each_verb_works_after_the_demo() {
    let folder = Folder::new();
    folder.run(&["demo", "--workloads", "1"]).expect_code(0);
    let mut tried = 0;
    let mut unused: Vec<&str> = NOT_RUN.iter().map(|(verb, _)| *verb).collect();
    let mut waiting: Vec<String> = Vec::new();
    let all = folder.run(&["--help"]).expect_code(0).stdout;
    let verbs = ["plan", "admit", "bound", "explain", "apply", "proxy", "verify", "load", "observe"];
    let more = [
        "experiment",
        "ideal",
        "simulate",
        "reproduce",
        "demo",
        "profile",
        "lab",
        "schedule",
        "import",
        "export",
    ];
    for verb in verbs.iter().chain(&more).chain(&["trace", "completions", "man"]) {
        assert!(all.contains(&format!("  {verb} ")), "{verb}: {all}");
        waiting.push((*verb).to_owned());
    }
    while let Some(verb) = waiting.pop() {
        let words: Vec<&str> = verb.split(' ').collect();
        let help = folder.run(&[&words[..], &["--help"]].concat()).expect_code(0).stdout;
        if help.contains("\nCommands:\n") && words.len() == 1 {
            waiting.extend(
                commands(&help).iter().filter(|name| *name != "help").map(|name| format!("{verb} {name}")),
            );
        }
        if let Some(at) = unused.iter().position(|other| *other == verb) {
            unused.remove(at);
            continue;
        }
        if words.len() > 1 && !help.contains("\nExamples") {
            continue;
        }
        let example = first_example(&help, &verb).unwrap_or_else(|| panic!("{verb}: {help}"));
        let path = std::path::Path::new(env!("CARGO_BIN_EXE_tailwright")).parent().expect("a folder");
        let search = format!("{}:{}", path.display(), std::env::var("PATH").unwrap_or_default());
        let done = Command::new("sh")
            .args(["-c", &example])
            .current_dir(folder.path())
            .env("PATH", search)
            .env("HOME", folder.path())
            .env("XDG_CACHE_HOME", folder.join("cache"))
            .output()
            .expect("a shell");
        let code = done.status.code();
        let may_be_no = ANSWERS_NO.iter().any(|(name, no)| *name == verb && code == Some(*no));
        assert!(
            code == Some(0) || may_be_no,
            "{verb}: {example}: {code:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        tried += 1;
    }
    unused.retain(|verb| *verb != "help");
    assert!(unused.is_empty(), "no longer there: {unused:?}");
    assert!(tried >= 20, "{tried} examples");
}
