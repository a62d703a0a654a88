//! The constraints of a [`Chain`], each as slack, gradient and curvature.

use super::{Chain, ChainPoint, LatencyConstraint, STAGES};

/// A level's latency constraint at a point: its slack `h = t·∂t − …`, and the derivatives of the slack with respect to
/// the level's cumulative bursts and the cumulative rates above it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LatencySlack {
    pub(super) slack: f64,
    pub(super) by_t: f64,
    pub(super) by_burst: [f64; STAGES],
    pub(super) by_rate: [f64; STAGES],
    /// The curvature −∇²h at each stage: (rate·rate, rate·burst); burst·burst is zero.
    pub(super) curvature: [(f64, f64); STAGES],
}

/// Calls `visit` with each latency constraint of `level` at `point`.
pub(super) fn latency_slacks(
    chain: &Chain,
    point: &ChainPoint,
    level: usize,
    mut visit: impl FnMut(LatencySlack),
) {
    match chain.constraint {
        LatencyConstraint::Exact => {
            visit(exact(chain, point, level));
        }
        LatencyConstraint::Relaxed | LatencyConstraint::OuterRelaxed => {
            // With nothing above, all three stage rates are zero and the constraints coincide.
            if level == 0 {
                visit(linear(chain, point, level, [1.0; STAGES], [0.0; STAGES]));
            } else {
                let by_rate = match chain.constraint {
                    LatencyConstraint::OuterRelaxed => chain.budgets[level] - chain.budgets[level - 1],
                    _ => chain.budgets[level],
                };
                for s in 0..STAGES {
                    visit(linear(chain, point, level, [1.0; STAGES], only_at(s, by_rate)));
                }
            }
        }
        LatencyConstraint::Outer => {
            visit(linear(chain, point, level, [1.0; STAGES], [0.0; STAGES]));
            if level > 0 {
                let gap = chain.budgets[level] - chain.budgets[level - 1];
                for s in 0..STAGES {
                    visit(linear(chain, point, level, only_at(s, 1.0), only_at(s, gap)));
                }
            }
        }
    }
}

/// A vector over the stages that is zero but at one of them.
fn only_at(stage: usize, value: f64) -> [f64; STAGES] {
    std::array::from_fn(|s| if s == stage { value } else { 0.0 })
}

/// The linear constraint `h = t·(SLO − Σ by_burst · B) − Σ (by_burst · (C + W) + by_rate · R)`. Every server
/// has its own B; W is the joint contribution of the workloads up to this level. Workloads of looser levels
/// are left out, although this level waits for them: a server may have only those.
fn linear(
    chain: &Chain,
    point: &ChainPoint,
    level: usize,
    by_burst: [f64; STAGES],
    by_rate: [f64; STAGES],
) -> LatencySlack {
    let bursts = point.bursts[level];
    let rates = point.rates_above(level);
    // Nothing where the chain is one server, whose `blocking` has it.
    let begun = chain.begun_by_workloads.get(level).copied().unwrap_or_default();
    let waited_for: [f64; STAGES] = std::array::from_fn(|s| bursts[s] + begun[s]);
    let used: f64 = (0..STAGES).map(|s| by_burst[s] * waited_for[s] + by_rate[s] * rates[s]).sum();
    let blocking: f64 = (0..STAGES).map(|s| by_burst[s] * chain.blocking[s]).sum();
    let budget = chain.budgets[level] - blocking;
    LatencySlack {
        slack: point.t * budget - used,
        by_t: budget,
        by_burst: by_burst.map(|v| -v),
        by_rate: by_rate.map(|v| -v),
        curvature: [(0.0, 0.0); STAGES],
    }
}

/// The constraint of Eq. 5.5: `h = t·SLO − Σ (B + C)/X`, X = 1 − R.
fn exact(chain: &Chain, point: &ChainPoint, level: usize) -> LatencySlack {
    let bursts = point.bursts[level];
    let rates = point.rates_above(level);
    let mut result = LatencySlack {
        slack: point.t * chain.budgets[level],
        by_t: chain.budgets[level],
        by_burst: [0.0; STAGES],
        by_rate: [0.0; STAGES],
        curvature: [(0.0, 0.0); STAGES],
    };
    for s in 0..STAGES {
        let inverse = 1.0 / (1.0 - rates[s]);
        let delay = (chain.blocking[s] + bursts[s]) * inverse;
        result.slack -= delay;
        result.by_burst[s] = -inverse;
        result.by_rate[s] = -delay * inverse;
        result.curvature[s] = (2.0 * delay * inverse * inverse, inverse * inverse);
    }
    result
}

/// The positive semidefinite part of `[[a, c], [c, 0]]`, a ≥ 0: its one positive eigenvalue.
pub(super) fn positive_part(a: f64, c: f64) -> (f64, f64, f64) {
    let eigenvalue = 0.5 * (a + (a * a + 4.0 * c * c).sqrt());
    if eigenvalue <= 0.0 {
        return (0.0, 0.0, 0.0);
    }
    // The eigenvector is (λ, c) up to length.
    let scale = eigenvalue / (eigenvalue * eigenvalue + c * c);
    (scale * eigenvalue * eigenvalue, scale * eigenvalue * c, scale * c * c)
}

/// The constraint Σ r ≤ max at a stage: its slack and the slack's derivative with respect to t. The linear constraints
/// share servers, so their limit grows with t.
pub(super) fn rate_cap(chain: &Chain, point: &ChainPoint, stage: usize) -> (f64, f64) {
    let total = point.rates[point.rates.len() - 1][stage];
    match chain.constraint {
        LatencyConstraint::Exact => (chain.max_rate - total, 0.0),
        LatencyConstraint::Relaxed | LatencyConstraint::OuterRelaxed | LatencyConstraint::Outer => {
            (point.t * chain.max_rate - total, chain.max_rate)
        }
    }
}
