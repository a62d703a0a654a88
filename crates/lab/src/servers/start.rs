//! Starting and ending: namespaces, priority, logs, and who dies with whom.

use super::ready::is_ready;
use super::service::{Launch, Service};
use crate::programs;
use model::OperationError;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Servers that are not ready by then are not well.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);
/// Of a log, in an error.
const LOG_LINES: usize = 8;

/// How long a server lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until its [`Running`] is dropped, or the thread that started it ends, however that comes about.
    Mine,
    /// Until somebody kills it.
    Own,
}

/// Where and how to run a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A network namespace; otherwise that of this process.
    pub netns: Option<String>,
    /// For logs and configurations; it is made if it is not there.
    pub folder: PathBuf,
    /// Priority under SCHED_FIFO, 1 to 99; otherwise an ordinary process.
    pub realtime: Option<u32>,
    /// How long.
    pub lifetime: Lifetime,
}

/// A server that was ready once.
#[derive(Debug)]
pub struct Running {
    child: Child,
    log: PathBuf,
    lifetime: Lifetime,
}

impl Running {
    /// Starts a server and waits until it is ready. Its log is named after it.
    ///
    /// # Errors
    /// When a program is not installed, or the server ends or does not become ready: with the end of its log.
    pub fn start(name: &str, service: &Service, place: &Place) -> Result<Self, OperationError> {
        let cannot = |error: io::Error| {
            OperationError::machine(format_args!("{}: {error}", place.folder.display()))
                .hint("the lab's folder must be writable")
        };
        std::fs::create_dir_all(&place.folder).map_err(cannot)?;
        let launch = service.launch(&place.folder)?;
        let log = place.folder.join(format!("{name}.log"));
        let output = File::create(&log).map_err(cannot)?;
        let mut command = wrapped(&launch, place)?;
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(cannot)?).stderr(output);
        // Keys pressed at a terminal are for us.
        command.process_group(0);
        let child = command.spawn().map_err(|error| {
            OperationError::machine(format_args!("{name} cannot be started: {error}")).hint("run as root")
        })?;
        let mut running = Self { child, log, lifetime: Lifetime::Mine };
        running.wait_until_ready(name, service, place)?;
        // From now on it may outlive this value, not before: a failure leaves nothing.
        running.lifetime = place.lifetime;
        Ok(running)
    }

    fn wait_until_ready(
        &mut self,
        name: &str,
        service: &Service,
        place: &Place,
    ) -> Result<(), OperationError> {
        let deadline = Instant::now() + PATIENCE;
        let failed = |what: String, log: &Path| {
            OperationError::machine(format_args!("{name} {what}{}", tail(log)))
                .hint(format_args!("its log is {}", log.display()))
        };
        loop {
            let ended = self.child.try_wait().ok().flatten();
            if let Some(status) = ended {
                return Err(failed(format!("ended at once ({status})"), &self.log));
            }
            if is_ready(&service.ready(), place.netns.as_deref()) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(failed(format!("was not ready after {} s", PATIENCE.as_secs()), &self.log));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Its process: killed, it takes all of the server with it.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it prints.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it without warning, as a crash does, and waits until it is gone.
    pub fn kill(&mut self) {
        // The first process of the namespace is gone when all others are, and `unshare` when that is.
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

impl Drop for Running {
    fn drop(&mut self) {
        if self.lifetime == Lifetime::Mine {
            self.kill();
        }
    }
}

/// The program inside everything that surrounds it. All but the last of these replace themselves by what follows,
/// so that the child is `unshare`, which takes the process namespace with it.
fn wrapped(launch: &Launch, place: &Place) -> Result<Command, OperationError> {
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |args: &[&str]| words.extend(args.iter().map(OsString::from));
    if place.lifetime == Lifetime::Mine {
        programs::find("setpriv")?;
        add(&["setpriv", "--pdeathsig", "KILL"]);
    }
    if let Some(netns) = &place.netns {
        programs::find("ip")?;
        add(&["ip", "netns", "exec", netns]);
    }
    programs::find("unshare")?;
    add(&["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    if let Some(priority) = place.realtime {
        programs::find("chrt")?;
        add(&["chrt", "-f", &priority.to_string()]);
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(&launch.program).args(&launch.args);
    Ok(command)
}

/// The end of a log, on a line of its own.
fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}

/// Whether this process may start others under SCHED_FIFO.
pub fn may_be_realtime() -> bool {
    let mut probe = Command::new("chrt");
    probe.args(["-f", "1", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// When a process was started, in ticks since boot: with its number, this names it for ever. None if there is none, or
/// if it ended and nobody looked after it.
pub fn started_at(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses, which may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Whether this very process runs.
pub fn is_running(pid: u32, started: u64) -> bool {
    started_at(pid) == Some(started)
}

/// Ends a process without warning; it may be gone already. What `unshare` keeps dies with it.
pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
