//! Primal barrier method on a [`Chain`]: every iterate strictly satisfies every constraint.

use super::blocks::{System, Vector};
use super::constraint::{LatencySlack, latency_slacks, rate_cap};
use super::prices::Prices;
use super::{Chain, LatencyModel, Lines, Point, STAGES};
use model::Stage;

/// Growth of the objective's weight between centring steps.
const GROWTH: f64 = 20.0;
/// Newton steps before giving up on more precision; typical runs take 20 to 40.
const MAX_STEPS: usize = 400;
/// Centring ends when the predicted decrease of the barrier function falls below this.
const CENTRED: f64 = 0.1;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Precision {
    /// Once `t ≥ 1` is certain, or `t < 1` holds and is within half a percent of its optimum.
    Decide,
    /// When the objective is within this fraction of its optimum (of the linearised problem).
    Within(f64),
}

/// What the solver found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// Even the least rates exceed the capacity of this stage.
    Overloaded(Stage),
    /// The best point found, its gap to the optimum as the barrier certifies it for a convex model, and
    /// what rates and bursts cost there.
    Solved { point: Point, gap: f64, prices: Prices },
}

/// Minimises `t` over the chain.
pub(crate) fn minimise(chain: &Chain, precision: Precision) -> Outcome {
    let point = match start(chain) {
        Ok(point) => point,
        Err(stage) => return Outcome::Overloaded(stage),
    };
    Solver { chain, point, system: System::default() }.run(precision)
}

/// A strictly feasible point: spare rate shared evenly, bursts a little above the curve.
fn start(chain: &Chain) -> Result<Point, Stage> {
    let levels = chain.budgets.len();
    let mut point = Point { t: 1.0, rates: vec![[0.0; STAGES]; levels], bursts: vec![[0.0; STAGES]; levels] };
    let shared = chain.model != LatencyModel::Exact;
    for stage in Stage::ALL {
        let s = stage as usize;
        let least: f64 = chain.curves.iter().map(|c| c[stage].least_rate).sum();
        let spare = if shared { chain.max_rate } else { chain.max_rate - least };
        if spare <= 0.0 || !least.is_finite() {
            return Err(stage);
        }
        let share = spare / (levels + 1) as f64;
        let (mut rate, mut burst) = (0.0, 0.0);
        for (level, curves) in chain.curves.iter().enumerate() {
            let own = curves[stage].least_rate + share;
            rate += own;
            burst += curves[stage].burst(own) * 1.1 + 1e-3 * chain.budgets[level];
            (point.rates[level][s], point.bursts[level][s]) = (rate, burst);
        }
    }
    raise_t(chain, &mut point);
    Ok(point)
}

/// Moves `t` above every constraint that it relaxes, by half again.
fn raise_t(chain: &Chain, point: &mut Point) {
    let mut needed: f64 = 0.0;
    for level in 0..chain.budgets.len() {
        latency_slacks(chain, point, level, |c| needed = needed.max(point.t - c.slack / c.by_t));
    }
    for s in 0..STAGES {
        let (slack, by_t) = rate_cap(chain, point, s);
        if by_t > 0.0 {
            needed = needed.max(point.t - slack / by_t);
        }
    }
    point.t = 1.5 * needed + 1e-6;
}

struct Solver<'a> {
    chain: &'a Chain,
    point: Point,
    system: System,
}

impl Solver<'_> {
    fn run(mut self, precision: Precision) -> Outcome {
        let constraints = self.count();
        let mut weight = constraints / self.point.t;
        let mut gap = f64::INFINITY;
        for _ in 0..MAX_STEPS {
            let decrease = self.newton_step(weight);
            if decrease.is_some_and(|d| d > CENTRED) {
                continue;
            }
            gap = constraints / weight;
            let done = match precision {
                Precision::Decide => {
                    let fits = self.point.t < 1.0;
                    (fits && gap < 5e-3 * self.point.t) || (!fits && self.point.t - gap > 1.0) || gap < 1e-6
                }
                Precision::Within(fraction) => gap < fraction * self.point.t,
            };
            if done || decrease.is_none() {
                break;
            }
            weight *= GROWTH;
        }
        let prices = Prices::at(self.chain, &self.point, weight);
        Outcome::Solved { point: self.point, gap, prices }
    }

    /// Number of barrier terms.
    fn count(&self) -> f64 {
        let mut count = STAGES;
        for (level, curves) in self.chain.curves.iter().enumerate() {
            count += curves.iter().map(|(_, lines)| lines.work.len() + 1).sum::<usize>();
            latency_slacks(self.chain, &self.point, level, |_| count += 1);
        }
        count as f64
    }

    /// One damped Newton step on `weight·t − Σ log slack`. Gives half the squared decrement, or `None`
    /// when rounding leaves no descent.
    fn newton_step(&mut self, weight: f64) -> Option<f64> {
        self.assemble(weight);
        let gradient: (Vec<Vector>, f64) = (self.system.rhs.clone(), self.system.rhs_corner);
        self.system.solve()?;
        let step = &self.system;
        let mut decrement = gradient.1 * step.rhs_corner;
        for (g, x) in gradient.0.iter().zip(&step.rhs) {
            decrement += g.iter().zip(x).map(|(g, x)| g * x).sum::<f64>();
        }
        if decrement <= 1e-12 {
            return None;
        }
        let before = merit(self.chain, &self.point, weight)?;
        let mut length = self.longest_step().min(1.0);
        for _ in 0..40 {
            let candidate = self.moved(length);
            match merit(self.chain, &candidate, weight) {
                Some(after) if after <= before - 0.01 * length * decrement => {
                    self.point = candidate;
                    return Some(0.5 * decrement);
                }
                _ => length *= 0.5,
            }
        }
        None
    }

    fn moved(&self, length: f64) -> Point {
        let mut point = self.point.clone();
        point.t += length * self.system.rhs_corner;
        for (level, step) in self.system.rhs.iter().enumerate() {
            for s in 0..STAGES {
                point.rates[level][s] += length * step[s];
                point.bursts[level][s] += length * step[STAGES + s];
            }
        }
        point
    }

    /// The largest step that keeps the curve lines strictly satisfied, shortened a little.
    fn longest_step(&self) -> f64 {
        let mut longest = f64::INFINITY;
        let step = &self.system.rhs;
        for (level, curves) in self.chain.curves.iter().enumerate() {
            for stage in Stage::ALL {
                let s = stage as usize;
                let (rate, burst) = (self.point.level_rate(level, s), self.point.level_burst(level, s));
                let before = |i: usize| if level == 0 { 0.0 } else { step[level - 1][i] };
                let (by_rate, by_burst) =
                    (step[level][s] - before(s), step[level][STAGES + s] - before(STAGES + s));
                let lines = &curves[stage];
                // Largest relative loss of slack: one comparison per line, no branch.
                let mut loss = -by_rate / (rate - lines.least_rate);
                for (d, w) in lines.durations.iter().zip(&lines.work) {
                    loss = loss.max(-(by_burst + d * by_rate) / (burst + d * rate - w));
                }
                if loss > 0.0 {
                    longest = longest.min(1.0 / loss);
                }
            }
        }
        0.99 * longest
    }

    fn assemble(&mut self, weight: f64) {
        let levels = self.chain.budgets.len();
        self.system.clear(levels);
        self.system.rhs_corner = -weight;
        for level in 0..levels {
            for stage in Stage::ALL {
                self.add_lines(level, stage as usize, &self.chain.curves[level][stage]);
            }
            let (chain, point, system) = (self.chain, &self.point, &mut self.system);
            latency_slacks(chain, point, level, |c| add_latency(system, level, &c));
        }
        for s in 0..STAGES {
            let (slack, by_t) = rate_cap(self.chain, &self.point, s);
            let inverse = 1.0 / slack;
            let last = levels - 1;
            self.system.diagonal[last][s][s] += inverse * inverse;
            self.system.rhs[last][s] -= inverse;
            self.system.border[last][s] -= by_t * inverse * inverse;
            self.system.corner += by_t * by_t * inverse * inverse;
            self.system.rhs_corner += by_t * inverse;
        }
    }

    /// The lines of one level's curve, and its least rate, act on differences of neighbouring levels.
    fn add_lines(&mut self, level: usize, s: usize, lines: &Lines) {
        let (rate, burst) = (self.point.level_rate(level, s), self.point.level_burst(level, s));
        let floor = 1.0 / (rate - lines.least_rate);
        let (mut rr, mut rb, mut bb) = (floor * floor, 0.0, 0.0);
        let (mut gr, mut gb) = (floor, 0.0);
        for (d, w) in lines.durations.iter().zip(&lines.work) {
            let inverse = 1.0 / (burst + d * rate - w);
            let squared = inverse * inverse;
            gb += inverse;
            gr += d * inverse;
            bb += squared;
            rb += d * squared;
            rr += d * d * squared;
        }
        let entries = [(s, s, rr), (s, STAGES + s, rb), (STAGES + s, s, rb), (STAGES + s, STAGES + s, bb)];
        for (i, j, value) in entries {
            self.system.diagonal[level][i][j] += value;
            if level > 0 {
                self.system.diagonal[level - 1][i][j] += value;
                self.system.lower[level][i][j] -= value;
            }
        }
        for (i, value) in [(s, gr), (STAGES + s, gb)] {
            self.system.rhs[level][i] += value;
            if level > 0 {
                self.system.rhs[level - 1][i] -= value;
            }
        }
    }
}

/// −log h of a latency constraint: bursts of `level`, rates of the level above it, and t.
fn add_latency(system: &mut System, level: usize, c: &LatencySlack) {
    let inverse = 1.0 / c.slack;
    let squared = inverse * inverse;
    system.corner += c.by_t * c.by_t * squared;
    system.rhs_corner += c.by_t * inverse;
    for i in 0..STAGES {
        system.rhs[level][STAGES + i] += c.by_burst[i] * inverse;
        system.border[level][STAGES + i] += c.by_burst[i] * c.by_t * squared;
        for j in 0..STAGES {
            system.diagonal[level][STAGES + i][STAGES + j] += c.by_burst[i] * c.by_burst[j] * squared;
        }
        if level == 0 {
            continue;
        }
        system.rhs[level - 1][i] += c.by_rate[i] * inverse;
        system.border[level - 1][i] += c.by_rate[i] * c.by_t * squared;
        for j in 0..STAGES {
            system.diagonal[level - 1][i][j] += c.by_rate[i] * c.by_rate[j] * squared;
            system.lower[level][STAGES + i][j] += c.by_burst[i] * c.by_rate[j] * squared;
        }
        let (rr, rb, bb) = c.curvature[i];
        system.diagonal[level - 1][i][i] += rr * inverse;
        system.lower[level][STAGES + i][i] += rb * inverse;
        system.diagonal[level][STAGES + i][STAGES + i] += bb * inverse;
    }
}

/// `weight·t − Σ log slack`, or `None` outside the strictly feasible set.
fn merit(chain: &Chain, point: &Point, weight: f64) -> Option<f64> {
    let mut logs = LogSum::default();
    for (level, curves) in chain.curves.iter().enumerate() {
        for stage in Stage::ALL {
            let s = stage as usize;
            let (rate, burst) = (point.level_rate(level, s), point.level_burst(level, s));
            let lines = &curves[stage];
            logs.add(rate - lines.least_rate);
            for (d, w) in lines.durations.iter().zip(&lines.work) {
                logs.add(burst + d * rate - w);
            }
        }
        // Beyond full utilisation a delay turns negative and must not count as slack.
        if point.rates[level].iter().any(|r| chain.model == LatencyModel::Exact && *r >= 1.0) {
            return None;
        }
        latency_slacks(chain, point, level, |c| logs.add(c.slack));
    }
    for s in 0..STAGES {
        logs.add(rate_cap(chain, point, s).0);
    }
    logs.total().map(|sum| weight * point.t - sum)
}

/// Σ log of many positive numbers with few calls to `ln`.
#[derive(Debug)]
struct LogSum {
    sum: f64,
    product: f64,
    smallest: f64,
}

impl Default for LogSum {
    fn default() -> Self {
        Self { sum: 0.0, product: 1.0, smallest: f64::INFINITY }
    }
}

impl LogSum {
    fn add(&mut self, value: f64) {
        self.smallest = self.smallest.min(value);
        self.product *= value;
        if !(1e-150..1e150).contains(&self.product) {
            self.sum += self.product.abs().ln();
            self.product = 1.0;
        }
    }

    /// `None` when a value was not positive.
    fn total(&self) -> Option<f64> {
        (self.smallest > 0.0 && self.sum.is_finite()).then(|| self.sum + self.product.ln())
    }
}
