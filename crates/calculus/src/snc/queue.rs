//! The latency of a workload at one queue, from tables.
//!
//! The same bound as the expression latency(A, S ⊖ others) has, with the cost of a few hundred look-ups:
//! what the others ask is one table, whoever they are. Where the workload depends on the others, Hölder's
//! weight between the two is searched as well (thesis Theorem 1, dependent case).

use super::bound::MgfBound;
use super::expression::{EvaluationPoint, ServiceProcess, TimeStep};
use super::minimise::minimise_log;
use super::table::RateTable;
use crate::round_up;

/// A workload at a queue.
#[derive(Debug, Clone)]
pub struct TabulatedQueue<'a> {
    /// Whose latency.
    pub own: &'a RateTable,
    /// The sum of everybody of higher or equal priority; on the grid of `own`.
    pub others: Option<&'a RateTable>,
    /// Whether `own` and `others` may burst together.
    pub dependent: bool,
    /// What the queue can do: constant rates, and convolutions of them.
    pub service: &'a ServiceProcess,
    /// Of discrete time.
    pub step: TimeStep,
}

/// Grid points that the first scan steps over.
const STRIDE: usize = 16;

impl TabulatedQueue<'_> {
    /// The latency that is exceeded with probability at most `exceeded`, seconds, and the θ that proves it.
    /// `None` when there is no bound.
    pub fn latency(&self, exceeded: f64) -> Option<(f64, f64)> {
        if !(exceeded > 0.0 && exceeded < 1.0) {
            return None;
        }
        let found = if self.dependent { self.dependent_latency(exceeded) } else { self.on_grid(exceeded) };
        found.map(|(theta, latency)| (round_up(latency), theta))
    }

    /// Independent: θ is a grid point.
    fn on_grid(&self, exceeded: f64) -> Option<(f64, f64)> {
        let grid = self.own.grid();
        let at = |point: usize| {
            let theta = grid.theta(point);
            self.at(theta, theta, exceeded).map(|latency| (latency, point))
        };
        let least = |points: &mut dyn Iterator<Item = usize>| {
            points.filter_map(at).min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let (_, near) = least(&mut (0..grid.points).step_by(STRIDE))?;
        let mut around = near.saturating_sub(STRIDE - 1)..(near + STRIDE).min(grid.points);
        let (latency, point) = least(&mut around)?;
        Some((grid.theta(point), latency))
    }

    /// Dependent: both operands' arguments xθ and yθ are free, and 1/θ is the sum of their inverses, so that
    /// every pair of arguments in the two domains is a choice of weights.
    fn dependent_latency(&self, exceeded: f64) -> Option<(f64, f64)> {
        let grid = self.own.grid();
        let [low, high] = [grid.low, grid.theta(grid.points - 1)];
        let scan = grid.points / STRIDE + 1;
        let best_served = |own: f64| minimise_log(low, high, scan, |served| self.at(own, served, exceeded));
        let (own, latency) = minimise_log(low, high, scan, |own| Some(best_served(own)?.1))?;
        let (served, _) = best_served(own)?;
        Some((1.0 / (1.0 / own + 1.0 / served), latency))
    }

    /// Theorem 1 with `own` = xθ and `served` = yθ; both θ if independent.
    fn at(&self, own: f64, served: f64, exceeded: f64) -> Option<f64> {
        let theta = if self.dependent { 1.0 / (1.0 / own + 1.0 / served) } else { own };
        let arrivals = self.own.growth_at(own) / own;
        let mut point = EvaluationPoint { step: self.step, weights: &[], notes: None };
        let MgfBound { rate, burst } = self.service.bound(served, &mut point)?;
        let left = rate + self.others.map_or(0.0, |table| table.growth_at(served) / served);
        let union = self.step.union(theta, -left - arrivals)?;
        let latency = (union - exceeded.ln() / theta + burst) / -left;
        (latency.is_finite() && left < 0.0).then(|| latency.max(0.0))
    }
}
