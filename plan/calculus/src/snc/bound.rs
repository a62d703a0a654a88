//! Bounds on moment generating functions and the simple arrival processes that have one.

use std::fmt;

/// The bound ρ(θ), σ(θ) on a moment generating function at one θ (thesis Definitions 9 and 11).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MgfBound {
    /// The rate ρ, as a fraction of capacity; negative for services.
    pub rate: f64,
    /// The burst σ, seconds of capacity.
    pub burst: f64,
}

impl MgfBound {
    /// The bound of two independent processes together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { rate: self.rate + other.rate, burst: self.burst + other.burst }
    }

    /// The bound itself, or `None` where its numbers do not bound anything.
    pub(super) fn finite(self) -> Option<Self> {
        (self.rate.is_finite() && self.burst.is_finite()).then_some(self)
    }
}

/// Arrivals with a bounded moment generating function (thesis Definition 9).
pub trait MgfEnvelope: fmt::Debug + Send + Sync {
    /// The bound at `theta` (per second of capacity, positive). `None` outside the domain. θρ(θ) and
    /// θσ(θ) are convex in θ, which the optimisation of Hölder's weights relies on for its quality, not
    /// for its soundness.
    fn bound_at(&self, theta: f64) -> Option<MgfBound>;
}

/// The law of the sizes of independent requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SizeLaw {
    /// All requests have this size, seconds of capacity.
    Constant(f64),
    /// Sizes are exponential with this mean, seconds of capacity.
    Exponential(f64),
}

impl SizeLaw {
    /// The value of E e^{θX} − 1, exact near 0; `None` where it is infinite.
    pub(crate) fn mgf_minus_one(self, theta: f64) -> Option<f64> {
        match self {
            Self::Constant(size) => Some((theta * size).exp_m1()).filter(|v| v.is_finite()),
            Self::Exponential(mean) => (theta * mean < 1.0).then(|| theta * mean / (1.0 - theta * mean)),
        }
    }
}

/// Requests at the instants of a Poisson process, with independent sizes; a batch is one large request.
/// In continuous time, exact: ρ(θ) = λ(E e^{θX} − 1)/θ and σ = 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoissonBatches {
    /// The mean number of requests per second.
    pub per_second: f64,
    /// The law of their sizes.
    pub sizes: SizeLaw,
}

impl MgfEnvelope for PoissonBatches {
    fn bound_at(&self, theta: f64) -> Option<MgfBound> {
        let growth = self.per_second * self.sizes.mgf_minus_one(theta)?;
        MgfBound { rate: growth / theta, burst: 0.0 }.finite()
    }
}

/// Anything that passes a token bucket; the bound is deterministic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBucket {
    /// The rate of the bucket, fraction of capacity.
    pub rate: f64,
    /// The size of the bucket, seconds of capacity.
    pub burst: f64,
}

impl MgfEnvelope for TokenBucket {
    fn bound_at(&self, _theta: f64) -> Option<MgfBound> {
        MgfBound { rate: self.rate, burst: self.burst }.finite()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_end_where_the_moments_do() {
        let poisson = PoissonBatches { per_second: 100.0, sizes: SizeLaw::Exponential(0.01) };
        assert!(poisson.bound_at(99.9).is_some());
        assert_eq!(poisson.bound_at(100.0), None);
        assert_eq!(poisson.bound_at(f64::NAN), None);
        let fixed = PoissonBatches { sizes: SizeLaw::Constant(0.01), ..poisson };
        assert!(fixed.bound_at(1e4).is_some());
        assert_eq!(fixed.bound_at(1e6), None);
    }

    #[test]
    fn a_small_theta_gives_the_mean() {
        let poisson = PoissonBatches { per_second: 30.0, sizes: SizeLaw::Exponential(0.01) };
        assert!((poisson.bound_at(1e-9).unwrap().rate - 0.3).abs() < 1e-9);
    }
}
