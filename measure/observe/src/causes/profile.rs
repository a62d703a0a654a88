//! What requests of about the same latency spend their time on, in bounded memory.
//!
//! Latencies are sorted into buckets that are up to 1.6 % wide, each with exact sums of its requests by cause. Those near
//! a percentile are the requests of the fewest buckets that hold all ranks of a window around it, so that the shares of
//! the causes add up to their mean latency exactly, and no request has to be kept.

use super::attribution::{AttributedRequest, CauseTimes};
use super::cause::{CAUSES, Cause};
use super::occupancy::{InterferingProcess, OccupyingThread};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Each doubling of the latency has 2^6 buckets.
const BUCKET_BITS: u32 = 6;

/// The most processes that are told apart in a bucket.
const NAMES_MAX: usize = 64;

/// The most processes that are named near a percentile.
const NAMED_MAX: usize = 5;

/// The percentiles that are explained, as their name, rank and half of the window of ranks around it.
pub const EXPLAINED_PERCENTILES: [(&str, f64, f64); 3] =
    [("p50", 0.5, 0.01), ("p99", 0.99, 0.002), ("p99.9", 0.999, 0.0005)];

/// Whether the time that a server sleeps in the middle of requests is a part of their latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IntendedWaits {
    /// That time is a part.
    #[default]
    Included,
    /// Latencies are those without the request's own time of [`Cause::Asleep`].
    Excluded,
}

impl IntendedWaits {
    /// The causes of a request without what is left out, first its own ones, then those that it was queued for.
    pub(super) fn apply(self, request: &AttributedRequest) -> (CauseTimes, CauseTimes) {
        let mut own = request.own;
        if self == Self::Excluded {
            own[Cause::Asleep as usize] = 0;
        }
        (own, request.queued)
    }
}

/// Sums over requests by latency.
#[derive(Debug, Clone, Default)]
pub struct CauseProfile {
    intended_waits: IntendedWaits,
    requests: u64,
    left_out: u128,
    buckets: BTreeMap<u64, LatencyBucket>,
}

#[derive(Debug, Clone, Default)]
struct LatencyBucket {
    requests: u64,
    answer_bytes: u128,
    latency_min: u64,
    latency_max: u64,
    times: [u128; CAUSES],
    with: [u64; CAUSES],
    interferers: BTreeMap<OccupyingThread, u128>,
}

/// What the requests near a percentile spent their time on.
#[derive(Debug, Clone, PartialEq)]
pub struct PercentileCauses {
    /// The name of the percentile.
    pub name: &'static str,
    /// How many requests these are.
    pub requests: u64,
    /// The sum of the bytes of their answers.
    pub answer_bytes: u128,
    /// The latency of the fastest of them, in nanoseconds.
    pub latency_min: u64,
    /// The latency of the slowest of them.
    pub latency_max: u64,
    /// The sum of their times by cause; all of them add up to the sum of their latencies.
    pub times: [u128; CAUSES],
    /// How many of them have some time of a cause.
    pub with: [u64; CAUSES],
    /// The processes that took most of the time of [`Cause::OtherProcess`], with the time.
    pub interferers: Vec<(InterferingProcess, u128)>,
}

impl PercentileCauses {
    /// The mean time of a cause in a request, in nanoseconds.
    pub fn mean(&self, cause: Cause) -> f64 {
        self.times[cause as usize] as f64 / self.requests.max(1) as f64
    }

    /// The mean size of an answer, in bytes.
    pub fn mean_answer(&self) -> f64 {
        self.answer_bytes as f64 / self.requests.max(1) as f64
    }

    /// The share of a cause in the latency.
    pub fn share(&self, cause: Cause) -> f64 {
        let total: u128 = self.times.iter().sum();
        self.times[cause as usize] as f64 / total.max(1) as f64
    }
}

impl CauseProfile {
    /// A profile of no requests.
    pub fn new(intended_waits: IntendedWaits) -> Self {
        Self { intended_waits, ..Self::default() }
    }

    /// Takes a request into the sums of its bucket.
    pub fn add(&mut self, request: &AttributedRequest, answer_bytes: u64) {
        let (own, queued) = self.intended_waits.apply(request);
        let latency: u64 = own.iter().chain(&queued).sum();
        self.requests += 1;
        self.left_out += u128::from(request.latency() - latency);
        let bucket = self.buckets.entry(bucket_of(latency)).or_default();
        bucket.latency_min = if bucket.requests == 0 { latency } else { bucket.latency_min.min(latency) };
        bucket.latency_max = bucket.latency_max.max(latency);
        bucket.requests += 1;
        bucket.answer_bytes += u128::from(answer_bytes);
        for (number, time) in own.iter().zip(queued).map(|(own, queued)| own + queued).enumerate() {
            // Most causes have no time, and their sums need not be touched.
            if time > 0 {
                bucket.times[number] += u128::from(time);
                bucket.with[number] += 1;
            }
        }
        for (process, time) in &request.interferers {
            if bucket.interferers.len() < NAMES_MAX || bucket.interferers.contains_key(process) {
                *bucket.interferers.entry(*process).or_default() += u128::from(*time);
            }
        }
    }

    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The sum of all times that were left out, in nanoseconds.
    pub fn left_out(&self) -> u128 {
        self.left_out
    }

    /// What the requests from one rank to another, both from 0 to 1, spent their time on. `None` without requests.
    pub fn between(&self, name: &'static str, ranks: RangeInclusive<f64>) -> Option<PercentileCauses> {
        (self.requests > 0).then(|| self.near(name, *ranks.start(), *ranks.end()))
    }

    /// The quantile, in nanoseconds, of what `usual` leaves of the latency of requests about as slow as each other, given
    /// their mean time by cause. 0 without requests.
    pub fn quantile_of_usual(&self, rank: f64, usual: impl Fn(&[f64; CAUSES]) -> f64) -> f64 {
        let of_bucket = |bucket: &LatencyBucket| {
            let means = bucket.times.map(|time| time as f64 / bucket.requests as f64);
            (usual(&means), bucket.requests)
        };
        let mut latencies: Vec<(f64, u64)> = self.buckets.values().map(of_bucket).collect();
        latencies.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0;
        let reached = latencies.iter().find(|(_, requests)| {
            below += requests;
            below as f64 >= rank * self.requests as f64
        });
        reached.map_or(0.0, |(latency, _)| *latency)
    }

    /// What the requests near each of [`EXPLAINED_PERCENTILES`] spent their time on. Nothing without requests.
    pub fn percentiles(&self) -> Vec<PercentileCauses> {
        let named = EXPLAINED_PERCENTILES.into_iter().filter(|_| self.requests > 0);
        named.map(|(name, rank, half)| self.near(name, rank - half, rank + half)).collect()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranks are from 0 to 1")]
    fn near(&self, name: &'static str, from: f64, until: f64) -> PercentileCauses {
        let count = self.requests as f64;
        let last_rank = self.requests - 1;
        let first = ((from * count) as u64).min(last_rank);
        let last = ((until * count) as u64).min(last_rank);
        let mut rank = 0;
        let mut whole = LatencyBucket::default();
        for bucket in self.buckets.values() {
            let ranks = rank..rank + bucket.requests;
            rank = ranks.end;
            if ranks.end > first && ranks.start <= last {
                whole.merge(bucket);
            }
        }
        // Different names may be printed the same.
        let mut named: BTreeMap<InterferingProcess, u128> = BTreeMap::new();
        for (thread, time) in whole.interferers {
            *named.entry(thread.into()).or_default() += time;
        }
        let mut interferers: Vec<(InterferingProcess, u128)> = named.into_iter().collect();
        interferers.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        interferers.truncate(NAMED_MAX);
        PercentileCauses {
            name,
            requests: whole.requests,
            answer_bytes: whole.answer_bytes,
            latency_min: whole.latency_min,
            latency_max: whole.latency_max,
            times: whole.times,
            with: whole.with,
            interferers,
        }
    }
}

impl LatencyBucket {
    fn merge(&mut self, other: &Self) {
        self.latency_min = if self.requests == 0 { other.latency_min } else { self.latency_min };
        self.latency_max = other.latency_max;
        self.requests += other.requests;
        self.answer_bytes += other.answer_bytes;
        for number in 0..CAUSES {
            self.times[number] += other.times[number];
            self.with[number] += other.with[number];
        }
        for (process, time) in &other.interferers {
            *self.interferers.entry(*process).or_default() += time;
        }
    }
}

/// The number of the bucket of a latency: the position of its highest bit and the bits after that.
fn bucket_of(latency: u64) -> u64 {
    let bits = u64::BITS - latency.leading_zeros();
    let shift = bits.saturating_sub(BUCKET_BITS + 1);
    (u64::from(shift) << BUCKET_BITS) + (latency >> shift)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranks are from 0 to 1")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(work: u64, other: u64, asleep: u64) -> AttributedRequest {
        let mut own = [0; CAUSES];
        own[Cause::Work as usize] = work;
        own[Cause::Asleep as usize] = asleep;
        let mut queued = [0; CAUSES];
        queued[Cause::OtherProcess as usize] = other;
        let mut hog = OccupyingThread { process: 7, comm: [0; 16] };
        hog.comm[..3].copy_from_slice(b"hog");
        AttributedRequest {
            ready: 0,
            start: 0,
            begun: 0,
            done: 0,
            worker: 1,
            process: 1,
            peer: ([127, 0, 0, 1], 1).into(),
            read: 0,
            own,
            own_after_read: own,
            held_up: crate::request::HeldUpTime::default(),
            queued,
            interferers: if other > 0 { vec![(hog, other)] } else { Vec::new() },
        }
    }

    #[test]
    fn the_slow_ones_have_their_own_causes() {
        let mut profile = CauseProfile::new(IntendedWaits::Included);
        for number in 0..10_000 {
            profile.add(&request(1000, if number % 100 == 0 { 50_000 } else { 0 }, 0), 100);
        }
        let [p50, _, p999] = &profile.percentiles()[..] else { panic!("three percentiles") };
        assert_eq!((p50.requests, p50.mean(Cause::Work), p50.mean(Cause::OtherProcess)), (9900, 1000.0, 0.0));
        assert_eq!((p999.requests, p999.mean(Cause::OtherProcess)), (100, 50_000.0));
        assert_eq!(p999.interferers[0].0.name, "hog");
        assert_eq!((p999.latency_min, p999.latency_max), (51_000, 51_000));
    }

    #[test]
    fn the_usual_is_what_is_left_of_the_slow_ones() {
        let mut profile = CauseProfile::new(IntendedWaits::Included);
        for number in 0..10_000 {
            profile.add(&request(1000, if number % 10 == 0 { 50_000 } else { 0 }, 0), number % 10);
        }
        let all = |times: &[f64; CAUSES]| times.iter().sum::<f64>();
        let undisturbed = |times: &[f64; CAUSES]| all(times) - times[Cause::OtherProcess as usize];
        assert_eq!(profile.quantile_of_usual(0.9, all), 1000.0);
        assert_eq!(profile.quantile_of_usual(0.99, all), 51_000.0);
        assert_eq!(profile.quantile_of_usual(0.99, undisturbed), 1000.0);
        let slowest = profile.between("slowest", 0.99..=1.0).expect("there are requests");
        assert_eq!((slowest.requests, slowest.mean_answer()), (1000, 0.0));
        assert!(profile.between("all", 0.0..=1.0).is_some_and(|all| all.mean_answer() == 4.5));
        assert_eq!(CauseProfile::default().between("none", 0.0..=1.0), None);
    }

    #[test]
    fn intended_waits_can_be_left_out() {
        let mut profile = CauseProfile::new(IntendedWaits::Excluded);
        (0..100).for_each(|_| profile.add(&request(10, 0, 1_000_000), 100));
        let p99 = &profile.percentiles()[1];
        assert_eq!((p99.latency_max, p99.mean(Cause::Asleep)), (10, 0.0));
        assert_eq!(profile.left_out(), 100_000_000);
        assert!(CauseProfile::new(IntendedWaits::Included).percentiles().is_empty());
    }

    proptest! {
        /// Buckets are in the order of latencies and at most a 64th wide; causes add up to latencies, and the ranks of
        /// the window are inside.
        #[test]
        fn near_a_percentile(latencies in prop::collection::vec(0u64..10_000_000_000, 1..300)) {
            let mut profile = CauseProfile::new(IntendedWaits::Included);
            latencies.iter().for_each(|latency| profile.add(&request(*latency / 3, *latency - *latency / 3, 0), 100));
            let mut sorted = latencies.clone();
            sorted.sort_unstable();
            for bucket in profile.buckets.values() {
                prop_assert!((bucket.latency_max - bucket.latency_min) * 64 <= bucket.latency_max);
            }
            for (near, (_, rank, half)) in profile.percentiles().iter().zip(EXPLAINED_PERCENTILES) {
                let inside: u128 = sorted.iter().filter(|l| (near.latency_min..=near.latency_max).contains(l)).map(|l| u128::from(*l)).sum();
                prop_assert_eq!(near.times.iter().sum::<u128>(), inside);
                for rank in [rank - half, rank, rank + half] {
                    let at = sorted[((rank * sorted.len() as f64) as usize).min(sorted.len() - 1)];
                    prop_assert!((near.latency_min..=near.latency_max).contains(&at));
                }
            }
        }
    }
}
