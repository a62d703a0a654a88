//! Whether a stream of work keeps to a token bucket ⟨r, b⟩: over every interval of length t at most r·t + b.

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

/// Follows the level of a bucket that is filled by work and drained at the rate: the largest level is the burst
/// that is needed. Instants do not decrease; work is not negative.
///
/// # Panics
/// When rate or burst are negative or not finite.
pub fn conform(work: impl IntoIterator<Item = (Nanos, f64)>, rate: f64, burst: f64) -> Conformance {
    assert!(rate >= 0.0 && burst >= 0.0 && rate.is_finite() && burst.is_finite(), "a limit");
    let mut found = Conformance { rate, burst, needed_burst: 0.0, first_over: None, share_over: 0.0 };
    let (mut level, mut last, mut total, mut over) = (0.0f64, Nanos::ZERO, 0.0, 0.0);
    for (at, amount) in work {
        level = (level - rate * (at - last).as_secs()).max(0.0) + amount;
        last = at;
        total += amount;
        // A level is a difference of large sums: equal but for rounding is equal.
        if level > burst * (1.0 + 1e-9) {
            over += amount;
            found.first_over.get_or_insert(at);
        }
        found.needed_burst = found.needed_burst.max(level);
    }
    if total > 0.0 {
        found.share_over = over / total;
    }
    found
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

    proptest::proptest! {
        /// The judge: the definition, over all intervals.
        #[test]
        fn the_needed_burst_is_that_of_all_intervals(
            rate in 0.0f64..50.0, work in proptest::collection::vec((0u64..100, 0.0f64..10.0), 1..30),
        ) {
            let mut now = 0;
            let work: Vec<(Nanos, f64)> = work.iter().map(|(gap, amount)| { now += gap; (at(now), *amount) }).collect();
            let mut needed = 0.0f64;
            for first in 0..work.len() {
                let mut sum = 0.0;
                for (until, amount) in &work[first..] {
                    sum += amount;
                    needed = needed.max(sum - rate * (*until - work[first].0).as_secs());
                }
            }
            let found = conform(work, rate, 5.0);
            proptest::prop_assert!((found.needed_burst - needed).abs() < 1e-9);
        }
    }
}
