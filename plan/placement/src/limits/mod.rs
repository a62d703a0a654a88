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
pub use refusal::{FitRefusal, IdleTerms};

impl LimitMethod {
    /// Returns a server of this class with limits for all members. It passes [`PlannedServer::verify`].
    ///
    /// # Errors
    /// If the members do not fit, with the reason.
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
            fixed => fixed::fit(*fixed, problem, class, &members),
        };
        let server = PlannedServer::with_limits(problem, class, members, limits);
        match server.verify(problem) {
            Ok(()) => Ok(server.with_longest_queue(problem)),
            // Each workload's own best split need not be the best for all of them together.
            Err(_) if *self == Self::EffectiveBest => Self::EffectiveEven.fit(problem, class, server.members),
            Err(refusal) => Err(refusal),
        }
    }

    /// Decides as [`LimitMethod::fit`] does, up to the precision of the solver, and computes only as much as a search needs.
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

/// Refuses workloads whose SLOs are exceeded by what an idle server takes and what its stages may have begun, so that all
/// budgets are above that afterwards.
fn check_base_latency(problem: &PlanningProblem, class: usize, members: &[usize]) -> Result<(), FitRefusal> {
    let begun = problem.least_blocking(class, members);
    let blocking: f64 = begun.iter().map(|(_, work)| work).sum();
    match members.iter().find(|&&w| problem.budget(w, class) <= blocking) {
        Some(&w) => {
            let tightest = problem.tightest_slo(w, class);
            let storage = problem.base_latency(w, class) - tightest.shorter_by;
            let links = problem.client_delay(w);
            let own = problem.classes[class].enforced;
            let own = own.map_or(0.0, |enforced| enforced.own_time(problem.largest_request(w, class)));
            let terms = IdleTerms { storage, links, own, begun };
            Err(FitRefusal::BaseLatency { slo: tightest.latency, terms })
        }
        None => Ok(()),
    }
}
