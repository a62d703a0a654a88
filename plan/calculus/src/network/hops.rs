//! Total-flow and separated-flow analysis, and the curves with which flows reach each server.
//!
//! A flow leaves a hop with the smaller of two curves: that of its arrivals shifted by the hop's delay bound
//! (Le Boudec and Thiran, §1.4: no bit is later than that), and the deconvolution by what all others leave
//! to it.

use super::{FeedForwardNetwork, FlowBound, HopTerm};
use crate::{ArrivalCurve, ServiceCurve, horizontal_deviation, output_curve, round_up};

/// Curves of every flow at every hop of its path.
pub(super) struct HopCurves {
    /// The curve with which each flow arrives at each hop of its path; `None` when nothing bounds it.
    pub(super) arrival: Vec<Vec<Option<ArrivalCurve>>>,
    /// The terms of the total-flow analysis, by flow and in the order of the servers.
    total: Vec<Vec<HopTerm>>,
}

/// The flows of one priority at a server.
struct ServerLevel<'a> {
    server: usize,
    /// The flows of the level, as (flow, position in its path).
    users: &'a [(usize, usize)],
    /// The curve of all traffic of higher priorities; `None` when nothing bounds it.
    above: Option<ArrivalCurve>,
    /// The curve of all traffic of the level; `None` when nothing bounds it.
    all: Option<ArrivalCurve>,
}

/// Takes all flows through all servers, in the order in which servers feed each other.
pub(super) fn propagate(network: &FeedForwardNetwork) -> HopCurves {
    let mut hops = HopCurves {
        arrival: network.flows.iter().map(|f| vec![Some(f.arrival.clone())]).collect(),
        total: vec![Vec::new(); network.flows.len()],
    };
    for &server in &network.order {
        let users = network.users(server);
        let mut above = Some(ArrivalCurve::zero());
        for level in users.chunk_by(|a, b| network.priority(*a) == network.priority(*b)) {
            let all = sum_of(level.iter().map(|&(f, h)| hops.arrival[f][h].as_ref()));
            let level = ServerLevel { server, users: level, above: above.clone(), all: all.clone() };
            hops.pass_level(network, &level);
            above = sum_of([above.as_ref(), all.as_ref()]);
        }
    }
    hops
}

impl HopCurves {
    /// Takes a level through its server. A server comes after those that feed it, so arrivals are known.
    fn pass_level(&mut self, network: &FeedForwardNetwork, level: &ServerLevel<'_>) {
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

    /// The curve with which a flow leaves the server, when no work of its level waits longer than `delay`.
    fn leaving(
        &self,
        network: &FeedForwardNetwork,
        level: &ServerLevel<'_>,
        user: (usize, usize),
        delay: f64,
    ) -> Option<ArrivalCurve> {
        let arrival = self.arrival[user.0][user.1].as_ref()?;
        let late = delay.is_finite().then(|| arrival.delayed(delay));
        let blind = output_curve(arrival, &self.blind_leftover(network, level, user));
        match (late, blind) {
            (Some(a), Some(b)) => Some(a.minimum(&b)),
            (a, b) => a.or(b),
        }
    }

    /// The service that is left when all other flows of the level are served first.
    fn blind_leftover(
        &self,
        network: &FeedForwardNetwork,
        level: &ServerLevel<'_>,
        user: (usize, usize),
    ) -> ServiceCurve {
        let before = sum_of([level.above.as_ref(), self.others(level, user).as_ref()]);
        minus(&network.servers[level.server], before.as_ref())
    }

    /// The curve of all other flows of the level.
    fn others(&self, level: &ServerLevel<'_>, user: (usize, usize)) -> Option<ArrivalCurve> {
        sum_of(level.users.iter().filter(|u| **u != user).map(|&(f, h)| self.arrival[f][h].as_ref()))
    }
}

/// The curve of all these flows together; `None` when one of them is unbounded.
fn sum_of<'a>(curves: impl IntoIterator<Item = Option<&'a ArrivalCurve>>) -> Option<ArrivalCurve> {
    let curves: Option<Vec<&ArrivalCurve>> = curves.into_iter().collect();
    let curves = curves?;
    Some(if curves.is_empty() { ArrivalCurve::zero() } else { ArrivalCurve::sum(curves) })
}

/// The service that is left beside arrivals, which is none when nothing bounds them.
fn minus(service: &ServiceCurve, arrivals: Option<&ArrivalCurve>) -> ServiceCurve {
    arrivals.map_or_else(ServiceCurve::none, |arrivals| service.minus(arrivals))
}

/// The bounds of all flows by total-flow analysis.
pub fn total_flow(network: &FeedForwardNetwork) -> Vec<FlowBound> {
    let mut bounds = Vec::with_capacity(network.flows.len());
    for (mut hops, flow) in propagate(network).total.into_iter().zip(&network.flows) {
        hops.sort_by_key(|term| flow.path.iter().position(|hop| hop.server == term.server));
        let delay = hops.iter().filter_map(|hop| hop.delay).sum::<f64>();
        bounds.push(FlowBound { hops, delay: round_up(delay) });
    }
    bounds
}

/// Division of a level's service between a flow and the others of its level.
#[derive(Debug, Clone, Copy)]
enum Multiplexing {
    /// All others are served before the flow.
    Blind,
    /// First in, first out, with θ where a burst of the others is served.
    FifoBurst,
    /// First in, first out, with θ at the delay bound of the level.
    FifoDelay,
}

/// The bounds of all flows by separated-flow analysis: the best of blind leftovers and of two FIFO leftovers.
pub fn separated_flow(network: &FeedForwardNetwork) -> Vec<FlowBound> {
    let hops = propagate(network);
    let mut bounds = Vec::with_capacity(network.flows.len());
    for flow in 0..network.flows.len() {
        let forms = [Multiplexing::Blind, Multiplexing::FifoBurst, Multiplexing::FifoDelay];
        let candidates = forms.map(|multiplexing| separated(network, &hops, flow, multiplexing));
        let best = candidates.into_iter().min_by(|a, b| a.delay.total_cmp(&b.delay));
        bounds.push(best.expect("three candidates"));
    }
    bounds
}

/// The bound of one flow: its curve against the convolution of what each hop leaves to it.
fn separated(
    network: &FeedForwardNetwork,
    hops: &HopCurves,
    flow: usize,
    multiplexing: Multiplexing,
) -> FlowBound {
    let path = &network.flows[flow].path;
    let leftovers: Vec<ServiceCurve> =
        (0..path.len()).map(|hop| leftover(network, hops, (flow, hop), multiplexing)).collect();
    let service = leftovers.iter().cloned().reduce(|a, b| a.convolve(&b)).expect("paths have hops");
    let delay = horizontal_deviation(&network.flows[flow].arrival, &service);
    let mut terms = Vec::with_capacity(path.len());
    for (hop, leftover) in leftovers.into_iter().enumerate() {
        let arrival = hops.arrival[flow][hop].clone();
        terms.push(HopTerm { server: path[hop].server, arrival, leftover, delay: None });
    }
    FlowBound { hops: terms, delay }
}

/// The service that a flow's own server leaves to it.
fn leftover(
    network: &FeedForwardNetwork,
    hops: &HopCurves,
    user: (usize, usize),
    multiplexing: Multiplexing,
) -> ServiceCurve {
    let server = network.flows[user.0].path[user.1].server;
    let own = network.priority(user);
    let mut above = Vec::new();
    let mut beside = Vec::new();
    for other in network.users(server) {
        let arrival = hops.arrival[other.0][other.1].as_ref();
        if network.priority(other) < own {
            above.push(arrival);
        } else if network.priority(other) == own && other != user {
            beside.push(arrival);
        }
    }
    let above = sum_of(above);
    let Some(beside) = sum_of(beside) else { return ServiceCurve::none() };
    let left = minus(&network.servers[server], above.as_ref());
    let theta = match multiplexing {
        Multiplexing::Blind => {
            return minus(&network.servers[server], sum_of([above.as_ref(), Some(&beside)]).as_ref());
        }
        Multiplexing::FifoBurst => horizontal_deviation(&beside.burst_only(), &left),
        Multiplexing::FifoDelay => match hops.arrival[user.0][user.1].as_ref() {
            Some(arrival) => horizontal_deviation(&ArrivalCurve::sum([arrival, &beside]), &left),
            None => f64::INFINITY,
        },
    };
    left.minus_fifo(&beside, theta)
}
