//! Buckets of latencies: 1 µs to 16.8 s, four for each doubling, as proxies count them.
//!
//! Reports name the ends of their buckets. Counts of a version with other buckets fall into the bucket that holds the
//! end, so that no latency is understated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use units::Nanos;

/// Number of buckets with an end.
const ENDED: usize = 97;
/// Number of buckets; the last has no end.
pub(super) const BUCKETS: usize = ENDED + 1;

static ENDS_NS: LazyLock<[u64; ENDED]> = LazyLock::new(|| {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and below 2^35")]
    std::array::from_fn(|step| (1e3 * (step as f64 / 4.0).exp2()).round() as u64)
});

/// Requests in a bucket of latencies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyBucket {
    /// Upper end, seconds; absent for the last bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_s: Option<f64>,
    /// Number of requests in this bucket alone.
    pub requests: u64,
}

/// Counts of latencies by bucket, without empty ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LatencyCounts(Vec<(u8, u64)>);

impl LatencyCounts {
    /// Counts requests in the bucket with this upper end, nanoseconds; `None` for the last.
    pub(super) fn add(&mut self, end: Option<u64>, requests: u64) {
        let bucket = end.map_or(ENDED, |end| ENDS_NS.partition_point(|own| *own < end));
        self.add_to(u8::try_from(bucket).expect("fewer buckets than 256"), requests);
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|(bucket, requests)| self.add_to(*bucket, *requests));
    }

    fn add_to(&mut self, bucket: u8, requests: u64) {
        match self.0.binary_search_by_key(&bucket, |(own, _)| *own) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(requests),
            Err(at) => self.0.insert(at, (bucket, requests)),
        }
    }

    /// Forgets all counts and their memory.
    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }

    /// Upper ends, ascending, with the number of requests in each bucket alone.
    pub(super) fn ends(&self) -> Vec<(Option<Nanos>, u64)> {
        self.0.iter().map(|(bucket, requests)| (end(*bucket).map(Nanos), *requests)).collect()
    }

    pub(super) fn buckets(&self) -> Vec<LatencyBucket> {
        let bucket = |(bucket, requests): &(u8, u64)| LatencyBucket {
            to_s: end(*bucket).map(|end| Nanos(end).as_secs()),
            requests: *requests,
        };
        self.0.iter().map(bucket).collect()
    }

    /// Counts of all buckets, also empty ones, in the order of their ends.
    pub(super) fn dense(&self) -> Vec<u64> {
        let mut dense = vec![0; BUCKETS];
        self.0.iter().for_each(|(bucket, requests)| dense[usize::from(*bucket)] = *requests);
        dense
    }

    /// Returns the upper end of the bucket that holds a percentile, seconds; `None` without requests, or if it is in the
    /// last bucket.
    pub(super) fn percentile_s(&self, percent: f64) -> Option<f64> {
        let count: u64 = self.0.iter().map(|(_, requests)| requests).sum();
        let exact = percent * count as f64 / 100.0;
        let mut below = 0;
        let holds = self.0.iter().find(|(_, requests)| {
            below += requests;
            // A hair of tolerance for the rounding of decimal fractions.
            below as f64 >= exact * (1.0 - 1e-14)
        });
        end(holds?.0).map(|end| Nanos(end).as_secs())
    }
}

fn end(bucket: u8) -> Option<u64> {
    ENDS_NS.get(usize::from(bucket)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_latency_is_understated() {
        let mut counts = LatencyCounts::default();
        for end in [Some(1), Some(1_000), Some(1_001), Some(1_189), Some(1 << 40), None] {
            counts.add(end, 1);
        }
        let ends: Vec<_> = counts.ends().iter().map(|(end, count)| (end.map(|end| end.0), *count)).collect();
        assert_eq!(ends, [(Some(1_000), 2), (Some(1_189), 2), (None, 2)]);
        assert_eq!(counts.percentile_s(50.0), Some(1_189e-9));
        assert_eq!(counts.percentile_s(99.0), None);
        assert_eq!(LatencyCounts::default().percentile_s(50.0), None);
    }
}
