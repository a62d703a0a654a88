//! A lab that stays until it is taken down: hosts, a switch and servers, remembered in a file.
//!
//! What is there is looked at, not believed: a server counts as running when its very process does, and taking down
//! goes by the names of namespaces, so that it also removes what a crash left. Bringing up what is up changes nothing.

use crate::servers::{Lifetime, Place, Running, Service, is_running, kill, may_be_realtime, started_at};
use enforce::command::{CommandRunner, SystemCommand, may_configure_networks};
use machine::virtual_network::{VirtualHost, VirtualNetwork};
use model::OperationError;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The host of the servers.
pub const STORE: &str = "store";
/// The value of `format` in a state file.
pub const STATE_FORMAT: &str = "tailwright-lab-1";
/// Processes that were killed are gone by then.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);
/// Of servers: below those of proxies and generators of load, which must see them wait.
const PRIORITY: u32 = 5;

/// What there shall be.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Of the names of namespaces.
    pub prefix: String,
    /// Hosts beside [`STORE`].
    pub clients: Vec<String>,
    /// On [`STORE`].
    pub services: Vec<Service>,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// [`STATE_FORMAT`].
    pub format: String,
    /// Of the names of namespaces.
    pub prefix: String,
    /// In the order in which they have their addresses.
    pub hosts: Vec<Host>,
    /// In the order in which they were started.
    pub servers: Vec<Server>,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name in the lab.
    pub name: String,
    /// Its network namespace.
    pub netns: String,
    /// Its address.
    pub ipv4: Ipv4Addr,
    /// Its address.
    pub ipv6: Ipv6Addr,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its name in the lab.
    pub name: String,
    /// How clients name it.
    pub uri: String,
    /// The process that keeps it.
    pub pid: u32,
    /// When that was started, in ticks since boot.
    pub started: u64,
    /// What it prints.
    pub log: PathBuf,
}

impl Server {
    /// Whether it runs now.
    pub fn is_running(&self) -> bool {
        is_running(self.pid, self.started)
    }
}

/// The folder of the state file and of logs, for one lab.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Locked as long as this lives.
    _lock: File,
}

fn cannot(path: &Path) -> impl Fn(io::Error) -> OperationError + '_ {
    |error| {
        OperationError::machine(format_args!("{}: {error}", path.display()))
            .hint("run as root, or give --state a folder")
    }
}

impl Folder {
    /// Where labs are by default.
    pub const DEFAULT: &'static str = "/run/tailwright";

    /// Makes it if need be, and keeps others out until it is dropped.
    ///
    /// # Errors
    /// When it cannot be written, or somebody else is at it.
    pub fn open(path: &Path) -> Result<Self, OperationError> {
        std::fs::create_dir_all(path).map_err(cannot(path))?;
        let file = path.join("lab.lock");
        let lock = File::create(&file).map_err(cannot(&file))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            OperationError::machine("another tailwright is changing the lab").hint("wait until it is done")
        })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    fn write(&self, state: &State) -> Result<(), OperationError> {
        let (file, aside) = (self.path.join("lab.json"), self.path.join("lab.json.tmp"));
        let text = serde_json::to_string_pretty(state).expect("plain data") + "\n";
        std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, &file)).map_err(cannot(&file))
    }
}

/// What a state file in a folder says; none if there is none.
///
/// # Errors
/// When it cannot be read.
pub fn read(folder: &Path) -> Result<Option<State>, OperationError> {
    let file = folder.join("lab.json");
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(&file)(error)),
    };
    match serde_json::from_str::<State>(&text) {
        Ok(state) if state.format == STATE_FORMAT => Ok(Some(state)),
        Ok(state) => Err(unreadable(&file, format_args!("its format is '{}'", state.format))),
        Err(error) => Err(unreadable(&file, error)),
    }
}

fn unreadable(file: &Path, what: impl std::fmt::Display) -> OperationError {
    let hint = "`tailwright lab down` removes the lab by its names and forgets this file";
    OperationError::machine(format_args!("{}: {what}", file.display())).hint(hint)
}

/// Makes what is wanted and is not there; what is there and not wanted stays. Names of what was made or started.
///
/// # Errors
/// Without root or a program, before anything is changed; when a server does not start, with the others left running.
pub fn up(
    run: &mut dyn CommandRunner,
    folder: &Folder,
    wanted: &Wanted,
) -> Result<(State, Vec<String>), OperationError> {
    root()?;
    for service in &wanted.services {
        service.check()?;
    }
    let mut changed = Vec::new();
    let mut state = match read(&folder.path)? {
        Some(state) if is_there(run, &state)? => {
            fits(&state, wanted)?;
            state
        }
        _ => {
            let lab = make(run, folder, wanted)?;
            changed.extend(lab.hosts.iter().map(|host| host.name.clone()));
            lab
        }
    };
    for service in &wanted.services {
        if start(folder, &mut state, service)? {
            changed.push(service.name().to_owned());
        }
    }
    Ok((state, changed))
}

fn root() -> Result<(), OperationError> {
    match may_configure_networks() {
        true => Ok(()),
        false => Err(OperationError::machine("this process may not configure networks").hint("run as root")),
    }
}

fn namespaces(run: &mut dyn CommandRunner) -> Result<Vec<String>, OperationError> {
    let listed = run.run(&SystemCommand::new("ip netns list"))?;
    Ok(listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn is_there(run: &mut dyn CommandRunner, state: &State) -> Result<bool, OperationError> {
    let present = namespaces(run)?;
    Ok(state.hosts.iter().all(|host| present.contains(&host.netns)))
}

fn names(wanted: &Wanted) -> Vec<&str> {
    wanted.clients.iter().map(String::as_str).chain([STORE]).collect()
}

/// Hosts cannot be added to a lab that is up.
fn fits(state: &State, wanted: &Wanted) -> Result<(), OperationError> {
    let here: Vec<&str> = state.hosts.iter().map(|host| host.name.as_str()).collect();
    if state.prefix == wanted.prefix && here == names(wanted) {
        return Ok(());
    }
    Err(OperationError::input(format_args!("a lab with the hosts {} is up", here.join(", ")))
        .hint("`tailwright lab down` removes it, or ask for the same hosts"))
}

fn make(run: &mut dyn CommandRunner, folder: &Folder, wanted: &Wanted) -> Result<State, OperationError> {
    clear(run, &wanted.prefix)?;
    let lab =
        VirtualNetwork::create(|line, input| run.run_line(line, input), &wanted.prefix, &names(wanted))?;
    let host =
        |host: VirtualHost| Host { name: host.name, netns: host.netns, ipv4: host.ipv4, ipv6: host.ipv6 };
    let state = State {
        format: STATE_FORMAT.to_owned(),
        prefix: wanted.prefix.clone(),
        hosts: lab.hosts.into_iter().map(host).collect(),
        servers: Vec::new(),
    };
    folder.write(&state)?;
    Ok(state)
}

/// Whether it was started: false if it runs as it shall.
fn start(folder: &Folder, state: &mut State, service: &Service) -> Result<bool, OperationError> {
    let host = state.hosts.iter().find(|host| host.name == STORE).expect("a lab has a store");
    let (netns, uri) = (host.netns.clone(), service.uri(host.ipv4.into()));
    if let Some(at) = state.servers.iter().position(|server| server.name == service.name()) {
        if state.servers[at].is_running() && state.servers[at].uri == uri {
            return Ok(false);
        }
        end(&state.servers.remove(at));
        folder.write(state)?;
    }
    let place = Place {
        netns: Some(netns),
        folder: folder.path.join("servers"),
        realtime: may_be_realtime().then_some(PRIORITY),
        lifetime: Lifetime::Own,
    };
    let running = Running::start(service.name(), service, &place)?;
    state.servers.push(Server {
        name: service.name().to_owned(),
        uri,
        pid: running.pid(),
        started: started_at(running.pid()).unwrap_or(0),
        log: running.log().to_owned(),
    });
    folder.write(state)?;
    Ok(true)
}

fn end(server: &Server) {
    let deadline = Instant::now() + PATIENCE;
    while server.is_running() && Instant::now() < deadline {
        kill(server.pid);
        std::thread::sleep(PAUSE);
    }
}

/// Removes all namespaces whose names begin with the prefix and `-`, the processes in them, and the state. What was
/// there.
///
/// # Errors
/// Without root, or when something cannot be removed.
pub fn down(
    run: &mut dyn CommandRunner,
    folder: &Folder,
    prefix: &str,
) -> Result<Vec<String>, OperationError> {
    root()?;
    let removed = clear(run, prefix)?;
    for path in [folder.path.join("lab.json"), folder.path.join("lab.json.tmp")] {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(&path)(error)),
            _ => {}
        }
    }
    let _ = std::fs::remove_dir_all(folder.path.join("servers"));
    Ok(removed)
}

fn clear(run: &mut dyn CommandRunner, prefix: &str) -> Result<Vec<String>, OperationError> {
    let ours = |name: &String| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'));
    let removed: Vec<String> = namespaces(run)?.into_iter().filter(ours).collect();
    for netns in &removed {
        empty(run, netns)?;
        run.run(&SystemCommand::new(&format!("ip netns delete {netns}")))?;
    }
    Ok(removed)
}

/// Kills what runs in a namespace, and waits until it is gone.
fn empty(run: &mut dyn CommandRunner, netns: &str) -> Result<(), OperationError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let listed = run.run(&SystemCommand::new(&format!("ip netns pids {netns}")))?;
        let pids: Vec<u32> = listed.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        if pids.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(OperationError::machine(format_args!(
                "process {} in {netns} cannot be killed",
                pids[0]
            ))
            .hint("it waits for the kernel; try again later"));
        }
        pids.into_iter().for_each(kill);
        std::thread::sleep(PAUSE);
    }
}
