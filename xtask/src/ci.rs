//! The steps of CI, in order of how soon they tell. Tests come last, so that their closing lines and
//! the list of what was skipped are what a reader of the log sees first.

use crate::tidy;
use crate::workspace::root;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a step says beyond pass or fail: the tests that did not run.
type Skips = Vec<String>;

struct CiStep {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<Skips, String>,
}

const STEPS: [CiStep; 7] = [
    CiStep {
        name: "programs",
        what: "real servers and clients for the tests, where they can be installed",
        run: programs,
    },
    CiStep { name: "fmt", what: "formatting", run: fmt },
    CiStep { name: "tidy", what: "code map, dependency rules, file lengths, references", run: tidy_step },
    CiStep { name: "clippy", what: "lints of every target, warnings are errors", run: clippy },
    CiStep { name: "doc", what: "documentation, warnings are errors", run: doc },
    CiStep { name: "demo", what: "the README's first command", run: demo },
    CiStep { name: "test", what: "all tests", run: test },
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

/// Runs the step of this name.
pub(crate) fn one(name: &str) -> Result<(), String> {
    let step = STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        format!("there is no step '{name}'; expected one of {}", names.join(", "))
    })?;
    run(&[step])
}

fn run(steps: &[&CiStep]) -> Result<(), String> {
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

/// Programs and the Debian packages that have them, a line each.
const PROGRAMS: &str = include_str!("../../programs.txt");

/// Installs what tests run and is not there: as root, with Debian's packages. Elsewhere tests skip what they lack.
fn programs() -> Result<Skips, String> {
    let listed = PROGRAMS.lines().filter_map(|line| line.split_once(' '));
    let missing = listed.filter(|(program, _)| !is_installed(program));
    let mut packages: Vec<&str> = missing.map(|(_, package)| package).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(Skips::new());
    }
    eprintln!("missing: {}", packages.join(", "));
    let install = [&["install", "-y", "--no-install-recommends"], &packages[..]].concat();
    if !(apt(&install) || apt(&["update"]) && apt(&install)) {
        eprintln!(
            "they could not be installed: tests that need them are skipped (apt-get as root installs them)"
        );
    }
    Ok(Skips::new())
}

/// Runs apt-get and says whether it did what was asked.
fn apt(args: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(["-o", "DPkg::Lock::Timeout=300"]).args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn is_installed(program: &str) -> bool {
    let searched = std::env::var_os("PATH").unwrap_or_default();
    // Servers stand where an ordinary user's path does not lead.
    let folders = std::env::split_paths(&searched).chain(["/usr/sbin", "/sbin"].map(Into::into));
    folders.into_iter().any(|folder| folder.join(program).is_file())
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

/// Runs the demonstration as a newcomer does, in a folder of its own.
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
