//! Latency bounds in feed-forward networks of strict-priority queues, by four analyses from coarse to fine.
//!
//! - [`total_flow`]: per hop, the deviation of all traffic of the level from what higher levels leave; hops add
//!   up.
//! - [`separated_flow`]: what all other flows leave to the flow at each hop, convolved: its own burst is paid
//!   once.
//! - [`multiplexing_once`]: others' bursts are paid once, too, over the stretch that they share.
//! - [`linear_program`]: the worst trajectory itself, with all lines of all curves; on a tandem whose others
//!   enter fresh it is exact for blind multiplexing (Bouillard, Jouhet and Thierry, as the thesis uses it in
//!   §3.2.3).
//!
//! Every bound holds, so the least may be used; [`linear_program`] is never above [`multiplexing_once`], which
//! is not always below [`separated_flow`], and FIFO levels may favour [`total_flow`].
//!
//! Assumptions: fluid traffic; each server offers a *strict* convex service curve (a server that works at least
//! as fast as one that has it, such as one of varying speed, does); preemptive strict priority between levels
//! and FIFO within one. Stages that pass on whole jobs only need a job's work more per hop.
//!
//! Not covered: cycles between servers, which are refused.

mod hops;
mod program;
mod tandem;

pub use hops::{separated_flow, total_flow};
pub use program::linear_program;
pub use tandem::{CrossFlow, Tandem, multiplexing_once, tandem};

use crate::{ArrivalCurve, ServiceCurve};
use std::fmt;

/// A server on a flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The index of the server in the network.
    pub server: usize,
    /// The flow's strict priority at this server; 0 is served first.
    pub priority: u32,
}

/// Traffic and the path that it takes.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkFlow {
    /// The arrival curve at the source; all flows and servers count work in the same unit.
    pub arrival: ArrivalCurve,
    /// The hops in their order: at least one, no server twice.
    pub path: Vec<Hop>,
}

/// Servers and the flows through them, without cycles.
#[derive(Debug, Clone)]
pub struct FeedForwardNetwork {
    servers: Vec<ServiceCurve>,
    flows: Vec<NetworkFlow>,
    /// The indices of the servers, each before those that it feeds.
    order: Vec<usize>,
}

/// Why servers and flows make no feed-forward network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedForwardError {
    /// This flow has no hops.
    NoPath(usize),
    /// A flow passes a server that is not there.
    UnknownServer {
        /// The index of the flow.
        flow: usize,
        /// The index that its path names.
        server: usize,
    },
    /// A flow passes a server twice.
    Revisit {
        /// The index of the flow.
        flow: usize,
        /// The index of the server that it visits again.
        server: usize,
    },
    /// These servers feed each other in a circle.
    Cycle(Vec<usize>),
    /// This server's curve has a jump, which no strict service curve of a queue has.
    Jump(usize),
}

impl fmt::Display for FeedForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPath(flow) => write!(f, "flow {flow} passes no server: expected at least one hop"),
            Self::UnknownServer { flow, server } => {
                write!(f, "flow {flow} passes server {server}, which does not exist")
            }
            Self::Revisit { flow, server } => {
                write!(f, "flow {flow} passes server {server} twice: expected a path")
            }
            Self::Cycle(servers) => write!(
                f,
                "servers {servers:?} feed each other in a circle: these analyses need a feed-forward network; \
                 forbid a turn or cut a flow in two"
            ),
            Self::Jump(server) => {
                write!(f, "server {server} has a service curve with a jump: expected a convex one")
            }
        }
    }
}

impl std::error::Error for FeedForwardError {}

/// Contribution of one hop to a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct HopTerm {
    /// The index of the server.
    pub server: usize,
    /// The curve that the analysis sets against the service; `None` when upstream overload leaves none.
    pub arrival: Option<ArrivalCurve>,
    /// The service that is left for that curve.
    pub leftover: ServiceCurve,
    /// The delay that the hop adds, seconds; `None` where the analysis takes hops together.
    pub delay: Option<f64>,
}

/// A flow's bound with its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowBound {
    /// The terms of the hops, in path order.
    pub hops: Vec<HopTerm>,
    /// The bound on the delay along the path, seconds; infinite on overload.
    pub delay: f64,
}

impl FeedForwardNetwork {
    /// A network of these servers and flows.
    ///
    /// # Errors
    /// When a path is not one, servers feed each other in a circle, or a service curve has a jump.
    pub fn new(servers: Vec<ServiceCurve>, flows: Vec<NetworkFlow>) -> Result<Self, FeedForwardError> {
        if let Some(server) = servers.iter().position(|s| s.jump() > 0.0) {
            return Err(FeedForwardError::Jump(server));
        }
        for (index, flow) in flows.iter().enumerate() {
            check_path(index, flow, servers.len())?;
        }
        let order = feed_forward(servers.len(), &flows)?;
        Ok(Self { servers, flows, order })
    }

    /// The servers' strict service curves.
    pub fn servers(&self) -> &[ServiceCurve] {
        &self.servers
    }

    /// The flows through the network.
    pub fn flows(&self) -> &[NetworkFlow] {
        &self.flows
    }

    /// The flows at a server, as (flow, position in its path), by priority.
    fn users(&self, server: usize) -> Vec<(usize, usize)> {
        let mut users = Vec::new();
        for (index, flow) in self.flows.iter().enumerate() {
            if let Some(hop) = flow.path.iter().position(|hop| hop.server == server) {
                users.push((index, hop));
            }
        }
        users.sort_by_key(|&user| self.priority(user));
        users
    }

    /// The priority of a flow at the hop with this position on its path.
    fn priority(&self, (flow, hop): (usize, usize)) -> u32 {
        self.flows[flow].path[hop].priority
    }
}

/// Checks that a flow's path has hops, names existing servers, and visits none of them twice.
fn check_path(index: usize, flow: &NetworkFlow, servers: usize) -> Result<(), FeedForwardError> {
    if flow.path.is_empty() {
        return Err(FeedForwardError::NoPath(index));
    }
    for (i, hop) in flow.path.iter().enumerate() {
        if hop.server >= servers {
            return Err(FeedForwardError::UnknownServer { flow: index, server: hop.server });
        }
        if flow.path[..i].iter().any(|before| before.server == hop.server) {
            return Err(FeedForwardError::Revisit { flow: index, server: hop.server });
        }
    }
    Ok(())
}

/// An order in which no server feeds an earlier one; ties go to the lowest number.
fn feed_forward(servers: usize, flows: &[NetworkFlow]) -> Result<Vec<usize>, FeedForwardError> {
    let pairs = flows.iter().flat_map(|flow| flow.path.windows(2));
    let edges: Vec<(usize, usize)> = pairs.map(|pair| (pair[0].server, pair[1].server)).collect();
    let (mut order, mut left): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..servers).collect());
    while !left.is_empty() {
        let is_fed = |server| edges.iter().any(|(from, to)| *to == server && left.contains(from));
        let Some(next) = left.iter().position(|&server| !is_fed(server)) else {
            return Err(FeedForwardError::Cycle(find_cycle(&edges, &left)));
        };
        order.push(left.remove(next));
    }
    Ok(order)
}

/// A cycle among servers that are all fed by one of them.
fn find_cycle(edges: &[(usize, usize)], left: &[usize]) -> Vec<usize> {
    let mut walk = vec![left[0]];
    loop {
        let at = walk[walk.len() - 1];
        let from = edges.iter().find(|(from, to)| *to == at && left.contains(from));
        let from = from.expect("every server left is fed by another").0;
        if let Some(start) = walk.iter().position(|&s| s == from) {
            let mut cycle = walk.split_off(start);
            cycle.reverse();
            return cycle;
        }
        walk.push(from);
    }
}
