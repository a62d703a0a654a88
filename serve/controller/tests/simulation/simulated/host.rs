//! A simulated host: a disk that survives, enforcers that survive, and an agent that may not.

use agent::{AgentMachine, AgentMemory, AgentStep, Assignment, WorkloadCounters};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub struct SimulatedHost {
    pub name: String,
    /// Servers on it.
    pub servers: BTreeSet<String>,
    /// The running agent; none while it is down.
    pub agent: Option<AgentMachine>,
    /// The step under way.
    pub step: Option<AgentStep>,
    /// Saved memory.
    pub disk: AgentMemory,
    /// Assignment that the host's proxies have, whatever its agent does.
    pub enforced: Option<Assignment>,
    /// Assignment that its links have, where agents limit them. It changes before that of the proxies.
    pub links: Option<Assignment>,
    /// Changes when the agent is restarted, so that events of an earlier life are void.
    pub life: u64,
    /// Number of the request under way.
    pub round: u64,
    /// Until when nothing passes between it and the controller, nanoseconds.
    pub cut_off_until: u64,
    /// Proxies by server.
    pub proxies: BTreeMap<String, SimulatedProxy>,
}

/// Counters of the proxy before a server.
#[derive(Debug, Default)]
pub struct SimulatedProxy {
    /// Number of restarts.
    pub life: u64,
    /// Counters of this life.
    pub workloads: BTreeMap<String, WorkloadCounters>,
    /// Requests of all lives, by workload.
    pub served: BTreeMap<String, u64>,
}

impl SimulatedProxy {
    /// Begins another life.
    pub fn restart(&mut self) {
        self.life += 1;
        self.workloads.clear();
    }

    /// Serves requests of a workload.
    pub fn serve(&mut self, workload: &str, requests: u64) {
        *self.served.entry(workload.to_owned()).or_default() += requests;
        let counters = self.workloads.entry(workload.to_owned()).or_default();
        counters.workload = workload.to_owned();
        counters.requests += requests;
        counters.latencies = vec![(Some(2_000_000), counters.requests)];
    }
}

impl SimulatedHost {
    /// Gives links and proxies an assignment.
    pub fn take(&mut self, assignment: &Assignment) {
        self.links = Some(assignment.clone());
        self.enforced = Some(assignment.clone());
    }
}
