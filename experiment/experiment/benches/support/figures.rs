//! Figures of a period: its latencies, and those that queueing alone would have caused.

use super::offered::{Offered, OfferedArrivals};
use super::period::{PeriodPlan, PeriodSeen};
use super::server::ServerPlan;
use super::site::Site;
use measure::observation::{IdealAssumptions, IdealComparison, TrafficMoments};
use model::OperationError;
use std::num::NonZeroUsize;
use units::{Nanos, Percentile};

/// The percentiles that are compared, in percent.
pub(crate) const COMPARED: [f64; 3] = [50.0, 99.0, 99.9];

/// Figures of a period; times are in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct PeriodFigures {
    /// T6 − T1 at [`COMPARED`].
    pub(crate) measured_us: [f64; 3],
    /// The mean of T6 − T1.
    pub(crate) mean_us: f64,
    /// Of one queue with constant service (M/D/c with the measured arrivals) at [`COMPARED`].
    pub(crate) ideal_us: [f64; 3],
    /// Of a queue for each worker, with measured service times.
    pub(crate) per_worker_us: [f64; 3],
    /// Mean and variance of gaps and service times.
    pub(crate) moments: TrafficMoments,
    /// The share of the time in which workers are busy, by the amortised service time.
    pub(crate) utilisation: f64,
    pub(crate) rate: f64,
    pub(crate) requests: usize,
    pub(crate) overtaken: f64,
    pub(crate) busy: f64,
    pub(crate) background: f64,
    pub(crate) lag_p99_us: f64,
    pub(crate) others: f64,
}

impl PeriodFigures {
    /// The figures for an amortised service time, if it is known, and a number of workers; `None` without requests.
    pub(crate) fn of(seen: &PeriodSeen, service: Option<Nanos>, workers: usize) -> Option<Self> {
        let assumed = IdealAssumptions { service, workers: NonZeroUsize::new(workers) };
        let ideal = IdealComparison::of_requests(&seen.requests, assumed)?;
        let at = |of: &sim::ideal::LatencyDistribution| {
            COMPARED.map(|percent| {
                let percentile = Percentile::new(percent).expect("a percentile");
                of.percentile(percentile).0 as f64 / 1e3
            })
        };
        Some(Self {
            measured_us: at(&ideal.measured),
            mean_us: ideal.measured.mean().0 * 1e6,
            ideal_us: at(&ideal.ideal[0]),
            per_worker_us: at(&ideal.ideal[2]),
            moments: ideal.moments,
            utilisation: ideal.utilisation,
            rate: seen.rate(),
            requests: seen.requests.len(),
            overtaken: seen.overtaken_share(),
            busy: seen.busy,
            background: seen.background,
            lag_p99_us: seen.lag_p99_ns() as f64 / 1e3,
            others: seen.others,
        })
    }

    /// The measured latency at one of [`COMPARED`], by its place, in units of the ideal one.
    pub(crate) fn factor(&self, place: usize) -> f64 {
        self.measured_us[place] / self.ideal_us[place]
    }
}

/// Throughput and CPU use of a server without pauses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Saturation {
    /// Answers per second.
    pub(crate) rate: f64,
    /// The share of the time in which the server's CPU was not idle.
    pub(crate) busy: f64,
}

impl Saturation {
    /// Saturates a server on one CPU, set up as in a plan.
    ///
    /// # Errors
    /// As [`Site::play`].
    pub(crate) fn measure(site: &mut Site, plan: &PeriodPlan) -> Result<Self, OperationError> {
        // One for each connection: a server that finds two of them in a read may answer them at once.
        let in_flight = u32::try_from(plan.offered.connections).expect("there are few connections");
        let arrivals = OfferedArrivals::Saturating(in_flight);
        let offered = Offered { batch_interval: None, arrivals, ..plan.offered.clone() };
        let plan = PeriodPlan { offered, background: false, ..plan.clone() };
        let seen = site.play_undisturbed("saturation", &plan, 1)?;
        let seen = seen.ok_or_else(|| OperationError::machine("the server cannot be saturated"))?;
        let done = seen.client.observations.requests.iter().filter(|request| request.latency().is_some());
        let seconds = seen.client.observed_duration.as_secs();
        Ok(Self { rate: done.count() as f64 / seconds, busy: seen.busy })
    }

    /// Returns the amortised CPU time of a request (*Tales of the Tail*, section 3.2).
    pub(crate) fn service(self) -> Nanos {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts of floats saturate"
        )]
        let nanoseconds = (self.busy.min(1.0) * 1e9 / self.rate) as u64;
        Nanos(nanoseconds)
    }
}

/// A server on one CPU with nothing set, under a load that does not matter.
pub(crate) fn plain(server: &ServerPlan) -> PeriodPlan {
    PeriodPlan::new(server.clone(), Offered::poisson(1.0))
}
