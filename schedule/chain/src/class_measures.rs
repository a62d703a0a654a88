//! Measures of each class of requests in a play. A request is late if it is answered after its SLO or not
//! at all.

use crate::workload::{ChainClass, ChainRequest, ChainWorkload};
use confidence::nearest_rank;
use schemars::JsonSchema;
use serde::Serialize;
use sim::pool_tiers::PlayedRequest;
use units::Nanos;

/// Figures of the requests of a class, of all plays together. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassMeasures {
    /// Name of the class.
    pub class: String,
    /// Its SLO: the time from arrival to deadline; none for a class without one.
    pub slo_s: Option<f64>,
    /// The requests of the class that arrived.
    pub requests: usize,
    /// Share of these that were answered after their deadline or not at all, percent; none without an SLO or a request.
    pub late_pct: Option<f64>,
    /// Mean latency of the answered requests; none if there are none.
    pub mean_s: Option<f64>,
    /// 99th percentile of the latencies of the answered requests; none if there are none.
    pub p99_s: Option<f64>,
}

impl ClassMeasures {
    /// Returns the figures of each class of the workload, in its order; empty if no class has an SLO.
    pub(crate) fn of(plays: &[(&ChainWorkload, &[PlayedRequest])]) -> Vec<Self> {
        let classes = plays.first().map_or(&[][..], |(workload, _)| &workload.classes);
        if classes.iter().all(|class| class.slo.is_none()) {
            return Vec::new();
        }
        let all: Vec<(&ChainRequest, Option<Nanos>)> = plays
            .iter()
            .flat_map(|(workload, played)| workload.requests.iter().zip(*played))
            .map(|(request, played)| (request, played.done))
            .collect();
        classes.iter().enumerate().map(|(number, class)| Self::of_class(number, class, &all)).collect()
    }

    fn of_class(number: usize, class: &ChainClass, all: &[(&ChainRequest, Option<Nanos>)]) -> Self {
        let own: Vec<_> = all.iter().filter(|(request, _)| request.class == number).collect();
        let latency =
            |(request, done): &&(&ChainRequest, Option<Nanos>)| Some(done.as_ref()?.0 - request.arrival.0);
        let mut latencies: Vec<u64> = own.iter().filter_map(latency).collect();
        latencies.sort_unstable();
        let late_pct = class.slo.filter(|_| !own.is_empty()).map(|slo| {
            let in_time = latencies.partition_point(|latency| *latency <= slo.ns());
            100.0 * (own.len() - in_time) as f64 / own.len() as f64
        });
        let answered = (!latencies.is_empty()).then_some(latencies.len());
        Self {
            class: class.name.clone(),
            slo_s: class.slo.map(|slo| Nanos(slo.ns()).as_secs()),
            requests: own.len(),
            late_pct,
            mean_s: answered.map(|count| latencies.iter().sum::<u64>() as f64 / 1e9 / count as f64),
            p99_s: answered.map(|count| Nanos(latencies[nearest_rank(99.0, count) - 1]).as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{ChainEntry, ChainTier};
    use gat::RequestSlo;
    use sim::pool_tiers::RouteHop;
    use std::time::Duration;

    fn class(name: &str, slo_s: Option<u64>) -> ChainClass {
        let slo = slo_s.map(|seconds| RequestSlo::new(Duration::from_secs(seconds)).unwrap());
        ChainClass { name: name.into(), slo }
    }

    #[test]
    fn lateness_by_hand() {
        let request = |class| ChainRequest {
            arrival: Nanos(1_000_000_000),
            entry: 0,
            class,
            route: vec![RouteHop { tier: 0, wait: Nanos::ZERO, work: Nanos(1) }],
        };
        let mut workload = ChainWorkload {
            tiers: vec![ChainTier { name: "a".into(), workers: 1 }],
            entries: vec![ChainEntry { window: None, skew_ns: 0 }],
            classes: vec![
                class("web", Some(1)),
                class("batch", Some(9)),
                class("idle", Some(1)),
                class("any", None),
            ],
            requests: [0, 0, 0, 0, 1, 3].map(request).to_vec(),
            serialised: 0,
        };
        // On time to the nanosecond, a nanosecond late, far too late, never answered; on time; without a
        // deadline.
        let done = [
            Some(2_000_000_000),
            Some(2_000_000_001),
            Some(5_000_000_000),
            None,
            Some(3_000_000_000),
            Some(9_000_000_000),
        ];
        let played = done.map(|done| PlayedRequest { done: done.map(Nanos), at_tiers: vec![Nanos(1)] });
        let classes = ClassMeasures::of(&[(&workload, &played)]);
        let late: Vec<Option<f64>> = classes.iter().map(|class| class.late_pct).collect();
        assert_eq!(late, [Some(75.0), Some(0.0), None, None]);
        assert_eq!((classes[0].requests, classes[0].p99_s, classes[0].slo_s), (4, Some(4.0), Some(1.0)));
        assert_eq!((classes[2].mean_s, classes[3].mean_s), (None, Some(8.0)));
        workload.classes.iter_mut().for_each(|class| class.slo = None);
        assert_eq!(ClassMeasures::of(&[(&workload, &played)]), []);
        assert_eq!(ClassMeasures::of(&[]), []);
    }
}
