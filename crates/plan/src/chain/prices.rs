//! What rate and burst cost at a solution: the multipliers of a [`Chain`].

use super::constraint::{latency_slacks, rate_cap};
use super::{Chain, Point, STAGES};
use calculus::ArrivalCurve;
use model::{PerStage, Stage};

/// Marginal cost in units of the objective: adding ⟨r, b⟩ at a level and stage raises `t` by at least
/// `rate·r + burst·b` (exactly a lower bound for the linear models; for Eq. 5.5, to first order).
///
/// A workload with curve α may choose any ⟨r, b⟩ on its curve, so it costs at least
/// `min rate·r + burst·b = burst · α(rate / burst)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prices {
    /// Budgets of the levels, ascending.
    budgets: Vec<f64>,
    /// `burst[l]`: what the SLOs of level l and below charge for burst; the last entry is zero.
    burst: Vec<[f64; STAGES]>,
    /// `rate[l]`: what the SLOs of level l and below, and the capacity, charge for rate above level l.
    rate: Vec<[f64; STAGES]>,
    /// What budgets and capacity pay for, whoever is there; zero in the homogeneous linear models.
    offset: f64,
}

impl Prices {
    /// From the slacks of a centred point: the multiplier of a slack h is 1 / (weight · h).
    pub(super) fn at(chain: &Chain, point: &Point, weight: f64) -> Self {
        let levels = chain.budgets.len();
        let mut burst = vec![[0.0; STAGES]; levels + 1];
        let mut rate = vec![[0.0; STAGES]; levels + 1];
        let (mut norm, mut offset) = (0.0, 0.0);
        for s in 0..STAGES {
            let (slack, by_t) = rate_cap(chain, point, s);
            rate[levels][s] = 1.0 / (weight * slack);
            norm += by_t * rate[levels][s];
            offset += rate[levels][s] * (slack + point.rates[levels - 1][s] - by_t * point.t);
        }
        for level in (0..levels).rev() {
            (burst[level], rate[level]) = (burst[level + 1], rate[level + 1]);
            latency_slacks(chain, point, level, |c| {
                let multiplier = 1.0 / (weight * c.slack);
                norm += c.by_t * multiplier;
                // t·budget − slack is the bound itself; a linear one equals its gradient times the point.
                let mut constant = c.by_t * point.t - c.slack;
                for s in 0..STAGES {
                    burst[level][s] -= multiplier * c.by_burst[s];
                    rate[level][s] -= multiplier * c.by_rate[s];
                    constant +=
                        c.by_burst[s] * point.bursts[level][s] + c.by_rate[s] * point.rates_above(level)[s];
                }
                offset -= multiplier * constant;
            });
        }
        for price in burst.iter_mut().chain(&mut rate).flatten() {
            *price /= norm;
        }
        Self { budgets: chain.budgets.clone(), burst, rate, offset: offset / norm }
    }

    /// Nothing below this can be reached, whoever is there, before anybody's cost is added.
    pub(crate) fn floor(&self) -> f64 {
        -self.offset
    }

    /// The least that a workload with this budget and these curves adds to the objective.
    pub(crate) fn cost(&self, budget: f64, curves: &PerStage<ArrivalCurve>) -> f64 {
        let level = self.budgets.partition_point(|&b| b < budget);
        // Its burst delays its own level; its rate only the levels below.
        let below = if self.budgets.get(level) == Some(&budget) { level + 1 } else { level };
        let at = |stage: Stage| {
            let (burst, rate) = (self.burst[level][stage as usize], self.rate[below][stage as usize]);
            let curve = &curves[stage];
            if burst > 0.0 { burst * curve.work_within(rate / burst) } else { rate * curve.sustained_rate() }
        };
        Stage::ALL.map(at).iter().sum()
    }
}
