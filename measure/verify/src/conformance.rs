//! Conformance of a stream of work to a token bucket ⟨r, b⟩: over every interval of length t at most r·t
//! + b.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// The largest number of periods that a [`ConformanceMeter`] returns. If there are more, neighbours are merged.
pub(crate) const EXCESS_PERIODS_MAX: usize = 1000;

/// Relative tolerance of the level of the bucket above the burst. The level is a difference of large
/// sums, whose last digits are rounding.
const ROUNDING: f64 = 1e-9;

/// A stream compared with a limit. Work is in the unit of the limit, such as bytes or seconds of device
/// time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conformance {
    /// The work per second that the limit allows.
    pub rate: f64,
    /// The work that the limit allows at once.
    pub burst: f64,
    /// The smallest burst with which this stream would conform to the rate.
    pub needed_burst: f64,
    /// When the stream first exceeded the limit; `None` if it conforms.
    pub first_over: Option<Nanos>,
    /// The share of the work that arrived while the limit was exceeded, 0 to 1.
    pub share_over: f64,
}

impl Conformance {
    /// True if the stream conforms to the limit with a burst that is larger by the fraction `tolerance`.
    pub fn holds(&self, tolerance: f64) -> bool {
        self.needed_burst <= self.burst * (1.0 + tolerance)
    }
}

/// A period during which a stream exceeded its limit: a limiter that delays would have held work back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExcessPeriod {
    /// The beginning, in seconds since the origin.
    pub from_s: f64,
    /// When the rate alone has caught up, in seconds since the origin. A rate of 0 never catches up: the period then ends
    /// with the last arrival.
    pub until_s: f64,
}

/// Follows a stream of work with a bucket that work fills and the rate drains. The largest level of the bucket is the burst
/// that the stream needs.
#[derive(Debug, Clone)]
pub struct ConformanceMeter {
    conformance: Conformance,
    level: f64,
    last_arrival: Nanos,
    total_work: f64,
    /// The work that arrived while the limit was exceeded.
    excess_work: f64,
    periods: Vec<ExcessPeriod>,
}

impl ConformanceMeter {
    /// A meter for the limit ⟨`rate`, `burst`⟩ that has seen no work.
    ///
    /// # Panics
    /// When rate or burst are negative or not finite.
    pub fn new(rate: f64, burst: f64) -> Self {
        assert!(rate >= 0.0 && burst >= 0.0 && rate.is_finite() && burst.is_finite(), "a limit");
        Self {
            conformance: Conformance { rate, burst, needed_burst: 0.0, first_over: None, share_over: 0.0 },
            level: 0.0,
            last_arrival: Nanos::ZERO,
            total_work: 0.0,
            excess_work: 0.0,
            periods: Vec::new(),
        }
    }

    /// Adds work that arrives at `at`, and returns true if the stream then exceeds the limit. Instants
    /// must not decrease, and work must not be negative.
    pub fn add(&mut self, at: Nanos, work: f64) -> bool {
        let Conformance { rate, burst, .. } = self.conformance;
        self.level = (self.level - rate * (at - self.last_arrival).as_secs()).max(0.0) + work;
        self.last_arrival = at;
        self.total_work += work;
        self.conformance.needed_burst = self.conformance.needed_burst.max(self.level);
        let is_over = self.level > burst * (1.0 + ROUNDING);
        if is_over {
            self.excess_work += work;
            self.conformance.first_over.get_or_insert(at);
            self.extend_periods(at.as_secs());
        }
        is_over
    }

    /// Notes that the level exceeds the burst from now on until it has drained.
    fn extend_periods(&mut self, now_s: f64) {
        let Conformance { rate, burst, .. } = self.conformance;
        let drain_time = (self.level - burst) / rate;
        let until_s = if drain_time.is_finite() { now_s + drain_time } else { now_s };
        match self.periods.last_mut() {
            Some(last) if rate == 0.0 || now_s <= last.until_s => last.until_s = until_s,
            _ => self.periods.push(ExcessPeriod { from_s: now_s, until_s }),
        }
        if self.periods.len() > 2 * EXCESS_PERIODS_MAX {
            self.periods = merge_pairs(&self.periods);
        }
    }

    /// The conformance of the whole stream, and the periods of excess in order of time, at most `EXCESS_PERIODS_MAX`.
    pub fn finish(mut self) -> (Conformance, Vec<ExcessPeriod>) {
        if self.total_work > 0.0 {
            self.conformance.share_over = self.excess_work / self.total_work;
        }
        while self.periods.len() > EXCESS_PERIODS_MAX {
            self.periods = merge_pairs(&self.periods);
        }
        (self.conformance, self.periods)
    }
}

/// Merges each two neighbours into a period that covers both and the gap between them.
fn merge_pairs(periods: &[ExcessPeriod]) -> Vec<ExcessPeriod> {
    let mut merged = Vec::with_capacity(periods.len().div_ceil(2));
    for pair in periods.chunks(2) {
        merged.push(ExcessPeriod { from_s: pair[0].from_s, until_s: pair[pair.len() - 1].until_s });
    }
    merged
}

/// Compares a whole stream of arrivals and their work with the limit ⟨`rate`, `burst`⟩, as
/// [`ConformanceMeter`] does.
///
/// # Panics
/// When rate or burst are negative or not finite.
pub fn measure_conformance(
    work: impl IntoIterator<Item = (Nanos, f64)>,
    rate: f64,
    burst: f64,
) -> Conformance {
    let mut meter = ConformanceMeter::new(rate, burst);
    for (at, amount) in work {
        meter.add(at, amount);
    }
    meter.finish().0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn a_burst_and_a_rate() {
        // 1 unit per 10 ms; 3 at once at 0, 1 at 10, 2 at 12.
        let work = [(at(0), 3.0), (at(10), 1.0), (at(12), 2.0)];
        let found = measure_conformance(work, 100.0, 4.0);
        assert!((found.needed_burst - 4.8).abs() < 1e-9 && found.first_over == Some(at(12)));
        assert!((found.share_over - 2.0 / 6.0).abs() < 1e-12 && !found.holds(0.1) && found.holds(0.2));
        assert!(measure_conformance([], 1.0, 0.0).holds(0.0));
    }

    #[test]
    fn periods_end_when_the_rate_has_caught_up() {
        let mut meter = ConformanceMeter::new(100.0, 1.0);
        // 3 at 0 ms: 2 too many, gone after 20 ms; 1 more at 10 ms makes it 30; then again at 50 ms.
        let over = [(0, 3.0), (10, 1.0), (31, 0.5), (50, 2.5)].map(|(ms, work)| meter.add(at(ms), work));
        assert_eq!(over, [true, true, true, true]);
        let (_, periods) = meter.finish();
        let ends: Vec<_> = periods.iter().map(|p| (p.from_s * 1e3, p.until_s * 1e3)).collect();
        let expected = [(0.0, 30.0), (31.0, 35.0), (50.0, 65.0)];
        let close = |(a, b): (&(f64, f64), &(f64, f64))| (a.0 - b.0).abs() < 1e-6 && (a.1 - b.1).abs() < 1e-6;
        assert!(ends.len() == 3 && ends.iter().zip(&expected).all(close), "{ends:?}");
        let mut never = ConformanceMeter::new(0.0, 1.0);
        assert_eq!([0, 10, 20].map(|ms| never.add(at(ms), 1.0)), [false, true, true]);
        assert_eq!(never.finish().1, [ExcessPeriod { from_s: 0.01, until_s: 0.02 }]);
    }

    #[test]
    fn many_periods_are_merged() {
        let mut meter = ConformanceMeter::new(1000.0, 1.0);
        (0..5000).for_each(|n| assert!(meter.add(at(10 * n), 2.0)));
        let (_, periods) = meter.finish();
        assert!(periods.len() <= EXCESS_PERIODS_MAX && periods[0].from_s == 0.0);
        assert!((periods[periods.len() - 1].until_s - 49.991).abs() < 1e-9);
    }

    proptest::proptest! {
        /// The judge: the definition, over all intervals.
        #[test]
        fn the_needed_burst_is_that_of_all_intervals(
            rate in 0.0f64..50.0, work in proptest::collection::vec((0u64..100, 0.0f64..10.0), 1..30),
        ) {
            let mut now = 0;
            let work: Vec<(Nanos, f64)> = work.iter().map(|(gap, amount)| { now += gap; (at(now), *amount) }).collect();
            // The largest excess of any interval that ends with each arrival.
            let level = |until: usize| (0..=until).map(|first| {
                let sum: f64 = work[first..=until].iter().map(|(_, amount)| amount).sum();
                sum - rate * (work[until].0 - work[first].0).as_secs()
            }).fold(0.0, f64::max);
            let levels: Vec<f64> = (0..work.len()).map(level).collect();
            let mut meter = ConformanceMeter::new(rate, 5.0);
            for ((instant, amount), level) in work.iter().zip(&levels) {
                let is_over = meter.add(*instant, *amount);
                proptest::prop_assert!(is_over == (*level > 5.0) || (level - 5.0).abs() < 1e-6);
            }
            let (found, periods) = meter.finish();
            proptest::prop_assert!((found.needed_burst - levels.iter().copied().fold(0.0, f64::max)).abs() < 1e-9);
            proptest::prop_assert!(periods.windows(2).all(|pair| pair[0].until_s <= pair[1].from_s));
            proptest::prop_assert_eq!(found.first_over.map(Nanos::as_secs), periods.first().map(|p| p.from_s));
        }
    }
}
