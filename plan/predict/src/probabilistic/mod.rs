//! Latencies that a share of a workload's requests does not exceed when groups of workloads are independent.
//!
//! # What is promised
//! Every workload repeats its trace for ever. Independent groups are at independent, uniformly distributed
//! places of their traces; members of one group may be aligned in any way. The bound at percentile q is a latency
//! that at least the share q of a workload's *requests* (not of time: a burst holds many requests in little
//! time) does not exceed in the long run. No law is fitted, so nothing is promised for traffic that is unlike
//! the trace; `safety` is a factor on all work for that.
//!
//! # Why it holds
//! 1. *One queue.* A request of priority p arrives at t. Fix the jobs that can delay it: all of priorities before p,
//!    and those of p that are ahead of it. Suppose it is not done at t + d, and at the last stage that it
//!    reached let s₃ be the start of the busy period with such jobs that holds t + d. The job that begins that period
//!    leaves the stage before at s₃; let s₂ begin the busy period there that holds the moment before s₃, and s₁
//!    likewise. A tagged request that waits at a stage keeps it busy, so s₁ ≤ t. Through [s₁, t + d] one of
//!    the stages worked on such jobs all the time, on the first until s₂, on the second until s₃, and a job
//!    that it worked on arrived after s₁. A job that leaves the first stage before s₂ leaves the second one before
//!    s₂, too, because that is empty then; so a job is worked on in one of the three intervals only, for at most
//!    `max w` in all, unless it is partly served at s₂ or s₃ or is the one that begins the next period. Within
//!    a priority service is in order, so there is at most one of these for each priority and turning point, and
//!    it adds `min(w₁, w₂)`, `min(w₂, w₃)`, or `w₁ + w₂ + w₃ − max w` if it straddles both. So t + d − s₁ is at most
//!    the work `max w` of the jobs since s₁ plus, for each stream, the allowance of
//!    [`workload::windows`]. (That `min(w₁, w₂) + min(w₂, w₃)` suffices is not true: a job with works 5, 1, 5
//!    alone takes 11.)
//! 2. *Own and others.* With u = t − s₁: own(u) + same(u) + higher(u + d) ≥ u + d. For any share c of the queue,
//!    own(u) ≤ X + c·u, where X is what the request finds of its own stream at service rate c; its law over
//!    requests is exact. What is left is an event of the others alone, which are independent of the request:
//!    same(u) + higher(u + d) ≥ (1 − c)·u + d − X for some u. [`calculus::tail`] bounds its probability for each
//!    value of X; the best of several c counts.
//! 3. *Its own group* may burst whenever it does: others of the group count with the most work that they
//!    ever ask for in a window.
//! 4. *What stages have begun* and do not interrupt, at most B seconds in all, is more work of s₁ ≤ t: it comes to what
//!    the request finds, X + B. Without worst case, which does not count it: [`LatencyModel::predict_behind`].
//! 5. *One burst* of another stream often decides. For each latency the bound of [`one_burst`] counts where it is less than
//!    that of 1 to 4: it counts every burst once, the largest one of higher priority only if it comes before the request would
//!    be done, and takes the best share c for each request.
//! 6. *No alignment at all* exceeds the worst case of the same circular traces ([`crate::WorstCase`]); the smaller
//!    of the two counts, for few members or high percentiles often that one.
//!
//! # Conditions
//! Where the following does not hold, only the worst case counts. Priorities order a member and each other
//! member alike at all stages. Requests without work at a stage pass it at once and may overtake others of their
//! priority: where members of a priority differ in that, they count as if they came before each other; a
//! workload's requests all pass a stage or none does.
//!
//! # Looseness
//! A union over time scales counts a burst at every scale at which it shows; where groups are independent, [`one_burst`] counts
//! it once. A burst of higher priority that comes within the latency counts in full, whether the request is still there or
//! not; of the largest burst, and of that one alone, 5 removes that. Classes above a request's own enter cells with the work of their longest window, so
//! that what they lose near saturation remains. Directions of a link that do not compete count as one queue.

mod acceptance;
mod bound;
mod burst_laws;
mod cross_traffic;
mod derivation;
mod latencies;
mod one_burst;
mod shares;
mod sketch;

pub use acceptance::ProbabilisticRefusal;
pub use bound::Probabilistic;
pub use derivation::{LatenessSum, ProbabilisticDerivation, ProbabilisticTerm};
pub use one_burst::{OneBurstSum, OneBurstTerms};
pub use sketch::ProbabilisticSketch;

use acceptance::AllowedLatency;
use bound::worst_case;
use cross_traffic::DependentGroups;
use model::{CircularTrace, Job, LatencyModel, Prediction, ServerMember, UndefinedLatency};

impl LatencyModel for Probabilistic {
    type Sketch = ProbabilisticSketch;

    fn name(&self) -> &'static str {
        "probabilistic"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> ProbabilisticSketch {
        ProbabilisticSketch::new(&self.grid, self.safety, traffic)
    }

    fn all_within(&self, members: &[ServerMember<'_, ProbabilisticSketch>], limits: &[f64]) -> bool {
        self.accepts(members, limits).is_ok()
    }

    fn predict(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        let mut groups = DependentGroups::new();
        let mut predictions = Vec::with_capacity(members.len());
        for (tagged, worst) in worst_case(members).into_iter().enumerate() {
            let bound = match (self.bound(members, (tagged, 0.0), &mut groups), worst) {
                (Ok(proven), Ok(worst)) => Ok(proven.latency.min(worst)),
                (Ok(proven), Err(_)) => Ok(proven.latency),
                (Err(_), Ok(worst)) => Ok(worst),
                (Err(undefined), Err(_)) => Err(undefined),
            };
            predictions.push(bound.map(|bound| Prediction { bound, estimate: None }));
        }
        predictions
    }

    fn predict_behind(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
        begun: &[f64],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        assert_eq!(members.len(), begun.len(), "one time per member");
        let mut groups = DependentGroups::new();
        let mut predictions = Vec::with_capacity(members.len());
        for tagged in begun.iter().copied().enumerate() {
            let proven = self.bound(members, tagged, &mut groups);
            predictions.push(proven.map(|proven| Prediction { bound: proven.latency, estimate: None }));
        }
        predictions
    }

    fn all_within_behind(
        &self,
        members: &[ServerMember<'_, ProbabilisticSketch>],
        limits: &[f64],
        begun: &[f64],
    ) -> bool {
        assert_eq!(limits.len(), begun.len(), "one time per limit");
        let allowed = limits.iter().zip(begun).map(|(&limit, &begun)| AllowedLatency::new(limit, begun));
        self.accepts_allowed(members, &allowed.collect::<Vec<_>>(), &mut |_| false).is_ok()
    }
}
