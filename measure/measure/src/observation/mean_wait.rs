//! What the variance of service is worth to this server, by formulas of queues with one worker.
//!
//! Pollaczek and Khinchine, as Gandhi and Suresh write it (Eq. 3): with Poisson arrivals at the rate λ and service times
//! S, ρ = λE[S], the mean latency is E[T] = Var(S)·λ / (2(1 − ρ)) + E[S]·(2 − ρ) / (2(1 − ρ)). Kingman's approximation has
//! gaps of any variability: the mean wait is that of Pollaczek and Khinchine times (C²_gaps + C²_S) / (1 + C²_S).
//!
//! A server with several workers is taken to be as many queues, each with its even share of the requests; one queue for
//! all would wait less.

use crate::observation::moments::TrafficMoments;
use observe::in_seconds;
use schemars::JsonSchema;
use serde::Serialize;
use std::num::NonZeroUsize;

/// By how much the variance is cut, in the rows of the table.
const CUTS: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 1.0];

/// A queue with one worker: times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SingleWorkerQueue {
    /// Requests per nanosecond that come.
    pub arrival_rate: f64,
    /// The mean of service times.
    pub service_mean: f64,
    /// The variance of service times.
    pub service_variance: f64,
}

/// What a cut of the variance is worth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct VarianceCut {
    /// The share of the variance of service that goes.
    #[serde(rename = "variance_cut")]
    pub cut: f64,
    /// The mean latency then, in nanoseconds.
    #[serde(rename = "mean_latency_s", serialize_with = "in_seconds")]
    #[schemars(description = "The mean latency then, in seconds.")]
    pub latency: f64,
    /// By which share the mean service time may rise, with the variance cut, until the mean latency is what it was.
    #[serde(rename = "mean_may_rise")]
    pub mean_rise: f64,
}

/// The view of Fig. 1 of Gandhi and Suresh, for an observed server.
#[derive(Debug, Clone, PartialEq)]
pub struct VarianceView {
    /// A worker with its share of the requests.
    pub queue: SingleWorkerQueue,
    /// The mean latency by Eq. 3, in nanoseconds.
    pub latency: f64,
    /// The mean wait of it.
    pub wait: f64,
    /// The mean wait by Kingman's approximation, with the measured gaps.
    pub wait_with_gaps: f64,
    /// What cuts of the variance are worth.
    pub cuts: Vec<VarianceCut>,
}

impl SingleWorkerQueue {
    /// The share of the time in which the worker is busy.
    pub fn utilisation(&self) -> f64 {
        self.arrival_rate * self.service_mean
    }

    /// `E[T]` by Eq. 3; infinite when the worker cannot do the work.
    pub fn latency(&self) -> f64 {
        let rho = self.utilisation();
        if rho >= 1.0 {
            return f64::INFINITY;
        }
        self.service_variance * self.arrival_rate / (2.0 * (1.0 - rho))
            + self.service_mean * (2.0 - rho) / (2.0 * (1.0 - rho))
    }

    /// The mean service time at which the mean latency is `latency`: the root of Eq. 3 below 1/λ, where
    /// λm² − 2(1 + λT)m + 2T − λVar(S) = 0.
    fn mean_for(&self, latency: f64) -> f64 {
        let lambda = self.arrival_rate;
        let half = 1.0 + lambda * latency;
        let rest = 2.0 * latency - lambda * self.service_variance;
        // Not by the usual formula, which loses digits when λ is small.
        rest / (half + (half * half - lambda * rest).max(0.0).sqrt())
    }
}

/// The view of a server's worker; `None` when the work is too much for the workers, or nothing is known of arrivals.
pub(super) fn variance_view(moments: &TrafficMoments, workers: NonZeroUsize) -> Option<VarianceView> {
    let queue = SingleWorkerQueue {
        arrival_rate: moments.arrival_rate / workers.get() as f64,
        service_mean: moments.service_mean,
        service_variance: moments.service_variance,
    };
    let latency = queue.latency();
    if !latency.is_finite() || queue.utilisation() <= 0.0 {
        return None;
    }
    let wait = latency - queue.service_mean;
    let scv = moments.service_scv();
    let cut = |cut: f64| {
        let steadier = SingleWorkerQueue { service_variance: queue.service_variance * (1.0 - cut), ..queue };
        let mean_rise = steadier.mean_for(latency) / queue.service_mean - 1.0;
        VarianceCut { cut, latency: steadier.latency(), mean_rise }
    };
    Some(VarianceView {
        queue,
        latency,
        wait,
        wait_with_gaps: wait * (moments.worker_gaps_scv + scv) / (1.0 + scv),
        cuts: CUTS.map(cut).to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(service_scv: f64, worker_gaps_scv: f64) -> TrafficMoments {
        // The example below Eq. 3: a mean of 1 ms at 600 requests a second.
        TrafficMoments {
            arrival_rate: 6e-7,
            gaps_scv: worker_gaps_scv,
            worker_gaps_scv,
            service_mean: 1e6,
            service_variance: service_scv * 1e12,
            measured_wait: 0.0,
        }
    }

    fn view(service_scv: f64, gaps_scv: f64) -> VarianceView {
        variance_view(&moments(service_scv, gaps_scv), NonZeroUsize::MIN).expect("it is stable")
    }

    #[test]
    fn the_examples_of_the_paper() {
        for (scv, latency_ms) in [(0.0, 1.75), (1.0, 2.5), (2.0, 3.25)] {
            assert!((view(scv, 1.0).latency / 1e6 - latency_ms).abs() < 1e-9, "{scv}");
        }
        assert!(view(0.0, 0.0).wait_with_gaps.abs() < 1e-9, "nothing varies, nobody waits");
        assert!(
            (view(1.0, 1.0).wait_with_gaps - view(1.0, 1.0).wait).abs() < 1e-6,
            "Poisson gaps have C² = 1"
        );
    }

    #[test]
    fn a_mean_that_rises_as_said_gives_the_latency_back() {
        for scv in [0.5, 1.0, 8.0] {
            let view = view(scv, 1.0);
            for cut in &view.cuts {
                let queue = SingleWorkerQueue {
                    service_variance: view.queue.service_variance * (1.0 - cut.cut),
                    service_mean: view.queue.service_mean * (1.0 + cut.mean_rise),
                    ..view.queue
                };
                assert!((queue.latency() / view.latency - 1.0).abs() < 1e-9, "{cut:?}");
                assert!(
                    cut.latency < view.latency && cut.mean_rise > 0.0 && queue.utilisation() < 1.0,
                    "{cut:?}"
                );
            }
        }
    }

    #[test]
    fn workers_share_requests_and_too_much_work_has_no_mean() {
        let two = NonZeroUsize::new(2).expect("two workers");
        let shared = variance_view(&moments(1.0, 1.0), two).expect("it is stable");
        assert!((shared.queue.utilisation() - 0.3).abs() < 1e-12);
        let mut overloaded = moments(1.0, 1.0);
        overloaded.arrival_rate = 1e-6;
        assert_eq!(variance_view(&overloaded, NonZeroUsize::MIN), None);
        assert_eq!(variance_view(&TrafficMoments::default(), NonZeroUsize::MIN), None);
    }
}
