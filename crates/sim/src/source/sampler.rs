//! Draws from a law, with everything that does not change from draw to draw computed once.

use super::law::{Law, Shape};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand_distr::{Distribution as _, Exp1, Gamma, StandardNormal};
use units::Nanos;

/// Draws from a [`Law`]. Times in seconds round to the nearest nanosecond; beyond 584 years they are that.
#[derive(Debug, Clone)]
pub struct Sampler(Plan);

#[derive(Debug, Clone)]
enum Plan {
    Constant(f64),
    Exponential(f64),
    /// With the probability the first mean, otherwise the second.
    Hyperexponential {
        p: f64,
        first: f64,
        second: f64,
    },
    /// With the probability one phase less.
    Erlang {
        p: f64,
        fewer: Option<Gamma<f64>>,
        more: Gamma<f64>,
    },
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    /// min·(1 − u·kept)^(−1/shape).
    Pareto {
        min: f64,
        exponent: f64,
        kept: f64,
    },
    Points(Vec<(f64, f64)>),
    Uniform {
        from: f64,
        width: f64,
    },
    Empirical(Vec<Nanos>),
}

/// To the nearest nanosecond.
pub(super) fn round(secs: f64) -> Nanos {
    Nanos::from_secs(secs).unwrap_or(Nanos(u64::MAX))
}

impl Law {
    /// What draws from this law.
    pub fn sampler(&self) -> Sampler {
        Sampler(match self.shape() {
            Shape::Constant(value) => Plan::Constant(value.0),
            Shape::Exponential { mean } => Plan::Exponential(mean.0),
            Shape::Hyperexponential { mean, c2 } => hyperexponential(mean.0, *c2),
            Shape::Erlang { mean, c2 } => erlang(mean.0, *c2),
            Shape::LogNormal { mean, c2 } => {
                let variance = c2.ln_1p();
                Plan::LogNormal { mu: mean.0.ln() - variance / 2.0, sigma: variance.sqrt() }
            }
            Shape::Pareto { min, shape } => Plan::Pareto { min: min.0, exponent: -1.0 / shape, kept: 1.0 },
            Shape::BoundedPareto { min, max, shape } => {
                let kept = -(-shape * (max.0 / min.0).ln()).exp_m1();
                Plan::Pareto { min: min.0, exponent: -1.0 / shape, kept }
            }
            Shape::Points(points) => Plan::Points(points.iter().map(|(p, value)| (*p, value.0)).collect()),
            Shape::Uniform { from, to } => Plan::Uniform { from: from.0, width: to.0 - from.0 },
            Shape::Empirical(samples) => Plan::Empirical(samples.clone()),
        })
    }
}

/// Balanced means: p/λ₁ = (1 − p)/λ₂ with p = (1 + √((C² − 1)/(C² + 1)))/2.
fn hyperexponential(mean: f64, c2: f64) -> Plan {
    let root = ((c2 - 1.0) / (c2 + 1.0)).sqrt();
    // 1 − p without cancellation: (1 − root²)/(1 + root)/2 with 1 − root² = 2/(C² + 1).
    let (p, rest) = (0.5 * (1.0 + root), 1.0 / ((c2 + 1.0) * (1.0 + root)));
    Plan::Hyperexponential { p, first: mean / (2.0 * p), second: mean / (2.0 * rest) }
}

/// Tijms: p = (kC² − √(k(1 + C²) − k²C²))/(1 + C²) for k − 1 phases, each of mean E X/(k − p).
fn erlang(mean: f64, c2: f64) -> Plan {
    let k = (1.0 / c2).ceil();
    let p = (k * c2 - (k * (1.0 + c2) - k * k * c2).max(0.0).sqrt()) / (1.0 + c2);
    let p = p.clamp(0.0, 1.0);
    let phase = mean / (k - p);
    let gamma = |phases: f64| Gamma::new(phases, phase).expect("positive shape and scale");
    Plan::Erlang { p, fewer: (k > 1.0).then(|| gamma(k - 1.0)), more: gamma(k) }
}

impl Sampler {
    /// One value.
    pub fn draw(&self, random: &mut StdRng) -> Nanos {
        match &self.0 {
            Plan::Empirical(samples) => samples[random.random_range(0..samples.len())],
            plan => round(plan.seconds(random)),
        }
    }
}

impl Plan {
    fn seconds(&self, random: &mut StdRng) -> f64 {
        let exponential = |random: &mut StdRng| -> f64 { Exp1.sample(random) };
        match self {
            Self::Constant(value) => *value,
            Self::Exponential(mean) => mean * exponential(random),
            Self::Hyperexponential { p, first, second } => {
                let mean = if random.random::<f64>() < *p { first } else { second };
                mean * exponential(random)
            }
            Self::Erlang { p, fewer, more } => match fewer {
                Some(fewer) if random.random::<f64>() < *p => fewer.sample(random),
                _ => more.sample(random),
            },
            Self::LogNormal { mu, sigma } => {
                let normal: f64 = StandardNormal.sample(random);
                (mu + sigma * normal).exp()
            }
            Self::Pareto { min, exponent, kept } => {
                min * (1.0 - random.random::<f64>() * kept).powf(*exponent)
            }
            Self::Points(points) => point(points, random.random()),
            Self::Uniform { from, width } => from + width * random.random::<f64>(),
            Self::Empirical(samples) => samples[random.random_range(0..samples.len())].as_secs(),
        }
    }
}

/// The value whose share contains `u`.
fn point(points: &[(f64, f64)], mut u: f64) -> f64 {
    for (p, value) in points {
        u -= p;
        if u < 0.0 {
            return *value;
        }
    }
    // Rounding of the shares alone leads here.
    points[points.len() - 1].1
}
