//! Charts of many latencies with few points: over time, and as a distribution.

use crate::percentile::percentile_s;
use units::Nanos;

/// The number of points of the complementary distribution per factor of ten of the share.
const POINTS_PER_DECADE: f64 = 40.0;

/// The latencies of requests whose intended times are in the same interval.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineInterval {
    /// The middle of the interval, in seconds since the origin.
    pub at_s: f64,
    /// The number of requests.
    pub requests: u64,
    /// The number of requests that were not answered or failed.
    pub unanswered: u64,
    /// The median latency of answered requests in seconds; `None` when nothing was answered.
    pub p50_s: Option<f64>,
    /// The 99th percentile of their latency in seconds.
    pub p99_s: Option<f64>,
    /// The largest latency in seconds.
    pub max_s: Option<f64>,
}

/// Divides the time that requests cover into intervals of equal length, and leaves out those without requests. Requests
/// are intended times, which must not decrease, with their latencies.
///
/// # Panics
/// When `intervals` is zero.
pub fn timeline(requests: &[(Nanos, Option<Nanos>)], intervals: u64) -> Vec<TimelineInterval> {
    assert!(intervals > 0, "at least one interval");
    let (Some((first, _)), Some((last, _))) = (requests.first(), requests.last()) else { return Vec::new() };
    let length = ((*last - *first).0 / intervals).saturating_add(1);
    let interval_of = |intended: Nanos| (intended - *first).0 / length;
    let mut timeline = Vec::new();
    for chunk in requests.chunk_by(|(a, _), (b, _)| interval_of(*a) == interval_of(*b)) {
        let index = interval_of(chunk[0].0) as f64;
        let middle_s = (first.0 as f64 + (index + 0.5) * length as f64) / 1e9;
        timeline.push(summarize_interval(middle_s, chunk));
    }
    timeline
}

fn summarize_interval(at_s: f64, requests: &[(Nanos, Option<Nanos>)]) -> TimelineInterval {
    let mut sorted: Vec<Nanos> = requests.iter().filter_map(|(_, latency)| *latency).collect();
    sorted.sort_unstable();
    let requests = requests.len() as u64;
    TimelineInterval {
        at_s,
        requests,
        unanswered: requests - sorted.len() as u64,
        p50_s: percentile_s(&sorted, 50.0),
        p99_s: percentile_s(&sorted, 99.0),
        max_s: percentile_s(&sorted, 100.0),
    }
}

/// The complementary distribution of latencies: points of a latency in seconds with the share of requests that take longer,
/// the share descending. Requests without an answer take longer than any latency.
///
/// Each point is exact. Points are evenly spaced by the logarithm of the share, so that every request of the far tail has
/// its own. The last point is the largest latency with the share of requests that take at least as long, as a logarithm
/// has no zero.
pub fn exceedance(latencies: impl IntoIterator<Item = Option<Nanos>>) -> Vec<(f64, f64)> {
    let mut count = 0usize;
    let mut sorted: Vec<Nanos> = latencies.into_iter().inspect(|_| count += 1).flatten().collect();
    sorted.sort_unstable();
    let mut points = Vec::new();
    // The number of requests after the next point, in order of latency: from all but one down to none.
    let Some(mut after) = count.checked_sub(1).map(|others| others as f64) else { return points };
    loop {
        if let Some(latency) = sorted.get(count - 1 - floor(after)) {
            // Equal latencies do not take longer.
            let longer = count - sorted.partition_point(|other| other <= latency);
            points.push((latency.as_secs(), longer.max(1) as f64 / count as f64));
        }
        if after < 1.0 {
            break;
        }
        after = (after / 10f64.powf(1.0 / POINTS_PER_DECADE)).min(after - 1.0);
    }
    // If many requests have no answer, the steps may skip the largest latency.
    if let Some(longest) = sorted.last() {
        points.push((longest.as_secs(), (count - sorted.len()).max(1) as f64 / count as f64));
    }
    points.dedup_by_key(|(latency, _)| *latency);
    points
}

/// A number of requests, rounded down.
fn floor(count: f64) -> usize {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is not negative, and at most a count of requests"
    )]
    let floor = count.max(0.0) as usize;
    floor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_cover_all() {
        let requests: Vec<_> = (0..1000u64)
            .map(|n| (Nanos(n * 1_000_000), (n % 100 != 7).then_some(Nanos(1000 * (n % 100)))))
            .collect();
        let found = timeline(&requests, 10);
        assert_eq!(found.len(), 10);
        assert_eq!(found.iter().map(|at| at.requests).sum::<u64>(), 1000);
        assert_eq!(found.iter().map(|at| at.unanswered).sum::<u64>(), 10);
        assert!(found.iter().all(|at| at.max_s == Some(99e-6)), "{found:?}");
        assert!(timeline(&requests[..1], 10).len() == 1 && timeline(&[], 10).is_empty());
        let gap = [(Nanos(0), None), (Nanos(1_000_000), None)];
        assert_eq!(timeline(&gap, 10).len(), 2);
    }

    proptest::proptest! {
        /// The judge: counting.
        #[test]
        fn every_point_of_the_distribution_is_exact(
            latencies in proptest::collection::vec(proptest::option::weighted(0.9, 0u64..50), 0..400),
        ) {
            let latencies: Vec<_> = latencies.into_iter().map(|at| at.map(|at| Nanos(at * 1_000_000_000))).collect();
            let points = exceedance(latencies.iter().copied());
            for (at, share) in &points {
                let longer = latencies.iter().filter(|l| l.is_none_or(|l| l.as_secs() > *at)).count().max(1);
                proptest::prop_assert!((share - longer as f64 / latencies.len() as f64).abs() < 1e-12);
            }
            proptest::prop_assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let longest = latencies.iter().flatten().max().map(|at| at.as_secs());
            proptest::prop_assert_eq!(points.last().map(|(at, _)| *at), longest);
        }
    }
}
