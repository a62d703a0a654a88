//! Packing: which workloads share a server when an admission procedure says who may?
//!
//! It takes applicants with what any [`AdmissionProcedure`] keeps of them (a latency model's sketches, say) and identical
//! servers, and gives a list of members for each server, with a refusal for each applicant that found no place. It
//! chooses no limits: what holds for the servers is the procedure's own word, a bound under an assumption or an estimate.
//! Use it when all workloads are known and a stated assumption about their traffic is enough: `tailwright plan --model`.
//! Where latencies have to be guaranteed by limits, or there are several classes of server, see [`crate::placement`];
//! where workloads come and go, see [`crate::admission`], whose procedures and controller this search uses.
//!
//! A procedure may be slow (replaying traces takes a second), so the search asks it rarely: workloads are
//! spread evenly over a number of servers, the largest load first (LPT, Graham 1969), and every server is
//! asked about once. The number is searched from the least that the loads allow: up in growing steps until
//! an even spread fits, down by bisection. Then, as far as the [`SearchEffort`] goes, first fit, tightest SLO first and
//! largest load first, tries to save one server after the other. What is returned fits by the procedure's own word. Where
//! that word is an estimate, [`SearchEffort::FirstFound`] is right: of many placements, the one that looks just good
//! enough is worse than it looks.
//!
//! Not covered: optimality (the number of servers is at least [`Packing::lower_bound`]).

use crate::admission::{
    AdmissionController, AdmissionProcedure, AdmissionRefusal, Applicant, IdenticalServers, SharedServer,
};
use crate::effort::SearchEffort;
use model::{PerStage, Stage};

/// First fit asks about every workload; with more of them only the even spread is tried.
const FIRST_FIT_MAX: usize = 300;

/// Who is to be placed, and on what.
#[derive(Debug)]
pub struct PackingProblem<'a, S> {
    /// The servers that there are.
    pub servers: IdenticalServers,
    /// The workloads, with what the procedure keeps of them.
    pub applicants: &'a [Applicant<S>],
    /// The mean use of every stage by each applicant, fraction of capacity.
    pub loads: &'a [PerStage<f64>],
    /// The search begins with this number of servers, or with the lower bound if that is larger.
    pub servers_min: usize,
}

/// Which workloads share a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// The indices of the applicants on each server in use.
    pub servers: Vec<Vec<usize>>,
    /// The applicants that have no place, and why.
    pub refused: Vec<(usize, AdmissionRefusal)>,
    /// No number of servers below this can carry the load of all applicants.
    pub lower_bound: usize,
    /// How often the procedure was asked about a server.
    pub asked: usize,
}

/// Places as many of the applicants as fit, on few servers. `watch` is told how many servers are being tried.
///
/// # Panics
/// When there is not one load per applicant.
pub fn pack<P: AdmissionProcedure + Clone>(
    procedure: &P,
    problem: &PackingProblem<'_, P::Sketch>,
    effort: SearchEffort,
    watch: &mut dyn FnMut(usize),
) -> Packing {
    assert_eq!(problem.applicants.len(), problem.loads.len(), "one load per applicant");
    let mut search = PackingSearch { procedure, problem, watch, asked: 0 };
    let lower_bound = search.lower_bound();
    let all_placed = search.fewest_servers(lower_bound, effort);
    let (servers, refused) = match all_placed {
        Some(servers) => (servers, Vec::new()),
        None => search.as_many_as_fit(),
    };
    Packing { servers, refused, lower_bound, asked: search.asked }
}

struct PackingSearch<'a, P: AdmissionProcedure> {
    procedure: &'a P,
    problem: &'a PackingProblem<'a, P::Sketch>,
    watch: &'a mut dyn FnMut(usize),
    /// How often the procedure has been asked about a server.
    asked: usize,
}

impl<P: AdmissionProcedure + Clone> PackingSearch<'_, P> {
    /// The number of servers that the mean loads need.
    fn lower_bound(&self) -> usize {
        let loads = self.problem.loads;
        let by_stage = Stage::ALL.map(|stage| loads.iter().map(|load| load[stage]).sum::<f64>());
        let most = by_stage.into_iter().fold(0.0, f64::max);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
        let servers = most.ceil() as usize;
        servers.max(usize::from(!self.problem.applicants.is_empty()))
    }

    /// All applicants on few servers; `None` when even all servers are not enough.
    fn fewest_servers(&mut self, lower_bound: usize, effort: SearchEffort) -> Option<Vec<Vec<usize>>> {
        let mut best = self.fewest_by_even_spread(lower_bound.max(self.problem.servers_min))?;
        if self.problem.applicants.len() > FIRST_FIT_MAX {
            return Some(best);
        }
        while best.len() > lower_bound && (self.asked as u64) < effort.evaluations_max() {
            match self.first_fit_within(best.len() - 1) {
                Some(servers) => best = servers,
                None => break,
            }
        }
        Some(best)
    }

    /// The smallest number of servers, from `first` on, for which an even spread is found to fit.
    fn fewest_by_even_spread(&mut self, first: usize) -> Option<Vec<Vec<usize>>> {
        let most = self.problem.servers.count.min(self.problem.applicants.len());
        let (mut fails, mut tried) = (first.saturating_sub(1), first);
        let mut best = loop {
            if tried > most {
                // The last step may have jumped over what is left.
                if fails >= most {
                    return None;
                }
                tried = most;
            }
            match self.even_spread(tried) {
                Some(servers) => break servers,
                None => fails = tried,
            }
            tried = (tried + tried.div_ceil(2)).max(tried + 1);
        };
        while best.len() - fails > 1 {
            let middle = fails + (best.len() - fails) / 2;
            match self.even_spread(middle) {
                Some(servers) => best = servers,
                None => fails = middle,
            }
        }
        Some(best)
    }

    /// All applicants on `count` servers, evenly; `None` when that does not fit.
    fn even_spread(&mut self, count: usize) -> Option<Vec<Vec<usize>>> {
        (self.watch)(count);
        let mut servers = vec![Vec::new(); count];
        let mut filled = vec![PerStage::from_fn(|_| 0.0); count];
        for applicant in self.by_load() {
            let load = self.problem.loads[applicant];
            let least = (0..count)
                .min_by(|&a, &b| largest_sum(&filled[a], &load).total_cmp(&largest_sum(&filled[b], &load)))?;
            Stage::ALL.into_iter().for_each(|stage| filled[least][stage] += load[stage]);
            servers[least].push(applicant);
        }
        servers.retain(|members| !members.is_empty());
        servers.iter_mut().for_each(|members| members.sort_unstable());
        servers.iter().all(|members| self.fits(members)).then_some(servers)
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

    /// The applicants, the one with the largest load first.
    fn by_load(&self) -> Vec<usize> {
        let loads = self.problem.loads.iter();
        let most: Vec<f64> =
            loads.map(|load| load.iter().map(|(_, load)| *load).fold(0.0, f64::max)).collect();
        let mut order: Vec<usize> = (0..most.len()).collect();
        order.sort_by(|&a, &b| most[b].total_cmp(&most[a]));
        order
    }

    /// The applicants, the one with the tightest SLO first; of equal ones, the one with the largest load.
    fn by_slo(&self) -> Vec<usize> {
        let applicants = self.problem.applicants;
        let mut order = self.by_load();
        order.sort_by(|&a, &b| applicants[a].slo.latency.0.total_cmp(&applicants[b].slo.latency.0));
        order
    }

    /// All applicants on `count` servers, first fit; `None` when neither order finds room for all.
    fn first_fit_within(&mut self, count: usize) -> Option<Vec<Vec<usize>>> {
        (self.watch)(count);
        for order in [self.by_load(), self.by_slo()] {
            let (servers, refused) = self.first_fit(&order, count, AfterRefusal::Stop);
            if refused.is_empty() {
                return Some(servers);
            }
        }
        None
    }

    /// First fit in the order of the applicants on all servers.
    fn as_many_as_fit(&mut self) -> (Vec<Vec<usize>>, Vec<(usize, AdmissionRefusal)>) {
        let order: Vec<usize> = (0..self.problem.applicants.len()).collect();
        self.first_fit(&order, self.problem.servers.count, AfterRefusal::Continue)
    }

    fn first_fit(
        &mut self,
        order: &[usize],
        count: usize,
        after_refusal: AfterRefusal,
    ) -> (Vec<Vec<usize>>, Vec<(usize, AdmissionRefusal)>) {
        let identical = IdenticalServers { count, ..self.problem.servers };
        let mut controller = AdmissionController::new(self.procedure.clone(), identical);
        let (mut servers, mut refused) = (vec![Vec::new(); count], Vec::new());
        for &applicant in order {
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
