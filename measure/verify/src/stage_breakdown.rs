//! Time of requests by stage, on average and in the tail.
//!
//! The tail consists of the requests at or above the percentile to be judged. Its excess is the
//! difference between its mean latency and the mean of all requests; the shares of all stages in it add
//! up to 1. A stage that takes most of the time of every request, but no more time in long ones, is not
//! the cause of the tail. Time between or outside of stages is a row of its own.

use crate::percentile::percentile_s;
use confidence::nearest_rank;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Nanos, Percentile};

/// The name of the row for time outside of all measured stages.
pub const ELSEWHERE: &str = "elsewhere";

/// The time that answered requests spent in one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageFinding {
    /// The name of the stage, or [`ELSEWHERE`].
    pub stage: String,
    /// The mean time in seconds.
    pub mean_s: f64,
    /// The 50th percentile of the time in seconds.
    pub p50_s: f64,
    /// The 99th percentile of the time in seconds.
    pub p99_s: f64,
    /// The 99.9th percentile of the time in seconds.
    pub p99_9_s: f64,
    /// The share of this stage in the mean latency, 0 to 1.
    pub share_of_mean: f64,
    /// The share of this stage in the excess of the tail over the mean; `None` when the tail takes no longer.
    pub share_of_tail_excess: Option<f64>,
}

/// Breaks latencies down by stage, with the requests at or above the percentile `judged` as the tail.
/// Each request is its latency with the time in each stage, in the order of `names`. The result has a row
/// per stage, and one for the time elsewhere if there was any; it is empty without requests or stages.
///
/// # Panics
/// When a request does not have one time per stage.
pub(crate) fn stage_breakdown<'a>(
    names: &[String],
    requests: &(impl Iterator<Item = (Nanos, &'a [Nanos])> + Clone),
    judged: Percentile,
) -> Vec<StageFinding> {
    let mut latencies: Vec<u64> = requests.clone().map(|(latency, _)| latency.0).collect();
    if names.is_empty() || latencies.is_empty() {
        return Vec::new();
    }
    requests.clone().for_each(|(_, times)| assert_eq!(times.len(), names.len(), "a time per stage"));
    let rank = nearest_rank(judged.percent(), latencies.len());
    let threshold = *latencies.select_nth_unstable(rank - 1).1;
    let tail = requests.clone().filter(|(latency, _)| latency.0 >= threshold);
    let mean_latency = mean(requests.clone().map(|(latency, _)| latency.0));
    let tail_excess = mean(tail.clone().map(|(latency, _)| latency.0)) - mean_latency;
    let mut findings = Vec::with_capacity(names.len() + 1);
    for index in 0..=names.len() {
        let name = names.get(index).map_or(ELSEWHERE, String::as_str);
        let times = requests.clone().map(|(latency, times)| time_in_stage(latency, times, index));
        let tail_mean = mean(tail.clone().map(|(latency, times)| time_in_stage(latency, times, index).0));
        findings.push(finding(name, times.collect(), mean_latency, tail_mean, tail_excess));
    }
    if findings.last().is_some_and(|elsewhere| elsewhere.mean_s == 0.0) {
        findings.pop();
    }
    findings
}

/// The time of a request in one stage, or elsewhere if `stage` is the number of stages.
fn time_in_stage(latency: Nanos, times: &[Nanos], stage: usize) -> Nanos {
    match times.get(stage) {
        Some(time) => *time,
        // Stages that were timed by clocks of several machines may add up to more than the latency.
        None => Nanos(latency.0.saturating_sub(times.iter().map(|time| time.0).sum())),
    }
}

fn finding(
    stage: &str,
    mut times: Vec<Nanos>,
    mean_latency: f64,
    tail_mean: f64,
    tail_excess: f64,
) -> StageFinding {
    times.sort_unstable();
    let own_mean = mean(times.iter().map(|time| time.0));
    StageFinding {
        stage: stage.to_owned(),
        mean_s: own_mean / 1e9,
        p50_s: percentile_s(&times, 50.0).unwrap_or_default(),
        p99_s: percentile_s(&times, 99.0).unwrap_or_default(),
        p99_9_s: percentile_s(&times, 99.9).unwrap_or_default(),
        share_of_mean: if mean_latency > 0.0 { own_mean / mean_latency } else { 0.0 },
        share_of_tail_excess: (tail_excess > 0.0).then(|| (tail_mean - own_mean) / tail_excess),
    }
}

fn mean(values: impl Iterator<Item = u64>) -> f64 {
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
        let found = stage_breakdown(&names, &requests, "95%".parse().unwrap());
        let shares: Vec<_> = found.iter().map(|at| (at.share_of_mean, at.share_of_tail_excess)).collect();
        assert_eq!(
            shares,
            [(0.75, Some(0.0)), (2.0 / 12.0, Some(1.0)), (1.0 / 12.0, Some(0.0))],
            "{found:?}"
        );
        assert_eq!(found[2].stage, ELSEWHERE);
        assert_eq!((found[1].p50_s, found[1].p99_s, found[1].mean_s), (0.001, 0.011, 0.002));
        assert_eq!(stage_breakdown(&names, &[].into_iter(), "95%".parse().unwrap()), []);
    }

    #[test]
    fn without_excess_there_is_nothing_to_share() {
        let times = [Nanos(5)];
        let requests = (0..10).map(|_| (Nanos(5), times.as_slice()));
        let found = stage_breakdown(&["only".to_owned()], &requests, "99%".parse().unwrap());
        assert!(found.len() == 1 && found[0].share_of_tail_excess.is_none());
    }
}
