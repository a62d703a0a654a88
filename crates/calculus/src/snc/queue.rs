//! The latency of a workload at one queue, from tables.
//!
//! The same bound as the expression latency(A, S ⊖ others) has, with the cost of a few hundred look-ups:
//! what the others ask is one table, whoever they are. Where the workload depends on the others, Hölder's
//! weight between the two is searched as well (thesis Theorem 1, dependent case).

use super::bound::Bound;
use super::expression::{Point, ServiceProcess, Step};
use super::minimise::minimise;
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
    pub step: Step,
}

/// Grid points that the first scan steps over.
const STRIDE: usize = 16;
/// Points of the scan for Hölder's weight, which is searched in logits up to this.
const WEIGHT: (usize, f64) = (9, 12.0);

impl TabulatedQueue<'_> {
    /// The latency that is exceeded with probability at most `exceeded`, seconds, and the θ that proves it.
    /// `None` when there is no bound.
    pub fn latency(&self, exceeded: f64) -> Option<(f64, f64)> {
        if !(exceeded > 0.0 && exceeded < 1.0) {
            return None;
        }
        let grid = self.own.grid();
        let at = |point: usize| self.at(grid.theta(point), exceeded).map(|latency| (latency, point));
        let least = |points: &mut dyn Iterator<Item = usize>| {
            points.filter_map(at).min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let (_, near) = least(&mut (0..grid.points).step_by(STRIDE))?;
        let mut around = near.saturating_sub(STRIDE - 1)..(near + STRIDE).min(grid.points);
        let (latency, point) = least(&mut around)?;
        Some((round_up(latency), grid.theta(point)))
    }

    fn at(&self, theta: f64, exceeded: f64) -> Option<f64> {
        if !self.dependent {
            return self.weighted(theta, [1.0, 1.0], exceeded);
        }
        let at = |logit: f64| {
            let weights = [1.0 / (1.0 + (-logit).exp()), 1.0 / (1.0 + logit.exp())];
            self.weighted(theta, weights, exceeded)
        };
        Some(minimise(-WEIGHT.1, WEIGHT.1, WEIGHT.0, at)?.1)
    }

    /// Theorem 1 with 1/x and 1/y as weights.
    fn weighted(&self, theta: f64, weights: [f64; 2], exceeded: f64) -> Option<f64> {
        let [own, served] = weights.map(|weight| theta / weight);
        let arrivals = self.own.growth_at(own) / own;
        let mut point = Point { step: self.step, weights: &[], notes: None };
        let Bound { rate, burst } = self.service.bound(served, &mut point)?;
        let left = rate + self.others.map_or(0.0, |table| table.growth_at(served) / served);
        let union = self.step.union(theta, -left - arrivals)?;
        let latency = (union - exceeded.ln() / theta + burst) / -left;
        (latency.is_finite() && left < 0.0).then(|| latency.max(0.0))
    }
}
