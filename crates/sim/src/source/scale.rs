//! Measured streams at another utilisation: time compressed, or requests left out at random.
//!
//! Compression keeps every burst and makes it denser, thinning keeps the time scale and makes bursts smaller: a
//! thinned stream tends to Poisson. The ideal model scales by compression.

use super::{Demand, ParameterError};
use arrivals::split_seed;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::Nanos;

/// How much there is of a stream: what a utilisation is computed from, one request at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Earliest and latest arrival; none without requests.
    pub arrivals: Option<(Nanos, Nanos)>,
    /// Service of all, nanoseconds.
    pub work: u128,
}

impl Extent {
    /// Adds a request.
    #[inline]
    pub fn add(&mut self, demand: &Demand) {
        let at = demand.arrival;
        let (first, last) = self.arrivals.unwrap_or((at, at));
        self.arrivals = Some((first.min(at), last.max(at)));
        self.work += u128::from(demand.service.0);
    }

    /// Of all demands.
    pub fn of(demands: &[Demand]) -> Self {
        let mut extent = Self::default();
        demands.iter().for_each(|demand| extent.add(demand));
        extent
    }

    /// The part of the time that `workers` workers are busy, from the first arrival to the last; above 1 in overload.
    /// `None` with fewer than two instants.
    ///
    /// # Panics
    /// Without workers.
    pub fn utilisation(&self, workers: usize) -> Option<f64> {
        assert!(workers > 0, "no workers have no utilisation");
        let (first, last) = self.arrivals?;
        (last > first).then(|| self.work as f64 / ((last - first).0 as f64 * workers as f64))
    }

    /// What makes the utilisation the wanted one.
    ///
    /// # Errors
    /// Unless the wanted utilisation is positive and the present one is defined and positive.
    pub fn stretch(&self, workers: usize, wanted: f64) -> Result<Stretch, ParameterError> {
        ParameterError::positive("utilisation", wanted)?;
        let present = self.utilisation(workers).unwrap_or(0.0);
        ParameterError::require(present > 0.0, || {
            "expected requests at two instants at least, and some service time".to_owned()
        })?;
        let origin = self.arrivals.map_or(Nanos::ZERO, |(first, _)| first);
        Ok(Stretch { origin, factor: present / wanted })
    }
}

/// Every gap multiplied by one factor; arrivals count from the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    origin: Nanos,
    factor: f64,
}

impl Stretch {
    /// The demand at its new arrival, to the nearest nanosecond; monotone.
    #[inline]
    #[must_use]
    pub fn apply(self, demand: Demand) -> Demand {
        let since = (demand.arrival - self.origin).0 as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let arrival = Nanos((since * self.factor).round() as u64);
        Demand { arrival, ..demand }
    }
}

/// [`Extent::utilisation`] of all demands.
///
/// # Panics
/// Without workers.
pub fn utilisation(demands: &[Demand], workers: usize) -> Option<f64> {
    Extent::of(demands).utilisation(workers)
}

/// The demands at another utilisation, to the rounding of arrivals to nanoseconds.
///
/// # Errors
/// As [`Extent::stretch`].
pub fn to_utilisation(
    demands: &[Demand],
    workers: usize,
    wanted: f64,
) -> Result<Vec<Demand>, ParameterError> {
    let stretch = Extent::of(demands).stretch(workers, wanted)?;
    Ok(demands.iter().map(|demand| stretch.apply(*demand)).collect())
}

/// Keeps each request with probability `keep`, independently.
///
/// # Errors
/// Unless `keep` is above 0 and at most 1.
pub fn thinned<I: Iterator<Item = Demand>>(
    demands: I,
    keep: f64,
    seed: u64,
) -> Result<impl Iterator<Item = Demand> + use<I>, ParameterError> {
    ParameterError::require(keep > 0.0 && keep <= 1.0, || {
        format!("expected a share above 0 and at most 1, found {keep}")
    })?;
    let mut random = StdRng::seed_from_u64(split_seed(seed, 0));
    Ok(demands.filter(move |_| random.random::<f64>() < keep))
}
