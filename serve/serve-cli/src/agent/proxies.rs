//! Proxies that the agent runs: processes, logs and locks of what [`SupervisedProxy`] decides.
//!
//! A proxy outlives its agent. Its standard input is a locked file, so that the lock lasts exactly as long as the
//! process: the kernel knows later whether a proxy of an agent lives, and neither a pid that was written down
//! nor a process that was forgotten misleads. Its output is a file, because a pipe would break with the agent.

use super::proxy_lock;
use agent::{ProxyNews, ProxySight, SupervisedProxy};
use cli::terminal::{Talk, talk};
use enforce::deployment::Deployment;
use enforce::facade::HostsFile;
use enforce::state_folder::StateFolder;
use enforce::storage;
use model::OperationError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Size of a log beyond which what was read of it is deleted.
const LOG_MAX: u64 = 1 << 20;
/// Longest reason for an end, characters.
const REASON_MAX: usize = 300;
/// Interval between looks while the name of this host is not known.
const LOOK_FOR_NAME: Duration = Duration::from_secs(1);

/// The thread that supervises the proxies of a host.
#[derive(Debug)]
pub(super) struct ProxySupervision {
    shared: Arc<Mutex<Shared>>,
    wake: Sender<()>,
    /// File with the name of the host, which a start without a controller needs.
    name_file: PathBuf,
}

#[derive(Debug, Default)]
struct Shared {
    host: Option<String>,
    warnings: Vec<String>,
}

impl ProxySupervision {
    /// Begins to supervise the proxies that a hosts file names for this host. `memory` is the folder with the host's name.
    ///
    /// # Errors
    /// If the hosts file is not one, or the folder of the state cannot be used.
    pub(super) fn begin(hosts: &Path, state: &Path, memory: &Path) -> Result<Self, OperationError> {
        let read_at = modified(hosts);
        let file = HostsFile::read(hosts)?;
        // Those who could replace a lock could have root end another process.
        StateFolder::create(state)?;
        let name_file = memory.join("host");
        let known = std::fs::read_to_string(&name_file).ok().filter(|name| !name.is_empty());
        let shared = Arc::new(Mutex::new(Shared { host: known, warnings: Vec::new() }));
        let (wake, woken) = mpsc::channel();
        let mut supervisor = Supervisor {
            hosts: hosts.to_owned(),
            read_at,
            deployment: file.deployment,
            complaint: None,
            state: state.to_owned(),
            shared: Arc::clone(&shared),
            wake: wake.clone(),
            proxies: BTreeMap::new(),
            began: Instant::now(),
        };
        std::thread::spawn(move || supervisor.run(&woken));
        Ok(Self { shared, wake, name_file })
    }

    /// Takes the name of this host, as the controller knows it.
    pub(super) fn host_is(&self, name: &str) {
        let mut shared = lock(&self.shared);
        if name.is_empty() || shared.host.as_deref() == Some(name) {
            return;
        }
        shared.host = Some(name.to_owned());
        drop(shared);
        if let Err(error) = machine::whole_file::write(&self.name_file, name.as_bytes()) {
            talk(Talk::Warning, format_args!("agent: {}: {error}", self.name_file.display()));
        }
        let _ = self.wake.send(());
    }

    /// Returns sentences about proxies that need a look.
    pub(super) fn warnings(&self) -> Vec<String> {
        lock(&self.shared).warnings.clone()
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

struct Supervisor {
    hosts: PathBuf,
    /// When the hosts file was changed that was read.
    read_at: Option<SystemTime>,
    deployment: Deployment,
    /// Reason why the present hosts file is not used.
    complaint: Option<String>,
    state: PathBuf,
    shared: Arc<Mutex<Shared>>,
    wake: Sender<()>,
    proxies: BTreeMap<String, RunProxy>,
    began: Instant,
}

/// A proxy with its files.
struct RunProxy {
    supervised: SupervisedProxy,
    server: String,
    control: PathBuf,
    lock: PathBuf,
    log: PathBuf,
    /// Number of bytes of the log that were repeated.
    repeated: u64,
    /// The latest error in the log of this run.
    error: Option<String>,
    child: Option<Child>,
    /// Reason for the end of the latest child.
    end: Option<String>,
}

impl Supervisor {
    fn run(&mut self, woken: &Receiver<()>) {
        loop {
            let wait = self.look();
            // A timeout is the usual case; the other end lives as long as this.
            let _ = woken.recv_timeout(wait);
        }
    }

    /// Looks at all proxies. Returns the time after which to look again.
    fn look(&mut self) -> Duration {
        let Some(host) = lock(&self.shared).host.clone() else { return LOOK_FOR_NAME };
        self.read_hosts_again();
        let servers = self.deployment.servers.iter();
        let servers: Vec<String> = servers
            .filter(|server| server.host == host && server.storage.is_some())
            .map(|server| server.name.clone())
            .collect();
        // Proxies that are not in the file any more go on without supervision.
        self.proxies.retain(|name, _| servers.contains(name));
        for name in servers {
            self.proxies.entry(name.clone()).or_insert_with(|| RunProxy::new(&self.state, &name));
        }
        let mut wait = LOOK_FOR_NAME;
        for proxy in self.proxies.values_mut() {
            let sight = proxy.sight();
            let step = proxy.supervised.look(self.began.elapsed(), &sight);
            if let Some(news) = step.news {
                proxy.say(&news);
            }
            if step.starts {
                proxy.start(&self.hosts, &self.state, &self.wake);
            }
            wait = wait.min(proxy.supervised.look_after(self.began.elapsed()));
        }
        let mut warnings: Vec<String> = self.complaint.iter().cloned().collect();
        if self.deployment.host(&host).is_none() {
            warnings.push(format!("{}: there is no host '{host}' in it", self.hosts.display()));
        }
        let of_proxies = self.proxies.values().filter_map(|proxy| proxy.supervised.warning());
        warnings.extend(of_proxies.map(str::to_owned));
        lock(&self.shared).warnings = warnings;
        wait
    }

    /// Reads the hosts file if it was changed. One with a mistake is a warning, and the one before is kept.
    fn read_hosts_again(&mut self) {
        let changed = modified(&self.hosts);
        if changed == self.read_at {
            return;
        }
        self.read_at = changed;
        match HostsFile::read(&self.hosts) {
            Ok(file) => {
                self.deployment = file.deployment;
                self.complaint = None;
                talk(Talk::Note, format_args!("agent: {} was read again", self.hosts.display()));
            }
            Err(error) => {
                let complaint = format!("{error}; the hosts file before is kept");
                talk(Talk::Warning, format_args!("agent: {complaint}"));
                self.complaint = Some(complaint);
            }
        }
    }
}

impl RunProxy {
    fn new(state: &Path, server: &str) -> Self {
        let log = state.join(format!("proxy-{server}.log"));
        let repeated = std::fs::metadata(&log).map_or(0, |metadata| metadata.len());
        Self {
            supervised: SupervisedProxy::new(server),
            server: server.to_owned(),
            control: storage::control_path(state, server),
            lock: proxy_lock::path_of(state, server),
            log,
            repeated,
            error: None,
            child: None,
            end: None,
        }
    }

    fn sight(&mut self) -> ProxySight {
        let status = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        self.repeat_log();
        if let Some(status) = status {
            self.child = None;
            let said = self.error.take().filter(|_| status.signal().is_none());
            self.end = Some(said.unwrap_or_else(|| status.to_string()));
        }
        if storage::is_listening(&self.control) {
            ProxySight::Answers
        } else if self.child.is_some() || proxy_lock::is_held(&self.lock) {
            ProxySight::Silent
        } else {
            ProxySight::Absent(self.end.clone())
        }
    }

    fn say(&self, news: &ProxyNews) {
        let server = &self.server;
        match news {
            ProxyNews::Adopted => {
                talk(Talk::Note, format_args!("agent: the proxy before {server} runs; it is adopted"));
            }
            ProxyNews::Started => {
                talk(Talk::Note, format_args!("agent: the proxy before {server} was started"));
            }
            ProxyNews::AnswersAgain => {
                talk(Talk::Note, format_args!("agent: the proxy before {server} answers again"));
            }
            ProxyNews::Ended { reason, pause } => talk(
                Talk::Warning,
                format_args!(
                    "agent: the proxy before {server} does not run: {reason}; next start in {:.1} s",
                    pause.as_secs_f64()
                ),
            ),
            ProxyNews::Unanswering => talk(
                Talk::Warning,
                format_args!("agent: {}", self.supervised.warning().expect("it has one now")),
            ),
        }
    }

    /// Starts a process; why it could not is found at the next look.
    fn start(&mut self, hosts: &Path, state: &Path, wake: &Sender<()>) {
        self.end = None;
        self.error = None;
        self.repeated = 0;
        match self.spawn(hosts, state) {
            Ok(Some(child)) => {
                wake_at_end(&child, wake);
                self.child = Some(child);
            }
            // Another process of an agent is faster.
            Ok(None) => {}
            Err(error) => self.end = Some(error.to_string()),
        }
    }

    fn spawn(&self, hosts: &Path, state: &Path) -> io::Result<Option<Child>> {
        let Some(lock) = proxy_lock::take(&self.lock)? else { return Ok(None) };
        let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.log)?;
        log.set_len(0)?;
        let child = Command::new(own_program()?)
            .arg("proxy")
            .arg("--hosts")
            .arg(hosts)
            .args(["--server", &self.server])
            .arg("--state")
            .arg(state)
            .stdin(Stdio::from(lock))
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            // Ctrl-C at a terminal is for the agent.
            .process_group(0)
            .spawn()?;
        Ok(Some(child))
    }

    /// Repeats what the proxy has said since the last look, and keeps the latest error.
    fn repeat_log(&mut self) {
        let bytes = read_from(&self.log, self.repeated).unwrap_or_default();
        if bytes.is_empty() {
            return;
        }
        self.repeated += bytes.len() as u64;
        for line in String::from_utf8_lossy(&bytes).lines() {
            talk(Talk::Plain, format_args!("{}: {line}", self.server));
            if let Some(error) = line.strip_prefix("error: ") {
                self.error = Some(error.chars().take(REASON_MAX).collect());
            }
        }
        if self.repeated >= LOG_MAX {
            // The proxy appends, so that it goes on at the new end.
            let _ = OpenOptions::new().write(true).open(&self.log).and_then(|log| log.set_len(0));
            self.repeated = 0;
        }
    }
}

/// Returns what is in a file after a position, at most [`LOG_MAX`] bytes.
fn read_from(path: &Path, position: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(position))?;
    let mut bytes = Vec::new();
    file.take(LOG_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Wakes the supervision when a child ends. Without a descriptor of it, the next look finds that.
fn wake_at_end(child: &Child, wake: &Sender<()>) {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(Ok(process)) = process.map(|process| pidfd_open(process, PidfdFlags::empty())) else { return };
    let wake = wake.clone();
    std::thread::spawn(move || {
        while poll(&mut [PollFd::new(&process, PollFlags::IN)], None) == Err(Errno::INTR) {}
        let _ = wake.send(());
    });
}

/// Returns the path of this program, which may have been replaced by a later version.
fn own_program() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let text = program.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map_or_else(|| program.clone(), PathBuf::from))
}
