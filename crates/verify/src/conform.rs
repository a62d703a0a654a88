//! Whether a stream of work keeps to a token bucket ⟨r, b⟩: over every interval of length t at most r·t + b.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// How a stream relates to a limit. Work is in the unit of the limit, such as bytes or seconds of device time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conformance {
    /// Work per second that the limit allows.
    pub rate: f64,
    /// Work that it allows at once.
    pub burst: f64,
    /// The smallest burst with which this stream would keep to the rate.
    pub needed_burst: f64,
    /// When it was first beyond the limit.
    pub first_over: Option<Nanos>,
    /// Share of the work that came while it was, 0 to 1.
    pub share_over: f64,
}

impl Conformance {
    /// Whether the stream keeps to the limit, give or take this share of the burst.
    pub fn holds(&self, tolerance: f64) -> bool {
        self.needed_burst <= self.burst * (1.0 + tolerance)
    }
}

/// A time during which a stream was beyond its limit: a limiter that delays would have held something back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// Seconds since the origin.
    pub from_s: f64,
    /// When the rate alone had caught up. With a rate of 0 that is never: the last arrival.
    pub until_s: f64,
}

/// Of more periods, neighbours are shown as one.
pub const PERIODS_MAX: usize = 1000;

/// The level of a bucket that is filled by work and drained at the rate: its largest value is the burst that is
/// needed.
#[derive(Debug, Clone)]
pub struct Bucket {
    found: Conformance,
    level: f64,
    last: Nanos,
    total: f64,
    over: f64,
    periods: Vec<Period>,
}

impl Bucket {
    /// Empty.
    ///
    /// # Panics
    /// When rate or burst are negative or not finite.
    pub fn new(rate: f64, burst: f64) -> Self {
        assert!(rate >= 0.0 && burst >= 0.0 && rate.is_finite() && burst.is_finite(), "a limit");
        let found = Conformance { rate, burst, needed_burst: 0.0, first_over: None, share_over: 0.0 };
        Self { found, level: 0.0, last: Nanos::ZERO, total: 0.0, over: 0.0, periods: Vec::new() }
    }

    /// Work that comes; whether the stream is then beyond the limit. Instants do not decrease; work is not negative.
    pub fn push(&mut self, at: Nanos, amount: f64) -> bool {
        self.level = (self.level - self.found.rate * (at - self.last).as_secs()).max(0.0) + amount;
        self.last = at;
        self.total += amount;
        self.found.needed_burst = self.found.needed_burst.max(self.level);
        // A level is a difference of large sums: equal but for rounding is equal.
        let is_over = self.level > self.found.burst * (1.0 + 1e-9);
        if is_over {
            self.over += amount;
            self.found.first_over.get_or_insert(at);
            self.extend(at.as_secs());
        }
        is_over
    }

    /// Notes that the level is above the burst from now on until it has drained.
    fn extend(&mut self, now: f64) {
        let drained = (self.level - self.found.burst) / self.found.rate;
        let until_s = if drained.is_finite() { now + drained } else { now };
        match self.periods.last_mut() {
            Some(last) if self.found.rate == 0.0 || now <= last.until_s => last.until_s = until_s,
            _ => self.periods.push(Period { from_s: now, until_s }),
        }
        if self.periods.len() > 2 * PERIODS_MAX {
            self.periods = merged(&self.periods);
        }
    }

    /// What there was, and the periods beyond the limit in order of time, at most [`PERIODS_MAX`].
    pub fn finish(mut self) -> (Conformance, Vec<Period>) {
        if self.total > 0.0 {
            self.found.share_over = self.over / self.total;
        }
        while self.periods.len() > PERIODS_MAX {
            self.periods = merged(&self.periods);
        }
        (self.found, self.periods)
    }
}

/// Half as many.
fn merged(periods: &[Period]) -> Vec<Period> {
    let one = |pair: &[Period]| Period { from_s: pair[0].from_s, until_s: pair[pair.len() - 1].until_s };
    periods.chunks(2).map(one).collect()
}

/// Follows a whole stream: see [`Bucket`].
///
/// # Panics
/// When rate or burst are negative or not finite.
pub fn conform(work: impl IntoIterator<Item = (Nanos, f64)>, rate: f64, burst: f64) -> Conformance {
    let mut bucket = Bucket::new(rate, burst);
    for (at, amount) in work {
        bucket.push(at, amount);
    }
    bucket.finish().0
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
        let found = conform(work, 100.0, 4.0);
        assert!((found.needed_burst - 4.8).abs() < 1e-9 && found.first_over == Some(at(12)));
        assert!((found.share_over - 2.0 / 6.0).abs() < 1e-12 && !found.holds(0.1) && found.holds(0.2));
        assert!(conform([], 1.0, 0.0).holds(0.0));
    }

    #[test]
    fn periods_end_when_the_rate_has_caught_up() {
        let mut bucket = Bucket::new(100.0, 1.0);
        // 3 at 0 ms: 2 too many, gone after 20 ms; 1 more at 10 ms makes it 30; then again at 50 ms.
        let over = [(0, 3.0), (10, 1.0), (31, 0.5), (50, 2.5)].map(|(ms, work)| bucket.push(at(ms), work));
        assert_eq!(over, [true, true, true, true]);
        let (_, periods) = bucket.finish();
        let ends: Vec<_> = periods.iter().map(|p| (p.from_s * 1e3, p.until_s * 1e3)).collect();
        let expected = [(0.0, 30.0), (31.0, 35.0), (50.0, 65.0)];
        let close = |(a, b): (&(f64, f64), &(f64, f64))| (a.0 - b.0).abs() < 1e-6 && (a.1 - b.1).abs() < 1e-6;
        assert!(ends.len() == 3 && ends.iter().zip(&expected).all(close), "{ends:?}");
        let mut never = Bucket::new(0.0, 1.0);
        assert_eq!([0, 10, 20].map(|ms| never.push(at(ms), 1.0)), [false, true, true]);
        assert_eq!(never.finish().1, [Period { from_s: 0.01, until_s: 0.02 }]);
    }

    #[test]
    fn many_periods_are_told_together() {
        let mut bucket = Bucket::new(1000.0, 1.0);
        (0..5000).for_each(|n| assert!(bucket.push(at(10 * n), 2.0)));
        let (_, periods) = bucket.finish();
        assert!(periods.len() <= PERIODS_MAX && periods[0].from_s == 0.0);
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
            let mut bucket = Bucket::new(rate, 5.0);
            for ((instant, amount), level) in work.iter().zip(&levels) {
                let is_over = bucket.push(*instant, *amount);
                proptest::prop_assert!(is_over == (*level > 5.0) || (level - 5.0).abs() < 1e-6);
            }
            let (found, periods) = bucket.finish();
            proptest::prop_assert!((found.needed_burst - levels.iter().copied().fold(0.0, f64::max)).abs() < 1e-9);
            proptest::prop_assert!(periods.windows(2).all(|pair| pair[0].until_s <= pair[1].from_s));
            proptest::prop_assert_eq!(found.first_over.map(Nanos::as_secs), periods.first().map(|p| p.from_s));
        }
    }
}
