//! The latency of a workload at one queue, or at a path of queues that is convolved to one, from tables.
//!
//! The same bound as the expression latency(A, S ⊖ others) has, with the cost of a few hundred look-ups:
//! what the others ask for is one table, however many they are. Where the workload depends on the others, Hölder's
//! weight between the two is searched as well (thesis Theorem 1, dependent case).

use super::bound::MgfBound;
use super::expression::{EvaluationPoint, ServiceProcess, TimeStep};
use super::minimise::minimise_log;
use super::table::RateTable;
use crate::round_up;

/// A workload at a queue that it shares with others.
#[derive(Debug, Clone)]
pub struct TabulatedQueue<'a> {
    /// The table of the workload whose latency is asked for.
    pub own: &'a RateTable,
    /// The table of all others of higher or equal priority together, on the grid of `own`.
    pub others: Option<&'a RateTable>,
    /// True if `own` and `others` may burst together.
    pub dependent: bool,
    /// The service of the queue: constant rates, and convolutions of them.
    pub service: &'a ServiceProcess,
    /// The step of discrete time.
    pub step: TimeStep,
}

/// A latency and the addends of Theorem 1 that it consists of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueLatency {
    /// The latency, rounded up, seconds.
    pub seconds: f64,
    /// The exponent that gives it, per second of work.
    pub theta: f64,
    /// The rate that the others leave at this exponent, fraction of capacity.
    pub left: f64,
    /// The part that stands for all instants at which the busy period may have begun, seconds.
    pub any_start: f64,
    /// The part that stands for the probability of exceeding the latency, seconds.
    pub exceeded: f64,
    /// The part that stands for the convolution of the queues, seconds.
    pub convolution: f64,
}

/// The number of grid points from one point of the first scan to the next.
const STRIDE: usize = 16;

impl TabulatedQueue<'_> {
    /// The latency that is exceeded with probability at most `exceeded`, and the θ that proves it.
    /// `None` when there is no bound.
    pub fn latency(&self, exceeded: f64) -> Option<QueueLatency> {
        if !(exceeded > 0.0 && exceeded < 1.0) {
            return None;
        }
        let [own, served] = if self.dependent {
            self.dependent_arguments(exceeded)?
        } else {
            [self.independent_argument(exceeded)?; 2]
        };
        self.terms_at(own, served, exceeded)
    }

    /// The θ, a grid point, of the least latency where the workload is independent of the others.
    fn independent_argument(&self, exceeded: f64) -> Option<f64> {
        let grid = self.own.grid();
        let (near, _) = self.least_latency((0..grid.points).step_by(STRIDE), exceeded)?;
        let around = near.saturating_sub(STRIDE - 1)..(near + STRIDE).min(grid.points);
        let (point, _) = self.least_latency(around, exceeded)?;
        Some(grid.theta(point))
    }

    /// The grid point with the least latency, and that latency.
    fn least_latency(&self, points: impl Iterator<Item = usize>, exceeded: f64) -> Option<(usize, f64)> {
        let latencies = points.filter_map(|point| {
            let theta = self.own.grid().theta(point);
            Some((point, self.latency_at(theta, theta, exceeded)?))
        });
        latencies.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The arguments xθ and yθ of the least latency where they are dependent. Both are free, and 1/θ is the sum of their
    /// inverses, so that every pair of arguments in the two domains is a choice of weights.
    fn dependent_arguments(&self, exceeded: f64) -> Option<[f64; 2]> {
        let grid = self.own.grid();
        let [low, high] = [grid.low, grid.theta(grid.points - 1)];
        let scan = grid.points / STRIDE + 1;
        let best_served =
            |own: f64| minimise_log(low, high, scan, |served| self.latency_at(own, served, exceeded));
        let (own, _) = minimise_log(low, high, scan, |own| Some(best_served(own)?.1))?;
        let (served, _) = best_served(own)?;
        Some([own, served])
    }

    /// The latency at these arguments, seconds.
    fn latency_at(&self, own: f64, served: f64, exceeded: f64) -> Option<f64> {
        self.terms_at(own, served, exceeded).map(|terms| terms.seconds)
    }

    /// The latency of Theorem 1 with `own` = xθ and `served` = yθ, both θ if independent.
    fn terms_at(&self, own: f64, served: f64, exceeded: f64) -> Option<QueueLatency> {
        let theta = if self.dependent { 1.0 / (1.0 / own + 1.0 / served) } else { own };
        let arrivals = self.own.growth_at(own) / own;
        let mut point = EvaluationPoint { step: self.step, weights: &[], record: None };
        let MgfBound { rate, burst } = self.service.bound(served, &mut point)?;
        let left = -rate - self.others.map_or(0.0, |table| table.growth_at(served) / served);
        let union = self.step.union_burst(theta, left - arrivals)?;
        let seconds = round_up(((union - exceeded.ln() / theta + burst) / left).max(0.0));
        (seconds.is_finite() && left > 0.0).then(|| QueueLatency {
            seconds,
            theta,
            left,
            any_start: union / left,
            exceeded: -exceeded.ln() / theta / left,
            convolution: burst / left,
        })
    }
}
