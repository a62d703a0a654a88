//! Total-flow and separated-flow analysis, and the curves with which flows reach each server.
//!
//! A flow leaves a hop with the smaller of two curves: that of its arrivals shifted by the hop's delay bound
//! (Le Boudec and Thiran, §1.4: no bit is later than that), and the deconvolution by what all others leave
//! to it.

use super::{FlowBound, HopTerm, Network};
use crate::{ArrivalCurve, ServiceCurve, horizontal_deviation, output, round_up};

/// What is known of every flow at every hop of its path.
pub(super) struct Hops {
    /// Curve with which the flow arrives; `None` when nothing bounds it.
    pub(super) arrival: Vec<Vec<Option<ArrivalCurve>>>,
    /// Total-flow terms.
    total: Vec<Vec<HopTerm>>,
}

/// Flows of one priority at a server.
struct Level<'a> {
    server: usize,
    users: &'a [(usize, usize)],
    /// All traffic above.
    above: Option<ArrivalCurve>,
    /// All traffic of the level.
    all: Option<ArrivalCurve>,
}

pub(super) fn propagate(network: &Network) -> Hops {
    let mut hops = Hops {
        arrival: network.flows.iter().map(|f| vec![Some(f.arrival.clone())]).collect(),
        total: vec![Vec::new(); network.flows.len()],
    };
    for &server in &network.order {
        let users = network.users(server);
        let mut above = Some(ArrivalCurve::zero());
        for level in users.chunk_by(|a, b| network.priority(*a) == network.priority(*b)) {
            let all = sum_of(level.iter().map(|&(f, h)| hops.arrival[f][h].as_ref()));
            let level = Level { server, users: level, above: above.clone(), all: all.clone() };
            hops.pass(network, &level);
            above = sum_of([above.as_ref(), all.as_ref()]);
        }
    }
    hops
}

impl Hops {
    /// Takes a level through its server. A server comes after those that feed it, so arrivals are known.
    fn pass(&mut self, network: &Network, level: &Level<'_>) {
        let leftover = minus(&network.servers[level.server], level.above.as_ref());
        let delay = level.all.as_ref().map_or(f64::INFINITY, |all| horizontal_deviation(all, &leftover));
        let leaving: Vec<_> =
            level.users.iter().map(|&user| self.leaving(network, level, user, delay)).collect();
        for (&(flow, _), leaving) in level.users.iter().zip(leaving) {
            self.total[flow].push(HopTerm {
                server: level.server,
                arrival: level.all.clone(),
                leftover: leftover.clone(),
                delay: Some(delay),
            });
            self.arrival[flow].push(leaving);
        }
    }

    fn leaving(
        &self,
        network: &Network,
        level: &Level<'_>,
        user: (usize, usize),
        delay: f64,
    ) -> Option<ArrivalCurve> {
        let arrival = self.arrival[user.0][user.1].as_ref()?;
        let late = delay.is_finite().then(|| arrival.delayed(delay));
        let blind = output(arrival, &self.blind_leftover(network, level, user));
        match (late, blind) {
            (Some(a), Some(b)) => Some(a.minimum(&b)),
            (a, b) => a.or(b),
        }
    }

    /// Others of the level, all of them first.
    fn blind_leftover(&self, network: &Network, level: &Level<'_>, user: (usize, usize)) -> ServiceCurve {
        let before = sum_of([level.above.as_ref(), self.others(level, user).as_ref()]);
        minus(&network.servers[level.server], before.as_ref())
    }

    fn others(&self, level: &Level<'_>, user: (usize, usize)) -> Option<ArrivalCurve> {
        sum_of(level.users.iter().filter(|u| **u != user).map(|&(f, h)| self.arrival[f][h].as_ref()))
    }
}

/// `None` when one of them is unbounded.
fn sum_of<'a>(curves: impl IntoIterator<Item = Option<&'a ArrivalCurve>>) -> Option<ArrivalCurve> {
    let curves: Option<Vec<&ArrivalCurve>> = curves.into_iter().collect();
    let curves = curves?;
    Some(if curves.is_empty() { ArrivalCurve::zero() } else { ArrivalCurve::sum(curves) })
}

fn minus(service: &ServiceCurve, arrivals: Option<&ArrivalCurve>) -> ServiceCurve {
    arrivals.map_or_else(ServiceCurve::none, |arrivals| service.minus(arrivals))
}

/// Total-flow analysis of every flow.
pub fn total_flow(network: &Network) -> Vec<FlowBound> {
    let bound = |hops: Vec<HopTerm>| {
        let delay = hops.iter().filter_map(|hop| hop.delay).sum::<f64>();
        FlowBound { hops, delay: round_up(delay) }
    };
    let mut terms = propagate(network).total;
    for (terms, flow) in terms.iter_mut().zip(&network.flows) {
        let position = |term: &HopTerm| flow.path.iter().position(|hop| hop.server == term.server);
        terms.sort_by_key(position);
    }
    terms.into_iter().map(bound).collect()
}

/// How the others of a level are taken from what the level has.
#[derive(Debug, Clone, Copy)]
enum Others {
    /// All before the flow.
    Blind,
    /// FIFO with θ at which a burst of the others is served.
    FifoBurst,
    /// FIFO with θ at the delay bound of the level.
    FifoDelay,
}

/// Separated-flow analysis of every flow: the best of blind leftovers and of two FIFO leftovers.
pub fn separated_flow(network: &Network) -> Vec<FlowBound> {
    let hops = propagate(network);
    let flow = |f: usize| {
        let ways = [Others::Blind, Others::FifoBurst, Others::FifoDelay];
        let bounds = ways.map(|others| separated(network, &hops, f, others));
        bounds.into_iter().min_by(|a, b| a.delay.total_cmp(&b.delay)).expect("three ways")
    };
    (0..network.flows.len()).map(flow).collect()
}

fn separated(network: &Network, hops: &Hops, flow: usize, others: Others) -> FlowBound {
    let arrival = &network.flows[flow].arrival;
    let leftovers: Vec<ServiceCurve> =
        (0..network.flows[flow].path.len()).map(|hop| leftover(network, hops, (flow, hop), others)).collect();
    let path = leftovers.iter().cloned().reduce(|a, b| a.convolve(&b)).expect("paths have hops");
    let term = |(hop, leftover): (usize, ServiceCurve)| HopTerm {
        server: network.flows[flow].path[hop].server,
        arrival: hops.arrival[flow][hop].clone(),
        leftover,
        delay: None,
    };
    let delay = horizontal_deviation(arrival, &path);
    FlowBound { hops: leftovers.into_iter().enumerate().map(term).collect(), delay }
}

fn leftover(network: &Network, hops: &Hops, user: (usize, usize), others: Others) -> ServiceCurve {
    let server = network.flows[user.0].path[user.1].server;
    let users = network.users(server);
    let (own, at) = (network.priority(user), |u: &&(usize, usize)| network.priority(**u));
    let arrivals = |u: &(usize, usize)| hops.arrival[u.0][u.1].as_ref();
    let above = sum_of(users.iter().filter(|u| at(u) < own).map(arrivals));
    let Some(beside) = sum_of(users.iter().filter(|u| at(u) == own && **u != user).map(arrivals)) else {
        return ServiceCurve::none();
    };
    let left = minus(&network.servers[server], above.as_ref());
    let theta = match others {
        Others::Blind => {
            return minus(&network.servers[server], sum_of([above.as_ref(), Some(&beside)]).as_ref());
        }
        Others::FifoBurst => horizontal_deviation(&beside.burst_only(), &left),
        Others::FifoDelay => match arrivals(&user) {
            Some(arrival) => horizontal_deviation(&ArrivalCurve::sum([arrival, &beside]), &left),
            None => f64::INFINITY,
        },
    };
    left.minus_fifo(&beside, theta)
}
