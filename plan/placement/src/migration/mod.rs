//! From one placement to another without a broken promise: which workloads move when, at what speed their data is copied,
//! and the limits of every server at every step.
//!
//! A workload moves in two steps. While its data is copied, the copy reads from its old server and writes to the new one as
//! workloads with limits of their own, and limits on the new server leave room for the workload. Then its clients switch, and
//! nothing else changes. What fits at the same time moves in the same round.
//!
//! Limits are chosen for all that a server has during a round. Between two steps enforcers have the old limits of some
//! workloads and the new ones of others, in any mixture: [`verify_change`] checks all of them at once. Rates that fall take
//! effect a step before those that rise, because limits together use nearly all of a server.

mod change;
mod fewest;
mod rounds;
#[cfg(test)]
mod tests;

use crate::problem::{PlanningProblem, PlanningWorkload};
use crate::server::PlannedServer;

pub use change::{ChangeRefusal, verify_change};
pub use fewest::names_with_fewest_moves;
pub use rounds::migrate;

/// A server before and after a migration; without workloads where it has none.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerChange {
    pub before: PlannedServer,
    pub after: PlannedServer,
    /// Bytes that it can store; `None` if sizes do not count.
    pub capacity: Option<u64>,
}

/// Placements to get from and to.
pub struct MigrationProblem<'a> {
    /// Classes and workloads.
    pub instance: &'a PlanningProblem,
    /// All servers that may have workloads at any step, those that only help included.
    pub servers: Vec<ServerChange>,
    /// Stored bytes of each workload; 0 where they are not known.
    pub bytes: Vec<u64>,
    /// Workloads that move at the same time, by number of their group.
    pub together: Vec<Option<usize>>,
    /// Returns true if the workloads of each server keep all rules on where they may go.
    pub keeps_rules: &'a dyn Fn(&[Vec<usize>]) -> bool,
    /// The traffic of a copy.
    pub copies: &'a dyn CopyTraffic,
}

/// The traffic of copies, at one of several rates.
pub trait CopyTraffic {
    /// The number of rates. The first is the highest.
    fn rates(&self) -> usize;

    /// The traffic at one end of the copy of a workload. Its name is another one for each end and number.
    fn traffic(&self, workload: usize, terms: CopyTerms) -> PlanningWorkload;
}

/// The terms of a copy at one of its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyTerms {
    pub end: CopyEnd,
    /// Number of the rate.
    pub rate: usize,
    /// The number of earlier copies of the workload.
    pub number: usize,
    pub priority: CopyPriority,
}

/// The end of a copy at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyEnd {
    /// It reads from the old server.
    Read,
    /// It writes to the new server.
    Write,
}

/// The priority of a copy at a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CopyPriority {
    /// Below all workloads of the server, whose SLOs allow at most this latency, seconds; 0 without any.
    Below(f64),
    /// That of the workloads with this latency in their SLOs, seconds: enforcers may have no further level.
    With(f64),
}

/// A workload on its way to another server, by positions of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovingWorkload {
    pub workload: usize,
    pub from: usize,
    pub to: usize,
    /// Number of the rate of its copy.
    pub rate: usize,
    /// Indices of the copy's traffic among the workloads of the [`Migration`], reading and writing.
    pub copies: [usize; 2],
}

/// The purpose of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepPurpose {
    /// Rates fall, so that others may rise.
    MakeRoom,
    /// Data is copied.
    Copy(Vec<MovingWorkload>),
    /// Clients switch to the server with the copy.
    Switch(Vec<MovingWorkload>),
    /// Limits become those of the placement that was asked for.
    Settle,
}

/// Limits of all servers until the next step.
#[derive(Debug, Clone, PartialEq)]
pub struct MigrationStep {
    pub purpose: StepPurpose,
    /// The servers in the order of the problem. During a copy the workload is on its old server.
    pub servers: Vec<PlannedServer>,
}

/// Steps from one placement to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Migration {
    pub steps: Vec<MigrationStep>,
    /// The workloads of the problem, and the traffic of all copies after them.
    pub workloads: Vec<PlanningWorkload>,
    /// Workloads whose SLO does not hold before the migration, with the limits and on the servers that they have then.
    pub broken_before: Vec<usize>,
}

/// Reason why there are no steps from one placement to another.
#[derive(Debug, Clone, PartialEq)]
pub enum MigrationRefusal {
    /// None of the remaining workloads can be copied while all promises hold.
    Stuck {
        /// The workloads that would have to move, with the positions of their old and new servers.
        remaining: Vec<(usize, usize, usize)>,
        /// Reason why the first of them cannot, at the lowest rate of a copy.
        reason: StuckReason,
    },
    /// Limits cannot become the new ones of this server while its promises hold.
    Unreachable { server: usize, reason: ChangeRefusal },
}

/// Reason why a workload cannot be copied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StuckReason {
    /// A server has no room for it and its copy.
    NoRoom { server: usize },
    /// The capacity of a server does not hold the data of all that are there meanwhile.
    NoCapacity { server: usize },
    /// The limits that a server needs meanwhile cannot follow those that it has.
    Unreachable { server: usize, reason: ChangeRefusal },
    /// A rule would be broken once it has moved.
    Rule,
}
