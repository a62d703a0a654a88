//! The desk: servers that workloads join and leave.

use super::applicant::{Applicant, Priority, ServerView};
use super::procedure::Procedure;
use super::refusal::{Breach, Refusal};
use crate::Instance;
use model::{Slo, UndefinedLatency};
use std::collections::{BTreeMap, BTreeSet};

/// The servers of a desk, all alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// How many there are.
    pub servers: usize,
    /// Latency of a request on an idle one, seconds (thesis §2.3.2); it is added to every prediction.
    pub base_latency: f64,
    /// Latencies stay below this fraction of the SLO: [`Instance::SLO_FACTOR`] unless there is a reason.
    pub slo_factor: f64,
}

impl Host {
    /// One server without base latency.
    pub const LINK: Self = Self { servers: 1, base_latency: 0.0, slo_factor: Instance::SLO_FACTOR };
}

/// Accepts and refuses workloads as they come and go. Decisions depend on nothing but their order.
#[derive(Debug)]
pub struct Desk<P: Procedure> {
    procedure: P,
    host: Host,
    slots: Vec<Slot<P::Sketch>>,
    /// Server by name.
    places: BTreeMap<String, usize>,
}

// Derived, it would ask for sketches that can be cloned, which are shared instead.
impl<P: Procedure + Clone> Clone for Desk<P> {
    fn clone(&self) -> Self {
        let (procedure, slots, places) = (self.procedure.clone(), self.slots.clone(), self.places.clone());
        Self { procedure, slots, places, ..*self }
    }
}

/// A server: workloads in order of arrival and their priorities.
#[derive(Debug)]
struct Slot<S> {
    members: Vec<Applicant<S>>,
    priorities: Vec<Priority>,
}

impl<S> Clone for Slot<S> {
    fn clone(&self) -> Self {
        Self { members: self.members.clone(), priorities: self.priorities.clone() }
    }
}

/// What a workload on the desk is guaranteed.
#[derive(Debug, Clone, PartialEq)]
pub struct Guaranteed {
    /// Its name.
    pub name: String,
    /// Its server.
    pub server: usize,
    /// Its priority there.
    pub priority: Priority,
    /// What it asked for.
    pub slo: Slo,
    /// Predicted latency at the SLO's percentile with everybody who is there now, base latency included,
    /// seconds; within the SLO unless the model takes the departure of others for more load.
    pub latency: Result<f64, UndefinedLatency>,
    /// By whom.
    pub procedure: &'static str,
}

impl<P: Procedure> Desk<P> {
    /// Nobody is there yet.
    pub fn new(procedure: P, host: Host) -> Self {
        let empty = || Slot { members: Vec::new(), priorities: Vec::new() };
        Self {
            procedure,
            host,
            slots: std::iter::repeat_with(empty).take(host.servers).collect(),
            places: BTreeMap::new(),
        }
    }

    /// Takes all of these to the first server where they and everybody there meet their SLOs, and gives
    /// its number; or none of them.
    pub fn arrive(&mut self, newcomers: Vec<Applicant<P::Sketch>>) -> Result<usize, Refusal> {
        self.check_names(&newcomers)?;
        let mut breaches = Vec::new();
        for number in 0..self.slots.len() {
            match self.try_server(number, &newcomers) {
                Ok(priorities) => {
                    self.place(number, newcomers, priorities);
                    return Ok(number);
                }
                Err(breach) => breaches.push(breach),
            }
        }
        Err(Refusal::NoRoom(breaches))
    }

    /// As [`Self::arrive`] without the reason of a refusal, which may cost more than the decision. A name in use
    /// is refused like any other.
    pub fn admit(&mut self, newcomers: Vec<Applicant<P::Sketch>>) -> Option<usize> {
        self.check_names(&newcomers).ok()?;
        let number_of = |number| Some((number, self.quick(number, &newcomers)?));
        let (number, priorities) = (0..self.slots.len()).find_map(number_of)?;
        self.place(number, newcomers, priorities);
        Some(number)
    }

    /// Lets a workload go; `None` when it is not there. The others keep their server. Priorities are those
    /// that they would have, had it never come, if these keep every SLO, and as before otherwise.
    pub fn depart(&mut self, name: &str) -> Option<Applicant<P::Sketch>> {
        let number = self.places.remove(name)?;
        let slot = &mut self.slots[number];
        let position = slot.members.iter().position(|m| m.name == name).expect("places agree with servers");
        let gone = slot.members.remove(position);
        slot.priorities.remove(position);
        let (host, members) = (self.host, slot.members.iter().collect::<Vec<_>>());
        let server = view(&host, &members);
        let priorities = self.procedure.priorities(&server);
        if priorities != slot.priorities && self.procedure.fits(&server, &priorities) {
            slot.priorities = priorities;
        }
        Some(gone)
    }

    /// What everybody is guaranteed now, by server and order of arrival.
    pub fn guarantees(&self) -> Vec<Guaranteed> {
        self.slots.iter().enumerate().flat_map(|(number, slot)| self.guarantees_on(number, slot)).collect()
    }

    /// Who is where with which priority, by server and order of arrival.
    pub fn placements(&self) -> impl Iterator<Item = (&str, usize, Priority)> {
        self.slots.iter().enumerate().flat_map(|(number, slot)| {
            let places = slot.members.iter().zip(&slot.priorities);
            places.map(move |(member, &priority)| (member.name.as_str(), number, priority))
        })
    }

    /// By what it decides.
    pub fn procedure(&self) -> &P {
        &self.procedure
    }

    /// How many workloads are there.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn check_names(&self, newcomers: &[Applicant<P::Sketch>]) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        let in_use = |name: &str| self.places.contains_key(name);
        match newcomers.iter().find(|n| in_use(&n.name) || !seen.insert(n.name.as_str())) {
            Some(taken) => Err(Refusal::NameInUse(taken.name.clone())),
            None if newcomers.is_empty() => Err(Refusal::Nobody),
            None => Ok(()),
        }
    }

    fn place(&mut self, number: usize, newcomers: Vec<Applicant<P::Sketch>>, priorities: Vec<Priority>) {
        self.places.extend(newcomers.iter().map(|n| (n.name.clone(), number)));
        self.slots[number].priorities = priorities;
        self.slots[number].members.extend(newcomers);
    }

    /// The priorities under which the newcomers certainly fit on a server.
    fn quick(&self, number: usize, newcomers: &[Applicant<P::Sketch>]) -> Option<Vec<Priority>> {
        let members: Vec<_> = self.slots[number].members.iter().chain(newcomers).collect();
        let server = view(&self.host, &members);
        let priorities = self.procedure.priorities(&server);
        self.procedure.fits(&server, &priorities).then_some(priorities)
    }

    /// The priorities under which the newcomers fit on a server, or who breaks.
    fn try_server(&self, number: usize, newcomers: &[Applicant<P::Sketch>]) -> Result<Vec<Priority>, Breach> {
        let members: Vec<_> = self.slots[number].members.iter().chain(newcomers).collect();
        let server = view(&self.host, &members);
        let priorities = self.procedure.priorities(&server);
        assert_eq!(priorities.len(), members.len(), "one priority per member");
        if self.procedure.fits(&server, &priorities) {
            return Ok(priorities);
        }
        let latencies = self.procedure.latencies(&server, &priorities);
        // The full prediction is what counts, should the quick answer be more careful.
        Breach::worst(&server, &latencies, newcomers.len()).map_or(Ok(priorities), Err)
    }

    fn guarantees_on(&self, number: usize, slot: &Slot<P::Sketch>) -> Vec<Guaranteed> {
        let members: Vec<_> = slot.members.iter().collect();
        let server = view(&self.host, &members);
        let mut latencies = self.procedure.latencies(&server, &slot.priorities);
        if self.procedure.fits(&server, &slot.priorities) {
            // Latencies may be rounded up; what fits is within its SLO.
            let capped = |(i, latency): (usize, &mut Result<f64, UndefinedLatency>)| {
                *latency = latency.map(|latency| latency.min(server.allowed(i)));
            };
            latencies.iter_mut().enumerate().for_each(capped);
        }
        let with = |((member, &priority), latency): ((&Applicant<_>, _), _)| Guaranteed {
            name: member.name.clone(),
            server: number,
            priority,
            slo: member.slo,
            latency,
            procedure: self.procedure.name(),
        };
        slot.members.iter().zip(&slot.priorities).zip(latencies).map(with).collect()
    }
}

fn view<'a, S>(host: &Host, members: &'a [&'a Applicant<S>]) -> ServerView<'a, S> {
    ServerView { members, base_latency: host.base_latency, slo_factor: host.slo_factor }
}
