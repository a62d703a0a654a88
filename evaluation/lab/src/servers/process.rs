//! Server processes: started in their namespaces with priority and log, awaited, and killed with all that they started.

use super::launch::LaunchCommand;
use super::service::LabService;
use crate::programs;
use model::OperationError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time that a server has to become ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(5);
/// Number of last lines of a log that an error quotes.
const QUOTED_LINES: usize = 8;

/// Event that ends a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerLifetime {
    /// It is killed when its [`ServerProcess`] is dropped or the thread that started it ends, even by a crash.
    WithStarter,
    /// It runs until it is killed by its process id.
    UntilKilled,
}

/// Directory, namespace and options in which a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEnvironment {
    /// The network namespace; `None` is that of this process.
    pub netns: Option<String>,
    /// The folder for logs and configurations, which is created if need be.
    pub folder: PathBuf,
    /// The priority under SCHED_FIFO, 1 to 99; `None` is an ordinary process.
    pub realtime: Option<u32>,
    pub lifetime: ServerLifetime,
}

/// A server that became ready after its start.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    log: PathBuf,
    lifetime: ServerLifetime,
}

impl ServerProcess {
    /// Starts a server and waits until it is ready. Its log is `name.log` in the folder of the environment.
    ///
    /// # Errors
    /// When a program is not installed, or when the server ends or does not become ready: with the end of its log.
    pub fn start(
        name: &str,
        service: &LabService,
        environment: &ServerEnvironment,
    ) -> Result<Self, OperationError> {
        let folder_error = |error: io::Error| {
            OperationError::machine(format_args!("{}: {error}", environment.folder.display()))
                .hint("the lab's folder must be writable")
        };
        std::fs::create_dir_all(&environment.folder).map_err(folder_error)?;
        let launch = LaunchCommand::for_service(service, &environment.folder)?;
        let log = environment.folder.join(format!("{name}.log"));
        let output = File::create(&log).map_err(folder_error)?;
        let mut command = isolated_command(&launch, environment)?;
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(folder_error)?).stderr(output);
        // A process group of its own, so that Ctrl-C at a terminal reaches this process only.
        command.process_group(0);
        let child = command.spawn().map_err(|error| {
            OperationError::machine(format_args!("{name} cannot be started: {error}")).hint("run as root")
        })?;
        let mut process = Self { child, log, lifetime: ServerLifetime::WithStarter };
        process.wait_until_ready(name, service, environment)?;
        // Only a server that is ready may outlive this value, so that a failed start leaves nothing.
        process.lifetime = environment.lifetime;
        Ok(process)
    }

    fn wait_until_ready(
        &mut self,
        name: &str,
        service: &LabService,
        environment: &ServerEnvironment,
    ) -> Result<(), OperationError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        let probe = service.readiness();
        loop {
            if let Some(status) = self.child.try_wait().ok().flatten() {
                return Err(self.start_error(format_args!("{name} ended at once ({status})")));
            }
            if probe.succeeds(environment.netns.as_deref()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let seconds = READY_TIMEOUT.as_secs();
                return Err(self.start_error(format_args!("{name} was not ready after {seconds} s")));
            }
            std::thread::sleep(PROBE_INTERVAL);
        }
    }

    fn start_error(&self, what: std::fmt::Arguments<'_>) -> OperationError {
        OperationError::machine(format_args!("{what}{}", quoted_tail(&self.log)))
            .hint(format_args!("its log is {}", self.log.display()))
    }

    /// Returns the ID of the process that ends the whole server when it is killed.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The file with the output of the server.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Returns true if the server still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the server as a crash does, and waits until no process of it is left.
    pub fn kill(&mut self) {
        // `unshare` ends after the first process of the namespace, which ends after all others in it. Killing `unshare`
        // itself would not wait for them.
        match first_child(self.child.id()) {
            Some(first) => kill(first),
            None => drop(self.child.kill()),
        }
        let _ = self.child.wait();
    }
}

fn first_child(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if self.lifetime == ServerLifetime::WithStarter {
            self.kill();
        }
    }
}

/// Makes the command that sets up the environment of the program. Every part of it but `unshare` replaces
/// itself by the next, so the child is `unshare`; its end ends the process namespace.
fn isolated_command(
    launch: &LaunchCommand,
    environment: &ServerEnvironment,
) -> Result<Command, OperationError> {
    let mut words: Vec<&str> = Vec::new();
    if environment.lifetime == ServerLifetime::WithStarter {
        programs::find("setpriv")?;
        words.extend(["setpriv", "--pdeathsig", "KILL"]);
    }
    if let Some(netns) = &environment.netns {
        programs::find("ip")?;
        words.extend(["ip", "netns", "exec", netns]);
    }
    programs::find("unshare")?;
    words.extend(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    let priority = environment.realtime.map(|priority| priority.to_string());
    if let Some(priority) = &priority {
        programs::find("chrt")?;
        words.extend(["chrt", "-f", priority]);
    }
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(&launch.program).args(&launch.args);
    Ok(command)
}

/// The last lines of a log, each indented on a line of its own.
fn quoted_tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(QUOTED_LINES)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}

/// Returns true if this process may start others under SCHED_FIFO; tries it.
pub fn may_be_realtime() -> bool {
    let mut probe = Command::new("chrt");
    probe.args(["-f", "1", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Returns the start time of a process, clock ticks since boot. With the PID it identifies the process
/// although PIDs are reused. `None` for a zombie or a missing process.
pub fn started_at(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses, which may contain anything; the state follows it, and field 22 is the
    // start time.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Returns true if the process with this PID is still the one that was started at this time.
pub fn is_running(pid: u32, started: u64) -> bool {
    started_at(pid) == Some(started)
}

/// Kills a process, if it is there. A server's `unshare` takes its process namespace with it.
pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
