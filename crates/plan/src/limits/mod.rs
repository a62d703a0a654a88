//! Choosing rate limits for the workloads that share one server.
//!
//! [`LimitMethod::fit`] is what every plan rests on: whatever a method computes, the server that it returns has been
//! verified from the limits alone, by Eq. 5.4 and 5.5.

mod assessment;
mod exact;
mod fixed;
mod method;
mod refusal;
mod relaxed;
mod share;
#[cfg(test)]
mod tests;

use crate::problem::PlanningProblem;
use crate::server::PlannedServer;

pub(crate) use assessment::{Assessment, AssessmentRefusal, FittingServer};
pub(crate) use exact::chain_of;
pub use method::LimitMethod;
pub use refusal::FitRefusal;

impl LimitMethod {
    /// Whether the members fit together on a server of this class; if so, the server with limits for all of them.
    /// What is returned passes [`PlannedServer::verify`].
    ///
    /// # Errors
    /// When they do not fit, with the reason.
    pub fn fit(
        &self,
        problem: &PlanningProblem,
        class: usize,
        members: Vec<usize>,
    ) -> Result<PlannedServer, FitRefusal> {
        check_base_latency(problem, class, &members)?;
        let limits = match self {
            Self::Exact => exact::fit(problem, class, &members)?,
            Self::Relaxed => relaxed::fit(problem, class, &members)?,
            fixed => members.iter().map(|&w| fixed::limits(*fixed, problem, class, w)).collect(),
        };
        let server = PlannedServer { class, members, limits };
        match server.verify(problem) {
            Ok(()) => Ok(server),
            // Each workload's own best split need not be the best for all of them together.
            Err(_) if *self == Self::EffectiveBest => Self::EffectiveEven.fit(problem, class, server.members),
            Err(refusal) => Err(refusal),
        }
    }

    /// Decides the same as [`LimitMethod::fit`], but computes only as much as a search needs to know.
    pub(crate) fn assess(
        &self,
        problem: &PlanningProblem,
        class: usize,
        members: &[usize],
    ) -> Result<FittingServer, AssessmentRefusal> {
        if *self != Self::Exact {
            let server = self.fit(problem, class, members.to_vec())?;
            return Ok(FittingServer::Fitted(server));
        }
        check_base_latency(problem, class, members)?;
        exact::assess(problem, class, members).map(FittingServer::Assessed)
    }
}

/// Refuses workloads whose SLOs the idle storage stack alone exceeds, so that all budgets are positive afterwards.
fn check_base_latency(problem: &PlanningProblem, class: usize, members: &[usize]) -> Result<(), FitRefusal> {
    let base = problem.classes[class].base_latency;
    match members.iter().find(|&&w| problem.budget(w, class) <= 0.0) {
        Some(&w) => Err(FitRefusal::BaseLatency { slo: problem.workloads[w].slo.latency.0, base }),
        None => Ok(()),
    }
}
