//! Measured streams at another utilisation: time compressed, or requests left out at random.
//!
//! Compression keeps every burst and makes it denser, thinning keeps the time scale and makes bursts smaller: a
//! thinned stream tends to Poisson. The ideal model scales by compression.

use crate::{ParameterError, TimedRequest, split_seed};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use units::Nanos;

/// The totals of a stream from which its utilisation is computed, collected one request at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamTotals {
    /// Earliest and latest arrival; none without requests.
    pub arrivals: Option<(Nanos, Nanos)>,
    /// Number of different instants at which requests arrive, in streams in order of arrival.
    pub instants: u64,
    /// The service time of all requests together, nanoseconds.
    pub work: u128,
}

impl StreamTotals {
    /// Counts a request in.
    #[inline]
    pub fn add(&mut self, request: &TimedRequest) {
        let arrival = request.arrival;
        let is_new = self.arrivals.is_none_or(|(_, last)| last != arrival);
        self.instants += u64::from(is_new);
        let (first, last) = self.arrivals.unwrap_or((arrival, arrival));
        self.arrivals = Some((first.min(arrival), last.max(arrival)));
        self.work += u128::from(request.service.0);
    }

    /// The totals of all these requests.
    pub(crate) fn from_requests(requests: &[TimedRequest]) -> Self {
        let mut totals = Self::default();
        requests.iter().for_each(|request| totals.add(request));
        totals
    }

    /// The mean work of an instant at which requests arrive ÷ the mean gap between instants ÷ `workers`: the part of the
    /// time that workers are busy, above 1 in overload. n instants have n − 1 gaps. `None` with fewer than two.
    ///
    /// # Panics
    /// Without workers.
    pub fn utilisation(&self, workers: usize) -> Option<f64> {
        assert!(workers > 0, "no workers have no utilisation");
        let (first, last) = self.arrivals?;
        let work = self.work as f64 / self.instants as f64;
        let gap = (last - first).0 as f64 / self.instants.saturating_sub(1).max(1) as f64;
        (last > first).then(|| work / (gap * workers as f64))
    }

    /// The change of time scale that makes the utilisation of `workers` workers the wanted one.
    ///
    /// # Errors
    /// Unless the wanted utilisation is positive and the present one is defined and positive.
    pub fn time_scaling(&self, workers: usize, wanted: f64) -> Result<TimeScaling, ParameterError> {
        ParameterError::positive("utilisation", wanted)?;
        let present = self.utilisation(workers).unwrap_or(0.0);
        ParameterError::require(present > 0.0, || {
            "expected requests at two instants at least, and some service time".to_owned()
        })?;
        let origin = self.arrivals.map_or(Nanos::ZERO, |(first, _)| first);
        Ok(TimeScaling { origin, factor: present / wanted })
    }
}

/// A change of the time scale of a stream: every gap is multiplied by one factor, and arrivals count from the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeScaling {
    origin: Nanos,
    factor: f64,
}

impl TimeScaling {
    /// The request at its new arrival, to the nearest nanosecond; monotone.
    #[inline]
    #[must_use]
    pub fn apply(self, request: TimedRequest) -> TimedRequest {
        let since = (request.arrival - self.origin).0 as f64;
        // Not negative; a time beyond 584 years becomes that.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let arrival = Nanos((since * self.factor).round() as u64);
        TimedRequest { arrival, ..request }
    }
}

/// The utilisation of `workers` workers by all these requests, as [`StreamTotals::utilisation`] defines it.
///
/// # Panics
/// Without workers.
pub fn utilisation(requests: &[TimedRequest], workers: usize) -> Option<f64> {
    StreamTotals::from_requests(requests).utilisation(workers)
}

/// The requests at another utilisation, to the rounding of arrivals to nanoseconds.
///
/// # Errors
/// As [`StreamTotals::time_scaling`].
pub fn to_utilisation(
    requests: &[TimedRequest],
    workers: usize,
    wanted: f64,
) -> Result<Vec<TimedRequest>, ParameterError> {
    let scaling = StreamTotals::from_requests(requests).time_scaling(workers, wanted)?;
    Ok(requests.iter().map(|request| scaling.apply(*request)).collect())
}

/// Keeps each request with probability `keep`, independently.
///
/// # Errors
/// Unless `keep` is above 0 and at most 1.
pub fn thinned<I: Iterator<Item = TimedRequest>>(
    requests: I,
    keep: f64,
    seed: u64,
) -> Result<impl Iterator<Item = TimedRequest> + use<I>, ParameterError> {
    ParameterError::require(keep > 0.0 && keep <= 1.0, || {
        format!("expected a share above 0 and at most 1, found {keep}")
    })?;
    let mut random = StdRng::seed_from_u64(split_seed(seed, 0));
    Ok(requests.filter(move |_| random.random::<f64>() < keep))
}
