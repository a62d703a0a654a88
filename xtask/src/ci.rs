//! The steps of CI, in order of how soon they tell. Tests come last, so that their closing lines and
//! the list of what was skipped are what a reader of the log sees first.

use crate::{root, tidy};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a step says beyond pass or fail: the tests that did not run.
type Skips = Vec<String>;

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<Skips, String>,
}

const STEPS: [Step; 6] = [
    Step { name: "fmt", what: "formatting", run: fmt },
    Step { name: "tidy", what: "code map, dependency rules, file lengths, references", run: tidy_step },
    Step { name: "clippy", what: "lints of every target, warnings are errors", run: clippy },
    Step { name: "doc", what: "documentation, warnings are errors", run: doc },
    Step { name: "demo", what: "the README's first command", run: demo },
    Step { name: "test", what: "all tests", run: test },
];

/// Where tests say what they did not do; `tailwright-testkit` prints it.
const SKIP_MARK: &str = "SKIPPED ";

/// Property tests draw the same cases in every run of CI, so that it judges the change and not the draw;
/// plain `cargo test` draws new ones.
const PROPERTY_SEED: &str = "PROPTEST_RNG_SEED";

/// Runs all steps and stops at the first that fails.
pub(crate) fn all() -> Result<(), String> {
    run(&STEPS.iter().collect::<Vec<_>>())
}

/// Runs one step.
pub(crate) fn one(name: &str) -> Result<(), String> {
    let step = STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        format!("there is no step '{name}'; expected one of {}", names.join(", "))
    })?;
    run(&[step])
}

fn run(steps: &[&Step]) -> Result<(), String> {
    let start = Instant::now();
    let mut skips = Skips::new();
    let mut times = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        eprintln!("\n=== {}/{} {}: {}", number + 1, steps.len(), step.name, step.what);
        let begun = Instant::now();
        let result = (step.run)();
        let seconds = begun.elapsed().as_secs_f64();
        times.push(format!("{} {seconds:.0} s", step.name));
        match result {
            Ok(found) => skips.extend(found),
            Err(message) => {
                return Err(format!(
                    "step {name} failed after {seconds:.0} s: {message}\n  alone: cargo xtask ci {name}",
                    name = step.name
                ));
            }
        }
        eprintln!("=== {} passed in {seconds:.1} s", step.name);
    }
    eprintln!("\nall passed in {:.0} s ({})", start.elapsed().as_secs_f64(), times.join(", "));
    report_skips(&skips);
    Ok(())
}

fn report_skips(skips: &Skips) {
    if skips.is_empty() {
        eprintln!("nothing was skipped");
        return;
    }
    eprintln!("\n!!! {} SKIPPED: these tests could not run here", skips.len());
    for skip in skips {
        eprintln!("!!!   {skip}");
    }
}

fn cargo(args: &[&str]) -> Command {
    // Set by cargo when it runs this program; the same toolchain is used throughout.
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

fn finish(mut command: Command) -> Result<Skips, String> {
    let shown = format!("{command:?}");
    let status = command.status().map_err(|error| format!("{shown}: {error}"))?;
    if status.success() { Ok(Skips::new()) } else { Err(format!("{shown}: {status}")) }
}

fn fmt() -> Result<Skips, String> {
    finish(cargo(&["fmt", "--all", "--check"]))
}

fn tidy_step() -> Result<Skips, String> {
    tidy::run().map(|()| Skips::new())
}

fn clippy() -> Result<Skips, String> {
    finish(cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn doc() -> Result<Skips, String> {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    finish(command)
}

/// As a newcomer runs it, in a folder of its own.
fn demo() -> Result<Skips, String> {
    let folder = std::env::temp_dir().join(format!("tailwright-ci-demo-{}", std::process::id()));
    let shown = folder.display().to_string();
    let done = finish(cargo(&["run", "--release", "--", "demo", "--dir", &shown]));
    // The folder is the demo's own; what cannot be removed is temporary anyway.
    let _ = std::fs::remove_dir_all(&folder);
    done
}

/// Passes everything on and keeps the lines that say what was skipped.
fn test() -> Result<Skips, String> {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    if std::env::var_os(PROPERTY_SEED).is_none() {
        command.env(PROPERTY_SEED, "1");
    }
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(|error| format!("cargo test: {error}"))?;
    let mut skips = Skips::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.map_err(|error| format!("cargo test: {error}"))?;
            let line = String::from_utf8_lossy(&line);
            eprintln!("{line}");
            skips.extend(line.strip_prefix(SKIP_MARK).map(str::to_owned));
        }
    }
    let status = child.wait().map_err(|error| format!("cargo test: {error}"))?;
    if status.success() {
        return Ok(skips);
    }
    report_skips(&skips);
    Err(format!("cargo test --workspace --no-fail-fast: {status}"))
}
