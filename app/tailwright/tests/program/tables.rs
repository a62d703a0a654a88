//! Tables on narrow terminals: every line fits, and the columns of the answer are the last to be left out.

use crate::support::Folder;
use std::process::Command;

/// Commands with tables, the exit codes that they may have, and the headings of the answer that must be
/// shown however narrow the terminal is.
const TABLES: [(&str, &[i32], &[&str]); 21] = [
    ("plan tailwright-demo/cluster.toml", &[0], &["workload", "bound", "slack"]),
    ("plan tailwright-demo/cluster.toml --compare", &[0], &["first fit", "best order"]),
    ("plan tailwright-demo/cluster.toml --model replayed", &[0, 1], &["workload", "replayed", "slack"]),
    ("bound tailwright-demo/cluster.toml --model worst-case", &[0, 1], &["workload", "worst-case"]),
    ("admit tailwright-demo/cluster.toml", &[0], &["event", "decision", "bound", "slack"]),
    (
        "explain database-1 tailwright-demo/cluster.toml",
        &[0],
        &["in ms", "storage ms", "out ms", "  ms", "burst ms"],
    ),
    ("explain database-1 tailwright-demo/cluster.toml --model probabilistic", &[0, 1], &["storage", "  ms"]),
    (
        "simulate tailwright-demo/plan.json --cluster tailwright-demo/cluster.toml",
        &[0, 1],
        &["workload", "measured"],
    ),
    (
        "verify tailwright-demo/plan.json observed.parquet --storage tailwright-demo/ssd-profile.json",
        &[0, 1],
        &["verdict", "measured", "bound", "stage", "p99"],
    ),
    ("verify observed.parquet --slo database-1=90%<1us", &[1], &["verdict", "measured"]),
    ("ideal --arrivals poisson(800/s) --service exp(1ms) --requests 20000", &[0], &["discipline", "p99"]),
    ("simulate scenarios/mm1.toml", &[0], &["tier", "p99"]),
    ("trace info tailwright-demo/traces/database-1.csv.gz", &[0], &["requests"]),
    (
        "trace info tailwright-demo/traces/database-1.csv.gz tailwright-demo/traces/mail-1.csv.gz",
        &[0],
        &["trace", "requests"],
    ),
    (
        "trace assumptions tailwright-demo/traces/database-1.csv.gz tailwright-demo/traces/mail-1.csv.gz --one-clock",
        &[0, 1],
        &["work"],
    ),
    ("trace callgraph scenarios/replay.spans.csv", &[0], &["operation", "p99", "working"]),
    ("experiment --list", &[0], &["knob", "here"]),
    ("reproduce --list", &[0], &["name", "what"]),
    ("lab run", &[0], &["experiment", "shows"]),
    ("lab run policies --dry-run", &[0], &["bound"]),
    ("lab cluster --dry-run", &[0], &[]),
];

#[test]
fn answers_are_shown_however_narrow_the_terminal_is() {
    let folder = Folder::new();
    folder.run(&["demo", "--workloads", "4"]).expect_code(0);
    let simulated =
        "simulate tailwright-demo/plan.json --cluster tailwright-demo/cluster.toml -o observed.parquet";
    folder.run(&simulated.split(' ').collect::<Vec<_>>()).expect_code(0);
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios");
    std::os::unix::fs::symlink(scenarios, folder.join("scenarios")).expect("it is ours");
    for columns in [40, 60, 80] {
        for (line, codes, answer) in TABLES {
            let done = Command::new(env!("CARGO_BIN_EXE_tailwright"))
                .args(line.split(' '))
                .current_dir(folder.path())
                .env("COLUMNS", columns.to_string())
                .env("XDG_CACHE_HOME", folder.join("cache"))
                .output()
                .expect("the program starts");
            let text = String::from_utf8(done.stdout).expect("text");
            let code = done.status.code().unwrap_or(-1);
            let stderr = String::from_utf8_lossy(&done.stderr);
            assert!(codes.contains(&code), "{line}: {code}: {stderr}");
            let left_out: String = text
                .split("(--wide also shows: ")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
                .collect();
            let left_out = left_out.split_whitespace().collect::<Vec<_>>().join(" ");
            for heading in answer {
                assert!(text.contains(heading), "{columns} columns: {line}: no '{heading}':\n{text}");
                let named = left_out.split(", ").any(|other| other == heading.trim());
                assert!(!named, "{columns} columns: {line}: '{heading}' is left out:\n{text}");
            }
            let is_long = |line: &&str| line.chars().count() > columns && line.trim().contains("  ");
            assert_eq!(text.lines().find(is_long), None, "{columns} columns: {line}:\n{text}");
        }
    }
}
