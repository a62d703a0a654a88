//! The steps of CI, the quickest to fail first. Tests come last, so that the end of the log shows their results and
//! what was skipped.

mod test_programs;

use crate::tidy;
use crate::workspace::root;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;
use test_programs::BesidePrograms;
pub(crate) use test_programs::run_one as run_test_program;

/// Tests that a step did not run, with the reason.
type Skips = Vec<String>;

struct CiStep {
    name: &'static str,
    what: &'static str,
    run: fn() -> Result<Skips, String>,
}

const STEPS: [CiStep; 8] = [
    CiStep {
        name: "programs",
        what: "real servers and clients for the tests, where they can be installed",
        run: programs,
    },
    CiStep { name: "fmt", what: "formatting", run: fmt },
    CiStep {
        name: "tidy",
        what: "code map, dependency rules, references, shape of the code",
        run: tidy_step,
    },
    CiStep { name: "clippy", what: "lints of every target, warnings are errors", run: clippy },
    CiStep { name: "doc", what: "documentation, warnings are errors", run: doc },
    CiStep { name: "fuzz", what: "the fuzz targets compile", run: fuzz },
    CiStep { name: "demo", what: "the README's first command", run: demo },
    CiStep { name: "test", what: "all tests", run: test },
];

/// Beginning of the line that `testkit` prints for a skipped test.
const SKIP_MARK: &str = "SKIPPED ";

/// The workspace of the fuzz targets.
const FUZZ_MANIFEST: &str = "tools/fuzz/Cargo.toml";

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
    if let Some(free) = free_space().filter(|free| *free < SPACE_WANTED) {
        eprintln!(
            "{} free on this disk; an empty build folder grows to {}",
            gigabytes(free),
            gigabytes(SPACE_WANTED)
        );
    }
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
                let full = free_space().filter(|free| *free < SPACE_LEFT).map_or_else(String::new, |free| {
                    format!("\n  the disk is full or nearly so: {} free", gigabytes(free))
                });
                return Err(format!(
                    "step {name} failed after {seconds:.0} s: {message}{full}\n  alone: cargo xtask ci {name}",
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
    if std::env::var_os("CI").is_some() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        // CI never builds a second time, and incremental files take three times the space.
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// Bytes that all steps write to an empty build folder.
const SPACE_WANTED: u64 = 8_000_000_000;
/// Free bytes below which a failure is probably one of the disk.
const SPACE_LEFT: u64 = 500_000_000;

/// The bytes that may be written to the disk of the workspace; none where `df` does not say.
fn free_space() -> Option<u64> {
    let output = Command::new("df").args(["--output=avail", "-B1"]).arg(root()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.lines().nth(1)?.trim().parse().ok()
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

fn finish(mut command: Command) -> Result<Skips, String> {
    let shown = format!("{command:?}");
    let status = command.status().map_err(|error| format!("{shown}: {error}"))?;
    if status.success() { Ok(Skips::new()) } else { Err(format!("{shown}: {status}")) }
}

/// Programs and the Debian packages that have them, a line each.
const PROGRAMS: &str = include_str!("../../../../programs.txt");
/// The same for the tests of `schedule/bindings/`, which take more space.
const BINDINGS_PROGRAMS: &str = include_str!("../../../../schedule/bindings/programs.txt");

/// Installs missing programs that tests run, as root with Debian's packages. Without them the tests are skipped. Programs of
/// the bindings are only named, because they are large.
fn programs() -> Result<Skips, String> {
    let of_bindings = missing_packages(BINDINGS_PROGRAMS);
    if !of_bindings.is_empty() {
        eprintln!(
            "tests of bindings will be skipped, unless as root: apt-get install --no-install-recommends {}",
            of_bindings.join(" ")
        );
    }
    let packages = missing_packages(PROGRAMS);
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

/// The packages of programs in a list that are not installed, each once.
fn missing_packages(list: &'static str) -> Vec<&'static str> {
    let listed = list.lines().filter_map(|line| line.split_once(' '));
    let mut packages: Vec<&str> =
        listed.filter(|(program, _)| !is_installed(program)).map(|(_, package)| package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// Runs apt-get and returns whether it succeeded.
fn apt(args: &[&str]) -> bool {
    let mut command = Command::new("apt-get");
    command.args(["-o", "DPkg::Lock::Timeout=300"]).args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn is_installed(program: &str) -> bool {
    let searched = std::env::var_os("PATH").unwrap_or_default();
    // Servers are in folders that are not on an ordinary user's path.
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

/// Checks the fuzz targets with the stable compiler; only running them takes a nightly one and libFuzzer.
fn fuzz() -> Result<Skips, String> {
    if let Some(skip) = fetch_for_fuzz()? {
        eprintln!("{SKIP_MARK}{skip}");
        return Ok(vec![skip]);
    }
    let mut command = cargo(&["check", "--manifest-path", FUZZ_MANIFEST, "--bins", "--locked"]);
    // Nothing is linked: naming a library that does not exist saves compiling libFuzzer, and a C++ compiler.
    command.env("CUSTOM_LIBFUZZER_PATH", root().join("target/none/libfuzzer.a"));
    if std::env::var_os("CARGO_TARGET_DIR").is_none() {
        command.env("CARGO_TARGET_DIR", root().join("target"));
    }
    finish(command)
}

/// Fetches the dependencies of the targets. Returns the reason for a skip where there is no network.
fn fetch_for_fuzz() -> Result<Option<String>, String> {
    let mut command = cargo(&["fetch", "--manifest-path", FUZZ_MANIFEST, "--locked"]);
    let output = command.output().map_err(|error| format!("cargo fetch: {error}"))?;
    if output.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    eprint!("{said}");
    if is_out_of_reach(&said) {
        return Ok(Some(
            "the fuzz targets were not compiled: what they depend on could not be fetched".to_owned(),
        ));
    }
    Err(format!(
        "{command:?}: {}; if only tools/fuzz/Cargo.lock is old: cargo update --workspace --manifest-path {FUZZ_MANIFEST}",
        output.status
    ))
}

/// Tells a missing network from a fault of the tree, by what cargo wrote.
fn is_out_of_reach(said: &str) -> bool {
    ["failed to download", "offline mode", "directory source"].iter().any(|sign| said.contains(sign))
}

/// Optimisation of the step `demo` where `CI` is set: it asks whether the command works, and not how fast.
const QUICKLY_BUILT: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
];

/// Runs the demo as the README shows it, in a temporary folder.
fn demo() -> Result<Skips, String> {
    let folder = std::env::temp_dir().join(format!("tailwright-ci-demo-{}", std::process::id()));
    let shown = folder.display().to_string();
    let mut command = cargo(&["run", "--release", "--", "demo", "--dir", &shown]);
    if std::env::var_os("CI").is_some() {
        command.envs(QUICKLY_BUILT);
    }
    let done = finish(command);
    // A folder that cannot be removed stays in the temporary directory.
    let _ = std::fs::remove_dir_all(&folder);
    done
}

/// Runs all tests. Passes their output on and keeps the lines about skipped tests.
fn test() -> Result<Skips, String> {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    let beside = BesidePrograms::new()?;
    beside.start_from(&mut command)?;
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
    let (said, failed) = beside.finish()?;
    skips.extend(said.lines().filter_map(|line| line.strip_prefix(SKIP_MARK)).map(str::to_owned));
    if status.success() && failed.is_empty() {
        return Ok(skips);
    }
    report_skips(&skips);
    let beside = if failed.is_empty() {
        String::new()
    } else {
        format!("; beside others failed {}", failed.join(", "))
    };
    Err(format!("cargo test --workspace --no-fail-fast: {status}{beside}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_network_is_skipped() {
        for said in [
            "failed to download from `https://index.crates.io/config.json`",
            "error: no matching package named `libfuzzer-sys` found\nAs a reminder, you're using offline mode",
        ] {
            assert!(is_out_of_reach(said), "{said}");
        }
        for said in [
            "error: cannot update the lock file because --locked was passed to prevent this\nhelp: to generate the \
             lock file without accessing the network, remove the --locked flag and use --offline instead.",
            "error: failed to parse lock file",
        ] {
            assert!(!is_out_of_reach(said), "{said}");
        }
    }
}
