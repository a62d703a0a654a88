//! The links and proxies of a host, as an agent configures and checks them.
//!
//! An assignment is enforced by all of them or by none, links first. What a proxy enforces is asked of the proxy itself,
//! and what links do of the kernel: an assignment is in force if giving it again would change nothing.

use agent::{
    Abilities, Advice, AgentMachine, Assignment, EnforceError, ServerAssignment, ServerObservation,
    WorkloadCounters, hosts_file,
};
use enforce::command::may_configure_networks;
use enforce::deployment::Deployment;
use enforce::facade::{HostsFile, LinkChange, server_runs};
use enforce::storage::{self, ObservedTraffic, ProxyCheck, ProxyObservation};
use model::{Blame, OperationError, Policy};
use operation::{Notice, ProgressObserver, TaskProgress, check_conditions};
use std::path::{Path, PathBuf};
use units::plural;

/// Proxies with control sockets in a folder, which also has the state of links before they were changed.
#[derive(Debug)]
pub(super) struct Enforcer {
    state: PathBuf,
    /// True if links may be changed.
    has_links: bool,
}

/// A proxy and the policy that it is to have.
struct WantedProxy<'a> {
    part: &'a ServerAssignment,
    control: PathBuf,
    hosts: String,
}

impl Enforcer {
    pub(super) fn new(state: &Path, has_links: bool) -> Self {
        Self { state: state.to_owned(), has_links }
    }

    /// Returns what the host can enforce: servers with a control socket in the folder before which a proxy answers.
    pub(super) fn abilities(&self) -> Abilities {
        let entries = std::fs::read_dir(&self.state).into_iter().flatten().flatten();
        let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let servers = names.iter().filter_map(|name| name.strip_prefix("proxy-")?.strip_suffix(".sock"));
        let answers = |server: &&str| storage::is_listening(&storage::control_path(&self.state, server));
        let storage = servers.filter(answers).map(str::to_owned).collect();
        Abilities { storage, network: self.has_links && may_configure_networks() }
    }

    /// Returns the counters and burst curves of the proxies of the assigned servers that answer.
    pub(super) fn observe(&self, agent: &AgentMachine) -> Vec<ServerObservation> {
        let servers = agent.applied().into_iter().flat_map(|assignment| &assignment.servers);
        // A proxy that does not answer is asked again for the next report. One of an older version counts nothing.
        let observed = servers.filter_map(|part| {
            let control = storage::control_path(&self.state, &part.server);
            let observation = storage::query_observation(&control).ok()?;
            let known = agent.curves_known(&part.server).cloned();
            let curves = storage::query_curves(&control, known).ok();
            Some(ServerObservation { curves, ..server_observation(&part.server, observation) })
        });
        observed.collect()
    }

    /// Brings an assignment into force and verifies it. Returns false if it was in force.
    ///
    /// # Errors
    /// If a proxy is missing or refuses, or links cannot be as decided; then all have what they had, or the message says
    /// which has not.
    pub(super) fn enforce(&self, assignment: &Assignment) -> Result<bool, EnforceError> {
        let proxies = self.wanted(assignment)?;
        let mut checks = Vec::new();
        for proxy in &proxies {
            checks.push(proxy.check()?);
        }
        let mut links = self.links(assignment)?.filter(LinkChange::is_needed);
        if links.is_none() && checks.iter().all(|check| !check.is_change) {
            return Ok(false);
        }
        if let Some(links) = &mut links {
            links.execute().map_err(|error| match links.has_begun() {
                false => refused(error),
                true => EnforceError::Unavailable(error.to_string()),
            })?;
        }
        let changed = send_all(&proxies, &checks).and_then(|()| match &links {
            Some(links) => is_in_force(links),
            None => Ok(()),
        });
        changed.map_err(|error| match links.map(|mut links| links.undo()) {
            Some(Err(failure)) => EnforceError::Unavailable(failure.to_string()),
            _ => error,
        })?;
        Ok(true)
    }

    /// The change of the host's links; `None` if the assignment leaves them to others.
    fn links(&self, assignment: &Assignment) -> Result<Option<LinkChange>, EnforceError> {
        if !assignment.network {
            return Ok(None);
        }
        if !self.has_links {
            let reason = "the agent may not change the host's links: start it with --links";
            return Err(EnforceError::Refused(reason.to_owned()));
        }
        let base = Deployment::parse(&assignment.hosts).map_err(refused)?;
        let mut policy = Policy::new("tailwright", Vec::new(), Vec::new()).expect("an empty policy is sound");
        let mut text = assignment.hosts.clone();
        for part in &assignment.servers {
            policy.servers.extend(part.policy.servers.iter().cloned());
            policy.workloads.extend(part.policy.workloads.iter().cloned());
            if let Some(server) = base.servers.iter().find(|server| server.name == part.server) {
                text = hosts_file(&text, &server.host, &part.clients);
            }
        }
        let deployment = Deployment::parse(&text).map_err(refused)?;
        let links = LinkChange::plan(&policy, &deployment, &assignment.host, &self.state).map_err(refused)?;
        let file = HostsFile { path: "hosts.toml".into(), deployment, text };
        let runs = server_runs(&policy, &file, links.packet_bytes());
        check_conditions(&policy, &runs, false, &Silent).map_err(refused)?;
        Ok(Some(links))
    }

    /// Says what an assignment would change.
    pub(super) fn advise(&self, assignment: &Assignment) -> Result<Advice, EnforceError> {
        let mut lines = Vec::new();
        for proxy in self.wanted(assignment)? {
            let workloads = plural(proxy.part.policy.workloads.len() as u64, "workload");
            let server = &proxy.part.server;
            lines.push(match proxy.check() {
                Ok(check) if check.is_change => {
                    let before = check.present.policy.map_or(0, |policy| policy.workloads.len() as u64);
                    format!("the proxy before {server} would get a policy for {workloads}; it has one for {before}")
                }
                Ok(_) => format!("the proxy before {server} has this policy already"),
                Err(EnforceError::Refused(reason) | EnforceError::Unavailable(reason)) => {
                    format!("nothing could be enforced: {reason}")
                }
            });
        }
        if assignment.network {
            lines.push(match self.links(assignment) {
                Ok(Some(links)) if links.is_needed() => {
                    format!("{} would change its links", plural(links.commands() as u64, "command"))
                }
                Ok(_) => "its links are as decided already".to_owned(),
                Err(EnforceError::Refused(reason) | EnforceError::Unavailable(reason)) => {
                    format!("its links could not be limited: {reason}")
                }
            });
        }
        Ok(Advice { epoch: assignment.epoch, text: lines.join("; ") })
    }

    /// The proxies of the assignment's host.
    fn wanted<'a>(&self, assignment: &'a Assignment) -> Result<Vec<WantedProxy<'a>>, EnforceError> {
        if assignment.servers.is_empty() {
            return Ok(Vec::new());
        }
        let base = Deployment::parse(&assignment.hosts).map_err(refused)?;
        let mut proxies = Vec::new();
        for part in &assignment.servers {
            let own = base.servers.iter().find(|server| server.name == part.server);
            // Only the host of a server has its proxy.
            let Some(own) = own.filter(|server| server.host == assignment.host) else { continue };
            let text = hosts_file(&assignment.hosts, &own.host, &part.clients);
            let deployment = Deployment::parse(&text).map_err(refused)?;
            let file = HostsFile { path: "hosts.toml".into(), deployment, text };
            let mut runs = server_runs(&part.policy, &file, None);
            runs.retain(|run| run.server == part.server);
            check_conditions(&part.policy, &runs, false, &Silent).map_err(refused)?;
            let control = storage::control_path(&self.state, &part.server);
            proxies.push(WantedProxy { part, control, hosts: file.text });
        }
        Ok(proxies)
    }
}

impl WantedProxy<'_> {
    fn check(&self) -> Result<ProxyCheck, EnforceError> {
        storage::check_policy(&self.control, Some(&self.part.policy), self.hosts.clone()).map_err(by_blame)
    }

    fn send(&self) -> Result<(), EnforceError> {
        let sent = storage::send_policy(&self.control, Some(&self.part.policy), self.hosts.clone());
        sent.map(drop).map_err(by_blame)
    }
}

fn server_observation(server: &str, observation: ProxyObservation) -> ServerObservation {
    let ProxyObservation { counters, waiting, outstanding, workloads } = observation;
    let counted = |ObservedTraffic { counted, latencies }: ObservedTraffic| WorkloadCounters {
        workload: counted.workload,
        requests: counted.requests,
        bytes: counted.bytes,
        late: counted.late,
        beyond_limits: counted.beyond_limits,
        beyond_limits_waited_s: counted.beyond_limits_waited_s,
        latency_s: counted.waited_s + counted.served_s,
        latencies,
    };
    let workloads = workloads.into_iter().map(counted).collect();
    ServerObservation { server: server.to_owned(), counters, waiting, outstanding, workloads, curves: None }
}

#[expect(clippy::needless_pass_by_value, reason = "a function for map_err")]
fn refused(error: OperationError) -> EnforceError {
    EnforceError::Refused(error.to_string())
}

/// A proxy that does not answer may do so later; what one refuses it will refuse again.
fn by_blame(error: OperationError) -> EnforceError {
    match error.blame {
        Blame::Input => refused(error),
        Blame::Machine => EnforceError::Unavailable(error.to_string()),
    }
}

/// Gives all proxies their policies and verifies them. After an error all have what they had, or the message says which
/// has not.
fn send_all(proxies: &[WantedProxy<'_>], checks: &[ProxyCheck]) -> Result<(), EnforceError> {
    for (at, proxy) in proxies.iter().enumerate() {
        if let Err(error) = proxy.send() {
            return Err(undo(&proxies[..=at], checks, error));
        }
    }
    for proxy in proxies {
        if proxy.check()?.is_change {
            let reason = format!("the proxy before {} has another policy", proxy.part.server);
            return Err(undo(proxies, checks, EnforceError::Refused(reason)));
        }
    }
    Ok(())
}

/// Gives proxies back what they had, after this error. Where that fails it is not known what they have.
fn undo(proxies: &[WantedProxy<'_>], checks: &[ProxyCheck], error: EnforceError) -> EnforceError {
    for (proxy, check) in proxies.iter().zip(checks).rev() {
        if let Err(failure) = storage::restore_policy(&proxy.control, check.present.clone()) {
            return EnforceError::Unavailable(format!("the proxy before {}: {failure}", proxy.part.server));
        }
    }
    error
}

/// Checks that changed links are as they should be.
fn is_in_force(links: &LinkChange) -> Result<(), EnforceError> {
    match links.is_in_force() {
        Ok(true) => Ok(()),
        Ok(false) => Err(EnforceError::Refused("the kernel has other limits than it was given".to_owned())),
        Err(error) => Err(by_blame(error)),
    }
}

/// Remarks on a policy were made when it was decided.
struct Silent;

impl ProgressObserver for Silent {
    fn begin(&self, _: &str, _: u64, _: &str) -> Box<dyn TaskProgress + '_> {
        Box::new(Self)
    }

    fn notice(&self, _: Notice) {}
}

impl TaskProgress for Silent {
    fn advance(&self) {}

    fn update(&self, _: u64, _: u64) {}

    fn rename(&self, _: &str) {}
}
