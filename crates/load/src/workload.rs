//! What load is to be made.

use crate::Target;
use model::{Op, Request};
use std::net::IpAddr;
use units::{Bytes, Nanos};

/// A stream of requests to one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Names it in observations; no two are the same.
    pub name: String,
    /// Where requests go.
    pub target: Target,
    /// Where they come from.
    pub origin: Origin,
    /// TCP connections that requests take in turn, at least one.
    pub connections: usize,
    /// What is asked for, and when.
    pub demand: Demand,
}

/// Which host on this machine, and which of its addresses, a workload comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// A network namespace as `ip netns` names it; that of the process otherwise.
    pub netns: Option<String>,
    /// Connections leave from this address; the kernel chooses otherwise.
    pub bind: Option<IpAddr>,
}

/// What is asked for, and when.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// Requests at their arrival times, counted from the start of the run (warm-up included); those beyond its end
    /// are not sent. Ones without offset go to random places.
    Open(Vec<Request>),
    /// A fixed number of requests that are always waiting for an answer: each answer sends the next.
    Closed {
        /// Requests that wait, over all connections.
        outstanding: u32,
        /// What they do.
        op: Op,
        /// Payload of each.
        size: Bytes,
        /// One behind the other, instead of at random places.
        sequential: bool,
    },
}

/// How to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Sent like everything else and not observed.
    pub warm_up: Nanos,
    /// Observed, counted from the end of the warm-up.
    pub duration: Nanos,
    /// How long answers are waited for after the last request.
    pub drain: Nanos,
    /// Places, keys and contents are drawn from it.
    pub seed: u64,
    /// SCHED_FIFO priority of the timing thread, 1 to 99. It needs root; without, the run goes on with a warning.
    pub realtime: Option<u32>,
    /// CPU that the timing thread stays on.
    pub cpu: Option<usize>,
    /// Writes carry contents that tell them apart, and what is read is compared with what was written last.
    pub verify_data: bool,
}

impl Default for Options {
    /// Ten seconds behind one second of warm-up, five to drain, seed 1, nothing special.
    fn default() -> Self {
        let [warm_up, duration, drain] = [1, 10, 5].map(|s: u64| Nanos(s * 1_000_000_000));
        Self { warm_up, duration, drain, seed: 1, realtime: None, cpu: None, verify_data: false }
    }
}
