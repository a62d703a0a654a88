//! A simulated host: a disk that survives, enforcers that survive, and an agent that may not.

use agent::{AgentMachine, AgentMemory, AgentStep, Assignment};
use std::collections::BTreeSet;

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
    /// Assignment that the host's enforcers have, whatever its agent does.
    pub enforced: Option<Assignment>,
    /// Changes when the agent is restarted, so that events of an earlier life are void.
    pub life: u64,
    /// Number of the request under way.
    pub round: u64,
    /// Until when nothing passes between it and the controller, nanoseconds.
    pub cut_off_until: u64,
}
