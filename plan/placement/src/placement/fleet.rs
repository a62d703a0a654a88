//! Servers that workloads join and leave one at a time.

use super::result::{Placement, PlacementRefusal};
use super::server::{MembershipChange, PlacementServer};
use crate::limits::{FittingServer, LimitMethod};
use crate::problem::PlanningProblem;
use crate::rules::Place;
use crate::server::PlannedServer;
use model::{PerStage, Stage};
use std::borrow::Cow;

/// The servers of a [`PlanningProblem`] as workloads come and go: first-fit arrivals, departures, and limits of a server
/// that are chosen again for all its members whenever they change.
#[derive(Debug, Clone)]
pub struct Fleet<'a> {
    problem: &'a PlanningProblem,
    method: LimitMethod,
    skip_full: bool,
    /// The servers by number. A vacated server keeps its number and has no members.
    servers: Vec<PlacementServer>,
    /// Number of servers in use by class.
    taken: Vec<usize>,
    /// The classes in the order in which a workload opens a server, by workload; empty for the usual order.
    openings: Vec<Vec<usize>>,
    /// The rates that each workload would be given alone, where that was asked, by class and then workload.
    rates_alone: Vec<Vec<Option<PerStage<f64>>>>,
}

impl<'a> Fleet<'a> {
    /// A fleet of which no server is in use yet.
    pub fn new(problem: &'a PlanningProblem, method: LimitMethod) -> Self {
        Self {
            problem,
            method,
            skip_full: false,
            servers: Vec::new(),
            taken: vec![0; problem.classes.len()],
            openings: Vec::new(),
            rates_alone: vec![vec![None; problem.workloads.len()]; problem.classes.len()],
        }
    }

    /// A fleet in which these servers are in use.
    pub(super) fn of_servers(
        problem: &'a PlanningProblem,
        method: LimitMethod,
        servers: Vec<PlacementServer>,
    ) -> Self {
        let mut fleet = Self::new(problem, method);
        servers.iter().for_each(|server| fleet.taken[server.class] += 1);
        fleet.servers = servers;
        fleet
    }

    /// The fleet with fast-first-fit switched on or off: it skips servers whose rates in force leave no room for the
    /// workload's own.
    pub fn skipping_full(mut self, skip: bool) -> Self {
        self.skip_full = skip;
        self
    }

    /// The fleet in which each workload opens servers of the classes in this order of its own.
    pub(super) fn opening(mut self, openings: Vec<Vec<usize>>) -> Self {
        self.openings = openings;
        self
    }

    /// Places a workload, and those that are together with it, on the first server where all SLOs and rules hold, opening
    /// one if needed, and gives the server's number.
    ///
    /// # Errors
    /// When no server takes the workload.
    pub fn arrive(&mut self, workload: usize) -> Result<usize, PlacementRefusal> {
        let unit = self.problem.rules.unit(&workload);
        let mut joins = Cow::Borrowed(unit);
        if unit.len() > 1 {
            if let Some(number) = self.server_of(workload) {
                return Ok(number);
            }
            joins.to_mut().retain(|&member| self.server_of(member).is_none());
        }
        for number in 0..self.servers.len() {
            if self.servers[number].members.is_empty()
                || self.is_excluded(Place::On(number), &joins)
                || self.is_full_for(number, &joins)
            {
                continue;
            }
            let change = MembershipChange { joins: &joins, leave: &[] };
            if self.servers[number].try_change(self.problem, self.method, change) {
                return Ok(number);
            }
        }
        self.open(workload, &joins)
    }

    fn is_excluded(&self, place: Place, joins: &[usize]) -> bool {
        self.problem.rules.exclusion(self.servers.as_slice(), place, joins, &[]).is_some()
    }

    /// The number of a workload's server.
    fn server_of(&self, workload: usize) -> Option<usize> {
        self.servers.iter().position(|server| server.members.contains(&workload))
    }

    /// Says which number within its class a server has. A rule may ask for it.
    pub fn give_number(&mut self, server: usize, number_in_class: usize) {
        self.servers[server].number = Some(number_in_class);
    }

    /// Takes over a server with its limits as they are, where they hold; otherwise as [`Fleet::open_with`].
    pub fn adopt(&mut self, server: PlannedServer) -> (Option<usize>, Vec<usize>) {
        let class = server.class;
        let (number, displaced) = self.open_with(class, &server.members);
        if let Some(number) = number.filter(|_| displaced.is_empty() && server.verify(self.problem).is_ok()) {
            self.servers[number].state = FittingServer::Fitted(server);
        }
        (number, displaced)
    }

    /// Puts workloads together on a new server of a class, with new limits; if they do not all fit, those that do in the
    /// order given. Gives the server's number (`None` when no workload stays) and the workloads that found no place on it.
    pub fn open_with(&mut self, class: usize, wanted: &[usize]) -> (Option<usize>, Vec<usize>) {
        if wanted.is_empty() || self.taken[class] == self.problem.classes[class].count {
            return (None, wanted.to_vec());
        }
        let (server, displaced) = self.server_for(class, wanted);
        let number = server.map(|server| {
            self.taken[class] += 1;
            self.servers.push(server);
            self.servers.len() - 1
        });
        (number, displaced)
    }

    /// A server for as many of these workloads as fit together, all of them if possible, and those that do not fit.
    fn server_for(&self, class: usize, wanted: &[usize]) -> (Option<PlacementServer>, Vec<usize>) {
        if let Ok(server) = PlacementServer::new(self.problem, self.method, class, wanted.to_vec()) {
            return (Some(server), Vec::new());
        }
        let mut server = None::<PlacementServer>;
        let mut displaced = Vec::new();
        for (position, workload) in wanted.iter().enumerate() {
            let unit = self.problem.rules.unit(workload);
            if wanted[..position].iter().any(|earlier| unit.contains(earlier)) {
                continue;
            }
            let joins: Vec<usize> = wanted.iter().copied().filter(|member| unit.contains(member)).collect();
            let change = MembershipChange { joins: &joins, leave: &[] };
            let stays = match &mut server {
                Some(server) => server.try_change(self.problem, self.method, change),
                None => {
                    server = PlacementServer::open(self.problem, self.method, class, &joins).ok();
                    server.is_some()
                }
            };
            if !stays {
                displaced.extend(joins);
            }
        }
        (server, displaced)
    }

    /// Removes a workload and chooses new limits for the server that it leaves. Gives the server's number, `None` when
    /// the workload had no place.
    pub fn depart(&mut self, workload: usize) -> Option<usize> {
        let number = self.server_of(workload)?;
        let server = &mut self.servers[number];
        if server.members == [workload] {
            server.members.clear();
            self.taken[server.class] -= 1;
        } else {
            *server = server.without(self.problem, self.method, workload);
        }
        Some(number)
    }

    /// Returns the classes in the order in which a workload opens a server: the cheapest first, where servers have prices.
    fn classes_for(&self, workload: usize) -> Vec<usize> {
        self.openings.get(workload).cloned().unwrap_or_else(|| self.problem.classes_by_price())
    }

    /// Opens a server of the first class that has one left and suits the workload and those that come with it.
    fn open(&mut self, workload: usize, joins: &[usize]) -> Result<usize, PlacementRefusal> {
        let mut unsuited = None;
        let mut exhausted = false;
        for class in self.classes_for(workload) {
            if !joins.iter().all(|&member| self.problem.rules.allows_class(member, class)) {
                continue;
            }
            match PlacementServer::open(self.problem, self.method, class, joins) {
                Err(refusal) => unsuited = unsuited.or(Some(refusal)),
                Ok(_) if self.taken[class] == self.problem.classes[class].count => exhausted = true,
                Ok(_) if self.is_excluded(Place::Empty { class }, joins) => exhausted = true,
                Ok(server) => {
                    self.taken[class] += 1;
                    return Ok(self.add(server));
                }
            }
        }
        Err(PlacementRefusal { workload, alone: unsuited.filter(|_| !exhausted) })
    }

    /// Returns true if stored knowledge about the server rules the workload out.
    fn is_full_for(&mut self, number: usize, joins: &[usize]) -> bool {
        let class = self.servers[number].class;
        if self.skip_full {
            let alone: Vec<PerStage<f64>> =
                joins.iter().map(|&workload| self.rates_alone(workload, class)).collect();
            let wanted = PerStage::from_fn(|stage| alone.iter().map(|rates| rates[stage]).sum::<f64>());
            let FittingServer::Fitted(server) = &self.servers[number].state else {
                unreachable!("fast-first-fit is a rule for methods that keep limits in force");
            };
            let reserved = server.reserved_rate();
            return Stage::ALL.into_iter().any(|s| reserved[s] + wanted[s] > self.problem.max_rate);
        }
        self.servers[number].is_hopeless(self.problem, MembershipChange { joins, leave: &[] })
    }

    /// The rates that the method would give the workload on an empty server. They are infinite for a workload that does
    /// not fit alone, so that it is passed by everywhere.
    fn rates_alone(&mut self, workload: usize, class: usize) -> PerStage<f64> {
        *self.rates_alone[class][workload].get_or_insert_with(|| {
            match self.method.fit(self.problem, class, vec![workload]) {
                Ok(server) => server.reserved_rate(),
                Err(_) => PerStage::from_fn(|_| f64::INFINITY),
            }
        })
    }

    /// The numbers of the servers that have a workload, ascending.
    pub fn numbers_in_use(&self) -> impl Iterator<Item = usize> {
        let servers = self.servers.iter().enumerate();
        servers.filter(|(_, server)| !server.members.is_empty()).map(|(number, _)| number)
    }

    /// The number of servers that have a workload.
    pub fn servers_in_use(&self) -> usize {
        self.taken.iter().sum()
    }

    /// The servers in use with their final limits and numbers within their classes, and these refusals except of
    /// workloads that have a place after all: those that are together are tried for each of them.
    pub fn into_placement(self, mut refused: Vec<PlacementRefusal>) -> Placement {
        let is_together = |workload: usize| self.problem.rules.unit(&workload).len() > 1;
        refused
            .retain(|refusal| !is_together(refusal.workload) || self.server_of(refusal.workload).is_none());
        let numbers = self.problem.rules.numbers(self.servers.as_slice());
        let used = self.servers.iter().zip(numbers).filter(|(server, _)| !server.members.is_empty());
        let numbers = used.map(|(_, number)| number).collect();
        Placement { servers: self.into_servers(), refused, numbers }
    }

    /// The servers in use with their final limits, by number.
    pub fn into_servers(self) -> Vec<PlannedServer> {
        self.into_numbered_servers().into_iter().map(|(_, server)| server).collect()
    }

    /// The servers in use with their final limits, each with its number.
    pub fn into_numbered_servers(self) -> Vec<(usize, PlannedServer)> {
        let mut planned = Vec::new();
        for (number, server) in self.servers.into_iter().enumerate() {
            if server.members.is_empty() {
                continue;
            }
            let server = match server.state {
                FittingServer::Fitted(server) => server,
                FittingServer::Assessed(_) => {
                    let fitted = self.method.fit(self.problem, server.class, server.members);
                    fitted.expect("admitted workloads have limits")
                }
            };
            planned.push((number, server));
        }
        planned
    }

    /// Adds a server under the first vacated number of its class, or a new one.
    fn add(&mut self, server: PlacementServer) -> usize {
        let mut servers = self.servers.iter();
        match servers.position(|vacated| vacated.members.is_empty() && vacated.class == server.class) {
            Some(number) => {
                self.servers[number] = server;
                number
            }
            None => {
                self.servers.push(server);
                self.servers.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{PlanningClass, PlanningWorkload, WorkloadOnClass};
    use calculus::{ArrivalCurve, CurveVertex};
    use model::Slo;
    use units::Seconds;

    /// Workloads that burst `burst` seconds at every stage and promise `slo` seconds.
    fn problem(specs: &[(f64, f64)], servers: usize) -> PlanningProblem {
        let curve = |burst: f64| {
            let vertices = vec![
                CurveVertex { duration: 0.0, work: burst },
                CurveVertex { duration: 10.0, work: 1.5 * burst },
            ];
            ArrivalCurve::new(vertices, 0.0).unwrap()
        };
        let workload = |(index, &(burst, slo)): (usize, &(f64, f64))| PlanningWorkload {
            name: format!("w{index}"),
            slo: Slo::new("99.9".parse().unwrap(), Seconds(slo)).unwrap(),
            on_class: vec![WorkloadOnClass {
                curves: PerStage::from_fn(|_| curve(burst)),
                mean_rate: PerStage::from_fn(|_| 0.0),
                largest_request: 0.0,
                base_latency: 0.0,
                overtaking: 0.0,
            }],
        };
        let classes = vec![PlanningClass { name: "ssd".into(), count: servers, enforced: None }];
        PlanningProblem::new(classes, specs.iter().enumerate().map(workload).collect(), 0.999, 0.999).unwrap()
    }

    #[test]
    fn adopted_servers_keep_limits_that_hold() {
        let problem = problem(&[(0.01, 0.2), (0.02, 0.4), (0.01, 0.4)], 3);
        for method in [LimitMethod::Exact, LimitMethod::Relaxed, LimitMethod::Knee] {
            let server = method.fit(&problem, 0, vec![0, 1]).unwrap();
            let mut fleet = Fleet::new(&problem, method);
            assert_eq!(fleet.adopt(server.clone()), (Some(0), vec![]));
            assert_eq!(fleet.clone().into_numbered_servers(), [(0, server)]);
            // An arrival changes the server as it would any other.
            assert_eq!(fleet.arrive(2), Ok(0));
            let servers = fleet.into_servers();
            assert_eq!(servers[0].members, [0, 1, 2]);
            assert_eq!(servers[0].verify(&problem), Ok(()));
        }
    }

    #[test]
    fn limits_that_do_not_hold_are_chosen_anew() {
        let problem = problem(&[(0.01, 0.2), (0.02, 0.4)], 3);
        let mut broken = LimitMethod::Exact.fit(&problem, 0, vec![0, 1]).unwrap();
        broken.limits[0][Stage::Storage].burst = 1.0;
        let mut fleet = Fleet::new(&problem, LimitMethod::Exact);
        assert_eq!(fleet.adopt(broken), (Some(0), vec![]));
        assert_eq!(fleet.into_servers()[0].verify(&problem), Ok(()));
    }

    #[test]
    fn who_no_longer_fits_is_displaced_and_finds_another_place() {
        // Each burst takes 0.3 s of 1 s over three stages: three fit, four do not.
        let problem = problem(&[(0.1, 1.0); 4], 2);
        let mut fleet = Fleet::new(&problem, LimitMethod::Exact);
        let (number, displaced) = fleet.open_with(0, &[3, 1, 0, 2]);
        assert_eq!((number, displaced.as_slice()), (Some(0), &[2][..]));
        assert_eq!(fleet.arrive(2), Ok(1));
        let places: Vec<Vec<usize>> = fleet.into_servers().into_iter().map(|s| s.members).collect();
        assert_eq!(places, [vec![3, 1, 0], vec![2]]);
    }

    #[test]
    fn without_a_server_left_everybody_is_displaced() {
        let problem = problem(&[(0.1, 1.0); 2], 1);
        let mut fleet = Fleet::new(&problem, LimitMethod::Exact);
        assert_eq!(fleet.open_with(0, &[]), (None, vec![]));
        assert_eq!(fleet.open_with(0, &[0]), (Some(0), vec![]));
        assert_eq!(fleet.open_with(0, &[1]), (None, vec![1]));
    }
}
