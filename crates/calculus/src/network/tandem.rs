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

use super::hops::{Hops, propagate};
use super::{FlowBound, HopTerm, Network};
use crate::{ArrivalCurve, ServiceCurve, horizontal_deviation};

/// Traffic that delays a flow on a stretch of its path.
#[derive(Debug, Clone, PartialEq)]
pub struct Cross {
    /// The flow that it is.
    pub flow: usize,
    /// Its curve at each server of the stretch, the one with which it joins first.
    pub arrivals: Vec<ArrivalCurve>,
    /// First and last server of the stretch, by position on the path.
    pub stretch: (usize, usize),
}

/// A flow's path with all that may delay it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tandem {
    /// The flow's curve at each server, that of its source first.
    pub arrivals: Vec<ArrivalCurve>,
    /// Strict service curves along the path.
    pub servers: Vec<ServiceCurve>,
    /// Flows of the same or higher priority.
    pub cross: Vec<Cross>,
}

/// The path of a flow; `None` when overload upstream leaves a cross flow without a curve.
pub fn tandem(network: &Network, flow: usize) -> Option<Tandem> {
    of(network, &propagate(network), flow)
}

pub(super) fn of(network: &Network, hops: &Hops, flow: usize) -> Option<Tandem> {
    let path = &network.flows[flow].path;
    let mut cross = Vec::new();
    for (other, it) in network.flows.iter().enumerate().filter(|(other, _)| *other != flow) {
        // Positions on both paths where it may delay the flow.
        let meets = |(own, hop): (usize, &super::Hop)| {
            let at = it.path.iter().position(|h| h.server == hop.server && h.priority <= hop.priority)?;
            Some((own, at))
        };
        let shared: Vec<(usize, usize)> = path.iter().enumerate().filter_map(meets).collect();
        for stretch in shared.chunk_by(|a, b| b.0 == a.0 + 1 && b.1 == a.1 + 1) {
            let (first, last) = (stretch[0], stretch[stretch.len() - 1]);
            let arrivals =
                hops.arrival[other][first.1..=last.1].iter().cloned().collect::<Option<Vec<_>>>()?;
            cross.push(Cross { flow: other, arrivals, stretch: (first.0, last.0) });
        }
    }
    let servers = path.iter().map(|hop| network.servers[hop.server].clone()).collect();
    let arrivals = hops.arrival[flow][..path.len()].iter().cloned().collect::<Option<Vec<_>>>()?;
    Some(Tandem { arrivals, servers, cross })
}

/// One line of every curve.
struct Choice<'a> {
    tandem: &'a Tandem,
    /// (rate, latency) per server.
    servers: Vec<Vec<(f64, f64)>>,
    /// (rate, burst) per cross flow.
    cross: Vec<Vec<(f64, f64)>>,
    /// Chosen, servers first.
    chosen: Vec<usize>,
}

impl<'a> Choice<'a> {
    /// The long-run rates, under which the path is stable if it is under any.
    fn of(tandem: &'a Tandem) -> Self {
        let servers: Vec<_> = tandem.servers.iter().map(ServiceCurve::lines).collect();
        let cross: Vec<_> = tandem.cross.iter().map(|c| c.arrivals[0].limits()).collect();
        let chosen = servers.iter().chain(&cross).map(|lines| lines.len().saturating_sub(1)).collect();
        Self { tandem, servers, cross, chosen }
    }

    fn lines(&self, curve: usize) -> usize {
        self.servers.get(curve).unwrap_or_else(|| &self.cross[curve - self.servers.len()]).len()
    }

    /// The service of the whole path under these lines.
    fn service(&self) -> ServiceCurve {
        if self.servers.iter().any(Vec::is_empty) {
            return ServiceCurve::none();
        }
        let (mut rate, mut latency, mut burst) = (f64::INFINITY, 0.0, 0.0);
        let cross = |j: usize| self.cross[j][self.chosen[self.servers.len() + j]];
        for (i, lines) in self.servers.iter().enumerate() {
            let (capacity, idle) = lines[self.chosen[i]];
            let joins =
                |j: &usize| (self.tandem.cross[*j].stretch.0..=self.tandem.cross[*j].stretch.1).contains(&i);
            let taken: f64 = (0..self.cross.len()).filter(joins).map(|j| cross(j).0).sum();
            rate = rate.min(capacity - taken);
            latency += idle;
            burst += taken * idle;
        }
        burst += (0..self.cross.len()).map(|j| cross(j).1).sum::<f64>();
        if rate <= 0.0 {
            ServiceCurve::none()
        } else {
            ServiceCurve::rate_latency(rate, latency + burst / rate)
        }
    }

    fn delay(&self) -> f64 {
        horizontal_deviation(&self.tandem.arrivals[0], &self.service())
    }

    /// Changes one line at a time while that helps.
    fn improve(&mut self) -> f64 {
        let mut best = self.delay();
        loop {
            let before = best;
            for curve in 0..self.chosen.len() {
                for line in 0..self.lines(curve) {
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

/// Pay-multiplexing-only-once bounds of every flow.
pub fn multiplexing_once(network: &Network) -> Vec<FlowBound> {
    let hops = propagate(network);
    let flow = |f: usize| match of(network, &hops, f) {
        Some(tandem) => {
            let mut choice = Choice::of(&tandem);
            let delay = choice.improve();
            FlowBound { hops: terms(network, f, &choice.service(), &hops), delay }
        }
        None => FlowBound { hops: terms(network, f, &ServiceCurve::none(), &hops), delay: f64::INFINITY },
    };
    (0..network.flows.len()).map(flow).collect()
}

/// The path's hops, each with the service of the whole path.
pub(super) fn terms(network: &Network, flow: usize, service: &ServiceCurve, hops: &Hops) -> Vec<HopTerm> {
    let term = |(position, hop): (usize, &super::Hop)| HopTerm {
        server: hop.server,
        arrival: hops.arrival[flow][position].clone(),
        leftover: service.clone(),
        delay: None,
    };
    network.flows[flow].path.iter().enumerate().map(term).collect()
}
