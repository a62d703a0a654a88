//! Commands of the user: apply and undo of their knob, and the load.

use super::process::{group_of, identity, is_alive};
use crate::setting::ProcessIdentity;
use model::OperationError;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a command that applies or undoes.
const COMMAND_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);
/// Time that a load generator has to end after SIGTERM.
const END_MAX: Duration = Duration::from_secs(5);

/// Runs a shell command to completion.
pub(super) fn run(command: &str) -> Result<(), OperationError> {
    let failed = |why: &dyn std::fmt::Display| OperationError::machine(format_args!("`{command}`: {why}"));
    let mut child = shell(command).spawn().map_err(|error| failed(&error))?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| failed(&error))? {
            return if status.success() { Ok(()) } else { Err(failed(&status)) };
        }
        if begun.elapsed() > COMMAND_MAX {
            identity(child.id()).map(end_group);
            let _ = child.wait();
            return Err(failed(&format_args!("it took more than {} s and was ended", COMMAND_MAX.as_secs())));
        }
        thread::sleep(POLL);
    }
}

/// Creates the command in its own process group: Ctrl-C does not reach it, and its children can be killed
/// with it.
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    shell
}

/// A command that sends load; ends when dropped.
#[derive(Debug)]
pub(crate) struct LoadCommand {
    child: Child,
    process: ProcessIdentity,
    command: String,
    /// Input of the held shell; a line written to it starts the command.
    begin: Option<ChildStdin>,
    said: LastLines,
    status: Option<ExitStatus>,
}

/// Waits for a line, then becomes the command; exits at end of file.
const HELD: &str = "read -r begin && exec sh -c \"$1\" < /dev/null";

impl LoadCommand {
    /// Starts a shell that becomes the command on [`Self::release`], and exits if this program exits before.
    ///
    /// # Errors
    /// If the shell cannot be started.
    pub(crate) fn hold(command: &str) -> Result<Self, OperationError> {
        let failed =
            |why: &dyn std::fmt::Display| OperationError::machine(format_args!("`{command}`: {why}"));
        let mut held = shell(HELD);
        held.args(["sh", command]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = held.spawn().map_err(|error| failed(&error))?;
        let process = identity(child.id()).ok_or_else(|| failed(&"it has ended at once"))?;
        let begin = child.stdin.take();
        let said = LastLines::of(child.stderr.take());
        Ok(Self { child, process, command: command.to_owned(), begin, said, status: None })
    }

    /// Starts the command.
    ///
    /// # Errors
    /// If the shell has ended already.
    pub(crate) fn release(&mut self) -> Result<(), OperationError> {
        let let_go = self.begin.take().map_or(Ok(()), |mut begin| begin.write_all(b"begin\n"));
        let_go.map_err(|error| OperationError::machine(format_args!("`{}`: {error}", self.command)))
    }

    /// Returns the first process, which leads the group.
    pub(crate) fn process(&self) -> ProcessIdentity {
        self.process
    }

    /// Returns true if it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        !is_alive(self.process)
    }

    /// Describes an exit by itself, and tells if it was successful; `None` while it runs.
    pub(crate) fn own_end(&mut self) -> Option<(String, bool)> {
        if !self.has_ended() {
            return None;
        }
        self.end();
        let status = self.status?;
        let said = self.said.read();
        let said = if said.is_empty() { said } else { format!(": {said}") };
        Some((format!("`{}` ended by itself with {status}{said}", self.command), status.success()))
    }

    /// Ends all processes of the group. Returns true if none is left.
    pub(crate) fn end(&mut self) -> bool {
        // The PID is not reused before wait(2).
        if self.status.is_some() {
            return true;
        }
        let has_ended = end_group(self.process);
        if has_ended {
            self.status = self.child.wait().ok();
        }
        has_ended
    }
}

impl Drop for LoadCommand {
    fn drop(&mut self) {
        self.end();
    }
}

/// Maximum bytes kept of a line.
const LINE_MAX: u64 = 400;
/// Time to wait for the last lines, because a process that left the group may keep the pipe open.
const LINE_WAIT: Duration = Duration::from_millis(500);

/// Last two lines of a program's standard error, usually an error and its hint.
#[derive(Debug)]
struct LastLines {
    lines: Arc<Mutex<String>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl LastLines {
    fn of(stderr: Option<ChildStderr>) -> Self {
        let lines: Arc<Mutex<String>> = Arc::default();
        let kept = Arc::clone(&lines);
        let reader = stderr.map(|stderr| thread::spawn(move || Self::keep(stderr, &kept)));
        Self { lines, reader }
    }

    fn keep(from: impl Read, kept: &Mutex<String>) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        let mut last = String::new();
        while (&mut from).take(LINE_MAX).read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if !text.is_empty() {
                let both = if last.is_empty() { text.clone() } else { format!("{last}; {text}") };
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = both;
                last = text;
            }
            line.clear();
        }
    }

    /// Returns the lines after the program has ended.
    fn read(&self) -> String {
        let begun = Instant::now();
        while self.reader.as_ref().is_some_and(|reader| !reader.is_finished()) && begun.elapsed() < LINE_WAIT
        {
            thread::sleep(POLL);
        }
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the processes of a group and its first one, which may have left it.
fn group_with(first: ProcessIdentity) -> BTreeSet<ProcessIdentity> {
    group_of(first.id).into_iter().chain([first]).collect()
}

/// Ends the group if its leader is still the same process: SIGTERM first, then SIGKILL. Returns true if none
/// is left.
pub(super) fn end_group(first: ProcessIdentity) -> bool {
    // kill(2) with −1 or 0 would address every process, or our own group.
    let Some(group) = i32::try_from(first.id).ok().filter(|id| *id > 1).and_then(Pid::from_raw) else {
        return true;
    };
    // The PID is not reused while the process is unreaped or its group has members.
    let is_same = || identity(first.id) == Some(first);
    if !is_same() {
        return true;
    }
    let members = group_with(first);
    let all = || if is_same() { group_with(first) } else { members.clone() };
    for signal in [Signal::TERM, Signal::KILL] {
        if is_same() {
            let _ = kill_process_group(group, signal);
        }
        for member in all().into_iter().filter(|member| is_alive(*member)) {
            let _ =
                i32::try_from(member.id).ok().and_then(Pid::from_raw).map(|pid| kill_process(pid, signal));
        }
        let begun = Instant::now();
        while all().into_iter().any(is_alive) {
            if begun.elapsed() > END_MAX {
                break;
            }
            thread::sleep(POLL);
        }
    }
    !all().into_iter().any(is_alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn commands_say_how_they_ended() {
        assert_eq!(run("true"), Ok(()));
        let error = run("exit 3").expect_err("it fails");
        assert!(error.message.contains("`exit 3`") && error.message.contains('3'), "{error}");
    }

    fn started(command: &str) -> LoadCommand {
        let mut load = LoadCommand::hold(command).expect("there is a shell");
        load.release().expect("it waits");
        load
    }

    /// Reads the number that a command writes to a file.
    fn number_in(file: &Path) -> u32 {
        let number = || std::fs::read_to_string(file).ok()?.trim().parse().ok();
        testkit::wait_until(LIMIT, "the load starts", || number().is_some());
        number().expect("it was there")
    }

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn load_ends_with_what_it_has_started() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("pid");
        // The second process ignores SIGTERM.
        let command = format!(
            "(trap '' TERM; exec sleep 1000) & echo $! > {0}.new; mv {0}.new {0}; wait",
            file.display()
        );
        let mut load = started(&command);
        let id = number_in(&file);
        assert!(!load.has_ended());
        assert_eq!(load.own_end(), None);
        let other = identity(id).expect("it runs");
        assert!(group_of(load.process().id).contains(&other));
        drop(load);
        assert!(!is_alive(other));
    }

    #[test]
    fn load_ends_though_its_first_process_has_left_its_group() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("pid");
        // The group of the second one is its own, and the first one joins it.
        let script = "import os, time\n\
                      child = os.fork()\n\
                      if child == 0: time.sleep(1000)\n\
                      os.setpgid(child, child); os.setpgid(0, child)\n\
                      open(NAME + '.new', 'w').write(str(child)); os.rename(NAME + '.new', NAME)\n\
                      time.sleep(1000)\n";
        let script = script.replace("NAME", &format!("'{}'", file.display()));
        let script_file = folder.path().join("load.py");
        std::fs::write(&script_file, script).expect("it is ours");
        let mut load = started(&format!("exec python3 {}", script_file.display()));
        let other = identity(number_in(&file)).expect("it runs");
        assert!(load.end() && !is_alive(load.process()), "it is waited for");
        // Those that have left the group go on.
        assert!(is_alive(other));
        let _ = kill_process(
            Pid::from_raw(i32::try_from(other.id).expect("small")).expect("a number"),
            Signal::KILL,
        );
    }

    #[test]
    fn load_does_not_begin_before_it_is_let_go() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("begun");
        let held = LoadCommand::hold(&format!("touch {}", file.display())).expect("there is a shell");
        let process = held.process();
        drop(held);
        assert!(!is_alive(process) && !file.exists());
        // As after the end of this program: the other end of its input is closed.
        let mut held = LoadCommand::hold(&format!("touch {}", file.display())).expect("there is a shell");
        held.begin = None;
        testkit::wait_until(LIMIT, "it ends", || held.has_ended());
        assert!(!file.exists());
    }

    #[test]
    fn load_that_ends_by_itself_says_how() {
        for (command, said, is_right) in [
            ("echo 'no such server' >&2; exit 3", "exit status: 3: no such server", false),
            ("no-such-generator", "not found", false),
            ("true", "with exit status: 0", true),
        ] {
            let mut load = started(command);
            testkit::wait_until(LIMIT, "it ends", || load.has_ended());
            let (sentence, was_right) = load.own_end().expect("it has ended");
            assert!(sentence.contains(command) && sentence.contains(said), "{sentence}");
            assert_eq!(was_right, is_right, "{sentence}");
        }
    }

    #[test]
    fn a_process_that_has_got_the_number_is_left_alone() {
        let mut load = started("exec sleep 1000");
        let process = load.process();
        assert!(end_group(ProcessIdentity { start: process.start - 1, ..process }));
        assert!(!load.has_ended());
        assert!(load.end() && load.has_ended());
    }
}
