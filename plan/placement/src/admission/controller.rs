//! The admission controller: servers that workloads join and leave.

use super::applicant::{Applicant, Priority, SharedServer};
use super::procedure::AdmissionProcedure;
use super::refusal::{AdmissionRefusal, Breach};
use crate::problem::PlanningProblem;
use crate::rules::{ExcludedServers, Exclusion, Place, PlacementRules, RuledServer, RuledServers};
use model::{Slo, UndefinedLatency};
use std::collections::{BTreeMap, BTreeSet};

/// The servers of a controller, all alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdenticalServers {
    pub count: usize,
    /// Latencies stay below this fraction of the SLO, usually [`PlanningProblem::SLO_FACTOR`].
    pub slo_factor: f64,
    /// Maximum number of priority levels at a stage of a server, at least 1.
    pub levels_max: usize,
}

impl IdenticalServers {
    /// One server.
    pub const LINK: Self = Self { count: 1, slo_factor: PlanningProblem::SLO_FACTOR, levels_max: usize::MAX };
}

/// Accepts and refuses workloads as they come and go. Decisions depend on nothing but their order.
#[derive(Debug)]
pub struct AdmissionController<P: AdmissionProcedure> {
    procedure: P,
    identical: IdenticalServers,
    servers: Vec<AdmissionServer<P::Sketch>>,
    /// The number of each admitted workload's server, by the workload's name.
    server_by_name: BTreeMap<String, usize>,
    /// Rules on where workloads may go, and their positions in the rules by name; a server has its position plus 1 as its number.
    rules: PlacementRules,
    ruled: BTreeMap<String, usize>,
}

// A derived implementation would ask for sketches that can be cloned, which are shared instead.
impl<P: AdmissionProcedure + Clone> Clone for AdmissionController<P> {
    fn clone(&self) -> Self {
        Self {
            procedure: self.procedure.clone(),
            identical: self.identical,
            servers: self.servers.clone(),
            server_by_name: self.server_by_name.clone(),
            rules: self.rules.clone(),
            ruled: self.ruled.clone(),
        }
    }
}

/// A server of a controller: workloads in order of arrival and their priorities.
#[derive(Debug)]
struct AdmissionServer<S> {
    members: Vec<Applicant<S>>,
    priorities: Vec<Priority>,
    /// Positions of the members in the rules; empty without rules.
    ruled: Vec<usize>,
}

impl<S> RuledServers for [AdmissionServer<S>] {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, position: usize) -> RuledServer<'_> {
        RuledServer { class: 0, members: &self[position].ruled, number: Some(position + 1) }
    }
}

impl<S> Clone for AdmissionServer<S> {
    fn clone(&self) -> Self {
        Self { members: self.members.clone(), priorities: self.priorities.clone(), ruled: self.ruled.clone() }
    }
}

/// Guarantee of an admitted workload.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionGuarantee {
    /// The name of the workload.
    pub name: String,
    /// The number of its server.
    pub server: usize,
    /// Its priority on that server.
    pub priority: Priority,
    /// The latency that it asked for.
    pub slo: Slo,
    /// The predicted latency at the SLO's percentile with all present members of the server, base latency included,
    /// seconds; within the SLO unless the model takes the departure of others for more load.
    pub latency: Result<f64, UndefinedLatency>,
    /// The name of the procedure that decided.
    pub procedure: &'static str,
}

impl<P: AdmissionProcedure> AdmissionController<P> {
    /// A controller that has not admitted any workload yet.
    pub fn new(procedure: P, identical: IdenticalServers) -> Self {
        let mut servers = Vec::with_capacity(identical.count);
        for _ in 0..identical.count {
            servers.push(AdmissionServer { members: Vec::new(), priorities: Vec::new(), ruled: Vec::new() });
        }
        let (rules, ruled) = Default::default();
        Self { procedure, identical, servers, server_by_name: BTreeMap::new(), rules, ruled }
    }

    /// The controller with rules on where workloads of these names may go; its servers are the rules' first class.
    ///
    /// # Panics
    /// When a workload is admitted already.
    #[must_use]
    pub fn with_rules<'a>(mut self, rules: PlacementRules, names: impl Iterator<Item = &'a str>) -> Self {
        assert!(self.is_empty(), "rules come before workloads");
        if !rules.is_empty() {
            self.ruled = names.enumerate().map(|(position, name)| (name.to_owned(), position)).collect();
            self.rules = rules;
        }
        self
    }

    /// Takes all of these workloads to the first server where they and its members meet their SLOs, and gives the
    /// server's number.
    ///
    /// # Errors
    /// When no server takes all of them. Nothing has changed then.
    pub fn arrive(&mut self, newcomers: Vec<Applicant<P::Sketch>>) -> Result<usize, AdmissionRefusal> {
        self.check_names(&newcomers)?;
        let mut breaches: Vec<Breach> = Vec::new();
        let mut of_empty = None;
        let ruled = self.positions_of(&newcomers);
        let mut excluded = ExcludedServers::default();
        let mut closest: Option<(usize, Breach)> = None;
        for number in 0..self.servers.len() {
            let exclusion = self.exclusion(number, &ruled);
            excluded.count(exclusion, 1);
            if exclusion.is_some() {
                continue;
            }
            let is_empty = self.servers[number].members.is_empty();
            if let Some(breach) = of_empty.clone().filter(|_| is_empty) {
                breaches.push(breach);
                continue;
            }
            match self.try_server(number, &newcomers) {
                Ok(priorities) => {
                    self.add(number, newcomers, priorities);
                    return Ok(number);
                }
                Err(breach) => {
                    let is_closer = |(_, best): &(usize, Breach)| breach.severity() < best.severity();
                    if !self.rules.is_empty() && closest.as_ref().is_none_or(is_closer) {
                        closest = Some((number, breach.clone()));
                    }
                    breaches.push(breach);
                }
            }
            if is_empty {
                of_empty = breaches.last().cloned();
            }
        }
        if excluded.others() < excluded.total {
            return Err(AdmissionRefusal::Ruled { excluded: Box::new(excluded), closest });
        }
        Err(AdmissionRefusal::NoRoom(breaches))
    }

    /// The positions of workloads in the rules; empty without rules.
    fn positions_of(&self, newcomers: &[Applicant<P::Sketch>]) -> Vec<usize> {
        newcomers.iter().filter_map(|newcomer| self.ruled.get(&newcomer.name).copied()).collect()
    }

    fn exclusion(&self, number: usize, ruled: &[usize]) -> Option<Exclusion> {
        self.rules.exclusion(self.servers.as_slice(), Place::On(number), ruled, &[])
    }

    /// Does the same as [`Self::arrive`] without the reason of a refusal, which may cost more than the decision. A name
    /// in use is refused like any other.
    pub fn admit(&mut self, newcomers: Vec<Applicant<P::Sketch>>) -> Option<usize> {
        self.check_names(&newcomers).ok()?;
        let ruled = self.positions_of(&newcomers);
        let fitting = |number| {
            let may_join = self.exclusion(number, &ruled).is_none();
            Some((number, may_join.then(|| self.fitting_priorities(number, &newcomers))??))
        };
        let (number, priorities) = self.distinct_servers().find_map(fitting)?;
        self.add(number, newcomers, priorities);
        Some(number)
    }

    /// Removes a workload; `None` if the name is unknown. The others keep their server, and their priorities
    /// become those without it if these keep every SLO. Otherwise priorities stay.
    pub fn depart(&mut self, name: &str) -> Option<Applicant<P::Sketch>> {
        let number = self.server_by_name.remove(name)?;
        let server = &mut self.servers[number];
        let position = server.members.iter().position(|m| m.name == name).expect("names agree with servers");
        let departed = server.members.remove(position);
        server.ruled.retain(|&known| self.ruled.get(name) != Some(&known));
        server.priorities.remove(position);
        let members = server.members.iter().collect::<Vec<_>>();
        let shared = self.identical.shared_by(&members);
        let priorities = self.procedure.priorities(&shared);
        if priorities != server.priorities && self.procedure.fits(&shared, &priorities) {
            server.priorities = priorities;
        }
        Some(departed)
    }

    /// Returns the current guarantees of all workloads, by server and order of arrival.
    pub fn guarantees(&self) -> Vec<AdmissionGuarantee> {
        let servers = self.servers.iter().enumerate().filter(|(_, server)| !server.members.is_empty());
        servers.flat_map(|(number, server)| self.guarantees_on(number, server)).collect()
    }

    /// The name, server and priority of every admitted workload, by server and order of arrival.
    pub fn placements(&self) -> impl Iterator<Item = (&str, usize, Priority)> {
        self.servers.iter().enumerate().flat_map(|(number, server)| {
            let members = server.members.iter().zip(&server.priorities);
            members.map(move |(member, &priority)| (member.name.as_str(), number, priority))
        })
    }

    /// The procedure by which it decides.
    pub fn procedure(&self) -> &P {
        &self.procedure
    }

    /// The number of admitted workloads.
    pub fn len(&self) -> usize {
        self.server_by_name.len()
    }

    /// Returns true if no workload is admitted.
    pub fn is_empty(&self) -> bool {
        self.server_by_name.is_empty()
    }

    /// The numbers of the servers with members and of the first without any, ascending: the others are like that one,
    /// unless rules tell them apart.
    fn distinct_servers(&self) -> impl Iterator<Item = usize> {
        let mut has_empty = false;
        let are_alike = self.rules.is_empty();
        let servers = self.servers.iter().enumerate();
        let distinct = servers.filter(move |(_, server)| {
            !are_alike || !server.members.is_empty() || !std::mem::replace(&mut has_empty, true)
        });
        distinct.map(|(number, _)| number)
    }

    /// Refuses arrivals without workloads, and names that are in use or occur twice.
    fn check_names(&self, newcomers: &[Applicant<P::Sketch>]) -> Result<(), AdmissionRefusal> {
        let mut seen = BTreeSet::new();
        for newcomer in newcomers {
            let name = newcomer.name.as_str();
            if self.server_by_name.contains_key(name) || !seen.insert(name) {
                return Err(AdmissionRefusal::NameInUse(name.to_owned()));
            }
        }
        if newcomers.is_empty() { Err(AdmissionRefusal::Nobody) } else { Ok(()) }
    }

    /// Adds newcomers to a server whose members, the newcomers last, have these priorities from now on.
    fn add(&mut self, number: usize, newcomers: Vec<Applicant<P::Sketch>>, priorities: Vec<Priority>) {
        self.server_by_name.extend(newcomers.iter().map(|n| (n.name.clone(), number)));
        let ruled = self.positions_of(&newcomers);
        self.servers[number].ruled.extend(ruled);
        self.servers[number].priorities = priorities;
        self.servers[number].members.extend(newcomers);
    }

    /// The priorities under which the newcomers certainly fit on a server.
    fn fitting_priorities(&self, number: usize, newcomers: &[Applicant<P::Sketch>]) -> Option<Vec<Priority>> {
        let members: Vec<_> = self.servers[number].members.iter().chain(newcomers).collect();
        let shared = self.identical.shared_by(&members);
        let priorities = self.procedure.priorities(&shared);
        self.procedure.fits(&shared, &priorities).then_some(priorities)
    }

    /// The priorities under which the newcomers fit on a server.
    ///
    /// # Errors
    /// When they do not fit: the SLO that would be missed most.
    fn try_server(&self, number: usize, newcomers: &[Applicant<P::Sketch>]) -> Result<Vec<Priority>, Breach> {
        let members: Vec<_> = self.servers[number].members.iter().chain(newcomers).collect();
        let shared = self.identical.shared_by(&members);
        let priorities = self.procedure.priorities(&shared);
        assert_eq!(priorities.len(), members.len(), "one priority per member");
        if self.procedure.fits(&shared, &priorities) {
            return Ok(priorities);
        }
        let latencies = self.procedure.latencies(&shared, &priorities);
        // The full prediction is what counts, should the quick answer be more careful.
        Breach::worst(&shared, &latencies, newcomers.len()).map_or(Ok(priorities), Err)
    }

    fn guarantees_on(&self, number: usize, server: &AdmissionServer<P::Sketch>) -> Vec<AdmissionGuarantee> {
        let members: Vec<_> = server.members.iter().collect();
        let shared = self.identical.shared_by(&members);
        let fits = self.procedure.fits(&shared, &server.priorities);
        let latencies = self.procedure.latencies(&shared, &server.priorities);
        let mut guarantees = Vec::with_capacity(members.len());
        for (i, mut latency) in latencies.into_iter().enumerate() {
            if fits {
                // Rounding may put the latency above the SLO, although the procedure found that it fits.
                latency = latency.map(|latency| latency.min(shared.allowed(i)));
            }
            guarantees.push(AdmissionGuarantee {
                name: members[i].name.clone(),
                server: number,
                priority: server.priorities[i],
                slo: members[i].slo,
                latency,
                procedure: self.procedure.name(),
            });
        }
        guarantees
    }
}

impl IdenticalServers {
    /// One of these servers with its members, as a procedure sees it.
    pub(crate) fn shared_by<'a, S>(&self, members: &'a [&'a Applicant<S>]) -> SharedServer<'a, S> {
        let &Self { slo_factor, levels_max, .. } = self;
        SharedServer { members, slo_factor, levels_max }
    }
}
