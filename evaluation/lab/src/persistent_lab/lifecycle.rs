//! Bringing a persistent lab up and taking it down.

use super::state::{LabFolder, LabState, RecordedHost, RecordedServer, STATE_FORMAT};
use crate::servers::{
    LabService, ServerEnvironment, ServerLifetime, ServerProcess, kill, may_be_realtime, started_at,
};
use enforce::command::{CommandRunner, SystemCommand, may_configure_networks};
use machine::virtual_network::VirtualNetwork;
use model::OperationError;
use std::time::{Duration, Instant};

/// The name of the host on which all servers run.
pub const STORE: &str = "store";
/// Time that killed processes have to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two checks whether a killed process has ended.
const KILL_INTERVAL: Duration = Duration::from_millis(5);
/// The real-time priority of servers: below those of proxies and load generators, which must not be
/// delayed by the servers that they measure.
const SERVER_PRIORITY: u32 = 5;

/// Hosts and servers that the user wants.
#[derive(Debug, Clone, PartialEq)]
pub struct LabSpecification {
    /// Prefix of the namespaces' names.
    pub prefix: String,
    /// The hosts of clients, beside `STORE`.
    pub clients: Vec<String>,
    /// The servers on `STORE`.
    pub services: Vec<LabService>,
}

impl LabSpecification {
    /// All hosts in the order of their addresses.
    fn host_names(&self) -> Vec<&str> {
        self.clients.iter().map(String::as_str).chain([STORE]).collect()
    }
}

/// Makes the missing hosts and starts the missing servers of a specification; others stay. Returns the
/// state and the names of the hosts and services that were made or started.
///
/// # Errors
/// Without root or a program, before anything is changed. When a server does not start, with the others left running.
pub fn bring_up(
    run: &mut dyn CommandRunner,
    folder: &LabFolder,
    specification: &LabSpecification,
) -> Result<(LabState, Vec<String>), OperationError> {
    require_root()?;
    for service in &specification.services {
        service.check_programs()?;
    }
    let mut changed = Vec::new();
    let mut state = match folder.state()? {
        Some(state) if all_hosts_exist(run, &state)? => {
            check_same_hosts(&state, specification)?;
            state
        }
        _ => {
            let state = create_hosts(run, folder, specification)?;
            changed.extend(state.hosts.iter().map(|host| host.name.clone()));
            state
        }
    };
    for service in &specification.services {
        if ensure_running(folder, &mut state, service)? {
            changed.push(service.name().to_owned());
        }
    }
    Ok((state, changed))
}

/// Removes all namespaces whose names are the prefix, `-` and something, the processes in them, and the state. Returns
/// the names of the namespaces.
///
/// # Errors
/// Without root, or when something cannot be removed.
pub fn take_down(
    run: &mut dyn CommandRunner,
    folder: &LabFolder,
    prefix: &str,
) -> Result<Vec<String>, OperationError> {
    require_root()?;
    let removed = remove_namespaces(run, prefix)?;
    folder.clear()?;
    Ok(removed)
}

fn require_root() -> Result<(), OperationError> {
    match may_configure_networks() {
        true => Ok(()),
        false => Err(OperationError::machine("this process may not configure networks").hint("run as root")),
    }
}

fn namespaces(run: &mut dyn CommandRunner) -> Result<Vec<String>, OperationError> {
    let listed = run.run(&SystemCommand::new("ip netns list"))?;
    Ok(listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn all_hosts_exist(run: &mut dyn CommandRunner, state: &LabState) -> Result<bool, OperationError> {
    let present = namespaces(run)?;
    Ok(state.hosts.iter().all(|host| present.contains(&host.netns)))
}

/// Hosts cannot be added to a lab that is up, so the specification must have the same ones.
fn check_same_hosts(state: &LabState, specification: &LabSpecification) -> Result<(), OperationError> {
    let present: Vec<&str> = state.hosts.iter().map(|host| host.name.as_str()).collect();
    if state.prefix == specification.prefix && present == specification.host_names() {
        return Ok(());
    }
    Err(OperationError::input(format_args!("a lab with the hosts {} is up", present.join(", ")))
        .hint("`tailwright lab down` removes it, or ask for the same hosts"))
}

fn create_hosts(
    run: &mut dyn CommandRunner,
    folder: &LabFolder,
    specification: &LabSpecification,
) -> Result<LabState, OperationError> {
    remove_namespaces(run, &specification.prefix)?;
    let lab = VirtualNetwork::create(
        |line, input| run.run_line(line, input),
        &specification.prefix,
        &specification.host_names(),
    )?;
    let hosts = lab.hosts.into_iter();
    let state = LabState {
        format: STATE_FORMAT.to_owned(),
        prefix: specification.prefix.clone(),
        hosts: hosts
            .map(|host| RecordedHost { name: host.name, netns: host.netns, ipv4: host.ipv4, ipv6: host.ipv6 })
            .collect(),
        servers: Vec::new(),
    };
    folder.write_state(&state)?;
    Ok(state)
}

/// Starts a service unless it runs with the same configuration. Returns true if it was started.
fn ensure_running(
    folder: &LabFolder,
    state: &mut LabState,
    service: &LabService,
) -> Result<bool, OperationError> {
    let host = state.hosts.iter().find(|host| host.name == STORE).expect("a lab has a store");
    let netns = host.netns.clone();
    let uri = service.uri(host.ipv4.into());
    if let Some(index) = state.servers.iter().position(|server| server.name == service.name()) {
        let server = &state.servers[index];
        let listens_there = server.uri == uri && server.behind_proxy == service.is_behind_proxy();
        if server.is_running() && listens_there {
            return Ok(false);
        }
        kill_server(&state.servers.remove(index));
        folder.write_state(state)?;
    }
    let environment = ServerEnvironment {
        netns: Some(netns),
        folder: folder.servers(),
        realtime: may_be_realtime().then_some(SERVER_PRIORITY),
        lifetime: ServerLifetime::UntilKilled,
    };
    let process = ServerProcess::start(service.name(), service, &environment)?;
    state.servers.push(RecordedServer {
        name: service.name().to_owned(),
        uri,
        behind_proxy: service.is_behind_proxy(),
        pid: process.pid(),
        started: started_at(process.pid()).unwrap_or(0),
        log: process.log().to_owned(),
    });
    folder.write_state(state)?;
    Ok(true)
}

fn kill_server(server: &RecordedServer) {
    let deadline = Instant::now() + KILL_TIMEOUT;
    while server.is_running() && Instant::now() < deadline {
        kill(server.pid);
        std::thread::sleep(KILL_INTERVAL);
    }
}

/// Removes the namespaces of a prefix with the processes in them. Returns their names.
fn remove_namespaces(run: &mut dyn CommandRunner, prefix: &str) -> Result<Vec<String>, OperationError> {
    let mut removed = namespaces(run)?;
    removed.retain(|name| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-')));
    for netns in &removed {
        kill_processes(run, netns)?;
        run.run(&SystemCommand::new(&format!("ip netns delete {netns}")))?;
    }
    Ok(removed)
}

/// Kills the processes in a namespace and waits until they have ended.
fn kill_processes(run: &mut dyn CommandRunner, netns: &str) -> Result<(), OperationError> {
    let deadline = Instant::now() + KILL_TIMEOUT;
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
        std::thread::sleep(KILL_INTERVAL);
    }
}
