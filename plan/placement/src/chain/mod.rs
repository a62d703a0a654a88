//! The optimisation at the heart of planning: rate limits for one server, as a chain of priority levels.
//!
//! **Levels.** Workloads with the same SLO share a priority, and Eq. 5.5 sees only their sums. The r-b
//! curve of a sum is the conjugate of the sum of the arrival curves, so a level of any size is one curve
//! per stage: the problem grows with the number of distinct SLOs, not of workloads.
//!
//! **Chain.** With *cumulative* rates R_p = Σ_{q ≤ p} r_q and bursts C_p = Σ_{q ≤ p} b_q (level 0 first),
//! Eq. 5.5 of level p reads `Σ_stages C_p / (1 − R_{p−1}) ≤ SLO_p` and touches two neighbours only. A
//! Newton step is block-tridiagonal: linear in the number of levels.
//!
//! **Convexity.** `C/(1−R)` is quasi-convex and a sum of such terms is not convex, so with several stages
//! Eq. 5.5 itself is not a convex program. The solver takes Newton steps with the true curvature where the
//! system is positive definite and with its positive part elsewhere. Every iterate strictly satisfies every
//! constraint, so an answer is always valid; a refusal says that no limits were found. Tests hold it against
//! a grid over all rates and against other starts: one in tens of thousands ends in an optimum that is better by
//! up to 1 %. The linear [`LatencyConstraint`]s are convex and are solved to optimality.

mod assemble;
mod barrier;
mod blocks;
mod constraint;
mod prices;

use calculus::ArrivalCurve;
use model::{PerStage, Stage};

pub(crate) use barrier::{ChainSolution, Precision, balance, minimise};
pub(crate) use prices::Prices;

/// The number of stages on the path of a request.
pub(crate) const STAGES: usize = Stage::ALL.len();

/// Relation between the latency of a level and rates and bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LatencyConstraint {
    /// Eq. 5.5 with what each stage may have begun. The objective is the largest bound ÷ budget over the levels.
    Exact,
    /// Eq. 5.7: one R_p for all stages. The objective is the fraction of a server that is used.
    Relaxed,
    /// Constraint that follows for several servers together if each satisfies Eq. 5.7: `Σ C + gap · R ≤ SLO`
    /// at each stage, with the gap of `Outer`. The objective is a lower bound on the number of servers.
    OuterRelaxed,
    /// Constraint that follows for several servers together if each satisfies Eq. 5.5: `Σ C ≤ SLO`, and `C +
    /// gap · R ≤ SLO` at each stage. C includes the work begun, and the gap is to the next tighter SLO. A
    /// server on which a workload of the level waits for the rates R has `C ≤ SLO (1 − R)`. Any other server
    /// has no workload of the level, or none that shares a priority with a tighter one: there C is at most
    /// the next tighter SLO, and R at most 1. The objective is a lower bound on the number of servers.
    Outer,
}

/// The lines `b ≥ work − rate·duration` of a level's r-b curve at one stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct CurveLines {
    pub(crate) durations: Vec<f64>,
    pub(crate) work: Vec<f64>,
    /// The rate that the level sustains for ever.
    pub(crate) least_rate: f64,
}

impl CurveLines {
    pub(crate) fn from_curve(curve: &ArrivalCurve) -> Self {
        Self {
            durations: curve.vertices().iter().map(|v| v.duration).collect(),
            work: curve.vertices().iter().map(|v| v.work).collect(),
            least_rate: curve.sustained_rate(),
        }
    }

    /// The arrival curve α(d), which rises at the least rate after the last vertex.
    fn work_within(&self, duration: f64) -> f64 {
        let next = self.durations.partition_point(|d| *d <= duration);
        let last = next - 1;
        let start = self.durations[last];
        let work = self.work[last];
        let slope = match self.durations.get(next) {
            Some(end) => (self.work[next] - work) / (end - start),
            None => self.least_rate,
        };
        work + slope * (duration - start)
    }

    /// The r-b curve b(r), without the rule that a rate below the least one needs an infinite burst.
    fn burst(&self, rate: f64) -> f64 {
        self.durations.iter().zip(&self.work).map(|(d, w)| w - rate * d).fold(0.0, f64::max)
    }
}

/// The optimisation problem of one server.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// The latency budget of each level in seconds, ascending: level 0 has the highest priority.
    pub(crate) budgets: Vec<f64>,
    /// The r-b curve of each level at each stage.
    pub(crate) curves: Vec<PerStage<CurveLines>>,
    /// The sum of rates stays below this at every stage, fraction of capacity.
    pub(crate) max_rate: f64,
    pub(crate) constraint: LatencyConstraint,
    /// Work that each stage may have begun when a request arrives, seconds; in all less than any budget.
    pub(crate) blocking: [f64; STAGES],
    /// Joint contribution of the workloads up to each level to the work begun, seconds. Used by the linear
    /// constraints only; Eq. 5.5 has it in `blocking`, and then this is empty.
    pub(crate) begun_by_workloads: Vec<[f64; STAGES]>,
}

/// A point of a [`Chain`]: cumulative rates and bursts by level and stage, and the objective `t`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChainPoint {
    pub(crate) t: f64,
    /// The sum of the rates of each level and those above it, R_p.
    pub(crate) rates: Vec<[f64; STAGES]>,
    /// The sum of the bursts of each level and those above it, C_p.
    pub(crate) bursts: Vec<[f64; STAGES]>,
}

impl ChainPoint {
    /// The level's own rate at a stage.
    pub(crate) fn level_rate(&self, level: usize, stage: usize) -> f64 {
        self.rates[level][stage] - if level == 0 { 0.0 } else { self.rates[level - 1][stage] }
    }

    /// The level's own burst at a stage.
    fn level_burst(&self, level: usize, stage: usize) -> f64 {
        self.bursts[level][stage] - if level == 0 { 0.0 } else { self.bursts[level - 1][stage] }
    }

    /// The sum of the rates of the levels above this one.
    fn rates_above(&self, level: usize) -> [f64; STAGES] {
        if level == 0 { [0.0; STAGES] } else { self.rates[level - 1] }
    }
}
