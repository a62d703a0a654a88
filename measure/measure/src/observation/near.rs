//! Mean time per stage of the requests near a percentile of the latency.

use crate::observation::sample::RequestRun;
use observe::{ObservedRequest, STAGE_NAMES, STAGES};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use units::{Nanos, Percentile, in_base_units};

/// The percentiles, by the name that tables give them.
const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

/// Minimum number of requests on each side of the percentile, unless the sample ends sooner.
const NEIGHBOURS_MIN: usize = 5;

/// The mean time in each stage of the requests whose latency T6 − T0 is near a percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct StagesNear {
    /// The name of the percentile.
    pub percentile: &'static str,
    /// The latency at the percentile.
    #[serde(rename = "latency_s", serialize_with = "in_base_units")]
    #[schemars(with = "f64")]
    pub latency: Nanos,
    /// Number of requests that the means are taken over. Their ranks differ from the percentile's by at most a tenth of
    /// its distance to the maximum, or by 5 if that is more.
    pub requests: usize,
    /// The mean time in each stage in nanoseconds, in order.
    #[serde(rename = "stage_means_s", serialize_with = "by_stage")]
    #[schemars(
        with = "BTreeMap<&'static str, f64>",
        description = "The mean time in each stage, in seconds."
    )]
    pub means: [f64; STAGES],
}

fn by_stage<S: Serializer>(nanoseconds: &[f64; STAGES], serializer: S) -> Result<S::Ok, S::Error> {
    let seconds = nanoseconds.map(|mean| mean / 1e9);
    STAGE_NAMES.into_iter().zip(seconds).collect::<BTreeMap<_, _>>().serialize(serializer)
}

/// Returns the stages near each percentile that has enough requests above it.
pub(super) fn stages_near(runs: &[RequestRun]) -> Vec<StagesNear> {
    let mut requests: Vec<&ObservedRequest> = runs.iter().flat_map(|run| &run.requests).collect();
    requests.sort_by_key(|request| (request.latency_from_wire(), request.points));
    let known = PERCENTILES
        .into_iter()
        .filter(|(_, percent)| requests.len() as f64 * (100.0 - percent) >= 100.0 * NEIGHBOURS_MIN as f64);
    known.filter_map(|(name, percent)| near(&requests, name, Percentile::new(percent)?)).collect()
}

fn near(sorted: &[&ObservedRequest], name: &'static str, percentile: Percentile) -> Option<StagesNear> {
    let place = sim::nearest_rank(percentile, sorted.len()) - 1;
    let reach = ((sorted.len() - place) / 10).max(NEIGHBOURS_MIN);
    let around = sorted.get(place.saturating_sub(reach)..(place + reach + 1).min(sorted.len()))?;
    let mut sums = [0u128; STAGES];
    for request in around {
        for (sum, time) in sums.iter_mut().zip(request.stages()) {
            *sum += u128::from(time);
        }
    }
    let means = sums.map(|sum| sum as f64 / around.len() as f64);
    let latency = Nanos(sorted[place].latency_from_wire());
    Some(StagesNear { percentile: name, latency, requests: around.len(), means })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;

    #[test]
    fn the_stage_that_makes_requests_slow_is_large_near_the_tail() {
        // 1 us of service each; every fiftieth waits for 1 ms.
        let requests = (0..10_000u64).map(|n| {
            let at = n * 10_000_000;
            request(at, at + if n % 50 == 0 { 1_000_000 } else { 0 }, 1000)
        });
        let found = stages_near(&[RequestRun::new(requests.collect(), 0)]);
        let names: Vec<&str> = found.iter().map(|near| near.percentile).collect();
        assert_eq!(names, ["p50", "p90", "p99", "p99.9"]);
        assert_eq!((found[0].latency, found[0].requests, found[0].means[2]), (Nanos(1000), 1001, 0.0));
        assert_eq!((found[2].latency, found[2].means[2]), (Nanos(1_001_000), 1e6));
        for near in &found {
            assert!((near.means.iter().sum::<f64>() - near.latency.0 as f64).abs() < 1e-3, "{near:?}");
        }
        assert_eq!(stages_near(&[]), Vec::new());
        let few = (0..30).map(|n| request(n, n, 1)).collect();
        assert!(stages_near(&[RequestRun::new(few, 0)]).iter().all(|near| near.percentile == "p50"));
    }
}
