//! The latency operator (thesis Theorem 1) and the search for its free parameters.
//!
//! For a fixed latency, the logarithm of the probability that it is exceeded is jointly convex in θ and the
//! Hölder weights (each is a perspective function of a log moment generating function; the union over time
//! is convex and increasing in them), for expressions without convolution. So the latency is quasi-convex
//! in all parameters together, and line searches in turn descend to its minimum without sampling. Where the
//! objective has a kink, or a convolution in it, they may stop short of it; what they return is a bound all
//! the same.

use super::bound::MgfBound;
use super::expression::{ArrivalProcess, EvaluationPoint, ServiceProcess, TimeStep, star, weight};
use super::minimise::minimise_log;
use crate::round_up;
use std::fmt;

/// The question which latency of `arrivals` at `service` is exceeded with probability at most `exceeded`.
#[derive(Debug, Clone)]
pub struct LatencyQuery {
    /// The traffic whose latency is asked for.
    pub arrivals: ArrivalProcess,
    /// The service that the queue, or all queues in sequence, leave for it.
    pub service: ServiceProcess,
    /// The probability ε, 1 − percentile, in (0, 1).
    pub exceeded: f64,
    /// The step of discrete time.
    pub step: TimeStep,
}

/// A bound on a latency, with its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyBound {
    /// The latency in seconds, rounded up.
    pub latency: f64,
    /// The θ that gives the least bound, per second of capacity.
    pub theta: f64,
    /// The Hölder weights, one block per dependent operation, in the order of evaluation.
    pub weights: Vec<Vec<f64>>,
    /// All processes in the expression, operands before results.
    pub parts: Vec<ExpressionPart>,
    expression: String,
}

/// One process of the expression at the parameters of the least bound.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpressionPart {
    /// Its expression; dependent operations carry an asterisk.
    pub expression: String,
    /// The θ at which it is evaluated: that of the bound, divided by the weights around it.
    pub theta: f64,
    /// The bound of its moment generating function at this θ.
    pub bound: MgfBound,
}

/// The interval in which θ is searched, per second of capacity: latencies from nanoseconds to weeks.
const THETA: [f64; 2] = [1e-6, 1e10];
/// The number of points of the first scan: eight in a decade.
const SCAN: usize = 129;
/// The half width of a line search, in logarithms.
const LINE_WIDTH: f64 = 3.0;
/// The number of points of a line search's first scan.
const LINE_SCAN: usize = 7;
/// The largest number of sweeps over all lines.
const SWEEPS: usize = 60;
/// The part of the latency that a sweep must gain for another to follow.
const SWEEP_GAIN: f64 = 1e-6;

/// The free parameters of a query and the bound that they give.
#[derive(Debug, Clone)]
struct ParameterChoice {
    theta: f64,
    weights: Vec<f64>,
    latency: f64,
}

impl LatencyQuery {
    /// The smallest bound that the search over θ and the weights finds; `None` when there is none: an
    /// unstable queue, or moments that do not exist at any θ where it would be stable.
    pub fn solve(&self) -> Option<LatencyBound> {
        if !(self.exceeded > 0.0 && self.exceeded < 1.0) {
            return None;
        }
        let blocks = self.blocks();
        let weights: Vec<f64> = blocks.iter().flat_map(|&k| vec![1.0 / k as f64; k]).collect();
        let (theta, latency) =
            minimise_log(THETA[0], THETA[1], SCAN, |theta| self.latency_at(theta, &weights))?;
        let mut best = ParameterChoice { theta, weights, latency };
        for _ in 0..if blocks.is_empty() { 0 } else { SWEEPS } {
            let before = best.latency;
            self.sweep(&mut best, &blocks);
            if before - best.latency <= SWEEP_GAIN * before {
                break;
            }
        }
        Some(self.derive(best.theta, &best.weights))
    }

    /// The bound at chosen parameters: weights as blocks that are each positive with sum at most 1. `None`
    /// outside the domain.
    pub fn latency_at(&self, theta: f64, weights: &[f64]) -> Option<f64> {
        self.evaluate(theta, &mut EvaluationPoint { step: self.step, weights, record: None })
    }

    /// The number of factors of each Hölder inequality, in the order of evaluation: the lengths of the
    /// blocks of weights.
    pub fn blocks(&self) -> Vec<usize> {
        let mut blocks = Vec::new();
        blocks.extend(self.is_dependent().then_some(2));
        self.arrivals.blocks(&mut blocks);
        self.service.blocks(&mut blocks);
        blocks
    }

    /// Returns true if arrivals and service share a source.
    fn is_dependent(&self) -> bool {
        !self.arrivals.is_independent_of(self.service.sources())
    }

    /// The latency of Theorem 1 at one θ, seconds.
    fn evaluate(&self, theta: f64, point: &mut EvaluationPoint<'_>) -> Option<f64> {
        let weights = point.take(self.is_dependent(), 2);
        let a = self.arrivals.bound(theta / weight(weights, 0), point)?;
        let s = self.service.bound(theta / weight(weights, 1), point)?;
        let union = point.step.union_burst(theta, -s.rate - a.rate)?;
        let seconds = (union - self.exceeded.ln() / theta + a.burst + s.burst) / -s.rate;
        (seconds.is_finite() && s.rate < 0.0).then(|| round_up(seconds.max(0.0)))
    }

    /// One line search over θ and two per weight: at the same θ, and with θ such that the others' arguments
    /// θ/w stay where they are. The latter matter where a domain ends: an argument can reach its end without
    /// another leaving its own.
    fn sweep(&self, best: &mut ParameterChoice, blocks: &[usize]) {
        self.search_line(best, |choice, t| choice.theta *= t);
        let mut begin = 0;
        for &factors in blocks {
            let block = begin..begin + factors;
            for chosen in block.clone() {
                self.search_line(best, |choice, t| {
                    choice.weights[chosen] *= t;
                    normalise(&mut choice.weights[block.clone()]);
                });
                self.search_line(best, |choice, t| {
                    choice.weights[chosen] *= t;
                    choice.theta /= normalise(&mut choice.weights[block.clone()]);
                });
            }
            begin += factors;
        }
    }

    /// Replaces `best` by the best of `change(best, t)` over t around 1, if that is better.
    fn search_line(&self, best: &mut ParameterChoice, change: impl Fn(&mut ParameterChoice, f64)) {
        let moved = |t: f64| {
            let mut choice = best.clone();
            change(&mut choice, t);
            choice
        };
        let low = (-LINE_WIDTH).exp();
        let high = LINE_WIDTH.exp();
        let value = |t: f64| {
            let choice = moved(t);
            self.latency_at(choice.theta, &choice.weights)
        };
        let Some((t, latency)) = minimise_log(low, high, LINE_SCAN, value) else { return };
        if latency < best.latency {
            *best = ParameterChoice { latency, ..moved(t) };
        }
    }

    /// The bound at these parameters with its derivation.
    fn derive(&self, theta: f64, flat: &[f64]) -> LatencyBound {
        let mut parts = Vec::new();
        let mut record = |expression, theta, bound| parts.push(ExpressionPart { expression, theta, bound });
        let mut point = EvaluationPoint { step: self.step, weights: flat, record: Some(&mut record) };
        let latency = self.evaluate(theta, &mut point).expect("the search ends inside the domain");
        let mut rest = flat;
        let mut weights = Vec::new();
        for factors in self.blocks() {
            let (block, others) = rest.split_at(factors);
            weights.push(block.to_vec());
            rest = others;
        }
        LatencyBound { latency, theta, weights, parts, expression: self.to_string() }
    }
}

/// Makes the sum 1 and returns what it was.
fn normalise(weights: &mut [f64]) -> f64 {
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    sum
}

impl fmt::Display for LatencyQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrivals = &self.arrivals;
        let service = &self.service;
        let percentile = 100.0 * (1.0 - self.exceeded);
        write!(f, "latency{}({arrivals}, {service}, {percentile:.4}%)", star(self.is_dependent()))
    }
}

impl fmt::Display for LatencyBound {
    /// The expression, θ, the weights and every part's ρ and σ, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} = {:.6} s at θ = {:.4} /s", self.expression, self.latency, self.theta)?;
        for block in &self.weights {
            let listed: Vec<String> = block.iter().map(|w| format!("{w:.4}")).collect();
            writeln!(f, "  Hölder weights {}", listed.join(", "))?;
        }
        for ExpressionPart { expression, theta, bound } in &self.parts {
            writeln!(f, "  {expression}: ρ({theta:.4}) = {:.6}, σ = {:.6} s", bound.rate, bound.burst)?;
        }
        Ok(())
    }
}
