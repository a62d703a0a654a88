//! Laws of positive times, each with its mean and squared coefficient of variation in closed form.
//!
//! A [`Law`] exists only with parameters in their ranges. Where two moments determine a law they are its
//! parameters: hyperexponential with balanced means for C² ≥ 1, a mixture of two Erlang laws of one rate for
//! C² ≤ 1 (Tijms), log-normal for any.

use super::ParameterError;
use units::{Nanos, Seconds};

/// The least C² of a mixture of Erlang laws: ten thousand phases.
const C2_MIN: f64 = 1e-4;

/// The distribution of a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Law(Shape);

/// The family of a [`Law`] and its parameters; times are positive and finite.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Always the same; may be zero.
    Constant(Seconds),
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Seconds,
    },
    /// One of two exponential laws, each contributing half of the mean.
    Hyperexponential {
        /// Mean.
        mean: Seconds,
        /// Squared coefficient of variation, at least 1.
        c2: f64,
    },
    /// The sum of k − 1 or of k exponential phases of one rate, for 1/k ≤ C² ≤ 1/(k − 1).
    Erlang {
        /// Mean.
        mean: Seconds,
        /// Squared coefficient of variation, 0.0001 to 1.
        c2: f64,
    },
    /// The exponential of a normal variable.
    LogNormal {
        /// Mean.
        mean: Seconds,
        /// Squared coefficient of variation, above 0.
        c2: f64,
    },
    /// P(X > x) = (min/x)^shape.
    Pareto {
        /// The least value.
        min: Seconds,
        /// The mean is infinite up to 1, the variance up to 2.
        shape: f64,
    },
    /// A Pareto law given that the value is at most `max`.
    BoundedPareto {
        /// The least value.
        min: Seconds,
        /// The largest value, above `min`.
        max: Seconds,
        /// Above 0.
        shape: f64,
    },
    /// A few values with their probabilities, which add up to 1.
    Points(Vec<(f64, Seconds)>),
    /// Uniform.
    Uniform {
        /// The least value; may be zero.
        from: Seconds,
        /// The largest, above `from`.
        to: Seconds,
    },
    /// Each measured value with the same probability.
    Empirical(Vec<Nanos>),
}

impl Law {
    /// The law of a family.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn new(shape: Shape) -> Result<Self, ParameterError> {
        check(&shape)?;
        Ok(Self(shape))
    }

    /// Log-normal by the mean μ and the standard deviation σ of the logarithm of the time in seconds.
    ///
    /// # Errors
    /// Unless σ is positive and both are finite and small enough for the mean and C² to be finite.
    pub fn log_normal(mu: f64, sigma: f64) -> Result<Self, ParameterError> {
        ParameterError::positive("sigma", sigma)?;
        let mean = Seconds((mu + sigma * sigma / 2.0).exp());
        Self::new(Shape::LogNormal { mean, c2: (sigma * sigma).exp_m1() })
    }

    /// Each of the samples with the same probability.
    ///
    /// # Errors
    /// When there are none.
    pub fn empirical(samples: impl IntoIterator<Item = Nanos>) -> Result<Self, ParameterError> {
        Self::new(Shape::Empirical(samples.into_iter().collect()))
    }

    /// Family and parameters.
    pub fn shape(&self) -> &Shape {
        &self.0
    }

    /// Mean; infinite for a Pareto law of shape up to 1.
    pub fn mean(&self) -> Seconds {
        Seconds(self.moments().0)
    }

    /// Squared coefficient of variation, the variance over the squared mean; infinite where the variance is, 0 for
    /// a law that is always zero.
    pub fn c2(&self) -> f64 {
        let (mean, second) = self.moments();
        match &self.0 {
            Shape::Constant(_) => 0.0,
            Shape::Exponential { .. } => 1.0,
            Shape::Hyperexponential { c2, .. } | Shape::Erlang { c2, .. } | Shape::LogNormal { c2, .. } => {
                *c2
            }
            _ if second.is_infinite() => f64::INFINITY,
            _ if mean == 0.0 => 0.0,
            _ => (second / (mean * mean) - 1.0).max(0.0),
        }
    }

    /// First and second moment.
    fn moments(&self) -> (f64, f64) {
        match &self.0 {
            Shape::Constant(value) => (value.0, value.0 * value.0),
            Shape::Exponential { mean } => (mean.0, 2.0 * mean.0 * mean.0),
            Shape::Hyperexponential { mean, c2 }
            | Shape::Erlang { mean, c2 }
            | Shape::LogNormal { mean, c2 } => (mean.0, (1.0 + c2) * mean.0 * mean.0),
            Shape::Pareto { min, shape } => (pareto(*min, *shape, 1.0), pareto(*min, *shape, 2.0)),
            Shape::BoundedPareto { min, max, shape } => {
                (bounded_pareto(*min, *max, *shape, 1.0), bounded_pareto(*min, *max, *shape, 2.0))
            }
            Shape::Points(points) => {
                let moment = |power| points.iter().map(|(p, value)| p * value.0.powi(power)).sum::<f64>();
                (moment(1), moment(2))
            }
            Shape::Uniform { from, to } => {
                let (a, b) = (from.0, to.0);
                (0.5 * (a + b), (a * a + a * b + b * b) / 3.0)
            }
            Shape::Empirical(samples) => {
                let moment = |power| samples.iter().map(|ns| ns.as_secs().powi(power)).sum::<f64>();
                (moment(1) / samples.len() as f64, moment(2) / samples.len() as f64)
            }
        }
    }

    /// The law of `factor` times the value; measured values round to nanoseconds.
    ///
    /// # Errors
    /// Unless the factor is positive and no parameter leaves its range.
    pub fn scaled(&self, factor: f64) -> Result<Self, ParameterError> {
        ParameterError::positive("factor", factor)?;
        let scale = |value: &Seconds| Seconds(value.0 * factor);
        let shape = match &self.0 {
            Shape::Constant(value) => Shape::Constant(scale(value)),
            Shape::Exponential { mean } => Shape::Exponential { mean: scale(mean) },
            Shape::Hyperexponential { mean, c2 } => Shape::Hyperexponential { mean: scale(mean), c2: *c2 },
            Shape::Erlang { mean, c2 } => Shape::Erlang { mean: scale(mean), c2: *c2 },
            Shape::LogNormal { mean, c2 } => Shape::LogNormal { mean: scale(mean), c2: *c2 },
            Shape::Pareto { min, shape } => Shape::Pareto { min: scale(min), shape: *shape },
            Shape::BoundedPareto { min, max, shape } => {
                Shape::BoundedPareto { min: scale(min), max: scale(max), shape: *shape }
            }
            Shape::Points(points) => Shape::Points(points.iter().map(|(p, v)| (*p, scale(v))).collect()),
            Shape::Uniform { from, to } => Shape::Uniform { from: scale(from), to: scale(to) },
            Shape::Empirical(samples) => {
                let scale = |ns: &Nanos| super::sampler::round(ns.as_secs() * factor);
                Shape::Empirical(samples.iter().map(scale).collect())
            }
        };
        Self::new(shape)
    }

    /// The law of the same form with this mean.
    ///
    /// # Errors
    /// Unless both means are positive and finite.
    pub fn with_mean(&self, mean: Seconds) -> Result<Self, ParameterError> {
        ParameterError::positive("mean", mean.0)?;
        self.scaled(mean.0 / self.mean().0)
    }
}

/// E Xⁿ of a Pareto law.
fn pareto(min: Seconds, shape: f64, n: f64) -> f64 {
    if shape > n { shape / (shape - n) * min.0.powf(n) } else { f64::INFINITY }
}

/// E Xⁿ of a bounded Pareto law: the integral of αLᵅ xⁿ⁻ᵅ⁻¹ / (1 − (L/H)ᵅ).
fn bounded_pareto(min: Seconds, max: Seconds, shape: f64, n: f64) -> f64 {
    let log = (max.0 / min.0).ln();
    let kept = -(-shape * log).exp_m1();
    let power = (n - shape) * log;
    // (e^{(n−α) ln(H/L)} − 1)/(n − α), which tends to ln(H/L) as α tends to n.
    let integral = if power.abs() < 1e-9 { log } else { power.exp_m1() / (n - shape) };
    shape * min.0.powf(n) * integral / kept
}

fn check(shape: &Shape) -> Result<(), ParameterError> {
    match shape {
        Shape::Constant(value) => not_negative("time", value.0),
        Shape::Exponential { mean } => ParameterError::positive("mean", mean.0),
        Shape::Hyperexponential { mean, c2 } => {
            ParameterError::positive("mean", mean.0)?;
            ParameterError::require(*c2 >= 1.0 && c2.is_finite(), || {
                format!("expected a c2 of at least 1, found {c2}; erlang and lognormal have less")
            })
        }
        Shape::Erlang { mean, c2 } => {
            ParameterError::positive("mean", mean.0)?;
            ParameterError::require((C2_MIN..=1.0).contains(c2), || {
                format!("expected a c2 from {C2_MIN} to 1, found {c2}; hyperexp and lognormal have more")
            })
        }
        Shape::LogNormal { mean, c2 } => {
            ParameterError::positive("mean", mean.0)?;
            ParameterError::positive("c2", *c2)
        }
        Shape::Pareto { min, shape } => {
            ParameterError::positive("min", min.0)?;
            ParameterError::positive("shape", *shape)
        }
        Shape::BoundedPareto { min, max, shape } => {
            ParameterError::positive("min", min.0)?;
            ParameterError::positive("shape", *shape)?;
            above(*min, *max)
        }
        Shape::Points(points) => check_points(points),
        Shape::Uniform { from, to } => {
            not_negative("lower end", from.0)?;
            above(*from, *to)
        }
        Shape::Empirical(samples) => {
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
