//! The agent of one host: a pure state machine between a controller and the enforcers of the host.
//!
//! It decides nothing about limits. It applies the controller's assignments in the order of their epochs, keeps the
//! last one whatever happens (fail static), and reports what the host enforces. Files, sockets and the clock are the
//! caller's: [`AgentMachine`] says what to do next, one step at a time, and is told how that ended.

mod hosts_file;
mod machine;
mod messages;
mod supervision;

pub use hosts_file::hosts_file;
pub use machine::{AgentMachine, AgentMemory, AgentStep, EnforceError};
pub use messages::{
    Abilities, Advice, AgentAnswer, AgentMode, AgentReport, Assignment, AssignmentRefusal, ClientPlace,
    ServerAssignment, ServerObservation, Ticket, WorkloadClients, WorkloadCounters,
};
pub use supervision::{ProxyNews, ProxySight, ProxyStep, SupervisedProxy};
