//! Requests of one period and their summary.

use confidence::nearest_rank;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// Reported percentiles, in percent.
pub const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

/// Resource use in a period; `None` for unknown values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ResourceUse {
    /// CPU time of the server, nanoseconds.
    #[serde(rename = "cpu_s", serialize_with = "known_in_seconds")]
    #[schemars(with = "Option<f64>", description = "CPU time of the server, seconds.")]
    pub cpu_ns: Option<u64>,
    /// Energy of all CPU packages of the machine, microjoules; includes all other programs.
    #[serde(rename = "energy_j", serialize_with = "known_in_joules")]
    #[schemars(with = "Option<f64>", description = "Energy of all CPU packages of the machine, joules.")]
    pub energy_uj: Option<u64>,
}

/// Summary of the requests that arrived in a period.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PeriodResult {
    /// Requests that arrived in the period and were answered.
    pub requests: u64,
    /// Length of the period, seconds.
    pub seconds: f64,
    /// Mean latency, nanoseconds.
    #[serde(rename = "mean_s", serialize_with = "mean_in_seconds")]
    #[schemars(description = "Mean latency, seconds.")]
    pub mean_ns: f64,
    /// Latency at the percentile under test, nanoseconds.
    #[serde(rename = "tested_s", serialize_with = "in_seconds")]
    #[schemars(with = "f64", description = "Latency at the percentile under test, seconds.")]
    pub tested_ns: u64,
    /// Latencies at [`PERCENTILES`], nanoseconds.
    #[serde(skip)]
    pub percentiles_ns: [u64; PERCENTILES.len()],
    #[serde(flatten)]
    pub used: ResourceUse,
}

fn mean_in_seconds<S: Serializer>(nanoseconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(nanoseconds * 1e-9)
}

fn in_seconds<S: Serializer>(nanoseconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    mean_in_seconds(&(*nanoseconds as f64), serializer)
}

fn known_in_seconds<S: Serializer>(nanoseconds: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    nanoseconds.map(|nanoseconds| nanoseconds as f64 * 1e-9).serialize(serializer)
}

fn known_in_joules<S: Serializer>(microjoules: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    microjoules.map(|microjoules| microjoules as f64 * 1e-6).serialize(serializer)
}

impl PeriodResult {
    /// Summarises latencies in nanoseconds; `None` if there are none.
    pub fn of(mut latencies: Vec<u64>, tested_percent: f64, seconds: f64, used: ResourceUse) -> Option<Self> {
        latencies.sort_unstable();
        let count = latencies.len();
        if count == 0 {
            return None;
        }
        let at = |percent: f64| latencies[nearest_rank(percent, count) - 1];
        Some(Self {
            seconds,
            requests: count as u64,
            mean_ns: latencies.iter().sum::<u64>() as f64 / count as f64,
            percentiles_ns: PERCENTILES.map(at),
            tested_ns: at(tested_percent),
            used,
        })
    }

    /// Returns the arrival rate, requests per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Returns the CPU time per request, nanoseconds.
    pub fn cpu_per_request_ns(&self) -> Option<f64> {
        self.used.cpu_ns.map(|cpu| cpu as f64 / self.requests as f64)
    }

    /// Returns the energy per request, joules.
    pub fn energy_per_request_j(&self) -> Option<f64> {
        self.used.energy_uj.map(|energy| energy as f64 * 1e-6 / self.requests as f64)
    }
}

/// Latencies by arrival, for periods that are not summarised yet.
#[derive(Debug, Default)]
pub(crate) struct LatencyWindow {
    arrived: Vec<(u64, u64)>,
    /// End of the last summarised period.
    judged_until: u64,
    /// Requests answered after the period of their arrival was summarised.
    late: u64,
    /// Beginnings and ends of summarised periods, ascending.
    windows: Vec<(u64, u64)>,
}

impl LatencyWindow {
    pub(crate) fn add(&mut self, arrival: u64, latency: u64) {
        if arrival < self.judged_until {
            let is_within = self.windows.iter().any(|(begin, end)| (*begin..*end).contains(&arrival));
            self.late += u64::from(is_within);
        } else {
            self.arrived.push((arrival, latency));
        }
    }

    /// Returns the latencies of requests that arrived in a period, and forgets all arrivals before its end.
    pub(crate) fn take(&mut self, begin: u64, end: u64) -> Vec<u64> {
        let is_within = |(arrival, _): &&(u64, u64)| (begin..end).contains(arrival);
        let taken = self.arrived.iter().filter(is_within).map(|(_, latency)| *latency).collect();
        self.arrived.retain(|(arrival, _)| *arrival >= end);
        self.judged_until = end;
        self.windows.push((begin, end));
        taken
    }

    /// Returns true if requests are waiting to be taken by a period.
    pub(crate) fn has_requests(&self) -> bool {
        !self.arrived.is_empty()
    }

    pub(crate) fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_what_arrived_in_it() {
        let mut window = LatencyWindow::default();
        (0..100).for_each(|arrival| window.add(arrival, 1000 - arrival));
        assert_eq!(window.take(10, 13), [990, 989, 988]);
        window.add(12, 5000);
        window.add(5, 5000);
        assert_eq!((window.late(), window.take(98, 200)), (1, vec![902, 901]));
        assert!(window.take(200, 300).is_empty());
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let used = ResourceUse { cpu_ns: Some(5_000), energy_uj: Some(2_000_000) };
        let result =
            PeriodResult::of((1..=1000).rev().collect(), 99.0, 2.0, used).expect("there are requests");
        assert_eq!(result.percentiles_ns, [500, 900, 990, 999, 1000]);
        assert_eq!((result.tested_ns, result.rate(), result.mean_ns), (990, 500.0, 500.5));
        assert_eq!(result.cpu_per_request_ns(), Some(5.0));
        assert_eq!(result.energy_per_request_j(), Some(0.002));
        assert_eq!(PeriodResult::of(Vec::new(), 99.0, 2.0, used), None);
    }
}
