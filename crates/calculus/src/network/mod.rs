//! Latency bounds in feed-forward networks of strict-priority queues, by four analyses from coarse to fine.
//!
//! - [`total_flow`]: per hop, the deviation of all traffic of the level from what higher levels leave; hops add
//!   up.
//! - [`separated_flow`]: what everybody else leaves to the flow at each hop, convolved: its own burst is paid
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
pub use tandem::{Cross, Tandem, multiplexing_once, tandem};

use crate::{ArrivalCurve, ServiceCurve};
use std::fmt;

/// A stop on a flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Position of the server in the network.
    pub server: usize,
    /// 0 is served first.
    pub priority: u32,
}

/// Traffic and where it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// At its source; all flows and servers count work in the same unit.
    pub arrival: ArrivalCurve,
    /// At least one hop, no server twice.
    pub path: Vec<Hop>,
}

/// Servers and the flows through them, without cycles.
#[derive(Debug, Clone)]
pub struct Network {
    servers: Vec<ServiceCurve>,
    flows: Vec<Flow>,
    /// Servers, each before those that it feeds.
    order: Vec<usize>,
}

/// What is no feed-forward network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkError {
    /// This flow has no hops.
    NoPath(usize),
    /// A flow passes a server that is not there.
    UnknownServer {
        /// The flow.
        flow: usize,
        /// The server that it asks for.
        server: usize,
    },
    /// A flow passes a server twice.
    Revisit {
        /// The flow.
        flow: usize,
        /// The server.
        server: usize,
    },
    /// Servers that feed each other in a circle.
    Cycle(Vec<usize>),
    /// This server's curve has a jump, which no strict service curve of a queue has.
    Jump(usize),
}

impl fmt::Display for NetworkError {
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

impl std::error::Error for NetworkError {}

/// One hop's part in a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct HopTerm {
    /// The server.
    pub server: usize,
    /// The curve that the analysis sets against the service; `None` when upstream overload leaves none.
    pub arrival: Option<ArrivalCurve>,
    /// The service that is left for that curve.
    pub leftover: ServiceCurve,
    /// What the hop adds, seconds; `None` where the analysis takes hops together.
    pub delay: Option<f64>,
}

/// A flow's bound with its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowBound {
    /// In path order.
    pub hops: Vec<HopTerm>,
    /// Seconds; infinite on overload.
    pub delay: f64,
}

impl Network {
    /// Checks paths and finds an order of the servers.
    pub fn new(servers: Vec<ServiceCurve>, flows: Vec<Flow>) -> Result<Self, NetworkError> {
        if let Some(server) = servers.iter().position(|s| s.jump() > 0.0) {
            return Err(NetworkError::Jump(server));
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

    /// The flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Flows at a server, as (flow, position in its path), by priority.
    fn users(&self, server: usize) -> Vec<(usize, usize)> {
        let hop_of = |flow: &Flow| flow.path.iter().position(|hop| hop.server == server);
        let mut users: Vec<_> =
            self.flows.iter().enumerate().filter_map(|(f, flow)| Some((f, hop_of(flow)?))).collect();
        users.sort_by_key(|&user| self.priority(user));
        users
    }

    fn priority(&self, (flow, hop): (usize, usize)) -> u32 {
        self.flows[flow].path[hop].priority
    }
}

fn check_path(index: usize, flow: &Flow, servers: usize) -> Result<(), NetworkError> {
    if flow.path.is_empty() {
        return Err(NetworkError::NoPath(index));
    }
    for (i, hop) in flow.path.iter().enumerate() {
        if hop.server >= servers {
            return Err(NetworkError::UnknownServer { flow: index, server: hop.server });
        }
        if flow.path[..i].iter().any(|before| before.server == hop.server) {
            return Err(NetworkError::Revisit { flow: index, server: hop.server });
        }
    }
    Ok(())
}

/// An order in which no server feeds an earlier one; ties go to the lowest number.
fn feed_forward(servers: usize, flows: &[Flow]) -> Result<Vec<usize>, NetworkError> {
    let feeds = |pair: &[Hop]| (pair[0].server, pair[1].server);
    let edges: Vec<(usize, usize)> = flows.iter().flat_map(|flow| flow.path.windows(2).map(feeds)).collect();
    let (mut order, mut left): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..servers).collect());
    while !left.is_empty() {
        let fed = |s: &usize| edges.iter().any(|(from, to)| to == s && left.contains(from));
        let Some(next) = left.iter().position(|s| !fed(s)) else {
            return Err(NetworkError::Cycle(circle(&edges, &left)));
        };
        order.push(left.remove(next));
    }
    Ok(order)
}

/// A circle among servers that are all fed by one of them.
fn circle(edges: &[(usize, usize)], left: &[usize]) -> Vec<usize> {
    let mut walk = vec![left[0]];
    loop {
        let at = walk[walk.len() - 1];
        let from = edges.iter().find(|(from, to)| *to == at && left.contains(from));
        let from = from.expect("every server left is fed by another").0;
        if let Some(start) = walk.iter().position(|&s| s == from) {
            let mut circle = walk.split_off(start);
            circle.reverse();
            return circle;
        }
        walk.push(from);
    }
}
