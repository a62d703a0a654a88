//! What load is generated: streams of requests, where they come from and which server they go to.

use crate::target::LoadTarget;
use model::{Op, Request};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use units::Bytes;

/// A stream of requests to one server.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadWorkload {
    /// The name of the workload in observations, unique in a run.
    pub name: String,
    /// The server that requests go to, and what they address on it.
    pub target: LoadTarget,
    /// The host that requests come from.
    pub client: ClientHost,
    /// The number of connections that take requests in turn, at least one. By UDP each is a socket of its own.
    pub connections: usize,
    /// How many requests a connection takes before it ends and another takes its place: uniformly random between these
    /// numbers, which are at least 1. `None` keeps connections.
    pub requests_per_connection: Option<RangeInclusive<u32>>,
    /// Which requests are sent, and when.
    pub offered: OfferedLoad,
}

/// The host on this machine that a workload comes from, and its address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHost {
    /// A network namespace as `ip netns` names it; `None` stays in the namespace of the process.
    pub netns: Option<String>,
    /// The source address of connections; `None` leaves the choice to the kernel.
    pub bind: Option<IpAddr>,
}

/// Which requests are sent, and when.
#[derive(Debug, Clone, PartialEq)]
pub enum OfferedLoad {
    /// Open loop: requests at their arrival times, which count from the start of the run (warm-up included). Requests
    /// that are due after its end are not sent. Requests without an offset go to random addresses.
    Open(Vec<Request>),
    /// Closed loop: a fixed number of requests is in flight, and each reply sends the next request.
    Closed {
        /// Requests in flight, over all connections.
        in_flight: u32,
        /// Whether requests read or write.
        op: Op,
        /// The payload of each request.
        size: Bytes,
        /// Whether each request continues where the one before it ended, instead of at a random address.
        sequential: bool,
    },
}

impl OfferedLoad {
    /// The distinct pairs of operation and size in bytes.
    pub(crate) fn request_sizes(&self) -> BTreeSet<(Op, u64)> {
        match self {
            Self::Open(requests) => requests.iter().map(|request| (request.op, request.size.0)).collect(),
            Self::Closed { op, size, .. } => [(*op, size.0)].into(),
        }
    }
}
