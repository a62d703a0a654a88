//! Measured streams at another utilisation: time compressed, or requests left out at random.
//!
//! Compression keeps every burst and makes it denser, thinning keeps the time scale and makes bursts smaller: a
//! thinned stream tends to Poisson. The ideal model scales by compression.

use super::{Demand, ParameterError};
use arrivals::split_seed;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::Nanos;

/// The part of the time that `workers` workers are busy with the demands, from the first arrival to the last; above
/// 1 in overload. `None` with fewer than two instants.
///
/// # Panics
/// Without workers.
pub fn utilisation(demands: &[Demand], workers: usize) -> Option<f64> {
    assert!(workers > 0, "no workers have no utilisation");
    let first = demands.iter().map(|demand| demand.arrival).min()?;
    let last = demands.iter().map(|demand| demand.arrival).max()?;
    let work: u128 = demands.iter().map(|demand| u128::from(demand.service.0)).sum();
    (last > first).then(|| work as f64 / ((last - first).0 as f64 * workers as f64))
}

/// The demands with every gap multiplied by one factor, so that the utilisation is the wanted one, to the
/// rounding of arrivals to nanoseconds. Arrivals count from the first.
///
/// # Errors
/// Unless the wanted utilisation is positive and the present one is defined and positive.
pub fn to_utilisation(
    demands: &[Demand],
    workers: usize,
    wanted: f64,
) -> Result<Vec<Demand>, ParameterError> {
    ParameterError::positive("utilisation", wanted)?;
    let present = utilisation(demands, workers).unwrap_or(0.0);
    ParameterError::require(present > 0.0, || {
        "expected requests at two instants at least, and some service time".to_owned()
    })?;
    let origin = demands.iter().map(|demand| demand.arrival).min().unwrap_or_default();
    let factor = present / wanted;
    Ok(demands
        .iter()
        .map(|demand| Demand { arrival: stretch(demand.arrival - origin, factor), ..*demand })
        .collect())
}

/// To the nearest nanosecond; monotone.
fn stretch(time: Nanos, factor: f64) -> Nanos {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Nanos((time.0 as f64 * factor).round() as u64)
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
