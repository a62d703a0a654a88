//! Draws from a distribution, with everything that does not change from draw to draw computed once.

use crate::rounding::saturating_nanos;
use crate::{DistributionFamily, TimeDistribution};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand_distr::{Distribution as _, Exp1, Gamma, StandardNormal};
use units::Nanos;

/// Draws times from a [`TimeDistribution`]. Times round to the nearest nanosecond and saturate at 584
/// years.
#[derive(Debug, Clone)]
pub struct Sampler(PreparedFamily);

/// The constants of a draw, in seconds where they are times.
#[derive(Debug, Clone)]
enum PreparedFamily {
    Constant(f64),
    Exponential(f64),
    /// Exponential with the first mean with probability p, otherwise with the second.
    Hyperexponential {
        p: f64,
        first: f64,
        second: f64,
    },
    /// Erlang with `phases` or, with probability p, one phase less; `fewer` is `None` if that leaves no
    /// phase.
    Erlang {
        p: f64,
        fewer: Option<Gamma<f64>>,
        more: Gamma<f64>,
    },
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    /// The value min·(1 − u·kept)^exponent for a uniform u, where `kept` is the probability of values up to the
    /// largest.
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

impl TimeDistribution {
    /// The sampler that draws from this distribution.
    pub fn sampler(&self) -> Sampler {
        Sampler(match self.family() {
            DistributionFamily::Constant(value) => PreparedFamily::Constant(value.0),
            DistributionFamily::Exponential { mean } => PreparedFamily::Exponential(mean.0),
            DistributionFamily::Hyperexponential { mean, c2 } => hyperexponential(mean.0, *c2),
            DistributionFamily::Erlang { mean, c2 } => erlang(mean.0, *c2),
            DistributionFamily::LogNormal { mean, c2 } => {
                let variance = c2.ln_1p();
                PreparedFamily::LogNormal { mu: mean.0.ln() - variance / 2.0, sigma: variance.sqrt() }
            }
            DistributionFamily::Pareto { min, shape } => {
                PreparedFamily::Pareto { min: min.0, exponent: -1.0 / shape, kept: 1.0 }
            }
            DistributionFamily::BoundedPareto { min, max, shape } => {
                let kept = -(-shape * (max.0 / min.0).ln()).exp_m1();
                PreparedFamily::Pareto { min: min.0, exponent: -1.0 / shape, kept }
            }
            DistributionFamily::Points(points) => {
                PreparedFamily::Points(points.iter().map(|(p, value)| (*p, value.0)).collect())
            }
            DistributionFamily::Uniform { from, to } => {
                PreparedFamily::Uniform { from: from.0, width: to.0 - from.0 }
            }
            DistributionFamily::Empirical(samples) => PreparedFamily::Empirical(samples.clone()),
        })
    }
}

/// Balanced means: p/λ₁ = (1 − p)/λ₂ with p = (1 + √((C² − 1)/(C² + 1)))/2.
fn hyperexponential(mean: f64, c2: f64) -> PreparedFamily {
    let root = ((c2 - 1.0) / (c2 + 1.0)).sqrt();
    // 1 − p without cancellation: (1 − root²)/(1 + root)/2 with 1 − root² = 2/(C² + 1).
    let p = 0.5 * (1.0 + root);
    let rest = 1.0 / ((c2 + 1.0) * (1.0 + root));
    PreparedFamily::Hyperexponential { p, first: mean / (2.0 * p), second: mean / (2.0 * rest) }
}

/// Tijms: p = (kC² − √(k(1 + C²) − k²C²))/(1 + C²) for k − 1 phases, each of mean E X/(k − p).
fn erlang(mean: f64, c2: f64) -> PreparedFamily {
    let k = (1.0 / c2).ceil();
    let p = (k * c2 - (k * (1.0 + c2) - k * k * c2).max(0.0).sqrt()) / (1.0 + c2);
    let p = p.clamp(0.0, 1.0);
    let phase = mean / (k - p);
    PreparedFamily::Erlang { p, fewer: (k > 1.0).then(|| gamma(k - 1.0, phase)), more: gamma(k, phase) }
}

/// Returns the distribution of the sum of `phases` exponential phases with this mean.
fn gamma(phases: f64, phase_mean: f64) -> Gamma<f64> {
    Gamma::new(phases, phase_mean).expect("positive shape and scale")
}

impl Sampler {
    /// Draws one value from the distribution.
    pub fn draw(&self, random: &mut StdRng) -> Nanos {
        match &self.0 {
            PreparedFamily::Empirical(samples) => samples[random.random_range(0..samples.len())],
            prepared => saturating_nanos(prepared.draw_seconds(random)),
        }
    }
}

fn exponential(random: &mut StdRng) -> f64 {
    Exp1.sample(random)
}

impl PreparedFamily {
    fn draw_seconds(&self, random: &mut StdRng) -> f64 {
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
            Self::Points(points) => point_at(points, random.random()),
            Self::Uniform { from, width } => from + width * random.random::<f64>(),
            Self::Empirical(samples) => samples[random.random_range(0..samples.len())].as_secs(),
        }
    }
}

/// Returns the value of the point whose interval of cumulative probability contains `u`.
fn point_at(points: &[(f64, f64)], mut u: f64) -> f64 {
    for (p, value) in points {
        u -= p;
        if u < 0.0 {
            return *value;
        }
    }
    // Reached only if the probabilities sum to less than 1 by rounding.
    points[points.len() - 1].1
}
