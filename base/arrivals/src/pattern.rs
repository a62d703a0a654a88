//! Arrival patterns: rate processes, renewal processes with any distribution of gaps, and batches.

use crate::{ArrivalTimes, ParameterError, RateProcess, TimeDistribution, split_seed};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::Nanos;

/// The instants at which requests arrive.
#[derive(Debug, Clone, PartialEq)]
pub enum ArrivalPattern {
    /// A process that is given by its rate: Poisson, constant, Markov-modulated and others.
    Process(RateProcess),
    /// Independent gaps of one distribution; the first request arrives after the first gap. Gaps round to nanoseconds.
    Renewal(TimeDistribution),
    /// Several requests at each instant of another pattern.
    Batches {
        /// Number of requests in a batch.
        size: BatchSize,
        /// The instants at which batches arrive.
        of: Box<Self>,
    },
}

/// Distribution of the number of requests in a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BatchSize {
    /// The same number in every batch, at least 1.
    Fixed(u32),
    /// n requests with probability (1 − 1/mean)^(n−1)/mean, for n from 1; the mean is at least 1, at most a million.
    Geometric {
        /// Mean number of requests in a batch.
        mean: f64,
    },
}

impl ArrivalPattern {
    /// Mean arrivals per second over a long time; 0 for gaps of infinite mean.
    pub fn mean_rate(&self) -> f64 {
        match self {
            Self::Process(process) => process.mean_rate(),
            Self::Renewal(gap) => 1.0 / gap.mean().0,
            Self::Batches { size, of } => size.mean() * of.mean_rate(),
        }
    }

    /// Returns true if nothing about the pattern is random: equal gaps, with equally many requests each.
    pub fn is_periodic(&self) -> bool {
        match self {
            Self::Process(process) => matches!(process, RateProcess::Constant { .. }),
            Self::Renewal(gap) => gap.c2() == 0.0,
            Self::Batches { size, of } => matches!(size, BatchSize::Fixed(_)) && of.is_periodic(),
        }
    }

    /// The same pattern with the mean rate multiplied by `factor`. The states, periods and cycles of a process
    /// stay as long as they are, a renewal process is compressed, batches keep their size and come more often.
    ///
    /// # Errors
    /// Unless the factor is positive and finite, and gaps stay so.
    pub fn scaled(&self, factor: f64) -> Result<Self, ParameterError> {
        ParameterError::positive("factor", factor)?;
        Ok(match self {
            Self::Process(process) => Self::Process(process.clone().scaled(factor)),
            Self::Renewal(gap) => Self::Renewal(gap.scaled(1.0 / factor)?),
            Self::Batches { size, of } => Self::Batches { size: *size, of: Box::new(of.scaled(factor)?) },
        })
    }

    /// The pattern at the rate at which `workers` workers have this utilisation, where requests have this service
    /// time.
    ///
    /// # Errors
    /// Unless all are positive, and mean rate and mean service finite.
    pub fn at_utilisation(
        &self,
        utilisation: f64,
        workers: usize,
        service: &TimeDistribution,
    ) -> Result<Self, ParameterError> {
        ParameterError::positive("utilisation", utilisation)?;
        ParameterError::positive("number of workers", workers as f64)?;
        ParameterError::positive("mean service time", service.mean().0)?;
        ParameterError::positive("mean rate", self.mean_rate())?;
        self.scaled(utilisation * workers as f64 / (service.mean().0 * self.mean_rate()))
    }

    /// The instants of arrival, without end and not decreasing.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn instants(&self, seed: u64) -> Result<ArrivalTimes, ParameterError> {
        match self {
            Self::Process(process) => process.arrivals(seed),
            Self::Renewal(gap) => renewal(gap, seed),
            Self::Batches { size, of } => {
                size.check()?;
                let size = *size;
                let mut random = StdRng::seed_from_u64(split_seed(seed, 1));
                let batches = of.instants(split_seed(seed, 0))?;
                Ok(Box::new(
                    batches.flat_map(move |instant| std::iter::repeat_n(instant, size.draw(&mut random))),
                ))
            }
        }
    }
}

fn renewal(gap: &TimeDistribution, seed: u64) -> Result<ArrivalTimes, ParameterError> {
    // Gaps that are all zero would never leave the origin.
    ParameterError::require(gap.mean().0 > 0.0, || "expected gaps of positive mean".to_owned())?;
    let sampler = gap.sampler();
    let mut random = StdRng::seed_from_u64(seed);
    let mut now = Nanos::ZERO;
    Ok(Box::new(std::iter::repeat_with(move || {
        now = Nanos(now.0.saturating_add(sampler.draw(&mut random).0));
        now
    })))
}

impl BatchSize {
    /// Mean number of requests in a batch.
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed(size) => f64::from(size),
            Self::Geometric { mean } => mean,
        }
    }

    /// Checks that the mean is in its range.
    ///
    /// # Errors
    /// When it is below 1 or above a million.
    pub(crate) fn check(self) -> Result<(), ParameterError> {
        ParameterError::require((1.0..=1e6).contains(&self.mean()), || {
            format!("expected 1 to 1000000 requests in a batch, found {}", self.mean())
        })
    }

    fn draw(self, random: &mut StdRng) -> usize {
        match self {
            Self::Fixed(size) => size as usize,
            Self::Geometric { mean } => {
                // P(N > n) = (1 − 1/mean)ⁿ; u is above 0, and a mean of 1 divides by −∞.
                let u = 1.0 - random.random::<f64>();
                // At most 52·ln 2 ÷ 10⁻⁶, far below 2⁶⁴, and not negative.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let beyond = (u.ln() / (-1.0 / mean).ln_1p()) as usize;
                1 + beyond
            }
        }
    }
}
