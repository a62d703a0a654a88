//! A flow's path as a tandem with cross traffic, and the pay-multiplexing-only-once bound on it.
//!
//! On its path a flow is delayed only by flows of the same or higher priority. Where such a flow joins, stays
//! and leaves, it is one cross flow with the curve that it has on joining; where it comes again, or falls below
//! the flow in between, it counts as another. Within a priority the multiplexing is taken as blind.
//!
//! Schmitt, Zdarsky and Fidler: a bit that leaves the last server at t has seen each server backlogged over
//! one of consecutive intervals, so with token buckets ⟨r_j, b_j⟩ and rate-latency servers ⟨R_i, T_i⟩ the path
//! serves the flow at rate `R = min_i (R_i − Σ_{j∋i} r_j)` after
//! `Σ_i T_i + (Σ_j b_j + Σ_i Σ_{j∋i} r_j·T_i) / R`. Concave and convex curves are sets of lines and any choice
//! holds; lines are improved one at a time until none helps.

use super::hops::{HopCurves, propagate};
use super::{FeedForwardNetwork, FlowBound, Hop, HopTerm};
use crate::{ArrivalCurve, ServiceCurve, horizontal_deviation};

/// Traffic that delays a flow on a stretch of its path.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossFlow {
    /// The index of the flow.
    pub flow: usize,
    /// Its arrival curve at each server of the stretch; the first is the one with which it joins.
    pub arrivals: Vec<ArrivalCurve>,
    /// The first and last server of the stretch, as positions on the path.
    pub stretch: (usize, usize),
}

/// A flow's path with all that may delay it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tandem {
    /// The flow's arrival curve at each server; the first is that of its source.
    pub arrivals: Vec<ArrivalCurve>,
    /// The strict service curves along the path.
    pub servers: Vec<ServiceCurve>,
    /// The flows of the same or higher priority.
    pub cross: Vec<CrossFlow>,
}

/// The path of a flow; `None` when overload upstream leaves a cross flow without a curve.
pub fn tandem(network: &FeedForwardNetwork, flow: usize) -> Option<Tandem> {
    tandem_of(network, &propagate(network), flow)
}

/// The path of a flow, given the curves of all flows at all hops.
pub(super) fn tandem_of(network: &FeedForwardNetwork, hops: &HopCurves, flow: usize) -> Option<Tandem> {
    let path = &network.flows[flow].path;
    let mut cross = Vec::new();
    for (other, other_flow) in network.flows.iter().enumerate().filter(|(other, _)| *other != flow) {
        // Positions on both paths where it may delay the flow.
        let mut shared: Vec<(usize, usize)> = Vec::new();
        for (position, hop) in path.iter().enumerate() {
            let delays = |h: &Hop| h.server == hop.server && h.priority <= hop.priority;
            if let Some(position_there) = other_flow.path.iter().position(delays) {
                shared.push((position, position_there));
            }
        }
        for stretch in shared.chunk_by(|a, b| b.0 == a.0 + 1 && b.1 == a.1 + 1) {
            let first = stretch[0];
            let last = stretch[stretch.len() - 1];
            let arrivals =
                hops.arrival[other][first.1..=last.1].iter().cloned().collect::<Option<Vec<_>>>()?;
            cross.push(CrossFlow { flow: other, arrivals, stretch: (first.0, last.0) });
        }
    }
    let servers = path.iter().map(|hop| network.servers[hop.server].clone()).collect();
    let arrivals = hops.arrival[flow][..path.len()].iter().cloned().collect::<Option<Vec<_>>>()?;
    Some(Tandem { arrivals, servers, cross })
}

/// One line of every curve of a tandem, which together make a bound.
struct LineChoice<'a> {
    tandem: &'a Tandem,
    /// The lines of each server's curve, as (rate, latency).
    servers: Vec<Vec<(f64, f64)>>,
    /// The lines of each cross flow's curve, as (rate, burst).
    cross: Vec<Vec<(f64, f64)>>,
    /// The index of the chosen line of each curve, servers first.
    chosen: Vec<usize>,
}

impl<'a> LineChoice<'a> {
    /// The choice of the long-run rates, under which the path is stable if it is under any.
    fn long_run(tandem: &'a Tandem) -> Self {
        let servers: Vec<_> = tandem.servers.iter().map(ServiceCurve::lines).collect();
        let cross: Vec<_> = tandem.cross.iter().map(|c| c.arrivals[0].limits()).collect();
        let chosen = servers.iter().chain(&cross).map(|lines| lines.len().saturating_sub(1)).collect();
        Self { tandem, servers, cross, chosen }
    }

    /// The number of lines of a curve, servers first.
    fn line_count(&self, curve: usize) -> usize {
        self.servers.get(curve).unwrap_or_else(|| &self.cross[curve - self.servers.len()]).len()
    }

    /// The service of the whole path under these lines.
    fn service(&self) -> ServiceCurve {
        if self.servers.iter().any(Vec::is_empty) {
            return ServiceCurve::none();
        }
        let mut rate = f64::INFINITY;
        let mut latency = 0.0;
        let mut burst = 0.0;
        for (i, lines) in self.servers.iter().enumerate() {
            let (capacity, idle) = lines[self.chosen[i]];
            let cross = self.tandem.cross.iter().enumerate();
            let here = cross.filter(|(_, cross)| (cross.stretch.0..=cross.stretch.1).contains(&i));
            let taken: f64 = here.map(|(j, _)| self.cross_line(j).0).sum();
            rate = rate.min(capacity - taken);
            latency += idle;
            burst += taken * idle;
        }
        burst += (0..self.cross.len()).map(|j| self.cross_line(j).1).sum::<f64>();
        if rate <= 0.0 {
            ServiceCurve::none()
        } else {
            ServiceCurve::rate_latency(rate, latency + burst / rate)
        }
    }

    /// The chosen line of a cross flow, as (rate, burst).
    fn cross_line(&self, flow: usize) -> (f64, f64) {
        self.cross[flow][self.chosen[self.servers.len() + flow]]
    }

    /// The bound on the delay under these lines, seconds.
    fn delay(&self) -> f64 {
        horizontal_deviation(&self.tandem.arrivals[0], &self.service())
    }

    /// Changes one line at a time while that helps, and gives the bound, seconds.
    fn improve(&mut self) -> f64 {
        let mut best = self.delay();
        loop {
            let before = best;
            for curve in 0..self.chosen.len() {
                for line in 0..self.line_count(curve) {
                    let old = std::mem::replace(&mut self.chosen[curve], line);
                    let delay = self.delay();
                    if delay < best { best = delay } else { self.chosen[curve] = old }
                }
            }
            if best >= before {
                return best;
            }
        }
    }
}

/// The pay-multiplexing-only-once bounds of all flows.
pub fn multiplexing_once(network: &FeedForwardNetwork) -> Vec<FlowBound> {
    let hops = propagate(network);
    let mut bounds = Vec::with_capacity(network.flows.len());
    for flow in 0..network.flows.len() {
        let (service, delay) = match tandem_of(network, &hops, flow) {
            Some(tandem) => {
                let mut choice = LineChoice::long_run(&tandem);
                let delay = choice.improve();
                (choice.service(), delay)
            }
            None => (ServiceCurve::none(), f64::INFINITY),
        };
        bounds.push(FlowBound { hops: hop_terms(network, flow, &service, &hops), delay });
    }
    bounds
}

/// The terms of a path's hops, each with the service of the whole path.
pub(super) fn hop_terms(
    network: &FeedForwardNetwork,
    flow: usize,
    service: &ServiceCurve,
    hops: &HopCurves,
) -> Vec<HopTerm> {
    let mut terms = Vec::new();
    for (position, hop) in network.flows[flow].path.iter().enumerate() {
        let arrival = hops.arrival[flow][position].clone();
        terms.push(HopTerm { server: hop.server, arrival, leftover: service.clone(), delay: None });
    }
    terms
}
