//! The search for few servers: even spreads over a number of servers, then first fit.

use super::control::{PackingControl, PackingPhase, PackingProgress};
use super::problem::PackingProblem;
use crate::admission::{
    AdmissionController, AdmissionProcedure, AdmissionRefusal, Applicant, IdenticalServers, SharedServer,
};
use crate::effort::SearchEffort;
use model::{PerStage, Stage};
use std::collections::BTreeMap;

/// First fit asks about every workload; with more of them only the even spread is tried.
const FIRST_FIT_MAX: usize = 300;

/// The members of each server, and who has no place.
type PlacedApplicants = (Vec<Vec<usize>>, Vec<(usize, AdmissionRefusal)>);

/// A search is over before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interruption;

pub(super) struct PackingSearch<'a, P: AdmissionProcedure> {
    procedure: &'a P,
    problem: &'a PackingProblem<'a, P::Sketch>,
    /// The applicants that take part.
    candidates: Vec<usize>,
    control: &'a PackingControl<'a>,
    /// How often the procedure has been asked about a server.
    asked: usize,
    /// Whether an even spread over so many servers fits.
    spreads: BTreeMap<usize, bool>,
    /// The servers that are certain: a whole spread that fits, or those of one under way.
    certain: Vec<Vec<usize>>,
    interrupted: bool,
}

impl<'a, P: AdmissionProcedure + Clone> PackingSearch<'a, P> {
    pub(super) fn new(
        procedure: &'a P,
        problem: &'a PackingProblem<'a, P::Sketch>,
        candidates: Vec<usize>,
        control: &'a PackingControl<'a>,
    ) -> Self {
        let (spreads, certain) = (BTreeMap::new(), Vec::new());
        Self { procedure, problem, candidates, control, asked: 0, spreads, certain, interrupted: false }
    }

    pub(super) fn asked(&self) -> usize {
        self.asked
    }

    pub(super) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Places as many candidates as fit; an interrupted search gives those that certainly do.
    pub(super) fn run(&mut self, lower_bound: usize, effort: SearchEffort) -> PlacedApplicants {
        let found = self.fewest_servers(lower_bound, effort);
        let placed = match found {
            Ok(Some(servers)) => Ok((servers, Vec::new())),
            Ok(None) => self.as_many_as_fit(),
            Err(interruption) => Err(interruption),
        };
        placed.unwrap_or_else(|Interruption| {
            self.interrupted = true;
            self.what_is_certain()
        })
    }

    /// The number of servers that the mean loads of the candidates need.
    pub(super) fn lower_bound(&self) -> usize {
        let loads = self.candidates.iter().map(|&candidate| &self.problem.loads[candidate]);
        let by_stage = Stage::ALL.map(|stage| loads.clone().map(|load| load[stage]).sum::<f64>());
        let most = by_stage.into_iter().fold(0.0, f64::max);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
        let servers = most.ceil() as usize;
        servers.max(usize::from(!self.candidates.is_empty()))
    }

    /// All candidates on few servers; `None` when even all servers are not enough.
    fn fewest_servers(
        &mut self,
        lower_bound: usize,
        effort: SearchEffort,
    ) -> Result<Option<Vec<Vec<usize>>>, Interruption> {
        let mut best = match self.confirmed_spread(lower_bound.max(self.problem.servers_min))? {
            Some(best) if self.candidates.len() <= FIRST_FIT_MAX => best,
            found => return Ok(found),
        };
        while best.len() > lower_bound && (self.asked as u64) < effort.evaluations_max() {
            match self.first_fit_within(best.len() - 1)? {
                Some(servers) => best = servers,
                None => break,
            }
        }
        Ok(Some(best))
    }

    /// The smallest number of servers, from `first` on, for which an even spread is found to fit and to pass the second
    /// judgement; one that does not pass when there are no more servers.
    fn confirmed_spread(&mut self, first: usize) -> Result<Option<Vec<Vec<usize>>>, Interruption> {
        let mut at_least = first;
        loop {
            let Some(servers) = self.fewest_by_even_spread(at_least)? else { return Ok(None) };
            if self.is_confirmed(&servers)? || servers.len() < at_least || servers.len() >= self.servers_max()
            {
                return Ok(Some(servers));
            }
            at_least = servers.len() + 1;
        }
    }

    fn is_confirmed(&mut self, servers: &[Vec<usize>]) -> Result<bool, Interruption> {
        let Some(confirms) = self.control.confirms else { return Ok(true) };
        let mut confirmed = Vec::new();
        for (done, members) in servers.iter().enumerate() {
            if let Err(interruption) = self.go_on(PackingPhase::Confirm(servers.len()), done, servers.len()) {
                self.keep_certain(confirmed);
                return Err(interruption);
            }
            if !confirms(members) {
                self.keep_certain(confirmed);
                return Ok(false);
            }
            confirmed.push(members.clone());
        }
        Ok(true)
    }

    /// How many servers can be used at most.
    fn servers_max(&self) -> usize {
        self.problem.servers.count.min(self.candidates.len())
    }

    /// The smallest number of servers, from `first` on, for which an even spread is found to fit.
    fn fewest_by_even_spread(&mut self, first: usize) -> Result<Option<Vec<Vec<usize>>>, Interruption> {
        let most = self.servers_max();
        let (mut fails, mut tried) = (first.saturating_sub(1), first);
        let mut fitting = loop {
            if tried > most {
                // The last step may have jumped over what is left.
                if fails >= most {
                    return Ok(None);
                }
                tried = most;
            }
            if self.spread_fits(tried)? {
                break tried;
            }
            fails = tried;
            tried = (tried + tried.div_ceil(2)).max(tried + 1);
        };
        while fitting - fails > 1 {
            let middle = fails + (fitting - fails) / 2;
            if self.spread_fits(middle)? {
                fitting = middle;
            } else {
                fails = middle;
            }
        }
        Ok(Some(self.even_spread(fitting)))
    }

    /// The candidates on `count` servers, evenly.
    fn even_spread(&self, count: usize) -> Vec<Vec<usize>> {
        let mut servers = vec![Vec::new(); count];
        let mut filled = vec![PerStage::from_fn(|_| 0.0); count];
        for candidate in self.by_load() {
            let load = self.problem.loads[candidate];
            let least = (0..count)
                .min_by(|&a, &b| largest_sum(&filled[a], &load).total_cmp(&largest_sum(&filled[b], &load)))
                .expect("there are servers");
            Stage::ALL.into_iter().for_each(|stage| filled[least][stage] += load[stage]);
            servers[least].push(candidate);
        }
        servers.retain(|members| !members.is_empty());
        servers.iter_mut().for_each(|members| members.sort_unstable());
        servers
    }

    /// Whether the procedure accepts every server of the even spread over `count` of them.
    fn spread_fits(&mut self, count: usize) -> Result<bool, Interruption> {
        if let Some(&known) = self.spreads.get(&count) {
            return Ok(known);
        }
        let servers = self.even_spread(count);
        let total = servers.len();
        let mut accepted = Vec::new();
        for (done, members) in servers.into_iter().enumerate() {
            if let Err(interruption) = self.go_on(PackingPhase::Spread(count), done, total) {
                self.keep_unless_judged(accepted);
                return Err(interruption);
            }
            if !self.fits(&members) {
                break;
            }
            accepted.push(members);
        }
        let fits = accepted.len() == total;
        self.keep_unless_judged(accepted);
        self.spreads.insert(count, fits);
        Ok(fits)
    }

    /// Whether the procedure accepts these applicants on one server.
    fn fits(&mut self, members: &[usize]) -> bool {
        self.asked += 1;
        let members: Vec<&Applicant<P::Sketch>> =
            members.iter().map(|&m| &self.problem.applicants[m]).collect();
        let server = SharedServer {
            members: &members,
            base_latency: self.problem.servers.base_latency,
            slo_factor: self.problem.servers.slo_factor,
        };
        let priorities = self.procedure.priorities(&server);
        self.procedure.fits(&server, &priorities)
    }

    /// The candidates, the one with the largest load first.
    fn by_load(&self) -> Vec<usize> {
        let most = |candidate: usize| {
            self.problem.loads[candidate].iter().map(|(_, load)| *load).fold(0.0, f64::max)
        };
        let mut order: Vec<(f64, usize)> = self.candidates.iter().map(|&c| (most(c), c)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        order.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// The candidates, the one with the tightest SLO first; of equal ones, the one with the largest load.
    fn by_slo(&self) -> Vec<usize> {
        let applicants = self.problem.applicants;
        let mut order = self.by_load();
        order.sort_by(|&a, &b| applicants[a].slo.latency.0.total_cmp(&applicants[b].slo.latency.0));
        order
    }

    /// All candidates on `count` servers, first fit; `None` when neither order finds room for all.
    fn first_fit_within(&mut self, count: usize) -> Result<Option<Vec<Vec<usize>>>, Interruption> {
        for order in [self.by_load(), self.by_slo()] {
            let (servers, refused) = match self.first_fit(&order, count, AfterRefusal::Stop) {
                Ok(placed) => placed,
                // What is already found is better than what is under way.
                Err(interruption) => return Err(interruption),
            };
            if refused.is_empty() {
                self.keep_certain(servers.clone());
                return Ok(Some(servers));
            }
        }
        Ok(None)
    }

    /// First fit in the order of the candidates on all servers.
    fn as_many_as_fit(&mut self) -> Result<PlacedApplicants, Interruption> {
        let order = self.candidates.clone();
        self.first_fit(&order, self.problem.servers.count, AfterRefusal::Continue)
    }

    fn first_fit(
        &mut self,
        order: &[usize],
        count: usize,
        after_refusal: AfterRefusal,
    ) -> Result<PlacedApplicants, Interruption> {
        let identical = IdenticalServers { count, ..self.problem.servers };
        let mut controller = AdmissionController::new(self.procedure.clone(), identical);
        let (mut servers, mut refused) = (vec![Vec::new(); count], Vec::new());
        for (done, &applicant) in order.iter().enumerate() {
            if let Err(interruption) = self.go_on(PackingPhase::FirstFit(count), done, order.len()) {
                servers.retain(|members| !members.is_empty());
                self.keep_unless_judged(servers);
                return Err(interruption);
            }
            match controller.arrive(vec![self.problem.applicants[applicant].clone()]) {
                Ok(server) => {
                    self.asked += server + 1;
                    servers[server].push(applicant);
                }
                Err(refusal) => {
                    self.asked += count;
                    refused.push((applicant, refusal));
                    if after_refusal == AfterRefusal::Stop {
                        break;
                    }
                }
            }
        }
        servers.retain(|members| !members.is_empty());
        Ok((servers, refused))
    }

    /// Tells how far the search is.
    fn go_on(&self, phase: PackingPhase, done: usize, total: usize) -> Result<(), Interruption> {
        (self.control.watch)(PackingProgress { phase, done, total });
        if (self.control.interrupted)() { Err(Interruption) } else { Ok(()) }
    }

    /// Keeps servers that the procedure accepts, where its word is the last one.
    fn keep_unless_judged(&mut self, servers: Vec<Vec<usize>>) {
        if self.control.confirms.is_none() {
            self.keep_certain(servers);
        }
    }

    /// Keeps servers for an interruption: those with the most members, on equally many the fewest servers.
    fn keep_certain(&mut self, servers: Vec<Vec<usize>>) {
        let placed = |servers: &[Vec<usize>]| servers.iter().map(Vec::len).sum::<usize>();
        let (new, old) = (placed(&servers), placed(&self.certain));
        if new > old || (new == old && servers.len() < self.certain.len()) {
            self.certain = servers;
        }
    }

    /// The certain servers, and everybody else as refused by the interruption.
    fn what_is_certain(&mut self) -> PlacedApplicants {
        let servers = std::mem::take(&mut self.certain);
        let mut has_place = vec![false; self.problem.applicants.len()];
        servers.iter().flatten().for_each(|&member| has_place[member] = true);
        let without = self.candidates.iter().filter(|&&candidate| !has_place[candidate]);
        let refused = without.map(|&candidate| (candidate, AdmissionRefusal::Interrupted)).collect();
        (servers, refused)
    }
}

/// The use of the busiest stage of a server that has `used` when `load` comes on top.
fn largest_sum(used: &PerStage<f64>, load: &PerStage<f64>) -> f64 {
    used.iter().map(|(stage, used)| used + load[stage]).fold(0.0, f64::max)
}

/// What first fit does when an applicant has found no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterRefusal {
    Stop,
    Continue,
}
