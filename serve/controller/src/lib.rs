//! The controller of a cluster: a pure state machine that admits workloads and changes hosts without breaking a
//! promise (thesis 2.1, Fig. 2.1: the control plane).
//!
//! A command becomes [`Event`]s ([`Controller::decide`]). The caller appends them to the history, durably, then applies
//! them ([`Controller::apply`]), and only then answers. The state is a fold of the history: after a crash at any instant
//! the history says everything that was acknowledged.
//!
//! **A promise begins when it is enforced.** An admitted workload is [`Standing::Pending`] until every host that its
//! bound rests on has confirmed a policy with it, and no policy that a host may have meanwhile breaks the promises that
//! stand. A host that stops confirming keeps its policy (fail static), and so do promises; one that reports less than
//! it had confirmed ends them until it confirms again.
//!
//! Reading order: [`Event`], then [`ClusterState`], `chain` (the steps of hosts), `order` (the order of steps),
//! `admission`, `observed` (verdicts on promises) and `renewal`.

mod admission;
mod alert;
mod alerts;
mod chain;
mod command;
mod event;
mod observed;
mod order;
mod renewal;
mod reports;
mod room;
mod state;
mod views;

pub use alert::{Alert, AlertKind, AlertState};
pub use command::{Command, CommandError, GIVE_BACK_OBSERVED_MIN, RenewalRequest};
pub use event::{
    Admission, ClassDescription, ClassesDescription, EVENT_VERSION, Event, HostsDescription,
    NetworkEnforcement, RecordedEvent, Renewal, RequestRecord, Role, ServerChange, ServerPlace, TokenRecord,
    Withdrawal, WorkloadRequest, full_name,
};
pub use observed::{
    BurnAlert, LatencyBucket, LiveLimit, LiveTraffic, LiveWindow, NormalisedCurves, Observations,
    ObservedVerdict, ServerCounts, WindowObservation, WorkloadObservation,
};
pub use reports::ReportOutcome;
pub use state::{ClusterState, CoveredTraffic, Decision, DecisionAnswer, HostState, WorkloadState};
pub use views::{ServerView, Standing};

use agent::{AgentAnswer, AgentReport, Ticket};
use std::collections::{BTreeMap, BTreeSet};

/// A controller in memory.
#[derive(Debug, Clone)]
pub struct Controller {
    state: ClusterState,
    /// Number of this run, other than that of all runs before.
    run: u64,
    /// Number of the latest ticket of each host. Tickets of other runs are void.
    tickets: BTreeMap<String, u64>,
    observations: Observations,
}

impl Controller {
    /// Starts a controller before any history. `run` is a number that no other run has.
    pub fn new(run: u64) -> Self {
        Self {
            state: ClusterState::default(),
            run,
            tickets: BTreeMap::new(),
            observations: Observations::default(),
        }
    }

    pub fn state(&self) -> &ClusterState {
        &self.state
    }

    /// Returns the event that begins a history; `None` if there is one.
    pub fn founding(&self, cluster: &str) -> Option<Event> {
        let is_new = self.state.seq == 0;
        is_new.then(|| Event::Founded { cluster: cluster.to_owned() })
    }

    /// Decides on a command and changes nothing. The answer is an event to append and apply; for a question without
    /// commitment it is dropped.
    ///
    /// # Errors
    /// If the command does not suit the state.
    pub fn decide(&self, command: &Command) -> Result<Event, CommandError> {
        match command {
            Command::DescribeClasses(described) => self.describe_classes(described),
            Command::DescribeHosts(described) => self.describe_hosts(described),
            Command::IssueToken(token) => {
                if self.state.tokens.contains_key(&token.name) {
                    return Err(CommandError::Conflict(format!(
                        "token '{}' exists; revoke it first",
                        token.name
                    )));
                }
                Ok(Event::TokenIssued(token.clone()))
            }
            Command::RevokeToken { name } => match self.state.tokens.contains_key(name) {
                true => Ok(Event::TokenRevoked { name: name.clone() }),
                false => Err(CommandError::Unknown(format!("there is no token '{name}'"))),
            },
            Command::Request(request) => self.state.decide_request(request),
            Command::Renew(request) => self.state.decide_renewal(&self.observations, request),
            Command::Remove { tenant, name } => self.state.decide_removal(tenant, name),
        }
    }

    /// Applies an event of the history.
    ///
    /// # Errors
    /// If it does not follow from the history.
    pub fn apply(&mut self, recorded: &RecordedEvent) -> Result<(), String> {
        self.state.apply(recorded)
    }

    /// Judges a report of the agent of `host`: events to append and apply before the answer.
    pub fn judge(&self, host: &str, report: &AgentReport) -> ReportOutcome {
        self.state.judge_report(host, report, self.is_latest(host, report))
    }

    /// Adds the counters of a report that [`judge`](Self::judge) accepted, after its events are applied. Returns verdicts
    /// that have changed: events to append and apply. `now` is in nanoseconds of a clock that never goes back.
    pub fn observe(&mut self, host: &str, report: &AgentReport, now: u64) -> Vec<Event> {
        if !self.is_latest(host, report) {
            return Vec::new();
        }
        self.observations.add(&self.state, host, &report.observations, now)
    }

    /// Returns events of agents that have reported, though not in the last `silence_max`: to append and apply. After a start
    /// of the controller they have as much time.
    pub fn silent_agents(&self, now: u64, silence_max: u64) -> Vec<Event> {
        let mut events = Vec::new();
        for (name, _) in self.state.hosts().filter(|(_, host)| host.agent.is_some() && !host.is_silent) {
            let silence = self.observations.report_age(name, now).unwrap_or(now);
            if silence > silence_max {
                let s = silence / 1_000_000_000;
                events.push(Event::AlertChanged {
                    alert: AlertKind::AgentSilent,
                    state: AlertState::Firing,
                    host: Some(name.to_owned()),
                    reason: format!(
                        "the agent of host {name} has not reported for {s} s; the host keeps its policy"
                    ),
                });
            }
        }
        events
    }

    /// Returns the event that says what is known of the certificate: `None` if nothing has changed.
    pub fn certificate_alert(&self, ends: Option<&str>) -> Option<Event> {
        let state = if ends.is_some() { AlertState::Firing } else { AlertState::Resolved };
        (self.state.certificate_ends != ends.is_some()).then(|| Event::AlertChanged {
            alert: AlertKind::CertificateEnds,
            state,
            host: None,
            reason: ends.unwrap_or("the certificate was renewed").to_owned(),
        })
    }

    /// Returns what agents reported of the requests of workloads.
    pub fn observations(&self) -> &Observations {
        &self.observations
    }

    /// Returns true for a report with the ticket of the latest answer.
    fn is_latest(&self, host: &str, report: &AgentReport) -> bool {
        let number = self.tickets.get(host);
        number.is_some_and(|&number| report.ticket == Some(Ticket { run: self.run, number }))
    }

    /// Answers a report after its events are applied. `applied` is the epoch that it named.
    pub fn answer(&mut self, host: &str, applied: u64) -> AgentAnswer {
        let number = self.tickets.entry(host.to_owned()).or_default();
        *number += 1;
        let ticket = Ticket { run: self.run, number: *number };
        let assignment = self.state.assignment(host).filter(|assignment| assignment.epoch != applied);
        let curves = self.observations.curves_read(&self.state, host);
        AgentAnswer { cluster: self.state.cluster.clone(), host: host.to_owned(), ticket, assignment, curves }
    }

    fn describe_classes(&self, described: &ClassesDescription) -> Result<Event, CommandError> {
        let mut names = BTreeSet::new();
        for known in &described.classes {
            let name = &known.class.class;
            if !names.insert(name.as_str()) {
                return Err(CommandError::Invalid(format!("class '{name}' is given twice")));
            }
            let class = &known.class;
            if class.capacity.is_some() || class.price.is_some() || !class.labels.is_empty() {
                return Err(CommandError::Invalid(format!(
                    "class '{name}': a controller does not keep `capacity`, `price` and `labels`: expected a class without \
                     them (`tailwright plan` keeps them)"
                )));
            }
            if let Err(error) = workload::device::StorageProfile::from_json(&known.profile) {
                return Err(CommandError::Invalid(format!("class '{name}': device profile: {error}")));
            }
        }
        if !(described.safety_margin >= 1.0 && described.safety_margin.is_finite()) {
            return Err(CommandError::Invalid("safety_margin: expected 1 or more".to_owned()));
        }
        let before = self.state.classes.as_ref();
        let stays = |class: &str| {
            let of = |classes: &ClassesDescription| {
                classes.classes.iter().find(|known| known.class.class == class).cloned()
            };
            before.is_some_and(|before| {
                before.safety_margin == described.safety_margin && of(before) == of(described)
            })
        };
        let mut used = self.state.servers.values().filter(|server| server.chain.is_in_use());
        match used.find(|server| !stays(&server.class)) {
            Some(server) => Err(CommandError::Conflict(format!(
                "promises on servers of class '{}' rest on its description; add another class instead",
                server.class
            ))),
            None => Ok(Event::ClassesDescribed(described.clone())),
        }
    }

    fn describe_hosts(&self, described: &HostsDescription) -> Result<Event, CommandError> {
        let known: BTreeSet<&str> = described.hosts.iter().map(String::as_str).collect();
        if let Some(place) = described.servers.iter().find(|place| !known.contains(place.host.as_str())) {
            let ServerPlace { server, host, .. } = place;
            return Err(CommandError::Invalid(format!("server '{server}' is on an unknown host '{host}'")));
        }
        for (name, server) in self.state.servers.iter().filter(|(_, server)| server.chain.is_in_use()) {
            let place = described.servers.iter().find(|place| place.server == *name);
            if place.is_none_or(|place| place.host != server.host || place.class != server.class) {
                return Err(CommandError::Conflict(format!(
                    "promises rest on server '{name}' of host '{}'; remove its workloads first",
                    server.host
                )));
            }
            if self.state.network() != described.network {
                return Err(CommandError::Conflict(
                    "promises rest on the keeper of network limits; remove all workloads first".to_owned(),
                ));
            }
        }
        let clients = self.state.workloads().flat_map(|(_, workload)| &workload.request.clients);
        match clients.filter_map(|client| client.host.as_deref()).find(|host| !known.contains(host)) {
            Some(host) => Err(CommandError::Conflict(format!("clients of workloads are on host '{host}'"))),
            None => Ok(Event::HostsDescribed(described.clone())),
        }
    }
}
