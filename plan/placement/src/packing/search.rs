//! The search for few servers: first fit in the order of the input, then even spreads over fewer or as many servers, then
//! first fit in other orders.

use super::control::PackingPhase;
use super::fill::{FillRule, fill};
use super::lanes::fill_in_lanes;
use super::questions::{Interruption, PackingQuestions};
use crate::admission::{AdmissionProcedure, AdmissionRefusal, Applicant, Breach};
use crate::effort::SearchEffort;
use model::{PerStage, Stage};
use std::collections::BTreeMap;

/// With more candidates, servers are filled once and not searched.
const ONE_BY_ONE_MAX: usize = 300;

/// The members of each server, and who has no place.
type PlacedApplicants = (Vec<Vec<usize>>, Vec<(usize, AdmissionRefusal)>);

/// With more candidates a server is closed after so many did not fit.
const PATIENCE: usize = 12;

pub(super) struct PackingSearch<'a, P: AdmissionProcedure> {
    questions: PackingQuestions<'a, P>,
    /// Procedures of which each may be asked while others answer.
    procedures: &'a [P],
    /// The applicants that take part.
    candidates: Vec<usize>,
    /// Cached answers by number of servers: an even spread over them fits.
    spreads: BTreeMap<usize, bool>,
    /// The servers that are certain.
    certain: Vec<Vec<usize>>,
    interrupted: bool,
}

impl<'a, P: AdmissionProcedure<Sketch: Send + Sync> + Sync> PackingSearch<'a, P> {
    pub(super) fn new(
        questions: PackingQuestions<'a, P>,
        procedures: &'a [P],
        candidates: Vec<usize>,
    ) -> Self {
        let spreads = BTreeMap::new();
        let certain = Vec::new();
        Self { questions, procedures, candidates, spreads, certain, interrupted: false }
    }

    pub(super) fn asked(&self) -> usize {
        self.questions.asked
    }

    pub(super) fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Places as many candidates as fit; an interrupted search gives those that certainly do.
    pub(super) fn run(&mut self, lower_bound: usize, effort: SearchEffort) -> PlacedApplicants {
        self.search(lower_bound, effort).unwrap_or_else(|Interruption| {
            self.interrupted = true;
            self.what_is_certain()
        })
    }

    fn search(&mut self, lower_bound: usize, effort: SearchEffort) -> Result<PlacedApplicants, Interruption> {
        let order = self.candidates.clone();
        let few = order.len() <= ONE_BY_ONE_MAX;
        let patience = if few { usize::MAX } else { PATIENCE };
        let rule = FillRule { servers: self.questions.problem.servers.count, patience, rounds: usize::MAX };
        let (filled, interruption) = if few {
            fill(&mut self.questions, &order, rule)
        } else {
            fill_in_lanes(&mut self.questions, self.procedures, &order, rule)
        };
        self.keep_certain(filled.servers.clone());
        if let Some(interruption) = interruption {
            return Err(interruption);
        }
        if !filled.left_over.is_empty() {
            let refused = self.refuse(&filled.servers, &filled.left_over)?;
            return Ok((filled.servers, refused));
        }
        let mut best = filled.servers;
        if !few {
            return Ok((best, Vec::new()));
        }
        let first = lower_bound.max(self.questions.problem.servers_min);
        if let Some(servers) = self.confirmed_spread(first, best.len().max(first))? {
            best = servers;
        }
        while best.len() > lower_bound && (self.asked() as u64) < effort.evaluations_max() {
            match self.first_fit_within(best.len() - 1)? {
                Some(servers) => best = servers,
                None => break,
            }
        }
        Ok((best, Vec::new()))
    }

    /// The number of servers that the mean loads of the candidates need.
    pub(super) fn lower_bound(&self) -> usize {
        let loads = self.candidates.iter().map(|&candidate| &self.questions.problem.loads[candidate]);
        let by_stage = Stage::ALL.map(|stage| loads.clone().map(|load| load[stage]).sum::<f64>());
        let most = by_stage.into_iter().fold(0.0, f64::max);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and not negative")]
        let servers = most.ceil() as usize;
        servers.max(usize::from(!self.candidates.is_empty()))
    }

    /// The smallest number of servers, from `first` to `most`, for which an even spread is found to fit and to pass the
    /// second judgement.
    fn confirmed_spread(
        &mut self,
        first: usize,
        most: usize,
    ) -> Result<Option<Vec<Vec<usize>>>, Interruption> {
        let most = most.min(self.questions.problem.servers.count).min(self.candidates.len());
        let mut at_least = first;
        while let Some(count) = self.fewest_by_even_spread(at_least, most)? {
            let servers = self.even_spread(count);
            if self.is_confirmed(&servers)? {
                self.keep_certain(servers.clone());
                return Ok(Some(servers));
            }
            at_least = count + 1;
        }
        Ok(None)
    }

    fn is_confirmed(&mut self, servers: &[Vec<usize>]) -> Result<bool, Interruption> {
        for (done, members) in servers.iter().enumerate() {
            self.questions.report(PackingPhase::Confirm(servers.len()), done, servers.len())?;
            if !self.questions.is_confirmed(members) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The smallest number of servers, from `first` to `most`, for which an even spread is found to fit: up in growing
    /// steps, then down by bisection.
    fn fewest_by_even_spread(&mut self, first: usize, most: usize) -> Result<Option<usize>, Interruption> {
        let mut fails = first.saturating_sub(1);
        let mut tried = first;
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
        Ok(Some(fitting))
    }

    /// The candidates on `count` servers, evenly.
    fn even_spread(&self, count: usize) -> Vec<Vec<usize>> {
        let mut servers = vec![Vec::new(); count];
        let mut filled = vec![PerStage::from_fn(|_| 0.0); count];
        for candidate in self.by_load() {
            let load = self.questions.problem.loads[candidate];
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

    /// Returns true if the procedure accepts every server of an even spread over `count` servers.
    fn spread_fits(&mut self, count: usize) -> Result<bool, Interruption> {
        if let Some(&known) = self.spreads.get(&count) {
            return Ok(known);
        }
        let servers = self.even_spread(count);
        let mut fits = true;
        for (done, members) in servers.iter().enumerate() {
            self.questions.report(PackingPhase::Spread(count), done, servers.len())?;
            fits = self.questions.fits(members);
            if !fits {
                break;
            }
        }
        self.spreads.insert(count, fits);
        Ok(fits)
    }

    /// The candidates, the one with the largest load first.
    fn by_load(&self) -> Vec<usize> {
        let most = |candidate: usize| {
            self.questions.problem.loads[candidate].iter().map(|(_, load)| *load).fold(0.0, f64::max)
        };
        let mut order: Vec<(f64, usize)> = self.candidates.iter().map(|&c| (most(c), c)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        order.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// The candidates, the one with the tightest SLO first; of equal ones, the one with the largest load.
    fn by_slo(&self) -> Vec<usize> {
        let applicants = self.questions.problem.applicants;
        let mut order = self.by_load();
        order.sort_by(|&a, &b| applicants[a].slo.latency.0.total_cmp(&applicants[b].slo.latency.0));
        order
    }

    /// All candidates on `count` servers, first fit; `None` when neither order finds room for all.
    fn first_fit_within(&mut self, count: usize) -> Result<Option<Vec<Vec<usize>>>, Interruption> {
        for order in [self.by_load(), self.by_slo()] {
            let rule = FillRule { servers: count, patience: usize::MAX, rounds: usize::MAX };
            let (filled, interruption) = fill(&mut self.questions, &order, rule);
            if let Some(interruption) = interruption {
                return Err(interruption);
            }
            if filled.left_over.is_empty() {
                self.keep_certain(filled.servers.clone());
                return Ok(Some(filled.servers));
            }
        }
        Ok(None)
    }

    /// Returns the reasons why the remaining applicants fit on no server. For very many, only the fact.
    fn refuse(
        &mut self,
        servers: &[Vec<usize>],
        left_over: &[usize],
    ) -> Result<Vec<(usize, AdmissionRefusal)>, Interruption> {
        let mut refused = Vec::new();
        for (done, &applicant) in left_over.iter().enumerate() {
            self.questions.report(PackingPhase::Explain, done, left_over.len())?;
            let refusal = if self.candidates.len() <= ONE_BY_ONE_MAX {
                AdmissionRefusal::NoRoom(self.breaches(servers, applicant))
            } else {
                AdmissionRefusal::Full(servers.len())
            };
            refused.push((applicant, refusal));
        }
        Ok(refused)
    }

    /// Returns the breaches that an applicant would cause on each server.
    fn breaches(&self, servers: &[Vec<usize>], applicant: usize) -> Vec<Breach> {
        let PackingQuestions { procedure, problem, .. } = self.questions;
        let mut breaches = Vec::new();
        for members in servers {
            let members: Vec<&Applicant<P::Sketch>> =
                members.iter().chain([&applicant]).map(|&m| &problem.applicants[m]).collect();
            let server = self.questions.shared_by(&members);
            let latencies = procedure.latencies(&server, &procedure.priorities(&server));
            breaches.extend(Breach::worst(&server, &latencies, 1));
        }
        breaches
    }

    /// Keeps servers for an interruption: those with the most members, on equally many the fewest servers.
    fn keep_certain(&mut self, servers: Vec<Vec<usize>>) {
        let placed = |servers: &[Vec<usize>]| servers.iter().map(Vec::len).sum::<usize>();
        let new = placed(&servers);
        let old = placed(&self.certain);
        if new > old || (new == old && servers.len() < self.certain.len()) {
            self.certain = servers;
        }
    }

    /// Returns the certain servers; all other workloads are refused because of the interruption.
    fn what_is_certain(&mut self) -> PlacedApplicants {
        let servers = std::mem::take(&mut self.certain);
        let mut has_place = vec![false; self.questions.problem.applicants.len()];
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
