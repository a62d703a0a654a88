//! Prices of rate and burst at a solution: the multipliers of a [`Chain`].

use super::constraint::{latency_slacks, rate_cap};
use super::{Chain, ChainPoint, STAGES};
use calculus::ArrivalCurve;
use model::{PerStage, Stage};

/// Marginal cost in units of the objective: adding ⟨r, b⟩ at a level and stage raises `t` by at least
/// `rate·r + burst·b` (exactly a lower bound for the linear models; for Eq. 5.5, to first order).
///
/// A workload with curve α may choose any ⟨r, b⟩ on its curve, so it costs at least
/// `min rate·r + burst·b = burst · α(rate / burst)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prices {
    /// The budgets of the levels, ascending.
    budgets: Vec<f64>,
    /// `burst[l]`: price of burst by the SLOs of level l and below; the last entry is zero.
    burst: Vec<[f64; STAGES]>,
    /// `rate[l]`: price of rate above level l by the SLOs of level l and below, and by the capacity.
    rate: Vec<[f64; STAGES]>,
    /// Share of budgets and capacity used independently of the workloads; zero in the homogeneous linear
    /// models.
    offset: f64,
}

impl Prices {
    /// The prices at a point, from the multipliers of all constraints in the solver's order.
    pub(super) fn from_multipliers(chain: &Chain, point: &ChainPoint, multipliers: &[f64]) -> Self {
        let levels = chain.budgets.len();
        let mut burst = vec![[0.0; STAGES]; levels + 1];
        let mut rate = vec![[0.0; STAGES]; levels + 1];
        let mut norm = 0.0;
        let mut offset = 0.0;
        let mut rest = multipliers;
        for s in (0..STAGES).rev() {
            let (slack, by_t) = rate_cap(chain, point, s);
            let multiplier = take_last(&mut rest);
            rate[levels][s] = multiplier;
            norm += by_t * multiplier;
            offset += multiplier * (slack + point.rates[levels - 1][s] - by_t * point.t);
        }
        for level in (0..levels).rev() {
            (burst[level], rate[level]) = (burst[level + 1], rate[level + 1]);
            let mut constraints = 0;
            latency_slacks(chain, point, level, |_| constraints += 1);
            let (before, of_level) = rest.split_at(rest.len() - constraints);
            let mut of_level = of_level.iter();
            latency_slacks(chain, point, level, |c| {
                let multiplier = *of_level.next().expect("one multiplier per constraint");
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
            let lines: usize = chain.curves[level].iter().map(|(_, lines)| lines.work.len() + 1).sum();
            rest = &before[..before.len() - lines];
        }
        for price in burst.iter_mut().chain(&mut rate).flatten() {
            *price /= norm;
        }
        Self { budgets: chain.budgets.clone(), burst, rate, offset: offset / norm }
    }

    /// A lower bound on the objective: no point of the (linearised) chain is below it.
    pub(super) fn least_objective(&self, chain: &Chain) -> f64 {
        let mut least = self.least_without_members();
        for (level, curves) in chain.curves.iter().enumerate() {
            for (stage, lines) in curves.iter() {
                let burst = self.burst[level][stage as usize];
                let rate = self.rate[level + 1][stage as usize];
                least += if burst > 0.0 {
                    burst * lines.work_within(rate / burst)
                } else {
                    rate * lines.least_rate
                };
            }
        }
        least
    }

    /// A lower bound on the objective before the cost of any workload is added.
    pub(crate) fn least_without_members(&self) -> f64 {
        -self.offset
    }

    /// The least that a workload with this budget and these curves adds to the objective, if it also adds this much to what
    /// its server may have begun.
    pub(crate) fn cost(&self, budget: f64, curves: &PerStage<ArrivalCurve>, begun: &PerStage<f64>) -> f64 {
        let level = self.budgets.partition_point(|&b| b < budget);
        // Its burst delays its own level; its rate only the levels below.
        let below = if self.budgets.get(level) == Some(&budget) { level + 1 } else { level };
        let cost_by_stage = Stage::ALL.map(|stage| {
            let burst = self.burst[level][stage as usize];
            let rate = self.rate[below][stage as usize];
            let curve = &curves[stage];
            let work = burst * begun[stage];
            work + if burst > 0.0 {
                burst * curve.work_within(rate / burst)
            } else {
                rate * curve.sustained_rate()
            }
        });
        cost_by_stage.iter().sum()
    }
}

/// Removes and gives the last of the values.
fn take_last(values: &mut &[f64]) -> f64 {
    let (last, rest) = values.split_last().expect("one multiplier per constraint");
    *values = rest;
    *last
}
