//! Several token buckets at once: work passes when all of them hold enough tokens, and takes tokens from all.
//!
//! The arithmetic is exact. A bucket counts billionths of a unit of work, so that a rate in units per second and a time
//! in nanoseconds multiply without rounding. An item larger than a burst passes when that bucket is full and leaves a
//! debt, so that the long-term rate holds for items of any size.
//!
//! **Correction.** The cost of an item may be known only after it was charged ([`TokenBuckets::settle`]).
//! Excess tokens come back, but not those that would have overflowed had they never been taken: otherwise
//! many items that claim a burst each and use nothing would together save up as many bursts. The overflow
//! depends on the cost of all open items. So every bucket has a second level that ignores unsettled items; it
//! is never below what the first would be if all costs were known. The time for which it overflows bounds the
//! loss: tokens that time has refilled are lost only while the buckets would be full.
//!
//! Order and queueing of waiting items are the caller's.

/// Tokens per unit of work: as many as a second has nanoseconds.
const TOKENS_PER_UNIT: i128 = 1_000_000_000;

/// A token bucket ⟨rate, burst⟩: over any time t at most `rate` · t + `burst` passes, plus the part of the
/// largest item that exceeds the burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Long-term rate, work per second.
    pub rate: u64,
    /// Work that may pass at once, at least 1.
    pub burst: u64,
}

#[derive(Debug, Clone, Copy)]
struct BucketLevel {
    limit: Limit,
    /// Tokens at the instant [`TokenBuckets::updated`]; negative after an item that is larger than the burst.
    tokens: i128,
    /// Tokens if all unsettled items turn out to cost nothing; at least `tokens`.
    unsettled: i128,
}

impl BucketLevel {
    fn full(limit: Limit) -> Self {
        let tokens = tokens_for(limit.burst);
        Self { limit, tokens, unsettled: tokens }
    }

    /// Returns the tokens that are missing until the bucket is full.
    fn missing(&self) -> i128 {
        tokens_for(self.limit.burst) - self.tokens
    }

    /// Adds the tokens of `time` nanoseconds, and returns for how many of them the second level overflows.
    #[inline]
    fn refill(&mut self, time: u64) -> u64 {
        let full = tokens_for(self.limit.burst);
        let rate = i128::from(self.limit.rate);
        let gain = i128::from(time) * rate;
        self.tokens = (self.tokens + gain).min(full);
        let room = full - self.unsettled;
        if room == 0 {
            return if gain > 0 { time } else { 0 };
        }
        if gain <= room {
            self.unsettled += gain;
            return 0;
        }
        self.unsettled = full;
        // Less than `time`, because the gain exceeds the missing tokens.
        time - u64::try_from(room / rate).unwrap_or(time)
    }
}

/// Converts work to tokens.
fn tokens_for(size: u64) -> i128 {
    i128::from(size) * TOKENS_PER_UNIT
}

/// Buckets of one flow; its work takes tokens from all of them. Without any bucket everything passes.
#[derive(Debug, Clone)]
pub(crate) struct TokenBuckets {
    /// Sorted by rate, then by burst.
    buckets: Vec<BucketLevel>,
    /// Instant to which the levels refer.
    updated: u64,
    /// Nanoseconds up to `updated` in which the second level of some bucket overflowed.
    overflowed: u64,
}

impl TokenBuckets {
    /// Creates buckets that are full at `now`, nanoseconds.
    ///
    /// # Panics
    /// When a burst is 0.
    pub(crate) fn new(now: u64, limits: &[Limit]) -> Self {
        assert!(limits.iter().all(|limit| limit.burst > 0), "a burst is at least 1");
        let mut buckets: Vec<BucketLevel> = limits.iter().copied().map(BucketLevel::full).collect();
        buckets.sort_unstable_by_key(|bucket| (bucket.limit.rate, bucket.limit.burst));
        Self { buckets, updated: now, overflowed: 0 }
    }

    /// Returns the first instant, not before `now`, at which work of this size may pass if nothing else
    /// passes before. `None` means never, because a rate is 0. Instants must not decrease from call to call.
    pub(crate) fn ready_at(&mut self, now: u64, size: u64) -> Option<u64> {
        self.refill(now);
        self.buckets.iter().try_fold(now, |ready, bucket| {
            let missing = tokens_for(size.min(bucket.limit.burst)) - bucket.tokens;
            if missing <= 0 {
                return Some(ready);
            }
            let rate = i128::from(bucket.limit.rate);
            // Rounded up to a whole nanosecond; both are positive.
            let wait = (missing + rate - 1).checked_div(rate)?;
            Some(ready.max(now.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))))
        })
    }

    /// Takes the tokens for work of this size if it may pass at `now`. Returns false without taking any
    /// otherwise.
    pub(crate) fn take(&mut self, now: u64, size: u64) -> bool {
        let passes = self.ready_at(now, size) == Some(now);
        if passes {
            self.buckets.iter_mut().for_each(|bucket| bucket.tokens -= tokens_for(size));
        }
        passes
    }

    /// Returns the instant of the latest update.
    pub(crate) fn updated(&self) -> u64 {
        self.updated
    }

    /// Returns for how long, in nanoseconds up to the latest call, some bucket would have overflowed if all
    /// unsettled items cost nothing. [`settle`](Self::settle) takes the value at the time of the charge.
    pub(crate) fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Corrects the charge of an item. It took tokens for `taken` when the buckets had overflowed for
    /// `overflowed` nanoseconds, and needed them for `served`. Must be called once per item, under the limits
    /// under which it passed.
    pub(crate) fn settle(&mut self, now: u64, taken: u64, served: u64, overflowed: u64) {
        self.refill(now);
        let lost_ns = i128::from(self.overflowed.saturating_sub(overflowed));
        for bucket in &mut self.buckets {
            let lost = lost_ns * i128::from(bucket.limit.rate);
            bucket.unsettled -= (tokens_for(served.min(taken)) - lost).max(0);
            let refund = (tokens_for(taken.saturating_sub(served)) - lost).max(0);
            // The second level bounds the first by construction; `min` makes that hold unconditionally.
            bucket.tokens = (bucket.tokens + refund).min(bucket.unsettled);
        }
        self.charge(now, served.saturating_sub(taken));
    }

    /// Takes the tokens for work that passed without permission. May leave a debt.
    pub(crate) fn charge(&mut self, now: u64, size: u64) {
        self.refill(now);
        for bucket in &mut self.buckets {
            bucket.tokens -= tokens_for(size);
            bucket.unsettled -= tokens_for(size);
        }
    }

    /// Replaces the limits at `now`. Returns true if they differ from the old ones. Missing tokens are
    /// carried over, so that a change grants no burst that was used before. What passed before a change can
    /// no longer be settled, only charged.
    ///
    /// With the same number of limits, each bucket keeps the missing tokens of its predecessor in the order
    /// of rates, even if that is a debt under a smaller burst. A change and its reverse then cancel out. With
    /// another number of limits there is no such correspondence. A bucket then inherits the missing tokens of
    /// the fastest old bucket that was not faster, an upper bound of its own had it existed before. Without
    /// one it inherits those of the slowest, and is empty at worst. If there were no limits before, buckets
    /// are full.
    ///
    /// # Panics
    /// When a burst is 0.
    pub(crate) fn change_limits(&mut self, now: u64, limits: &[Limit]) -> bool {
        self.refill(now);
        let mut new = Self::new(now, limits);
        let before = self.buckets.iter().map(|bucket| bucket.limit);
        if before.eq(new.buckets.iter().map(|bucket| bucket.limit)) {
            return false;
        }
        let same_count = self.buckets.len() == new.buckets.len();
        for (rank, bucket) in new.buckets.iter_mut().enumerate() {
            let not_faster = self.buckets.partition_point(|other| other.limit.rate <= bucket.limit.rate);
            let predecessor = if same_count { rank } else { not_faster.saturating_sub(1) };
            let missing = self.buckets.get(predecessor).map_or(0, BucketLevel::missing);
            bucket.tokens -= if same_count { missing } else { missing.min(bucket.tokens) };
            bucket.unsettled = bucket.tokens;
        }
        *self = new;
        true
    }

    /// Returns the limits and the work that is missing in each bucket until it is full, rounded up.
    pub(crate) fn missing(&self) -> Vec<(Limit, u64)> {
        let rounded_up = |bucket: &BucketLevel| {
            let work = (bucket.missing() + TOKENS_PER_UNIT - 1) / TOKENS_PER_UNIT;
            (bucket.limit, u64::try_from(work).unwrap_or(u64::MAX))
        };
        self.buckets.iter().map(rounded_up).collect()
    }

    /// Creates buckets in which this much work is missing at `now`.
    ///
    /// # Panics
    /// When a burst is 0.
    pub(crate) fn lacking(now: u64, missing: &[(Limit, u64)]) -> Self {
        let mut missing = missing.to_vec();
        missing.sort_unstable_by_key(|(limit, _)| (limit.rate, limit.burst));
        let limits: Vec<Limit> = missing.iter().map(|(limit, _)| *limit).collect();
        let mut buckets = Self::new(now, &limits);
        for (bucket, (_, work)) in buckets.buckets.iter_mut().zip(&missing) {
            bucket.tokens -= tokens_for(*work);
            bucket.unsettled = bucket.tokens;
        }
        buckets
    }

    /// Returns true if there is no bucket, so that everything passes.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Returns true if all buckets are full at `now`.
    pub(crate) fn is_full(&mut self, now: u64) -> bool {
        self.refill(now);
        self.buckets.iter().all(|bucket| bucket.missing() == 0)
    }

    /// Adds the tokens of the time up to `now`.
    #[inline]
    fn refill(&mut self, now: u64) {
        let time = now - self.updated;
        if time > 0 {
            let overflows = self.buckets.iter_mut().map(|bucket| bucket.refill(time));
            self.overflowed += overflows.max().unwrap_or(0);
            self.updated = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl TokenBuckets {
        fn tokens_at(mut self, now: u64) -> i128 {
            self.refill(now);
            self.buckets[0].tokens
        }
    }

    #[test]
    fn a_burst_then_the_rate_and_a_debt() {
        // One unit in 100 ns, three at once.
        let mut buckets = TokenBuckets::new(0, &[Limit { rate: 10_000_000, burst: 3 }]);
        assert!(buckets.take(0, 3) && !buckets.take(0, 1));
        assert_eq!(
            (buckets.ready_at(0, 1), buckets.ready_at(0, 2), buckets.ready_at(50, 1)),
            (Some(100), Some(200), Some(100))
        );
        // Five pass when it is full, and two are owed.
        assert_eq!(buckets.ready_at(50, 5), Some(300));
        assert!(buckets.take(300, 5));
        assert_eq!(buckets.ready_at(300, 1), Some(600));
        assert_eq!(TokenBuckets::new(7, &[]).ready_at(7, u64::MAX), Some(7));
        let mut shut = TokenBuckets::new(0, &[Limit { rate: 0, burst: 1 }]);
        assert!(shut.take(0, 1));
        assert_eq!(shut.ready_at(u64::MAX, 1), None);
    }

    #[test]
    fn what_was_used_survives_a_change() {
        let slow = Limit { rate: 10_000_000, burst: 50 };
        let fast = Limit { rate: 100_000_000, burst: 10 };
        let mut buckets = TokenBuckets::new(0, &[fast, slow]);
        assert!(buckets.take(0, 10) && buckets.take(100, 10));
        // Used now: 10 of the fast one, 19 of the slow one.
        buckets.change_limits(100, &[Limit { burst: 20, ..slow }, Limit { burst: 40, ..fast }]);
        assert_eq!((buckets.ready_at(100, 1), buckets.ready_at(100, 2)), (Some(100), Some(200)));
        // One limit instead of two: empty at worst, and it knows more of the slower.
        buckets.change_limits(100, &[Limit { rate: 50_000_000, burst: 5 }]);
        assert_eq!(buckets.ready_at(100, 1), Some(120));
        buckets.change_limits(100, &[]);
        assert!(buckets.is_full(100));
        buckets.change_limits(100, &[slow]);
        assert_eq!(buckets.ready_at(100, 50), Some(100));
    }

    proptest::proptest! {
        /// However often a limit changes, no interval has more than the largest burst and the highest rate allow.
        #[test]
        fn changes_hand_out_no_burst_again(
            steps in proptest::collection::vec((0u64..9, 1u64..50, proptest::option::of((1u64..50, 1u64..40))), 1..40),
        ) {
            let mut buckets = TokenBuckets::new(0, &[Limit { rate: 100_000_000, burst: 40 }]);
            let mut now = 0;
            let mut passed = Vec::new();
            for (gap, size, change) in steps {
                now += gap;
                if let Some((rate, burst)) = change {
                    let before = buckets.clone();
                    buckets.change_limits(now, &[Limit { rate: rate * 100_000_000, burst }]);
                    let mut reversed = buckets.clone();
                    reversed.change_limits(now, &[before.buckets[0].limit]);
                    proptest::prop_assert_eq!(reversed.buckets[0].tokens, before.clone().tokens_at(now));
                }
                if buckets.take(now, size) {
                    passed.push((now, size));
                }
            }
            for (from, (start, _)) in passed.iter().enumerate() {
                let mut sum = 0;
                for (end, size) in &passed[from..] {
                    sum += size;
                    // The largest item is 49: 9 more than the largest burst, 48 more than the smallest.
                    proptest::prop_assert!(sum as f64 <= (end - start) as f64 * 4.9 + 40.0 + 48.0);
                }
            }
        }

        /// The judge: the definition, over every interval. And nothing waits for longer than it must: an instant
        /// earlier it may not pass.
        #[test]
        fn what_passes_keeps_every_limit_in_every_interval(
            limits in proptest::collection::vec((1u64..50, 1u64..40), 1..4),
            items in proptest::collection::vec((0u64..9, 1u64..50), 1..40),
        ) {
            // A rate of k units per nanosecond divided by 10.
            let limits: Vec<Limit> =
                limits.iter().map(|(rate, burst)| Limit { rate: rate * 100_000_000, burst: *burst }).collect();
            let mut buckets = TokenBuckets::new(0, &limits);
            let mut now = 0;
            let mut passed = Vec::new();
            for (gap, size) in items {
                now += gap;
                let ready = buckets.ready_at(now, size).unwrap();
                if ready > now {
                    proptest::prop_assert!(!buckets.clone().take(ready - 1, size));
                }
                now = ready;
                proptest::prop_assert!(buckets.take(now, size));
                passed.push((now, size));
            }
            let largest = passed.iter().map(|(_, size)| *size).max().unwrap();
            for limit in limits {
                for (from, (start, _)) in passed.iter().enumerate() {
                    let mut sum = 0;
                    for (end, size) in &passed[from..] {
                        sum += size;
                        let allowed = (end - start) as f64 * limit.rate as f64 / 1e9 + limit.burst as f64;
                        // A debt is paid before anything else passes, so that only the last item may exceed.
                        let excess = largest.saturating_sub(limit.burst) as f64;
                        proptest::prop_assert!(sum as f64 <= allowed + excess + 1e-6, "{sum} of {allowed}");
                    }
                }
            }
        }
    }
}
