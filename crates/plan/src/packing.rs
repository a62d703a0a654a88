//! Few servers for all workloads under any admission [`Procedure`].
//!
//! A procedure may be slow (replaying traces takes a second), so this search asks it rarely: workloads are
//! spread evenly over a number of servers, the largest load first (LPT, Graham 1969), and every server is
//! asked about once. The number is searched from the least that the loads allow: up in growing steps until
//! an even spread fits, down by bisection. Then, with [`Effort::Squeeze`], first fit, tightest SLO first and largest
//! load first, tries to save one server after the other. What is returned fits by the procedure's own word. Where
//! that word is an estimate, do not squeeze: of many placements, the one that looks just good enough is
//! worse than it looks.
//!
//! Not covered: optimality (the number is at least [`Packing::lower_bound`]), several classes of server.

use crate::admission::{Applicant, Desk, Host, Procedure, Refusal, ServerView};
use model::{PerStage, Stage};

/// First fit asks about every workload; with more of them only the even spread is tried.
const FIRST_FIT_MAX: usize = 300;

/// Workloads on servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// Applicants by server.
    pub servers: Vec<Vec<usize>>,
    /// Who has no place, and why.
    pub refused: Vec<(usize, Refusal)>,
    /// No number of servers below this can carry the load of everybody.
    pub lower_bound: usize,
    /// How often the procedure was asked about a server.
    pub asked: usize,
}

/// How hard to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Even spreads alone, over at least this many servers.
    Spread {
        /// At least 1.
        at_least: usize,
    },
    /// First fit, too.
    Squeeze,
}

/// Places as many of the applicants as fit, on few servers; `loads` is each one's mean use of every stage,
/// fraction of capacity. `watch` is told how many servers are being tried.
pub fn pack<P: Procedure + Clone>(
    procedure: &P,
    host: Host,
    applicants: &[Applicant<P::Sketch>],
    loads: &[PerStage<f64>],
    effort: Effort,
    watch: &mut dyn FnMut(usize),
) -> Packing {
    assert_eq!(applicants.len(), loads.len(), "one load per applicant");
    let mut search = Search { procedure, host, applicants, loads, watch, asked: 0 };
    let lower_bound = search.lower_bound();
    let everybody = search.fewest(lower_bound, effort);
    let (servers, refused) = match everybody {
        Some(servers) => (servers, Vec::new()),
        None => search.as_many_as_fit(),
    };
    Packing { servers, refused, lower_bound, asked: search.asked }
}

struct Search<'a, P: Procedure> {
    procedure: &'a P,
    host: Host,
    applicants: &'a [Applicant<P::Sketch>],
    loads: &'a [PerStage<f64>],
    watch: &'a mut dyn FnMut(usize),
    asked: usize,
}

impl<P: Procedure + Clone> Search<'_, P> {
    /// What the mean loads need.
    fn lower_bound(&self) -> usize {
        let sum = |stage: Stage| self.loads.iter().map(|load| load[stage]).sum::<f64>();
        let most = Stage::ALL.into_iter().map(sum).fold(0.0, f64::max);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Small and not negative.
        let servers = most.ceil() as usize;
        servers.max(usize::from(!self.applicants.is_empty()))
    }

    /// Everybody on few servers; `None` when no more than there are would do.
    fn fewest(&mut self, lower_bound: usize, effort: Effort) -> Option<Vec<Vec<usize>>> {
        let most = self.host.servers.min(self.applicants.len());
        let first = match effort {
            Effort::Spread { at_least } => lower_bound.max(at_least),
            Effort::Squeeze => lower_bound,
        };
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
        let squeeze = effort == Effort::Squeeze && self.applicants.len() <= FIRST_FIT_MAX;
        while squeeze && best.len() > lower_bound {
            match self.first_fit_within(best.len() - 1) {
                Some(servers) => best = servers,
                None => break,
            }
        }
        Some(best)
    }

    /// Everybody on `count` servers, evenly; `None` when that does not fit.
    fn even_spread(&mut self, count: usize) -> Option<Vec<Vec<usize>>> {
        (self.watch)(count);
        let mut servers = vec![Vec::new(); count];
        let mut filled = vec![PerStage::from_fn(|_| 0.0); count];
        for applicant in self.by_load() {
            let load = self.loads[applicant];
            let with = |server: &PerStage<f64>| {
                server.iter().map(|(stage, used)| used + load[stage]).fold(0.0, f64::max)
            };
            let least = (0..count).min_by(|&a, &b| with(&filled[a]).total_cmp(&with(&filled[b])))?;
            Stage::ALL.into_iter().for_each(|stage| filled[least][stage] += load[stage]);
            servers[least].push(applicant);
        }
        servers.retain(|members| !members.is_empty());
        servers.iter_mut().for_each(|members| members.sort_unstable());
        servers.iter().all(|members| self.fits(members)).then_some(servers)
    }

    fn fits(&mut self, members: &[usize]) -> bool {
        self.asked += 1;
        let members: Vec<&Applicant<P::Sketch>> = members.iter().map(|&m| &self.applicants[m]).collect();
        let (base_latency, slo_factor) = (self.host.base_latency, self.host.slo_factor);
        let server = ServerView { members: &members, base_latency, slo_factor };
        let priorities = self.procedure.priorities(&server);
        self.procedure.fits(&server, &priorities)
    }

    /// The largest load first.
    fn by_load(&self) -> Vec<usize> {
        let most = |a: usize| self.loads[a].iter().map(|(_, load)| *load).fold(0.0, f64::max);
        let mut order: Vec<usize> = (0..self.applicants.len()).collect();
        order.sort_by(|&a, &b| most(b).total_cmp(&most(a)));
        order
    }

    fn by_slo(&self) -> Vec<usize> {
        let mut order = self.by_load();
        let latency = |a: usize| self.applicants[a].slo.latency.0;
        order.sort_by(|&a, &b| latency(a).total_cmp(&latency(b)));
        order
    }

    fn first_fit_within(&mut self, count: usize) -> Option<Vec<Vec<usize>>> {
        (self.watch)(count);
        let orders = [self.by_load(), self.by_slo()];
        orders.into_iter().find_map(|order| {
            let (servers, refused) = self.first_fit(&order, count, Stop::AtRefusal);
            refused.is_empty().then_some(servers)
        })
    }

    /// First fit in the order of the applicants on all servers.
    fn as_many_as_fit(&mut self) -> (Vec<Vec<usize>>, Vec<(usize, Refusal)>) {
        let order: Vec<usize> = (0..self.applicants.len()).collect();
        self.first_fit(&order, self.host.servers, Stop::Never)
    }

    fn first_fit(
        &mut self,
        order: &[usize],
        count: usize,
        stop: Stop,
    ) -> (Vec<Vec<usize>>, Vec<(usize, Refusal)>) {
        let mut desk = Desk::new(self.procedure.clone(), Host { servers: count, ..self.host });
        let (mut servers, mut refused) = (vec![Vec::new(); count], Vec::new());
        for &applicant in order {
            match desk.arrive(vec![self.applicants[applicant].clone()]) {
                Ok(server) => {
                    self.asked += server + 1;
                    servers[server].push(applicant);
                }
                Err(refusal) => {
                    self.asked += count;
                    refused.push((applicant, refusal));
                    if stop == Stop::AtRefusal {
                        break;
                    }
                }
            }
        }
        servers.retain(|members| !members.is_empty());
        (servers, refused)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    AtRefusal,
    Never,
}
