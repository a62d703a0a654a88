//! Reactive control of shares, as in Cake: weights follow measured latencies.
//!
//! Classes share the workers in proportion to weights ([`super::ProportionalShare`]). The latency of a class with an SLO
//! is measured here, from arrival to departure. At the end of every control interval its percentile is compared with the
//! SLO: above an upper bound the weight rises in proportion, below a lower bound it falls. Classes without an SLO keep
//! their weights.
//!
//! The thesis (§3.3.1) describes the controller in words: shares adjusted dynamically to meet latency SLOs,
//! one weight for each of several workloads, the 99th percentile, and an upper bound on compliance that is
//! higher than published. It gives no equations and no other numbers. Our reading:
//!
//! - A weight is multiplied by measured latency ÷ (SLO × bound) of the bound that was crossed. It at most
//!   doubles or halves in an interval, and stays within a factor of 1000 of its initial value. It is an
//!   integer of thousandths.
//! - Compliance is SLO ÷ measured latency. Its *upper* bound, above which a workload gives shares away, is
//!   the *lower* bound on latency here.
//! - An interval without departures of a class says nothing about the class, and its weight stays.
//! - The clock advances with arrivals and departures: the first event at or after the end of an interval
//!   closes it and belongs to the next. Empty intervals are skipped.
//!
//! Latency elsewhere on the path and shares of several resources are not covered.

use super::start_time_fair_queue::StartTimeFairQueue;
use super::{Assignment, Discipline, QueueItem, UNTIL_DONE};
use crate::bit_set::BitSet;

/// Representation of a weight of 1.
const WEIGHT_UNIT: u64 = 1000;
/// Maximum factor between a weight and its initial value.
const WEIGHT_RANGE: u64 = 1000;
/// Largest initial weight, chosen so that a weight at the end of its range fits 32 bits.
const WEIGHT_MAX: u32 = 4000;

/// A class under [`FeedbackScheduler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedbackClass {
    /// Weight, 1 to 4000; with an SLO, the initial one.
    pub weight: u32,
    /// Latency that the percentile should not exceed, at least 1; `None` means that the weight is fixed.
    pub slo: Option<u64>,
}

/// Parameters of a [`FeedbackScheduler`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackParameters {
    /// Classes by number.
    pub classes: Vec<FeedbackClass>,
    /// Length of a control interval, at least 1.
    pub interval: u64,
    /// Percentile that is compared, in thousandths of a percent: 1 to 100,000.
    pub percentile_milli: u32,
    /// A weight rises when latency exceeds this many percent of the SLO.
    pub upper_percent: u32,
    /// A weight falls when latency is below this many percent of the SLO; at most `upper_percent`.
    pub lower_percent: u32,
}

impl FeedbackParameters {
    /// Uses the 99th percentile (thesis, §3.3.1); weights rise above the SLO and fall below half of it (our
    /// choice).
    pub fn new(classes: Vec<FeedbackClass>, interval: u64) -> Self {
        Self { classes, interval, percentile_milli: 99_000, upper_percent: 100, lower_percent: 50 }
    }

    /// Checks that all values are within their ranges; the error describes the first that is not.
    pub fn check(&self) -> Result<(), String> {
        let weights = self.classes.iter().all(|class| (1..=WEIGHT_MAX).contains(&class.weight));
        let error = if !weights {
            "the weight of a class under feedback is 1 to 4000"
        } else if self.classes.iter().any(|class| class.slo == Some(0)) {
            "an SLO is at least 1 ns"
        } else if self.interval == 0 {
            "a control interval is at least 1 ns"
        } else if !(1..=100_000).contains(&self.percentile_milli) {
            "a percentile is above 0 and at most 100"
        } else if self.lower_percent > self.upper_percent || self.upper_percent == 0 {
            "the bound below which a weight falls is at most the one above which it rises, which is at least 1 %"
        } else {
            return Ok(());
        };
        Err(error.to_owned())
    }

    /// Returns the weight that follows from a measured latency, in thousandths.
    fn adjusted(&self, class: FeedbackClass, weight: u64, measured: u64) -> u64 {
        let Some(slo) = class.slo else { return weight };
        // A weight times a latency exceeds 64 bits.
        let upper = u128::from(self.upper_percent);
        let lower = u128::from(self.lower_percent);
        let slo = u128::from(slo);
        let latency = 100 * u128::from(measured);
        let weight = u128::from(weight);
        let changed = if latency > slo * upper {
            (weight * latency / (slo * upper)).min(2 * weight)
        } else if latency < slo * lower {
            (weight * latency / (slo * lower)).max(weight / 2)
        } else {
            weight
        };
        let initial = u64::from(class.weight) * WEIGHT_UNIT;
        let changed = u64::try_from(changed).unwrap_or(u64::MAX);
        changed.clamp(initial / WEIGHT_RANGE, initial * WEIGHT_RANGE)
    }
}

/// Class of an item, and the instant of its arrival.
type ClassAndArrival = (usize, u64);

/// Service in proportion to weights under reactive control.
#[derive(Debug, Clone)]
pub struct FeedbackScheduler {
    parameters: FeedbackParameters,
    /// Weight of each class, in thousandths.
    weights: Vec<u64>,
    /// Latencies measured in the interval, by class.
    latencies: Vec<Vec<u64>>,
    /// End of the interval.
    interval_end: u64,
    queue: StartTimeFairQueue<(u32, ClassAndArrival)>,
    /// Item in service on each worker.
    in_service: Vec<ClassAndArrival>,
    idle: BitSet,
}

impl FeedbackScheduler {
    /// Creates a station with `workers` idle workers, whose first interval begins at 0.
    ///
    /// # Panics
    /// When there are no workers or a parameter is out of its range.
    pub fn new(workers: u32, parameters: FeedbackParameters) -> Self {
        assert!(workers > 0, "at least one worker");
        parameters.check().unwrap_or_else(|error| panic!("{error}"));
        let weights: Vec<u64> =
            parameters.classes.iter().map(|class| u64::from(class.weight) * WEIGHT_UNIT).collect();
        Self {
            latencies: vec![Vec::new(); weights.len()],
            interval_end: parameters.interval,
            queue: StartTimeFairQueue::new(weights.iter().map(|weight| queue_weight(*weight)).collect()),
            in_service: vec![(0, 0); workers as usize],
            idle: BitSet::full(workers as usize),
            weights,
            parameters,
        }
    }

    /// Returns the weight of each class, in thousandths.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Closes the interval if it is over.
    fn close_interval(&mut self, now: u64) {
        if now < self.interval_end {
            return;
        }
        for class in 0..self.weights.len() {
            if let Some(measured) = percentile(&mut self.latencies[class], self.parameters.percentile_milli) {
                let rules = self.parameters.classes[class];
                self.weights[class] = self.parameters.adjusted(rules, self.weights[class], measured);
                self.queue.set_weight(class, queue_weight(self.weights[class]));
                self.latencies[class].clear();
            }
        }
        let intervals = (now - self.interval_end) / self.parameters.interval + 1;
        self.interval_end =
            self.interval_end.saturating_add(intervals.saturating_mul(self.parameters.interval));
    }

    fn dispatch(&mut self, assignments: &mut Vec<Assignment>) {
        while let Some(worker) = self.idle.first()
            && let Some((item, class_and_arrival)) = self.queue.pop()
        {
            self.idle.remove(worker);
            self.in_service[worker] = class_and_arrival;
            #[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
            assignments.push(Assignment { worker: worker as u32, item, slice: UNTIL_DONE });
        }
    }
}

/// Converts a weight to the fair queue's type; the range check guarantees that it fits.
fn queue_weight(weight: u64) -> u32 {
    u32::try_from(weight).unwrap_or(u32::MAX)
}

/// Returns the least value that at least this share of the values does not exceed; `None` without values.
/// Reorders the values.
fn percentile(values: &mut [u64], percentile_milli: u32) -> Option<u64> {
    let rank = (values.len() as u128 * u128::from(percentile_milli)).div_ceil(100_000);
    let position = usize::try_from(rank).unwrap_or(usize::MAX).checked_sub(1)?;
    Some(*values.select_nth_unstable(position).1)
}

impl Discipline for FeedbackScheduler {
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        self.close_interval(now);
        let class = item.class as usize;
        self.queue.push(class, item.size, (item.id, (class, now)));
        self.dispatch(assignments);
    }

    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.close_interval(now);
        let (class, arrived) = self.in_service[worker as usize];
        if self.parameters.classes[class].slo.is_some() {
            self.latencies[class].push(now - arrived);
        }
        self.idle.insert(worker as usize);
        self.dispatch(assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn take_worker(&mut self, _now: u64, worker: u32, _runs: &mut Vec<Assignment>) {
        self.idle.remove(worker as usize);
    }

    fn return_worker(&mut self, _now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.idle.insert(worker as usize);
        self.dispatch(assignments);
    }

    fn waiting(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_follow_the_ratio_within_their_limits() {
        let class = FeedbackClass { weight: 10, slo: Some(100) };
        let parameters = FeedbackParameters::new(vec![class], 1000);
        for (weight, measured, expected) in [
            (10_000, 100, 10_000),
            (10_000, 150, 15_000),
            (10_000, 500, 20_000),
            (10_000, 50, 10_000),
            (10_000, 40, 8_000),
            (10_000, 1, 5_000),
            (8_000_000, 1000, 10_000_000),
            (15, 0, 10),
        ] {
            assert_eq!(parameters.adjusted(class, weight, measured), expected, "{weight} after {measured}");
        }
        let fixed = FeedbackClass { slo: None, ..class };
        assert_eq!(parameters.adjusted(fixed, 10_000, 100_000), 10_000);
    }

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let mut values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(percentile(&mut values, 99_000), Some(99));
        assert_eq!(percentile(&mut values, 99_001), Some(100));
        assert_eq!((percentile(&mut values, 1), percentile(&mut [], 50_000)), (Some(1), None));
    }
}
