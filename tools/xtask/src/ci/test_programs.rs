//! Runs the programs of tests: those that need only files and arithmetic in the time that the others leave.
//!
//! Most programs wait for real servers, clocks and kernels, and one of the CPUs idles meanwhile. Cargo starts every
//! program with [`run_one`], one after the other. A program that nothing outside disturbs is left running beside the
//! next ones with the scheduling policy `SCHED_IDLE`, so that it gets a CPU only where no other thread wants it. There
//! is one such program at a time; [`BesidePrograms`] waits for them in the end, and shows what they wrote.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Crates whose tests know no clock, socket or process, as folders of the workspace.
const PURE_CRATES: [&str; 17] = [
    "base/arrivals",
    "base/confidence",
    "base/model",
    "base/operation",
    "base/plot",
    "base/units",
    "measure/verify",
    "plan/calculus",
    "plan/placement",
    "plan/plan",
    "plan/predict",
    "plan/workload",
    "schedule/chain",
    "serve/controller",
    "simulate/discipline",
    "simulate/scenario",
    "simulate/sim",
];
/// Programs of other crates of which the same is true, by the names of their files.
const PURE_PROGRAMS: [&str; 2] = ["planning", "simulation"];

/// Ends a program that hangs, many times later than the slowest one takes: the others still run, and it is named.
const TIMEOUT: &str = "15m";
/// The same for a program that runs beside others.
const BESIDE_TIMEOUT: &str = "40m";

/// Folder for the output of programs that run beside others, and the times of all.
const FOLDER: &str = "TAILWRIGHT_CI_TESTS";
/// Programs that are named with their times.
const SLOWEST_SHOWN: usize = 12;

/// Runs a program of tests as cargo's runner, or leaves it running beside the next ones.
pub(crate) fn run_one(program: &str, args: &[&str]) -> Result<(), String> {
    let timeout = |limit: &str| {
        let limit = limit.to_owned();
        ["timeout".into(), "--foreground".into(), "--verbose".into(), "--kill-after=10s".into(), limit]
    };
    let crate_folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    if let Some(folder) = folder.as_ref().filter(|_| is_pure(&crate_folder, program)) {
        let name = file_name(program);
        let create = |ending: &str| {
            File::create(folder.join(format!("{name}{ending}")))
                .map_err(|error| format!("{name}{ending}: {error}"))
        };
        let mut command = Command::new("sh");
        command.args(["-c", "\"$@\"; echo $? > \"$0\""]).arg(folder.join(format!("{name}{ENDED}")));
        command.arg("flock").arg(folder.join("one at a time")).args(["chrt", "--idle", "0"]);
        command.args(timeout(BESIDE_TIMEOUT)).arg(program).args(args).stdin(Stdio::null());
        command.stdout(create(STANDARD_OUTPUT)?).stderr(create(STANDARD_ERROR)?);
        command.spawn().map_err(|error| format!("sh: {error}"))?;
        eprintln!("     Beside the next ones, shown at the end");
        return Ok(());
    }
    let start = Instant::now();
    let [wrapper, options @ ..] = timeout(TIMEOUT);
    let status = Command::new(&wrapper).args(options).arg(program).args(args).status();
    let status = status.map_err(|error| format!("{wrapper}: {error}"))?;
    if let Some(folder) = folder {
        let line = format!("{:.1} {}", start.elapsed().as_secs_f64(), file_name(program));
        // Times are an addition: without them the result is the same.
        let _ = fs::write(folder.join(format!("{}.time", file_name(program))), line);
    }
    if status.success() { Ok(()) } else { Err(format!("{program}: {status}")) }
}

/// Endings of the files of a program that runs beside others.
const STANDARD_OUTPUT: &str = ".out";
const STANDARD_ERROR: &str = ".err";
const ENDED: &str = ".ended";

fn file_name(program: &str) -> String {
    Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// True if nothing outside disturbs a program of a crate, and it disturbs nothing. Examples of documentation are not
/// among them: they are in a folder that does not outlive their run.
fn is_pure(crate_folder: &str, program: &str) -> bool {
    if !Path::new(program).parent().is_some_and(|folder| folder.ends_with("deps")) {
        return false;
    }
    let file = file_name(program);
    // Cargo adds a hash to the name.
    let name = file.rsplit_once('-').map_or(file.as_str(), |(name, _)| name);
    PURE_PROGRAMS.contains(&name)
        || PURE_CRATES.iter().any(|folder| Path::new(crate_folder).ends_with(folder))
}

/// The programs that were left running beside others.
pub(crate) struct BesidePrograms {
    folder: PathBuf,
}

impl BesidePrograms {
    /// Makes an empty folder for their output.
    pub(crate) fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("tailwright-ci-tests-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self { folder })
    }

    /// Lets a command of cargo start programs by [`run_one`].
    pub(crate) fn start_from(&self, cargo: &mut Command) -> Result<(), String> {
        let own = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
        let runner = format!("target.'cfg(all())'.runner = [{:?}, \"run-test\"]", own.display().to_string());
        cargo.args(["--config", &runner]).env(FOLDER, &self.folder);
        Ok(())
    }

    /// Waits for the programs, shows what they wrote, and returns it with the names of those that failed.
    pub(crate) fn finish(self) -> Result<(String, Vec<String>), String> {
        let read = |name: &str, ending: &str| {
            let path = self.folder.join(format!("{name}{ending}"));
            fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let names = self.names(STANDARD_OUTPUT)?;
        let mut said = String::new();
        let mut failed = Vec::new();
        for name in &names {
            let status = loop {
                match read(name, ENDED) {
                    Ok(status) if !status.trim().is_empty() => break status.trim().to_owned(),
                    _ => std::thread::sleep(Duration::from_millis(200)),
                }
            };
            let parts =
                [STANDARD_ERROR, STANDARD_OUTPUT].map(|ending| read(name, ending).unwrap_or_default());
            let _ = write!(said, "     Beside {name}\n{}\n", parts.concat());
            if status != "0" {
                failed.push(format!("{name} (exit status {status})"));
            }
        }
        eprint!("{said}");
        eprintln!("{}", self.slowest()?);
        // A folder that cannot be removed stays in the temporary directory.
        let _ = fs::remove_dir_all(&self.folder);
        Ok((said, failed))
    }

    /// Names the slowest of the programs that ran alone.
    fn slowest(&self) -> Result<String, String> {
        let mut times = Vec::new();
        for name in self.names(".time")? {
            let line = fs::read_to_string(self.folder.join(format!("{name}.time"))).unwrap_or_default();
            let (seconds, name) = line.split_once(' ').unwrap_or(("0", &line));
            times.push((seconds.parse::<f64>().unwrap_or_default(), name.to_owned()));
        }
        times.sort_by(|a, b| b.0.total_cmp(&a.0));
        let total: f64 = times.iter().map(|(seconds, _)| seconds).sum();
        let shown = times.iter().take(SLOWEST_SHOWN).map(|(seconds, name)| format!("{name} {seconds:.0} s"));
        let shown: Vec<String> = shown.collect();
        Ok(format!("{} programs ran alone for {total:.0} s: {}, …", times.len(), shown.join(", ")))
    }

    fn names(&self, ending: &str) -> Result<Vec<String>, String> {
        let entries =
            fs::read_dir(&self.folder).map_err(|error| format!("{}: {error}", self.folder.display()))?;
        let files = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<String> =
            files.filter_map(|file| file.strip_suffix(ending).map(str::to_owned)).collect();
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pure_crates_exist_and_programs_are_told_by_crate_and_name() {
        let root = crate::workspace::root();
        for folder in PURE_CRATES {
            assert!(root.join(folder).join("Cargo.toml").is_file(), "{folder}");
        }
        for (folder, program, expected) in [
            ("/w/plan/calculus", "/w/target/debug/deps/curves-0123abc", true),
            ("/w/enforce/enforce", "/w/target/debug/deps/simulation-0123abc", true),
            ("/w/enforce/enforce", "/w/target/debug/deps/hostile-0123abc", false),
            ("/w/plan/calculus", "/tmp/rustdoctestX1b2C3/rust_out", false),
            ("/w/plan/plan-cli", "/w/target/debug/deps/plan_cli-0123abc", false),
        ] {
            assert_eq!(is_pure(folder, program), expected, "{folder} {program}");
        }
    }
}
