//! Probability distributions of non-negative times, each with its mean and squared coefficient of variation in
//! closed form.
//!
//! A [`TimeDistribution`] exists only with parameters in their ranges. Where two moments determine a distribution they
//! are its parameters: hyperexponential with balanced means for C² ≥ 1, a mixture of two Erlang distributions of one
//! rate for C² ≤ 1 (Tijms), log-normal for any.

use crate::ParameterError;
use crate::rounding::saturating_nanos;
use units::{Nanos, Seconds};

/// The least C² of a mixture of Erlang distributions: ten thousand phases.
const C2_MIN: f64 = 1e-4;

/// The probability distribution of a time, such as a service time or a gap between arrivals.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeDistribution(DistributionFamily);

/// The family of a [`TimeDistribution`] and its parameters; times are positive and finite.
#[derive(Debug, Clone, PartialEq)]
pub enum DistributionFamily {
    /// Always the same time, which may be zero.
    Constant(Seconds),
    /// The exponential distribution, which has C² = 1.
    Exponential {
        /// The mean of the distribution.
        mean: Seconds,
    },
    /// One of two exponential distributions, each contributing half of the mean.
    Hyperexponential {
        /// The mean of the distribution.
        mean: Seconds,
        /// Squared coefficient of variation, at least 1.
        c2: f64,
    },
    /// The sum of k − 1 or of k exponential phases of one rate, for 1/k ≤ C² ≤ 1/(k − 1).
    Erlang {
        /// The mean of the distribution.
        mean: Seconds,
        /// Squared coefficient of variation, 0.0001 to 1.
        c2: f64,
    },
    /// The exponential of a normal variable.
    LogNormal {
        /// The mean of the distribution.
        mean: Seconds,
        /// Squared coefficient of variation, above 0.
        c2: f64,
    },
    /// The Pareto distribution, with P(X > x) = (min/x)^shape.
    Pareto {
        /// The least possible value.
        min: Seconds,
        /// The exponent of the tail: the mean is infinite up to 1, the variance up to 2.
        shape: f64,
    },
    /// A Pareto distribution given that the value is at most `max`.
    BoundedPareto {
        /// The least possible value.
        min: Seconds,
        /// The largest value, above `min`.
        max: Seconds,
        /// The exponent of the tail, above 0.
        shape: f64,
    },
    /// A few values with their probabilities, which add up to 1.
    Points(Vec<(f64, Seconds)>),
    /// Every time between two ends is equally likely.
    Uniform {
        /// The least value; may be zero.
        from: Seconds,
        /// The largest value, above `from`.
        to: Seconds,
    },
    /// Each measured value with the same probability.
    Empirical(Vec<Nanos>),
}

impl TimeDistribution {
    /// The distribution of this family with these parameters.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn new(family: DistributionFamily) -> Result<Self, ParameterError> {
        check(&family)?;
        Ok(Self(family))
    }

    /// The log-normal distribution by the mean μ and the standard deviation σ of the logarithm of the time in seconds.
    ///
    /// # Errors
    /// Unless σ is positive and both are finite and small enough for the mean and C² to be finite.
    pub fn log_normal(mu: f64, sigma: f64) -> Result<Self, ParameterError> {
        ParameterError::positive("sigma", sigma)?;
        let mean = Seconds((mu + sigma * sigma / 2.0).exp());
        Self::new(DistributionFamily::LogNormal { mean, c2: (sigma * sigma).exp_m1() })
    }

    /// The distribution that gives each of the samples the same probability.
    ///
    /// # Errors
    /// When there are no samples.
    pub fn empirical(samples: impl IntoIterator<Item = Nanos>) -> Result<Self, ParameterError> {
        Self::new(DistributionFamily::Empirical(samples.into_iter().collect()))
    }

    /// The family with its parameters.
    pub fn family(&self) -> &DistributionFamily {
        &self.0
    }

    /// The mean, which is infinite for a Pareto distribution of shape up to 1.
    pub fn mean(&self) -> Seconds {
        Seconds(self.moments().0)
    }

    /// The squared coefficient of variation, which is the variance over the squared mean: infinite where the variance
    /// is, 0 for a time that is always zero.
    pub fn c2(&self) -> f64 {
        let (mean, second) = self.moments();
        match &self.0 {
            DistributionFamily::Constant(_) => 0.0,
            DistributionFamily::Exponential { .. } => 1.0,
            DistributionFamily::Hyperexponential { c2, .. }
            | DistributionFamily::Erlang { c2, .. }
            | DistributionFamily::LogNormal { c2, .. } => *c2,
            _ if second.is_infinite() => f64::INFINITY,
            _ if mean == 0.0 => 0.0,
            _ => (second / (mean * mean) - 1.0).max(0.0),
        }
    }

    /// Exponent α of a tail that falls as x^−α, below which moments exist; infinite where all do.
    pub fn tail_exponent(&self) -> f64 {
        match self.0 {
            DistributionFamily::Pareto { shape, .. } => shape,
            _ => f64::INFINITY,
        }
    }

    /// The first and the second moment, in seconds and squared seconds.
    fn moments(&self) -> (f64, f64) {
        match &self.0 {
            DistributionFamily::Constant(value) => (value.0, value.0 * value.0),
            DistributionFamily::Exponential { mean } => (mean.0, 2.0 * mean.0 * mean.0),
            DistributionFamily::Hyperexponential { mean, c2 }
            | DistributionFamily::Erlang { mean, c2 }
            | DistributionFamily::LogNormal { mean, c2 } => (mean.0, (1.0 + c2) * mean.0 * mean.0),
            DistributionFamily::Pareto { min, shape } => {
                (pareto(*min, *shape, 1.0), pareto(*min, *shape, 2.0))
            }
            DistributionFamily::BoundedPareto { min, max, shape } => {
                (bounded_pareto(*min, *max, *shape, 1.0), bounded_pareto(*min, *max, *shape, 2.0))
            }
            DistributionFamily::Points(points) => {
                let moment = |power| points.iter().map(|(p, value)| p * value.0.powi(power)).sum::<f64>();
                (moment(1), moment(2))
            }
            DistributionFamily::Uniform { from, to } => {
                let a = from.0;
                let b = to.0;
                (0.5 * (a + b), (a * a + a * b + b * b) / 3.0)
            }
            DistributionFamily::Empirical(samples) => {
                let moment = |power| samples.iter().map(|ns| ns.as_secs().powi(power)).sum::<f64>();
                (moment(1) / samples.len() as f64, moment(2) / samples.len() as f64)
            }
        }
    }

    /// The distribution of `factor` times the value; measured values round to nanoseconds.
    ///
    /// # Errors
    /// Unless the factor is positive and no parameter leaves its range.
    pub fn scaled(&self, factor: f64) -> Result<Self, ParameterError> {
        ParameterError::positive("factor", factor)?;
        let scale = |value: &Seconds| Seconds(value.0 * factor);
        let family = match &self.0 {
            DistributionFamily::Constant(value) => DistributionFamily::Constant(scale(value)),
            DistributionFamily::Exponential { mean } => DistributionFamily::Exponential { mean: scale(mean) },
            DistributionFamily::Hyperexponential { mean, c2 } => {
                DistributionFamily::Hyperexponential { mean: scale(mean), c2: *c2 }
            }
            DistributionFamily::Erlang { mean, c2 } => {
                DistributionFamily::Erlang { mean: scale(mean), c2: *c2 }
            }
            DistributionFamily::LogNormal { mean, c2 } => {
                DistributionFamily::LogNormal { mean: scale(mean), c2: *c2 }
            }
            DistributionFamily::Pareto { min, shape } => {
                DistributionFamily::Pareto { min: scale(min), shape: *shape }
            }
            DistributionFamily::BoundedPareto { min, max, shape } => {
                DistributionFamily::BoundedPareto { min: scale(min), max: scale(max), shape: *shape }
            }
            DistributionFamily::Points(points) => {
                DistributionFamily::Points(points.iter().map(|(p, v)| (*p, scale(v))).collect())
            }
            DistributionFamily::Uniform { from, to } => {
                DistributionFamily::Uniform { from: scale(from), to: scale(to) }
            }
            DistributionFamily::Empirical(samples) => {
                let scale = |ns: &Nanos| saturating_nanos(ns.as_secs() * factor);
                DistributionFamily::Empirical(samples.iter().map(scale).collect())
            }
        };
        Self::new(family)
    }
}

/// E Xⁿ of a Pareto distribution.
fn pareto(min: Seconds, shape: f64, n: f64) -> f64 {
    if shape > n { shape / (shape - n) * min.0.powf(n) } else { f64::INFINITY }
}

/// E Xⁿ of a bounded Pareto distribution: the integral of αLᵅ xⁿ⁻ᵅ⁻¹ / (1 − (L/H)ᵅ).
fn bounded_pareto(min: Seconds, max: Seconds, shape: f64, n: f64) -> f64 {
    let log = (max.0 / min.0).ln();
    let kept = -(-shape * log).exp_m1();
    let power = (n - shape) * log;
    // (e^{(n−α) ln(H/L)} − 1)/(n − α), which tends to ln(H/L) as α tends to n.
    let integral = if power.abs() < 1e-9 { log } else { power.exp_m1() / (n - shape) };
    shape * min.0.powf(n) * integral / kept
}

fn check(family: &DistributionFamily) -> Result<(), ParameterError> {
    match family {
        DistributionFamily::Constant(value) => not_negative("time", value.0),
        DistributionFamily::Exponential { mean } => ParameterError::positive("mean", mean.0),
        DistributionFamily::Hyperexponential { mean, c2 } => {
            ParameterError::positive("mean", mean.0)?;
            ParameterError::require(*c2 >= 1.0 && c2.is_finite(), || {
                format!("expected a c2 of at least 1, found {c2}; erlang and lognormal have less")
            })
        }
        DistributionFamily::Erlang { mean, c2 } => {
            ParameterError::positive("mean", mean.0)?;
            ParameterError::require((C2_MIN..=1.0).contains(c2), || {
                format!("expected a c2 from {C2_MIN} to 1, found {c2}; hyperexp and lognormal have more")
            })
        }
        DistributionFamily::LogNormal { mean, c2 } => {
            ParameterError::positive("mean", mean.0)?;
            ParameterError::positive("c2", *c2)
        }
        DistributionFamily::Pareto { min, shape } => {
            ParameterError::positive("min", min.0)?;
            ParameterError::positive("shape", *shape)
        }
        DistributionFamily::BoundedPareto { min, max, shape } => {
            ParameterError::positive("min", min.0)?;
            ParameterError::positive("shape", *shape)?;
            above(*min, *max)
        }
        DistributionFamily::Points(points) => check_points(points),
        DistributionFamily::Uniform { from, to } => {
            not_negative("lower end", from.0)?;
            above(*from, *to)
        }
        DistributionFamily::Empirical(samples) => {
            ParameterError::require(!samples.is_empty(), || "expected at least one sample".to_owned())
        }
    }
}

fn not_negative(name: &str, value: f64) -> Result<(), ParameterError> {
    let holds = value >= 0.0 && value.is_finite();
    ParameterError::require(holds, || format!("expected a {name} of at least 0, found {value}"))
}

fn above(least: Seconds, most: Seconds) -> Result<(), ParameterError> {
    let holds = most.0 > least.0 && most.0.is_finite();
    ParameterError::require(holds, || {
        format!("expected a largest value above the least of {least}, found {most}")
    })
}

fn check_points(points: &[(f64, Seconds)]) -> Result<(), ParameterError> {
    points.iter().try_for_each(|(p, _)| ParameterError::positive("probability", *p))?;
    points.iter().try_for_each(|(_, value)| not_negative("time", value.0))?;
    let sum: f64 = points.iter().map(|(p, _)| p).sum();
    ParameterError::require((sum - 1.0).abs() < 1e-9, || {
        format!("expected shares that add up to 100%, found {}%", sum * 100.0)
    })
}
