//! Pictures of many latencies by few points: over time, and as a distribution.

use confidence::nearest_rank;
use units::Nanos;

/// Latencies of the requests that were meant to be sent in one interval of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Its middle, seconds since the origin.
    pub at_s: f64,
    /// How many.
    pub requests: u64,
    /// How many of them were not answered, or with an error.
    pub unanswered: u64,
    /// Half of the answered at most so long, seconds; none when nothing was answered.
    pub p50_s: Option<f64>,
    /// 99 of 100.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
}

/// Intervals of equal length that cover all requests, those without requests left out. Requests are intended instants,
/// which do not decrease, and latencies.
///
/// # Panics
/// Without intervals.
pub fn timeline(requests: &[(Nanos, Option<Nanos>)], intervals: u64) -> Vec<Interval> {
    assert!(intervals > 0, "at least one interval");
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return Vec::new() };
    let origin = first.0;
    let length = ((last.0 - origin).0 / intervals).saturating_add(1);
    let number = |at: Nanos| (at - origin).0 / length;
    let same = |a: &(Nanos, Option<Nanos>), b: &(Nanos, Option<Nanos>)| number(a.0) == number(b.0);
    let middle = |at: Nanos| (origin.0 as f64 + (number(at) as f64 + 0.5) * length as f64) / 1e9;
    requests.chunk_by(same).map(|chunk| interval(middle(chunk[0].0), chunk)).collect()
}

fn interval(at_s: f64, requests: &[(Nanos, Option<Nanos>)]) -> Interval {
    let mut sorted: Vec<Nanos> = requests.iter().filter_map(|(_, latency)| *latency).collect();
    sorted.sort_unstable();
    let at = |percent: f64| {
        (!sorted.is_empty()).then(|| sorted[nearest_rank(percent, sorted.len()) - 1].as_secs())
    };
    let requests = requests.len() as u64;
    Interval {
        at_s,
        requests,
        unanswered: requests - sorted.len() as u64,
        p50_s: at(50.0),
        p99_s: at(99.0),
        max_s: at(100.0),
    }
}

/// Points of the complementary distribution per factor of ten of the share.
const PER_DECADE: f64 = 40.0;

/// Latencies, seconds, with the share of requests that take longer, descending; those without an answer take longer
/// than any. Exact at each point; points are evenly spaced by the logarithm of the share, so that the tail keeps all
/// of its own. The last point is the longest latency with the share that is at least as long, as a logarithm
/// has no zero.
pub fn exceedance(latencies: impl IntoIterator<Item = Option<Nanos>>) -> Vec<(f64, f64)> {
    let mut count = 0usize;
    let mut sorted: Vec<Nanos> = latencies.into_iter().inspect(|_| count += 1).flatten().collect();
    sorted.sort_unstable();
    let mut points = Vec::new();
    // How many are longer or equal, but for the one itself: from all to none.
    let Some(mut beyond) = count.checked_sub(1).map(|others| others as f64) else { return points };
    loop {
        if let Some(latency) = sorted.get(count - 1 - whole(beyond)) {
            // Equal latencies do not take longer.
            let longer = count - sorted.partition_point(|other| other <= latency);
            points.push((latency.as_secs(), longer.max(1) as f64 / count as f64));
        }
        if beyond < 1.0 {
            break;
        }
        beyond = (beyond / 10f64.powf(1.0 / PER_DECADE)).min(beyond - 1.0);
    }
    // Where many have no answer, the longest that have one are not met by a step.
    if let Some(longest) = sorted.last() {
        points.push((longest.as_secs(), (count - sorted.len()).max(1) as f64 / count as f64));
    }
    points.dedup_by_key(|(latency, _)| *latency);
    points
}

/// Rounded down.
fn whole(count: f64) -> usize {
    // Not negative, and not more than a count of requests.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = count.max(0.0) as usize;
    whole
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
