//! Where requests spend their time, on average and in the tail.
//!
//! The tail is the requests at or above the percentile that is judged. What they take longer than the average is
//! the tail's excess, and the stages' shares of it add up to 1: so a stage that takes most of the time of every
//! request, but no more of the long ones, is not what the tail comes from. Time between stages or
//! outside of them is a row of its own.

use confidence::nearest_rank;
use serde::{Deserialize, Serialize};
use units::{Nanos, Percentile};

/// The name of the time outside all stages that were measured.
pub const ELSEWHERE: &str = "elsewhere";

/// Time in one stage, of answered requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageFinding {
    /// Which.
    pub stage: String,
    /// Seconds, as are the percentiles of the time in this stage.
    pub mean_s: f64,
    /// Half of the requests at most so long.
    pub p50_s: f64,
    /// 99 of 100.
    pub p99_s: f64,
    /// 999 of 1000.
    pub p999_s: f64,
    /// Part of the mean latency, 0 to 1.
    pub share_of_mean: f64,
    /// Part of what requests of the tail take longer than the mean; none when they take no longer.
    pub share_of_tail_excess: Option<f64>,
}

/// Of requests with their latency and the time in each stage, as many as there are names; empty without requests or
/// stages.
///
/// # Panics
/// When a request does not have one time per stage.
pub fn stages<'a>(
    names: &[String],
    requests: &(impl Iterator<Item = (Nanos, &'a [Nanos])> + Clone),
    percentile: Percentile,
) -> Vec<StageFinding> {
    let mut latencies: Vec<u64> = requests.clone().map(|(latency, _)| latency.0).collect();
    if names.is_empty() || latencies.is_empty() {
        return Vec::new();
    }
    let rank = nearest_rank(percentile.percent(), latencies.len());
    let threshold = *latencies.select_nth_unstable(rank - 1).1;
    let mean = mean_of(requests.clone().map(|(latency, _)| latency.0));
    let tail = requests.clone().filter(|(latency, _)| latency.0 >= threshold);
    let excess = mean_of(tail.clone().map(|(latency, _)| latency.0)) - mean;
    let one = |index: usize| {
        let time = move |(latency, times): (Nanos, &[Nanos])| match times.get(index) {
            Some(time) => time.0,
            // Clocks of several machines may disagree: at least nothing.
            None => latency.0.saturating_sub(times.iter().map(|time| time.0).sum()),
        };
        let stage = names.get(index).map_or(ELSEWHERE, String::as_str);
        let in_tail = mean_of(tail.clone().map(time));
        finding(stage, requests.clone().map(time).collect(), mean, in_tail, excess)
    };
    requests.clone().for_each(|(_, times)| assert_eq!(times.len(), names.len(), "a time per stage"));
    let mut found: Vec<StageFinding> = (0..=names.len()).map(one).collect();
    // Nothing outside of the stages is nothing to tell.
    if found.last().is_some_and(|elsewhere| elsewhere.mean_s == 0.0) {
        found.pop();
    }
    found
}

fn finding(stage: &str, mut times: Vec<u64>, mean: f64, in_tail: f64, excess: f64) -> StageFinding {
    times.sort_unstable();
    let at = |percent: f64| Nanos(times[nearest_rank(percent, times.len()) - 1]).as_secs();
    let own = mean_of(times.iter().copied());
    StageFinding {
        stage: stage.to_owned(),
        mean_s: own / 1e9,
        p50_s: at(50.0),
        p99_s: at(99.0),
        p999_s: at(99.9),
        share_of_mean: if mean > 0.0 { own / mean } else { 0.0 },
        share_of_tail_excess: (excess > 0.0).then(|| (in_tail - own) / excess),
    }
}

fn mean_of(values: impl Iterator<Item = u64>) -> f64 {
    let (count, sum) = values.fold((0u64, 0u128), |(count, sum), value| (count + 1, sum + u128::from(value)));
    sum as f64 / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_comes_from_the_stage_that_varies() {
        // 9 ms at the device always; 1 ms on the network, or 11 ms for one in ten; 1 ms elsewhere.
        let times: Vec<[Nanos; 2]> = (0..1000)
            .map(|n| [Nanos(9_000_000), Nanos(if n % 10 == 0 { 11_000_000 } else { 1_000_000 })])
            .collect();
        let requests =
            times.iter().map(|times| (Nanos(times[0].0 + times[1].0 + 1_000_000), times.as_slice()));
        let names = ["storage".to_owned(), "network".to_owned()];
        let found = stages(&names, &requests, "95%".parse().unwrap());
        let shares: Vec<_> = found.iter().map(|at| (at.share_of_mean, at.share_of_tail_excess)).collect();
        assert_eq!(
            shares,
            [(0.75, Some(0.0)), (2.0 / 12.0, Some(1.0)), (1.0 / 12.0, Some(0.0))],
            "{found:?}"
        );
        assert_eq!(found[2].stage, ELSEWHERE);
        assert_eq!((found[1].p50_s, found[1].p99_s, found[1].mean_s), (0.001, 0.011, 0.002));
        assert_eq!(stages(&names, &[].into_iter(), "95%".parse().unwrap()), []);
    }

    #[test]
    fn without_excess_there_is_nothing_to_share() {
        let times = [Nanos(5)];
        let requests = (0..10).map(|_| (Nanos(5), times.as_slice()));
        let found = stages(&["only".to_owned()], &requests, "99%".parse().unwrap());
        assert!(found.len() == 1 && found[0].share_of_tail_excess.is_none());
    }
}
