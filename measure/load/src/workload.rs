//! Workloads of a run: streams of requests, their clients and their servers.

use crate::target::LoadTarget;
use arrivals::{ArrivalPattern, ParameterError};
use model::{Op, Request};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use units::{Bytes, Nanos};

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
    /// Number of requests that a connection takes before another replaces it: uniformly random in this
    /// range, which starts at 1 or more. `None` keeps connections.
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
    /// Open loop, as [`Self::Open`], of requests that are drawn when they are due.
    Drawn(DrawnLoad),
    /// Closed loop: a fixed number of requests is in flight, and each reply sends the next request.
    Closed {
        /// Requests in flight, over all connections.
        in_flight: u32,
        /// The operation of all requests.
        op: Op,
        /// The payload of each request.
        size: Bytes,
        /// True if each request continues at the end of the one before; false for random addresses.
        sequential: bool,
    },
}

impl OfferedLoad {
    /// The distinct pairs of operation and size in bytes.
    pub(crate) fn request_sizes(&self) -> BTreeSet<(Op, u64)> {
        match self {
            Self::Open(requests) => requests.iter().map(|request| (request.op, request.size.0)).collect(),
            Self::Drawn(DrawnLoad { reads, size, .. }) => {
                let is_possible = |op: &Op| if *op == Op::Read { *reads > 0.0 } else { *reads < 1.0 };
                [Op::Read, Op::Write].into_iter().filter(is_possible).map(|op| (op, size.0)).collect()
            }
            Self::Closed { op, size, .. } => [(*op, size.0)].into(),
        }
    }
}

/// Requests of a random process. They take no memory before they are drawn, however long the run is.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnLoad {
    /// The process that says when they arrive.
    pub arrivals: ArrivalPattern,
    /// The seed of their arrivals.
    pub seed: u64,
    /// The share of reads, 0 to 1.
    pub reads: f64,
    /// The seed of the choice between reads and writes.
    pub direction_seed: u64,
    /// The payload of each.
    pub size: Bytes,
    /// Requests that arrive then or later do not belong to it.
    pub until: Nanos,
}

impl DrawnLoad {
    /// The requests in the order of their arrival, without offsets. The same seeds give the same ones.
    ///
    /// # Errors
    /// When a parameter of the arrivals is out of its range.
    pub fn requests(&self) -> Result<impl Iterator<Item = Request> + use<>, ParameterError> {
        let Self { reads, size, until, .. } = *self;
        let mut random = StdRng::seed_from_u64(self.direction_seed);
        let instants = self.arrivals.instants(self.seed)?.take_while(move |arrival| *arrival < until);
        Ok(instants.map(move |arrival| {
            let op = if random.random::<f64>() < reads { Op::Read } else { Op::Write };
            Request { arrival, size, op, offset: None, response: None }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(arrivals: &str, seed: u64, until: Nanos) -> DrawnLoad {
        let arrivals = arrivals.parse().expect("a pattern");
        DrawnLoad { arrivals, seed, reads: 0.7, direction_seed: seed + 1, size: Bytes(512), until }
    }

    /// As load files had it before they left it to the run: all at once.
    #[test]
    fn the_same_seed_gives_the_same_requests() {
        for pattern in ["poisson(2000/s)", "constant(500/s)", "mmpp(50/s 2s, 2000/s 100ms)"] {
            for seed in [1, 7] {
                let load = drawn(pattern, seed, Nanos(3_000_000_000));
                let mut random = StdRng::seed_from_u64(seed + 1);
                let mut all = Vec::new();
                for arrival in load.arrivals.instants(seed).expect("it is possible") {
                    if arrival >= load.until {
                        break;
                    }
                    let op = if random.random::<f64>() < 0.7 { Op::Read } else { Op::Write };
                    all.push(Request { arrival, size: Bytes(512), op, offset: None, response: None });
                }
                assert!(all.len() > 100, "{pattern}: {}", all.len());
                let requests: Vec<Request> = load.requests().expect("it is possible").collect();
                assert_eq!(requests, all, "{pattern}, seed {seed}");
            }
        }
    }

    #[test]
    fn what_can_be_drawn_is_known_before() {
        for (reads, ops) in [(1.0, &[Op::Read][..]), (0.0, &[Op::Write]), (0.5, &[Op::Read, Op::Write])] {
            let load = DrawnLoad { reads, ..drawn("poisson(2000/s)", 1, Nanos(1)) };
            let sizes = OfferedLoad::Drawn(load).request_sizes();
            assert_eq!(sizes, ops.iter().map(|op| (*op, 512)).collect());
        }
    }
}
