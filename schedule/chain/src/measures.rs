//! Measures of a play: latencies, slowdown, order and waiting, by the same functions for services and for
//! the simulator.

use crate::class_measures::ClassMeasures;
use crate::workload::{ChainRequest, ChainWorkload};
use confidence::nearest_rank;
use schemars::JsonSchema;
use serde::Serialize;
use sim::pool_tiers::PlayedRequest;
use units::Nanos;

/// Share of requests with the least work that are measured separately, percent (TailClipper, §5.4).
const SHORTEST_PERCENT: f64 = 1.0;

/// Figures of all requests of some plays. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlayMeasures {
    /// Number of requests that arrived.
    pub requests: usize,
    /// Requests that were answered; only they count below.
    pub answered: usize,
    /// The mean of latencies.
    pub mean_s: f64,
    /// The median of latencies.
    pub p50_s: f64,
    /// The 99th percentile of latencies.
    pub p99_s: f64,
    /// The 99.9th percentile of latencies.
    pub p99_9_s: f64,
    /// The mean of latency ÷ the latency of a request that is alone: its work, and its waits without CPU.
    pub slowdown_mean: f64,
    /// The 99th percentile of the same.
    pub slowdown_p99: f64,
    /// Share of requests whose position among completions differs from that in the ideal order, in which
    /// no request ever waits (TailClipper, §5.4), percent.
    pub reordering_pct: f64,
    /// Share of requests that are complete after one that is later in the ideal order, percent.
    pub overtaken_pct: f64,
    /// 99th percentile of the latencies of the requests whose work is among the least 1 %.
    pub shortest_p99_s: f64,
    /// Answers per second, from the first arrival to the last answer.
    pub throughput_per_s: f64,
    /// Mean over visits of the time at each tier beyond the work there; 0 for a tier without visits.
    pub wait_mean_s: Vec<f64>,
    /// Figures of late requests by class; empty if no class has an SLO.
    pub classes: Vec<ClassMeasures>,
}

impl PlayMeasures {
    /// Returns the figures of plays with their requests, in the order of the workload. Order and
    /// throughput are computed for each play separately. `None` if no request was answered.
    pub fn of(plays: &[(&ChainWorkload, &[PlayedRequest])]) -> Option<Self> {
        let answered = answered(plays);
        if answered.is_empty() {
            return None;
        }
        let latencies = sorted(answered.iter().map(|(request, done)| seconds(done.0 - request.arrival.0)));
        let slowdowns = sorted(answered.iter().map(|(request, done)| slowdown(request, *done)));
        let orders: Vec<(usize, usize)> = plays.iter().map(|play| out_of_order(&ends(play))).collect();
        let percent = |count: usize| 100.0 * count as f64 / answered.len() as f64;
        let duration: f64 = plays.iter().map(duration_s).sum();
        Some(Self {
            requests: plays.iter().map(|(workload, _)| workload.requests.len()).sum(),
            answered: answered.len(),
            mean_s: mean(&latencies),
            p50_s: percentile(&latencies, 50.0),
            p99_s: percentile(&latencies, 99.0),
            p99_9_s: percentile(&latencies, 99.9),
            slowdown_mean: mean(&slowdowns),
            slowdown_p99: percentile(&slowdowns, 99.0),
            reordering_pct: percent(orders.iter().map(|(displaced, _)| displaced).sum()),
            overtaken_pct: percent(orders.iter().map(|(_, overtaken)| overtaken).sum()),
            shortest_p99_s: percentile(&shortest(&answered), 99.0),
            throughput_per_s: if duration > 0.0 { answered.len() as f64 / duration } else { 0.0 },
            wait_mean_s: waits(plays),
            classes: ClassMeasures::of(plays),
        })
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    Nanos(nanoseconds).as_secs()
}

fn slowdown(request: &ChainRequest, done: Nanos) -> f64 {
    (done.0 - request.arrival.0) as f64 / request.ideal_latency().0 as f64
}

/// Returns the answered requests, with the time of the answer.
fn answered<'a>(plays: &[(&'a ChainWorkload, &'a [PlayedRequest])]) -> Vec<(&'a ChainRequest, Nanos)> {
    let all = plays.iter().flat_map(|(workload, played)| workload.requests.iter().zip(*played));
    all.filter_map(|(request, played)| Some((request, played.done?))).collect()
}

/// Returns the ideal and the measured completion time of each answered request, in the order of arrival.
fn ends((workload, played): &(&ChainWorkload, &[PlayedRequest])) -> Vec<(u64, u64)> {
    let all = workload.requests.iter().zip(*played);
    all.filter_map(|(request, played)| Some((request.ideal_end().0, played.done?.0))).collect()
}

/// Returns the numbers of displaced and of overtaken requests, from pairs of ideal and measured
/// completion times. Ties go by position.
fn out_of_order(ends: &[(u64, u64)]) -> (usize, usize) {
    let mut ideal: Vec<usize> = (0..ends.len()).collect();
    ideal.sort_by_key(|index| ends[*index].0);
    let mut position = vec![0; ends.len()];
    ideal.iter().enumerate().for_each(|(at, index)| position[*index] = at);
    let mut measured: Vec<usize> = (0..ends.len()).collect();
    measured.sort_by_key(|index| ends[*index].1);
    let mut displaced = 0;
    let mut overtaken = 0;
    let mut latest = 0;
    for (at, index) in measured.into_iter().enumerate() {
        displaced += usize::from(position[index] != at);
        overtaken += usize::from(position[index] < latest);
        latest = latest.max(position[index]);
    }
    (displaced, overtaken)
}

/// Returns the time from the first arrival to the last answer, seconds.
fn duration_s((workload, played): &(&ChainWorkload, &[PlayedRequest])) -> f64 {
    let last = played.iter().filter_map(|played| played.done).max();
    let first = workload.requests.first().map(|request| request.arrival);
    first.zip(last).map_or(0.0, |(first, last)| seconds(last.0.saturating_sub(first.0)))
}

/// Returns the sorted latencies of the requests with the least work; at least one.
fn shortest(answered: &[(&ChainRequest, Nanos)]) -> Vec<f64> {
    let mut work: Vec<u64> = answered.iter().map(|(request, _)| request.work().0).collect();
    work.sort_unstable();
    let limit = work[nearest_rank(SHORTEST_PERCENT, work.len()) - 1];
    let short = answered.iter().filter(|(request, _)| request.work().0 <= limit);
    sorted(short.map(|(request, done)| seconds(done.0 - request.arrival.0)))
}

/// Returns the mean over visits of the time at each tier beyond the work there.
fn waits(plays: &[(&ChainWorkload, &[PlayedRequest])]) -> Vec<f64> {
    let tiers = plays.first().map_or(0, |(workload, _)| workload.tiers.len());
    let mean_wait = |tier: usize| {
        let time = plays.iter().flat_map(|(_, played)| *played).map(|played| played.at_tiers[tier].0);
        let work: u64 = plays.iter().map(|(workload, _)| workload.work(tier).0).sum();
        let visits: usize = plays.iter().map(|(workload, _)| workload.visits(tier)).sum();
        let wait = time.sum::<u64>().saturating_sub(work);
        if visits == 0 { 0.0 } else { seconds(wait) / visits as f64 }
    };
    (0..tiers).map(mean_wait).collect()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn percentile(sorted: &[f64], percent: f64) -> f64 {
    sorted[nearest_rank(percent, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{ChainClass, ChainEntry, ChainTier};
    use proptest::prelude::*;
    use sim::pool_tiers::RouteHop;

    fn workload(requests: &[(u64, u64)]) -> ChainWorkload {
        let request = |(arrival, work): &(u64, u64)| ChainRequest {
            arrival: Nanos(*arrival),
            entry: 0,
            class: 0,
            route: vec![RouteHop { tier: 0, wait: Nanos::ZERO, work: Nanos(*work) }],
        };
        ChainWorkload {
            tiers: vec![ChainTier { name: "a".into(), workers: 1 }],
            entries: vec![ChainEntry { window: None, skew_ns: 0 }],
            classes: vec![ChainClass { name: "all".into(), slo: None }],
            requests: requests.iter().map(request).collect(),
            serialised: 0,
        }
    }

    fn played(done: Option<u64>, at_tier: u64) -> PlayedRequest {
        PlayedRequest { done: done.map(Nanos), at_tiers: vec![Nanos(at_tier)] }
    }

    #[test]
    fn a_play_by_hand() {
        // Works of 4 s and 1 s that arrive together: the short one ends first ideally, and second here.
        let second = 1_000_000_000;
        let workload = workload(&[(0, 4 * second), (0, second)]);
        let plays = [played(Some(4 * second), 4 * second), played(Some(5 * second), 5 * second)];
        let measures = PlayMeasures::of(&[(&workload, &plays)]).unwrap();
        assert_eq!((measures.requests, measures.answered), (2, 2));
        assert_eq!((measures.p50_s, measures.p99_s, measures.mean_s), (4.0, 5.0, 4.5));
        assert_eq!((measures.slowdown_p99, measures.slowdown_mean), (5.0, 3.0));
        assert_eq!((measures.reordering_pct, measures.overtaken_pct), (100.0, 50.0));
        assert_eq!((measures.shortest_p99_s, measures.throughput_per_s), (5.0, 0.4));
        assert_eq!(measures.wait_mean_s, [2.0]);
    }

    #[test]
    fn requests_without_an_answer_are_counted_and_no_more() {
        let workload = workload(&[(0, 10), (5, 10)]);
        let some = PlayMeasures::of(&[(&workload, &[played(Some(20), 10), played(None, 0)])]).unwrap();
        assert_eq!((some.requests, some.answered, some.reordering_pct), (2, 1, 0.0));
        assert_eq!(PlayMeasures::of(&[(&workload, &[played(None, 0), played(None, 0)])]), None);
        assert_eq!(PlayMeasures::of(&[]), None);
    }

    proptest! {
        /// The reference: all pairs.
        #[test]
        fn order_is_that_of_pairs(ends in proptest::collection::vec((0u64..40, 0u64..40), 0..40)) {
            let (displaced, overtaken) = out_of_order(&ends);
            let rank = |key: &dyn Fn(usize) -> (u64, usize), index: usize| {
                (0..ends.len()).filter(|other| key(*other) < key(index)).count()
            };
            let ideal = |index: usize| (ends[index].0, index);
            let measured = |index: usize| (ends[index].1, index);
            let is_overtaken = |index: &usize| (0..ends.len())
                .any(|other| measured(other) < measured(*index) && ideal(other) > ideal(*index));
            let moved = (0..ends.len()).filter(|index| rank(&ideal, *index) != rank(&measured, *index));
            prop_assert_eq!(displaced, moved.count());
            prop_assert_eq!(overtaken, (0..ends.len()).filter(is_overtaken).count());
        }
    }
}
