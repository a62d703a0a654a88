//! Contributions of each constraint to the Newton system: multiplier ÷ slack times the outer product of its
//! gradient, curvature times multiplier, and μ ÷ slack times its gradient on the right side.

use super::blocks::NewtonSystem;
use super::constraint::{LatencySlack, positive_part};
use super::{CurveLines, STAGES};

/// Walks the slacks and multipliers of all constraints in the solver's order.
pub(super) struct ConstraintRows<'a> {
    pub(super) mu: f64,
    pub(super) slacks: &'a [f64],
    pub(super) multipliers: &'a [f64],
}

impl ConstraintRows<'_> {
    /// The next constraint as (target ÷ slack, multiplier ÷ slack, multiplier), where `target` is that of slack · multiplier.
    pub(super) fn next(&mut self, target: f64) -> (f64, f64, f64) {
        let slack = self.slacks[0];
        let multiplier = self.multipliers[0];
        (self.slacks, self.multipliers) = (&self.slacks[1..], &self.multipliers[1..]);
        let inverse = 1.0 / slack;
        (target * inverse, multiplier * inverse, multiplier)
    }

    /// The slacks and multipliers of the next `count` constraints.
    fn take(&mut self, count: usize) -> (&[f64], &[f64]) {
        let (slacks, rest) = self.slacks.split_at(count);
        let (multipliers, others) = self.multipliers.split_at(count);
        (self.slacks, self.multipliers) = (rest, others);
        (slacks, multipliers)
    }
}

/// Adds the lines of one level's curve and its least rate, which act on differences of neighbouring levels.
pub(super) fn add_lines(
    system: &mut NewtonSystem,
    rows: &mut ConstraintRows,
    level: usize,
    s: usize,
    lines: &CurveLines,
) {
    let mu = rows.mu;
    let (mut gr, mut rr, _) = rows.next(mu);
    let mut gb = 0.0;
    let mut rb = 0.0;
    let mut bb = 0.0;
    let (slacks, multipliers) = rows.take(lines.durations.len());
    for ((d, slack), multiplier) in lines.durations.iter().zip(slacks).zip(multipliers) {
        let inverse = 1.0 / slack;
        let push = mu * inverse;
        let weight = multiplier * inverse;
        gb += push;
        gr += d * push;
        bb += weight;
        rb += d * weight;
        rr += d * d * weight;
    }
    let entries = [(s, s, rr), (s, STAGES + s, rb), (STAGES + s, s, rb), (STAGES + s, STAGES + s, bb)];
    for (i, j, value) in entries {
        system.diagonal[level][i][j] += value;
        if level > 0 {
            system.diagonal[level - 1][i][j] += value;
            system.lower[level][i][j] -= value;
        }
    }
    for (i, value) in [(s, gr), (STAGES + s, gb)] {
        system.rhs[level][i] += value;
        if level > 0 {
            system.rhs[level - 1][i] -= value;
        }
    }
}

/// Adds a latency constraint, which acts on the bursts of `level`, the rates of the level above it, and t. It comes with its
/// row, as [`ConstraintRows::next`] returns it.
pub(super) fn add_latency(
    system: &mut NewtonSystem,
    (push, weight, multiplier): (f64, f64, f64),
    level: usize,
    c: &LatencySlack,
    convexify: bool,
) {
    system.corner += c.by_t * c.by_t * weight;
    system.rhs_corner += c.by_t * push;
    for i in 0..STAGES {
        system.rhs[level][STAGES + i] += c.by_burst[i] * push;
        system.border[level][STAGES + i] += c.by_burst[i] * c.by_t * weight;
        for j in 0..STAGES {
            system.diagonal[level][STAGES + i][STAGES + j] += c.by_burst[i] * c.by_burst[j] * weight;
        }
        if level == 0 {
            continue;
        }
        system.rhs[level - 1][i] += c.by_rate[i] * push;
        system.border[level - 1][i] += c.by_rate[i] * c.by_t * weight;
        for j in 0..STAGES {
            system.diagonal[level - 1][i][j] += c.by_rate[i] * c.by_rate[j] * weight;
            system.lower[level][STAGES + i][j] += c.by_burst[i] * c.by_rate[j] * weight;
        }
        let (rr, rb) = c.curvature[i];
        let (rr, rb, bb) = if convexify { positive_part(rr, rb) } else { (rr, rb, 0.0) };
        system.diagonal[level - 1][i][i] += rr * multiplier;
        system.lower[level][STAGES + i][i] += rb * multiplier;
        system.diagonal[level][STAGES + i][STAGES + i] += bb * multiplier;
    }
}
