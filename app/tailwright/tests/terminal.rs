//! What goes to a terminal: lines that fit it, nothing that it obeys, colours where they are wanted.

mod support;

use std::process::Command;
use support::cluster::Cluster;
use support::{Folder, Outcome};
use unicode_width::UnicodeWidthStr;

/// Runs the program with variables of the environment.
fn run_with(folder: &Folder, variables: &[(&str, &str)], args: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailwright"));
    command.args(args).current_dir(folder.path()).env("XDG_CACHE_HOME", folder.join("cache"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(variables.iter().copied());
    let output = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Outcome {
        code: output.status.code().expect("the program is not killed"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

const SCENARIO: &str = "[run]\nrequests = 500\nreplications = 3\n[[station]]\nname = \"queue\"\nworkers = 1\n\
    discipline = \"fifo\"\n[[entry]]\narrivals = \"poisson(500/s)\"\nservice = { queue = \"exp(1ms)\" }\n";

/// An example of every verb that needs neither rights nor a server.
const EXAMPLES: [&[&str]; 24] = [
    &["demo", "--workloads", "8"],
    &["plan", "cluster.toml", "-o", "policy.json"],
    &["plan", "cluster.toml", "--compare"],
    &["plan", "cluster.toml", "--model", "replayed"],
    &["bound", "cluster.toml"],
    &["bound", "cluster.toml", "--model", "worst-case,probabilistic,replayed,published-snc,snc-by-stage"],
    &["admit", "cluster.toml"],
    &["explain", "w0", "cluster.toml"],
    &["explain", "w0", "cluster.toml", "--model", "probabilistic"],
    &["explain", "w0", "cluster.toml", "--model", "replayed"],
    &["explain", "w0", "cluster.toml", "--model", "worst-case"],
    &["simulate", "scenario.toml"],
    &["simulate", "policy.json", "--cluster", "cluster.toml", "-o", "observed.parquet"],
    &["verify", "policy.json", "observed.parquet", "--storage", "ssd.json"],
    &["ideal", "--arrivals", "poisson(500/s)", "--service", "exp(1ms)", "--requests", "2000"],
    &["trace", "info", "w0.csv"],
    &["trace", "info", "w0.csv", "w1.csv", "w2.csv"],
    &["trace", "assumptions", "cluster.toml", "--one-clock"],
    &["trace", "convert", "w0.csv", "-o", "w0.parquet"],
    &["reproduce", "--list"],
    &["reproduce", "variability-numbers", "--quick"],
    &["lab", "run"],
    &["experiment", "--list"],
    &["experiment", "--list", "fifo"],
];

#[test]
fn every_verb_fits_the_width_that_there_is() {
    let cluster = Cluster::new(9, 9);
    cluster.folder.write("scenario.toml", SCENARIO);
    for args in EXAMPLES {
        for columns in ["80", "100"] {
            let outcome = run_with(&cluster.folder, &[("COLUMNS", columns)], args);
            assert!(outcome.code < 2, "{args:?}: {}", outcome.stderr);
            let width: usize = columns.parse().expect("a number");
            let wide: Vec<&str> = outcome.stdout.lines().filter(|line| line.width() > width).collect();
            assert!(wide.is_empty(), "{args:?} at {columns}:\n{}", wide.join("\n"));
            assert!(!outcome.stdout.contains('\u{1b}'), "{args:?} has colours without a terminal");
        }
    }
}

#[test]
fn wide_shows_what_a_narrow_table_leaves_out() {
    let cluster = Cluster::new(3, 3);
    let narrow = run_with(&cluster.folder, &[("COLUMNS", "60")], &["plan", "cluster.toml"]).expect_code(0);
    let wide =
        run_with(&cluster.folder, &[("COLUMNS", "60")], &["plan", "cluster.toml", "--wide"]).expect_code(0);
    let heading =
        |outcome: &Outcome| outcome.stdout.lines().find(|line| line.contains("prio")).map(str::to_owned);
    assert!(heading(&narrow).is_some_and(|line| !line.contains("network-out")), "{}", narrow.stdout);
    assert!(narrow.stdout.contains("--wide also shows: network-out"), "{}", narrow.stdout);
    assert!(heading(&wide).is_some_and(|line| line.contains("network-out")), "{}", wide.stdout);
    assert!(!wide.stdout.contains("--wide also"), "{}", wide.stdout);
}

#[test]
fn no_name_of_a_file_reaches_a_terminal_as_an_escape() {
    let cluster = Cluster::new(2, 2);
    let folder = &cluster.folder;
    let hostile = "q\\u001b]0;title\\u0007\\u009b31m";
    folder.write(
        "scenario.toml",
        &SCENARIO
            .replace("name = \"queue\"", &format!("name = \"{hostile}\""))
            .replace("queue =", &format!("\"{hostile}\" =")),
    );
    folder.write("slo.toml", &folder.read("cluster.toml").replace("\"w0\"", &format!("\"{hostile}\"")));
    folder.run(&["plan", "cluster.toml", "-o", "policy.json"]).expect_code(0);
    folder.write("policy.json", &folder.read("policy.json").replace("\"w0\"", &format!("\"{hostile}\"")));
    for args in [
        &["simulate", "scenario.toml"][..],
        &["simulate", "scenario.toml", "--json"],
        &["simulate", "scenario.toml", "--set", "station.none.workers=1"],
        &["plan", "slo.toml"],
        &["bound", "slo.toml"],
        &["admit", "slo.toml"],
        &["explain", "w9", "slo.toml"],
        &["simulate", "policy.json", "--cluster", "cluster.toml"],
        &["plan", "cluster.toml", "--keep", "policy.json"],
        &["explain", "w1", "cluster.toml", "--plan", "policy.json"],
        &["schedule", "bench", "scenario.toml", "--load", "3", "--duration", "1ms"],
    ] {
        let outcome = folder.run(args);
        let said = outcome.stdout.clone() + &outcome.stderr;
        let obeyed = |c: char| c.is_control() && c != '\n';
        assert!(!said.contains(obeyed), "{args:?}: {said:?}");
    }
}

#[test]
fn no_argument_reaches_a_terminal_as_an_escape() {
    let folder = Folder::new();
    let hostile = "b\u{1b}[31ma\nd\u{9b}31m";
    for args in [
        &[hostile][..],
        &["observe", "--port", hostile],
        &["schedule", "demo", "--modes", hostile],
        &["schedule", "demo", "--work", hostile],
        &["plan", "--no-such", hostile],
    ] {
        let outcome = run_with(&folder, &[("CLICOLOR_FORCE", "1")], args).expect_code(2);
        let obeyed = |c: char| c.is_control() && c != '\n';
        assert!(!outcome.stderr.contains(obeyed), "{args:?}: {:?}", outcome.stderr);
        if !args.contains(&"--no-such") {
            assert!(outcome.stderr.contains(r"b\u001b[31ma\u000ad\u009b31m"), "{args:?}: {}", outcome.stderr);
        }
    }
}

#[test]
fn colours_can_be_forced_and_refused() {
    let folder = Folder::new();
    let red = "\u{1b}[31merror: \u{1b}[0m";
    let missing = ["plan", "missing.toml"];
    let forced = run_with(&folder, &[("CLICOLOR_FORCE", "1")], &missing);
    assert!(forced.stderr.starts_with(red), "{:?}", forced.stderr);
    for variables in [&[][..], &[("NO_COLOR", "1")], &[("CLICOLOR_FORCE", "0")]] {
        let plain = run_with(&folder, variables, &missing);
        assert!(plain.stderr.starts_with("error: "), "{variables:?}: {:?}", plain.stderr);
    }
}

/// Tables of a terminal that says 0 for its rows, its columns or both: what it does not say is taken to be 24 and 80.
#[test]
fn a_terminal_without_a_size_has_the_usual_one() {
    if testkit::program("setsid").is_none() {
        return;
    }
    let folder = Folder::new();
    for (columns, rows, usual) in [(0, 0, 80), (0, 24, 80), (60, 0, 60), (132, 0, 132)] {
        let mut terminal = testkit::Terminal::open(columns, rows);
        let mut command = terminal.command(std::path::Path::new(env!("CARGO_BIN_EXE_tailwright")));
        command.args(["lab", "run"]).current_dir(folder.path()).env_remove("COLUMNS").env("NO_COLOR", "1");
        let mut child = command.spawn().expect("the program starts");
        // It has the program's side of the terminal as well.
        drop(command);
        let shown = terminal.read_all();
        assert!(child.wait().expect("it ends").success(), "{shown}");
        let widest = shown.lines().map(|line| line.trim_end().width()).max().expect("there are lines");
        assert!(widest <= usual && widest > usual - 15, "{columns}x{rows}: {widest}\n{shown}");
    }
}

/// What follows `next:` is run as it is printed, backslashes at the ends of lines included.
#[test]
fn next_steps_are_commands_that_work() {
    let cluster = Cluster::new(3, 3);
    let folder = &cluster.folder;
    let long = "a folder whose name has many words, so that it's broken somewhere/-x";
    std::fs::create_dir_all(folder.join(long)).expect("it is ours");
    std::fs::create_dir_all(folder.join("-x")).expect("it is ours");
    for copy in ["cluster.toml", "w0.csv", "w1.csv", "w2.csv", "ssd.json"] {
        let place = folder.join(long).join(copy);
        std::fs::copy(folder.join(copy), place).expect("it is ours");
        std::fs::copy(folder.join(copy), folder.join("-x").join(copy)).expect("it is ours");
    }
    let hostile = folder.read("cluster.toml").replace("\"w1\"", "\"-w 1\"").replace("\"w0\"", "\"-w 0\"");
    folder.write("-x/cluster.toml", &hostile.replace("\"w2\"", "\"-w 2\""));
    let file = format!("{long}/cluster.toml");
    let plan = format!("{long}/a plan.json");
    let mut run = 0;
    for args in [
        &["plan", &file, "-o", &plan][..],
        &["demo", "--workloads", "3", "--dir", "a demo"],
        &["demo", "--workloads", "3", "--dir=-demo of many words that are broken at the end of a line"],
        &["plan", "cluster.toml", "--safety-margin", "1.05"],
        &["plan", "-o", "x.json", "--", "-x/cluster.toml"],
    ] {
        let text = folder.run_on_terminal(args);
        assert_eq!(text.code, 0, "{args:?}: {}", text.shown);
        let (_, next) = text.shown.split_once("next:").expect("there is a next step");
        let mut lines = next.lines().peekable();
        while let Some(line) = lines.next() {
            if !line.trim().starts_with("tailwright ") {
                continue;
            }
            let mut command = line.to_owned();
            while command.ends_with('\\') {
                command = format!("{command}\n{}", lines.next().expect("it goes on"));
            }
            for shell in ["sh", "bash"] {
                let script = format!("tailwright() {{ \"$PROGRAM\" \"$@\"; }}\n{command}");
                let mut shell = Command::new(shell);
                shell.args(["-c", &script]).current_dir(folder.path());
                shell.env("PROGRAM", env!("CARGO_BIN_EXE_tailwright"));
                let output =
                    shell.env("XDG_CACHE_HOME", folder.join("cache")).output().expect("there are shells");
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
            }
            run += 1;
        }
    }
    assert_eq!(run, 10);
    for file in ["policy.json", "plan.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}
