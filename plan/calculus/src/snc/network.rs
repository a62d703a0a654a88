//! Latency in a network of two columns of queues: S_1 … S_n, each of which feeds V_1 … V_m (thesis
//! Figure A.3), as in a network that is congested at its hosts only.
//!
//! Three orders of the operators (Appendix A.3): one latency per hop; leftover services convolved; and the
//! thesis's own (A.4, Theorem 7, Eq. A.5), which subtracts the traffic that shares the whole path after the
//! convolution and aggregates traffic before its output, so that independent workloads stay independent.
//! Priorities are relaxed where aggregation needs it (Lemma 1): the output of a set of flows is taken behind
//! all flows of at least the priority of the last of them.

use super::aggregate::aggregate_in_groups;
use super::expression::{ArrivalProcess, ServiceProcess, TimeStep};
use super::latency::{LatencyBound, LatencyQuery};
use std::fmt;

/// A workload and its path.
#[derive(Debug, Clone)]
pub struct TwoColumnFlow {
    /// The work that it brings to each of its queues.
    pub arrivals: ArrivalProcess,
    /// The priority at both queues; 0 is served first. Of equal priorities, each is analysed as if the other went first.
    pub priority: u32,
    /// The index of its queue S.
    pub from: usize,
    /// The index of its queue V.
    pub to: usize,
}

/// Queues and the workloads through them.
#[derive(Debug, Clone)]
pub struct TwoColumnNetwork {
    first: Vec<ServiceProcess>,
    second: Vec<ServiceProcess>,
    flows: Vec<TwoColumnFlow>,
}

/// A flow (counted from 0) whose path names a queue that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TwoColumnError(pub usize);

impl fmt::Display for TwoColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {} passes a queue that does not exist", self.0)
    }
}

impl std::error::Error for TwoColumnError {}

/// The order in which operators are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorOrder {
    /// Approach 1 takes a latency per hop, each at half of what may be exceeded.
    HopByHop,
    /// Approach 2 takes the leftover at each hop, and convolves them.
    Convolution,
    /// Approach 3 (Eq. A.5) convolves before it subtracts what shares the path, and aggregates before output.
    AggregateFirst,
}

impl TwoColumnNetwork {
    /// A network of queues S, queues V, and flows between them.
    ///
    /// # Errors
    /// When a flow names a queue that does not exist.
    pub fn new(
        first: Vec<ServiceProcess>,
        second: Vec<ServiceProcess>,
        flows: Vec<TwoColumnFlow>,
    ) -> Result<Self, TwoColumnError> {
        match flows.iter().position(|flow| flow.from >= first.len() || flow.to >= second.len()) {
            Some(lost) => Err(TwoColumnError(lost)),
            None => Ok(Self { first, second, flows }),
        }
    }

    /// The latency that `flow` exceeds with probability at most `exceeded`: one bound, or one per hop, to
    /// be added. `None` when there is no bound.
    pub fn latency(
        &self,
        flow: usize,
        order: OperatorOrder,
        exceeded: f64,
        step: TimeStep,
    ) -> Option<Vec<LatencyBound>> {
        let queries = match order {
            OperatorOrder::AggregateFirst => {
                vec![(self.flows[flow].arrivals.clone(), self.aggregate_first(flow))]
            }
            OperatorOrder::Convolution => {
                let [near, far] = self.leftover_by_hop(flow);
                vec![(self.flows[flow].arrivals.clone(), near.convolve(&far))]
            }
            OperatorOrder::HopByHop => {
                let [near, far] = self.leftover_by_hop(flow);
                let arrivals = &self.flows[flow].arrivals;
                let departures = arrivals.output(&near);
                vec![(arrivals.clone(), near), (departures, far)]
            }
        };
        let exceeded = exceeded / queries.len() as f64;
        let solve = |(arrivals, service)| LatencyQuery { arrivals, service, exceeded, step }.solve();
        queries.into_iter().map(solve).collect()
    }

    /// The service that Eq. A.5 leaves for the flow.
    fn aggregate_first(&self, flow: usize) -> ServiceProcess {
        let TwoColumnFlow { from, to, .. } = self.flows[flow];
        let shared = self.urgent(flow, |other| other.from == from && other.to == to);
        let leaving = self.urgent(flow, |other| other.from == from && other.to != to);
        let near = after(&self.first[from], &self.merged(&leaving));
        let far = after(&self.second[to], &self.crossing(flow));
        after(&near.convolve(&far), &self.merged(&shared))
    }

    /// The service left for the flow at each of its queues.
    fn leftover_by_hop(&self, flow: usize) -> [ServiceProcess; 2] {
        let TwoColumnFlow { from, to, .. } = self.flows[flow];
        let near = after(&self.first[from], &self.merged(&self.urgent(flow, |other| other.from == from)));
        let along = self.urgent(flow, |other| other.from == from && other.to == to);
        let departures = self.departures(from, &along);
        let far = after(&after(&self.second[to], &departures), &self.crossing(flow));
        [near, far]
    }

    /// The traffic that other queues send to the flow's second queue, of steps 3 and 4.
    fn crossing(&self, flow: usize) -> Option<ArrivalProcess> {
        let TwoColumnFlow { from, to, .. } = self.flows[flow];
        let outputs: Vec<ArrivalProcess> = (0..self.first.len())
            .filter(|&queue| queue != from)
            .filter_map(|queue| {
                self.departures(queue, &self.urgent(flow, |other| other.from == queue && other.to == to))
            })
            .collect();
        (!outputs.is_empty()).then(|| aggregate_in_groups(&outputs))
    }

    /// The traffic that leaves `queue` of the flows `members`, behind all flows as urgent as the last of them (Lemma 1).
    fn departures(&self, queue: usize, members: &[usize]) -> Option<ArrivalProcess> {
        let last = members.iter().map(|&member| self.flows[member].priority).max()?;
        let flows = self.flows.iter().enumerate();
        let ahead: Vec<usize> = flows
            .filter(|(_, flow)| flow.from == queue && flow.priority <= last)
            .map(|(index, _)| index)
            .filter(|index| !members.contains(index))
            .collect();
        Some(self.merged(members)?.output(&after(&self.first[queue], &self.merged(&ahead))))
    }

    /// Other flows of at least the priority of `flow` that `on_path` accepts.
    fn urgent(&self, flow: usize, on_path: impl Fn(&TwoColumnFlow) -> bool) -> Vec<usize> {
        let priority = self.flows[flow].priority;
        let others = self.flows.iter().enumerate();
        others
            .filter(|&(index, other)| index != flow && other.priority <= priority && on_path(other))
            .map(|(index, _)| index)
            .collect()
    }

    /// The arrivals of these flows together; `None` when there are none.
    fn merged(&self, flows: &[usize]) -> Option<ArrivalProcess> {
        let processes: Vec<_> = flows.iter().map(|&k| self.flows[k].arrivals.clone()).collect();
        (!processes.is_empty()).then(|| aggregate_in_groups(&processes))
    }
}

/// The service after some traffic, if there is any.
fn after(service: &ServiceProcess, traffic: &Option<ArrivalProcess>) -> ServiceProcess {
    traffic.as_ref().map_or_else(|| service.clone(), |arrivals| service.leftover(arrivals))
}
