//! Commands of the user: what applies and undoes a knob of their own, and what sends the load.

use model::OperationError;
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a command that applies or undoes may take.
const COMMAND_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);
/// How long a load generator gets to end by itself.
const END_MAX: Duration = Duration::from_secs(5);

/// Runs a command of the shell to its end.
pub(super) fn run(command: &str) -> Result<(), OperationError> {
    let failed = |why: &dyn std::fmt::Display| OperationError::machine(format_args!("`{command}`: {why}"));
    let mut child = shell(command).spawn().map_err(|error| failed(&error))?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| failed(&error))? {
            return if status.success() { Ok(()) } else { Err(failed(&status)) };
        }
        if begun.elapsed() > COMMAND_MAX {
            end(&mut child);
            return Err(failed(&format_args!("it took more than {} s and was ended", COMMAND_MAX.as_secs())));
        }
        std::thread::sleep(POLL);
    }
}

/// In a process group of its own, so that Ctrl-C does not end it and what it starts can be ended with it.
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    shell
}

fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let begun = Instant::now();
    for signal in [Signal::TERM, Signal::KILL] {
        let _ = group.map(|group| kill_process_group(group, signal));
        while begun.elapsed() < END_MAX && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(POLL);
        }
    }
    let _ = child.wait();
}

/// A command that sends the load, until the value is dropped.
#[derive(Debug)]
pub struct LoadCommand(Child);

impl LoadCommand {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no shell.
    pub fn start(command: &str) -> Result<Self, OperationError> {
        let child = shell(command).spawn();
        child.map(Self).map_err(|error| OperationError::machine(format_args!("`{command}`: {error}")))
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// How it has failed by itself; none while it runs, and when it ended as it should.
    pub fn failure(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().ok().flatten().filter(|status| !status.success())
    }
}

impl Drop for LoadCommand {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_say_how_they_ended() {
        assert_eq!(run("true"), Ok(()));
        let error = run("exit 3").expect_err("it fails");
        assert!(error.message.contains("`exit 3`") && error.message.contains('3'), "{error}");
    }

    #[test]
    fn load_ends_with_what_it_has_started() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let mut load = LoadCommand::start(&command).expect("there is a shell");
        let started = || std::fs::read_to_string(&file).is_ok();
        testkit::wait_until(Duration::from_secs(60), "the load starts", started);
        assert!(!load.has_ended());
        assert_eq!(load.failure(), None);
        drop(load);
        let id: u32 = std::fs::read_to_string(&file).expect("it is there").trim().parse().expect("a number");
        testkit::wait_until(Duration::from_secs(60), "the load ends", || {
            !crate::linux::identity(id).is_some_and(crate::linux::is_alive)
        });
    }
}
