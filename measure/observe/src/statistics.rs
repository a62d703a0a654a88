//! What many requests have in common: percentiles of latencies, and where their mean and their variance come from.
//!
//! With T = Σ Xᵢ, the variance of the latency is Var(T) = Σ Cov(Xᵢ, T), so that Cov(Xᵢ, T) ÷ Var(T) are shares of it that
//! add up to 1. Like Gandhi and Suresh (section "Request Tracing"), this keeps running sums, here as integers, so that the
//! shares are exact; percentiles are of histograms, within 0.1 %. Memory does not grow with the number of requests.

use crate::request::{ObservedRequest, RequestQuality, STAGE_NAMES, STAGES};
use crate::seconds::in_seconds;
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// Longer times count as this one in percentiles: an hour, in nanoseconds.
const TIME_MAX_NS: u64 = 3_600_000_000_000;

/// Sums over requests. Variances and shares are exact for up to 10⁹ requests of up to a second each, and rounded beyond.
#[derive(Debug, Clone)]
pub struct RequestStatistics {
    count: u64,
    stages: [StageSums; STAGES],
    total_sum: u128,
    total_squares: u128,
    from_wire: TimeHistogram,
    from_stack: TimeHistogram,
    flagged: [u64; RequestQuality::ALL.len()],
    /// Of requests that came in several packets.
    sending: LatencyHistogram,
}

#[derive(Debug, Clone)]
struct StageSums {
    sum: u128,
    squares: u128,
    /// Of products with the total.
    products: u128,
    times: TimeHistogram,
}

/// Percentiles of a latency, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(description = "Latencies, or times of a stage.")]
pub struct LatencyProfile {
    /// The mean of all.
    #[serde(rename = "mean_s", serialize_with = "in_seconds")]
    pub mean: f64,
    /// The 50th percentile of all.
    #[serde(rename = "p50_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64")]
    pub p50: u64,
    /// The 90th percentile of all.
    #[serde(rename = "p90_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64")]
    pub p90: u64,
    /// The 99th percentile of all.
    #[serde(rename = "p99_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64")]
    pub p99: u64,
    /// The 99.9th percentile of all.
    #[serde(rename = "p99_9_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64")]
    pub p999: u64,
    /// The largest of all, exactly; no percentile is above it.
    #[serde(rename = "max_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64")]
    pub max: u64,
}

/// What a stage has in the latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct StageProfile {
    /// The name of the stage.
    #[serde(rename = "stage")]
    pub name: &'static str,
    /// The time in the stage, in nanoseconds.
    #[serde(flatten)]
    pub times: LatencyProfile,
    /// The variance of the time, in square nanoseconds.
    #[serde(rename = "variance_s2", serialize_with = "in_square_seconds")]
    #[schemars(description = "The variance of the time, in square seconds.")]
    pub variance: f64,
    /// Its share in the mean of T6 − T0.
    pub share_of_mean: f64,
    /// Cov(X, T) ÷ Var(T): its share in the variance of T6 − T0, which may be negative. 0 when nothing varies.
    pub share_of_variance: f64,
}

fn in_square_seconds<S: Serializer>(square_nanoseconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(square_nanoseconds / 1e18)
}

/// Times within 0.1 %, in memory that does not grow with their number, and the largest of them.
#[derive(Debug, Clone)]
struct TimeHistogram {
    buckets: Histogram<u64>,
    max: u64,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        let buckets =
            Histogram::new_with_bounds(1, TIME_MAX_NS, 3).expect("the bounds and three digits are allowed");
        Self { buckets, max: 0 }
    }
}

impl TimeHistogram {
    fn add(&mut self, time: u64) {
        self.buckets.saturating_record(time);
        self.max = self.max.max(time);
    }

    fn merge(&mut self, others: &Self) {
        self.buckets.add(&others.buckets).expect("all histograms have the same bounds");
        self.max = self.max.max(others.max);
    }

    fn clear(&mut self) {
        self.buckets.reset();
        self.max = 0;
    }

    /// Percentiles are upper ends of buckets, but for the last one, which ends with the largest time.
    fn profile(&self, sum: u128, count: u64) -> LatencyProfile {
        let at = |quantile| self.buckets.value_at_quantile(quantile).min(self.max);
        LatencyProfile {
            mean: sum as f64 / count.max(1) as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max,
        }
    }
}

/// Times and their percentiles, within 0.1 %, in memory that does not grow with their number.
#[derive(Debug, Clone, Default)]
pub(crate) struct LatencyHistogram {
    times: TimeHistogram,
    sum: u128,
}

impl LatencyHistogram {
    /// Takes a time in nanoseconds.
    pub(crate) fn add(&mut self, time: u64) {
        self.times.add(time);
        self.sum += u128::from(time);
    }

    /// The number of times.
    pub(crate) fn count(&self) -> u64 {
        self.times.buckets.len()
    }

    /// The percentiles of these times.
    pub(crate) fn profile(&self) -> LatencyProfile {
        self.times.profile(self.sum, self.count())
    }
}

impl Default for RequestStatistics {
    fn default() -> Self {
        let empty = StageSums { sum: 0, squares: 0, products: 0, times: TimeHistogram::default() };
        Self {
            count: 0,
            stages: std::array::from_fn(|_| empty.clone()),
            total_sum: 0,
            total_squares: 0,
            from_wire: TimeHistogram::default(),
            from_stack: TimeHistogram::default(),
            flagged: [0; RequestQuality::ALL.len()],
            sending: LatencyHistogram::default(),
        }
    }
}

impl RequestStatistics {
    /// Takes a request into all sums.
    pub fn add(&mut self, request: &ObservedRequest) {
        let total = u128::from(request.latency_from_wire());
        self.count += 1;
        self.total_sum += total;
        self.total_squares += total * total;
        for (sums, time) in self.stages.iter_mut().zip(request.stages()) {
            let wide = u128::from(time);
            sums.sum += wide;
            sums.squares += wide * wide;
            sums.products += wide * total;
            sums.times.add(time);
        }
        self.from_wire.add(request.latency_from_wire());
        self.from_stack.add(request.latency_from_stack());
        if request.sending_time() > 0 {
            self.sending.add(request.sending_time());
        }
        for (count, (flag, _)) in self.flagged.iter_mut().zip(RequestQuality::ALL) {
            *count += u64::from(request.quality.has(flag));
        }
    }

    /// Takes the requests of others into all sums.
    pub fn merge(&mut self, others: &Self) {
        self.count += others.count;
        self.total_sum += others.total_sum;
        self.total_squares += others.total_squares;
        for (sums, other) in self.stages.iter_mut().zip(&others.stages) {
            sums.sum += other.sum;
            sums.squares += other.squares;
            sums.products += other.products;
            sums.times.merge(&other.times);
        }
        self.from_wire.merge(&others.from_wire);
        self.from_stack.merge(&others.from_stack);
        for (count, other) in self.flagged.iter_mut().zip(others.flagged) {
            *count += other;
        }
    }

    /// Forgets all requests, and keeps the memory for others.
    pub fn clear(&mut self) {
        (self.count, self.total_sum, self.total_squares) = (0, 0, 0);
        self.flagged = [0; RequestQuality::ALL.len()];
        for sums in &mut self.stages {
            (sums.sum, sums.squares, sums.products) = (0, 0, 0);
            sums.times.clear();
        }
        self.from_wire.clear();
        self.from_stack.clear();
    }

    /// The number of requests.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many requests have each flag of [`RequestQuality::ALL`], with what it says.
    pub fn flagged(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RequestQuality::ALL.into_iter().zip(self.flagged).map(|((_, name), count)| (name, count))
    }

    /// How many requests came in several packets, and how long their clients took from the first byte to the last.
    pub fn sending(&self) -> (u64, LatencyProfile) {
        (self.sending.count(), self.sending.profile())
    }

    /// The latency T6 − T0 of all requests.
    pub fn from_wire(&self) -> LatencyProfile {
        self.from_wire.profile(self.total_sum, self.count)
    }

    /// The latency T6 − T1 of all requests.
    pub fn from_stack(&self) -> LatencyProfile {
        self.from_stack.profile(self.total_sum - self.stages[0].sum, self.count)
    }

    /// The variance of T6 − T0, in square nanoseconds.
    pub fn variance(&self) -> f64 {
        self.over_count(self.spread(self.total_squares, self.total_sum).value())
    }

    /// The stages in the order in which a request passes them.
    pub fn stages(&self) -> Vec<StageProfile> {
        let whole = self.spread(self.total_squares, self.total_sum).value();
        let share = |part: f64, of: f64| if of == 0.0 { 0.0 } else { part / of };
        let of_stage = |(sums, name): (&StageSums, &'static str)| StageProfile {
            name,
            times: sums.times.profile(sums.sum, self.count),
            variance: self.over_count(self.spread(sums.squares, sums.sum).value()),
            share_of_mean: share(sums.sum as f64, self.total_sum as f64),
            share_of_variance: share(self.covariation(sums).value(), whole),
        };
        self.stages.iter().zip(STAGE_NAMES).map(of_stage).collect()
    }

    /// n² times the variance of what has these sums.
    fn spread(&self, squares: u128, sum: u128) -> ProductDifference {
        ProductDifference { first: [u128::from(self.count), squares], second: [sum, sum] }
    }

    /// n² times the covariance of a stage and the total.
    fn covariation(&self, stage: &StageSums) -> ProductDifference {
        ProductDifference {
            first: [u128::from(self.count), stage.products],
            second: [stage.sum, self.total_sum],
        }
    }

    fn over_count(&self, spread: f64) -> f64 {
        let count = self.count.max(1) as f64;
        spread / count / count
    }
}

/// The product of two numbers less that of two others.
struct ProductDifference {
    first: [u128; 2],
    second: [u128; 2],
}

impl ProductDifference {
    /// The difference; `None` where a product does not fit into 127 bits.
    fn exact(&self) -> Option<i128> {
        let product = |[a, b]: [u128; 2]| i128::try_from(a.checked_mul(b)?).ok();
        product(self.first)?.checked_sub(product(self.second)?)
    }

    /// The difference, rounded; from rounded products where these are too large.
    fn value(&self) -> f64 {
        let product = |[a, b]: [u128; 2]| a as f64 * b as f64;
        self.exact().map_or_else(|| product(self.first) - product(self.second), |exact| exact as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use proptest::prelude::*;

    fn request(stages: [u64; STAGES]) -> ObservedRequest {
        let mut points = [1000; STAGES + 1];
        for (stage, time) in stages.iter().enumerate() {
            points[stage + 1] = points[stage] + time;
        }
        ObservedRequest { quality: RequestQuality::GUESSED, ..testing::request(5, 80, points) }
    }

    #[test]
    fn a_stage_that_varies_alone_has_all_of_the_variance() {
        let mut statistics = RequestStatistics::default();
        for n in 0..100 {
            statistics.add(&request([5, 10, if n % 2 == 0 { 100 } else { 300 }, 1, 0, 7, 2]));
        }
        let stages = statistics.stages();
        assert_eq!((stages[2].name, stages[2].variance), ("wakeup", 10_000.0));
        let shares: Vec<f64> = stages.iter().map(|stage| stage.share_of_variance).collect();
        assert_eq!(shares, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!((stages[5].share_of_mean, stages[5].times.mean), (7.0 / 225.0, 7.0));
        assert_eq!((statistics.from_wire().mean, statistics.from_stack().mean), (225.0, 220.0));
        assert_eq!((statistics.from_wire().p50, statistics.from_stack().max), (125, 320));
        let guessed = statistics.flagged().find(|(name, _)| *name == "extent guessed");
        assert_eq!(guessed.map(|(_, count)| count), Some(100));
    }

    #[test]
    fn nothing_is_all_zero() {
        let statistics = RequestStatistics::default();
        assert_eq!((statistics.count(), statistics.variance(), statistics.from_wire().mean), (0, 0.0, 0.0));
        assert!(statistics.stages().iter().all(|stage| stage.share_of_variance == 0.0));
    }

    /// Of a bucket of times, the largest one is shown, and no percentile is above it.
    #[test]
    fn the_largest_time_is_exact() {
        let largest = 1_000_001;
        let alone = |time| {
            let mut statistics = RequestStatistics::default();
            statistics.add(&request([0, 0, 0, 0, 0, time, 0]));
            statistics
        };
        assert!(alone(largest).from_wire.buckets.max() > largest, "its bucket ends later");
        for (mut first, second) in [(alone(largest), alone(7)), (alone(7), alone(largest))] {
            first.merge(&second);
            let profiles = [first.from_wire(), first.from_stack(), first.stages()[5].times];
            for LatencyProfile { p999, max, .. } in profiles {
                assert_eq!((p999, max), (largest, largest));
            }
            first.clear();
            first.add(&request([0, 0, 0, 0, 0, 7, 0]));
            assert_eq!((first.from_wire().max, first.stages()[5].times.max), (7, 7));
        }
        let mut histogram = LatencyHistogram::default();
        histogram.add(largest);
        assert_eq!((histogram.profile().p50, histogram.profile().max), (largest, largest));
        // Longer than what percentiles know.
        assert_eq!(alone(2 * TIME_MAX_NS).from_wire().max, 2 * TIME_MAX_NS);
    }

    proptest! {
        /// Whatever the times: the parts of the variance add up to the variance, to the last digit, and it is the one
        /// that two passes find.
        #[test]
        fn the_parts_are_the_whole(times in prop::collection::vec(prop::array::uniform7(0u64..1_000_000_000), 1..50)) {
            let mut statistics = RequestStatistics::default();
            times.iter().for_each(|stages| statistics.add(&request(*stages)));
            let whole = statistics.spread(statistics.total_squares, statistics.total_sum).exact();
            let parts: Option<i128> =
                statistics.stages.iter().map(|stage| statistics.covariation(stage).exact()).sum();
            prop_assert_eq!((parts, whole.is_some()), (whole, true));
            let totals: Vec<f64> = times.iter().map(|stages| stages.iter().sum::<u64>() as f64).collect();
            let mean = totals.iter().sum::<f64>() / totals.len() as f64;
            let variance = totals.iter().map(|total| (total - mean).powi(2)).sum::<f64>() / totals.len() as f64;
            prop_assert!((variance - statistics.variance()).abs() <= 1e-9 * variance.max(1.0));
        }
    }
    #[test]
    fn sums_beyond_128_bits_are_rounded() {
        // Two kinds of requests, of one and three minutes; doubled until products are beyond 128 bits.
        let minute = 60_000_000_000;
        let mut statistics = RequestStatistics::default();
        for wait in [minute, 3 * minute] {
            statistics.add(&request([0, 0, wait, 0, 0, 0, 0]));
        }
        for _ in 0..40 {
            let same = statistics.clone();
            statistics.merge(&same);
        }
        assert_eq!(statistics.spread(statistics.total_squares, statistics.total_sum).exact(), None);
        let expected = (minute as f64).powi(2);
        assert!((statistics.variance() / expected - 1.0).abs() < 1e-6, "{}", statistics.variance());
        assert!((statistics.stages()[2].share_of_variance - 1.0).abs() < 1e-6);
        statistics.clear();
        assert_eq!((statistics.count(), statistics.variance(), statistics.from_wire().max), (0, 0.0, 0));
    }
}
