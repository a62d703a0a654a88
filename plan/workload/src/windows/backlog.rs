//! The backlog that a request finds of its own stream.

use super::circular_work::{CircularWork, QueueJob};
use super::distribution::{DistributionBins, WorkDistribution, bin_of};
use std::collections::HashMap;

/// The backlogs that a part of the requests finds at several services.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JointBacklogs<const N: usize> {
    /// The backlog at each service, seconds.
    pub works: [f64; N],
    /// The share of these requests.
    pub probability: f64,
}

/// The largest backlogs over the windows that end at a request, by the straddling jobs that they already allow for:
/// none, one at the first turning point, one at the second, or both.
#[derive(Clone, Copy)]
struct BacklogSuprema {
    none: f64,
    first: f64,
    second: f64,
    both: f64,
}

impl BacklogSuprema {
    const IDLE: Self = Self { none: 0.0, first: 0.0, second: 0.0, both: 0.0 };

    /// The suprema at the next job, before which `served` was worked off. A window either extends an earlier one or
    /// begins with this job.
    fn next(self, served: f64, job: &QueueJob) -> Self {
        let [a, b] = job.straddle.map(|ns| ns as f64);
        let work = job.work as f64;
        let none = (self.none - served).max(0.0);
        let first = self.first - served;
        let second = self.second - served;
        let both = self.both - served;
        Self {
            none: none + work,
            first: first.max(none + a) + work,
            second: second.max(none + b) + work,
            both: both.max(first + b).max(second + a).max(none + job.straddle_both as f64) + work,
        }
    }
}

impl CircularWork {
    /// The distribution, over the stream's requests, of `sup_u (work in [t − u, t] − service·u)` at the arrival t of
    /// a request, in seconds and allowance included: the backlog that a request finds of its own stream, itself
    /// included, when a fraction `service` of the queue works for the stream. Requests at the same instant count in
    /// their order. `None` where the stream asks for more than `service`.
    pub fn backlog_at_arrivals(&self, service: f64) -> Option<WorkDistribution> {
        (self.rate() <= service).then(|| self.backlogs(service))
    }

    /// The joint distribution, over the stream's requests, of the backlogs of [`Self::backlog_at_arrivals`] at several
    /// services. A backlog is infinite where the stream asks for more than the service. Requests of which all backlogs are in
    /// the same bins count as one with the largest of each.
    pub fn joint_backlogs_at_arrivals<const N: usize>(&self, services: [f64; N]) -> Vec<JointBacklogs<N>> {
        let mut found: HashMap<[usize; N], ([u64; N], u64)> = HashMap::new();
        let mut states = [BacklogSuprema::IDLE; N];
        let mut before = 0u64;
        for round in 0..2u64 {
            for job in &self.jobs {
                let at = job.at + round * self.period;
                for (state, service) in states.iter_mut().zip(services) {
                    *state = state.next(service * (at - before) as f64, job);
                }
                before = at;
                if round == 1 {
                    let values = states.map(|state| nanos_up(state.both));
                    let (largest, count) = found.entry(values.map(bin_of)).or_insert(([0; N], 0));
                    largest
                        .iter_mut()
                        .zip(values)
                        .for_each(|(largest, value)| *largest = value.max(*largest));
                    *count += 1;
                }
            }
        }
        let mut backlogs = Vec::with_capacity(found.len());
        for (largest, count) in found.into_values() {
            let mut works = largest.map(|largest| largest as f64 * 1e-9 * (1.0 + 1e-12));
            for (work, service) in works.iter_mut().zip(services) {
                if self.rate() > service {
                    *work = f64::INFINITY;
                }
            }
            backlogs.push(JointBacklogs { works, probability: count as f64 / self.jobs.len() as f64 });
        }
        // The order of a map differs from run to run, and so would the last digits of sums.
        backlogs.sort_by(|a, b| a.works.partial_cmp(&b.works).expect("no NaN"));
        backlogs
    }

    fn backlogs(&self, service: f64) -> WorkDistribution {
        // The second round of the trace begins in the state in which every later one does, because the rate of
        // service is at least that of the work.
        let mut bins = DistributionBins::new();
        let mut state = BacklogSuprema::IDLE;
        let mut before = 0u64;
        for round in 0..2u64 {
            for job in &self.jobs {
                let at = job.at + round * self.period;
                state = state.next(service * (at - before) as f64, job);
                before = at;
                if round == 1 {
                    bins.add(nanos_up(state.both), 1);
                }
            }
        }
        bins.distribution()
    }
}

/// Rounds up to whole nanoseconds, beyond what rounding in the recursion can have lost.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
fn nanos_up(ns: f64) -> u64 {
    (ns * (1.0 + 1e-9)).ceil() as u64
}
