//! Real traffic of a workload, against its limits.

use super::live::{HOUR, LiveCurve, LiveRecord};
use crate::state::{ClusterState, WorkloadState};
use model::{PerStage, Stage, StageLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Nanos, Seconds};
use workload::burst::BurstEnvelope;
use workload::{Footprint, LiveDemand};

/// Burst curves of what a workload sent, on the stages of its server.
#[derive(Debug, Clone)]
pub struct NormalisedCurves {
    curve: LiveCurve,
    /// Base units per second.
    capacity: PerStage<f64>,
}

impl NormalisedCurves {
    pub(super) fn new(curve: LiveCurve, state: &ClusterState, workload: &WorkloadState) -> Option<Self> {
        let kind = state.kinds.get(&state.servers.get(&workload.server)?.class)?;
        let capacity = PerStage::from_fn(|stage| match stage {
            Stage::Storage => 1e9,
            Stage::NetworkIn | Stage::NetworkOut => kind.class().network.bytes_per_sec(),
        });
        Some(Self { curve, capacity })
    }

    /// Returns the least burst with which a limiter of this rate would have delayed nothing, seconds of capacity.
    pub fn least_burst(&self, stage: Stage, rate: f64) -> f64 {
        let capacity = self.capacity[stage];
        self.envelope(stage).burst(rate * capacity) / capacity
    }

    /// Returns the least rate with which a limiter of this burst would have delayed nothing; `None` if there is none.
    pub fn least_rate(&self, stage: Stage, burst: f64) -> Option<f64> {
        let capacity = self.capacity[stage];
        Some(self.envelope(stage).least_rate(burst * capacity)? / capacity)
    }

    /// Returns the mean rate, fraction of capacity.
    pub fn mean_rate(&self, stage: Stage) -> f64 {
        let rate = self.curve.work[stage].base_units() / self.curve.observed.as_secs();
        if rate.is_finite() { rate / self.capacity[stage] } else { 0.0 }
    }

    pub fn envelope(&self, stage: Stage) -> &BurstEnvelope {
        &self.curve.envelopes[stage as usize]
    }

    pub fn requests(&self) -> u64 {
        self.curve.requests
    }

    /// Returns the time that was observed.
    pub fn observed(&self) -> Nanos {
        self.curve.observed
    }

    /// Returns the work of the traffic; `None` if a proxy did not tell its largest request.
    pub fn footprint(&self) -> Option<Footprint> {
        let LiveCurve { requests, observed, work, largest, envelopes } = &self.curve;
        Some(Footprint::of_live(&LiveDemand {
            envelopes,
            span: *observed,
            total: *work,
            requests: *requests,
            largest: (*largest)?,
        }))
    }
}

/// Real traffic of a workload, against its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveTraffic {
    /// Limits that would have held in the last hour, if it needed more than its own; otherwise what it did not use.
    pub summary: String,
    /// The last hour, day and week. A window is a quarter longer at most.
    pub windows: Vec<LiveWindow>,
}

/// Traffic of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveWindow {
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Time of it that was observed, seconds.
    pub observed_s: f64,
    /// Number of reads and writes in the curves.
    pub requests: u64,
    pub limits: Vec<LiveLimit>,
}

/// A limit of the latest policy, and what would have been enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveLimit {
    pub stage: Stage,
    /// Rate of the limit, fraction of capacity.
    pub rate: f64,
    /// Burst of the limit, seconds of capacity.
    pub burst: f64,
    /// Mean rate of the traffic, fraction of capacity.
    pub mean_rate: f64,
    /// Least burst with which a limiter of `rate` would have delayed nothing, seconds of capacity.
    pub burst_needed: f64,
    /// `burst_needed` ÷ `burst`; absent for a burst of 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_share: Option<f64>,
    /// Least rate with which a limiter of `burst` would have delayed nothing, fraction of capacity; absent if the largest
    /// batch needs a larger burst at any rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_needed: Option<f64>,
}

impl LiveLimit {
    pub(crate) fn new(limit: &StageLimit, curves: &NormalisedCurves) -> Self {
        let stage = limit.stage;
        let rate = limit.limit.rate;
        let burst = limit.limit.burst;
        let burst_needed = curves.least_burst(stage, rate);
        Self {
            stage,
            rate,
            burst,
            mean_rate: curves.mean_rate(stage),
            burst_needed,
            burst_share: (burst > 0.0).then(|| burst_needed / burst),
            rate_needed: curves.least_rate(stage, burst),
        }
    }

    /// Returns true if the limit would have delayed requests.
    pub fn is_outgrown(&self) -> bool {
        self.burst_share.is_some_and(|share| share > 1.0)
    }

    /// Returns limits that would have held instead, in words.
    fn needed(&self) -> String {
        let Self { stage, rate, burst, burst_needed, burst_share, rate_needed, .. } = self;
        let share = burst_share.unwrap_or(f64::INFINITY);
        let mut text = format!(
            "{stage}: a burst of {} at the rate of {} ({share:.2} times the promised burst)",
            Seconds(*burst_needed),
            percent(*rate)
        );
        match rate_needed {
            Some(needed) => {
                text += &format!(", or a rate of {} at the burst of {}", percent(*needed), Seconds(*burst));
            }
            None => text += ", and no rate at its own burst",
        }
        text
    }

    /// Returns what was not used, in words.
    pub(crate) fn unused(&self) -> Option<String> {
        let share = self.burst_share?;
        let mut text =
            format!("{}: {} of the burst at the rate", self.stage, percent((1.0 - share).max(0.0)));
        if let Some(needed) = self.rate_needed.filter(|_| self.rate > 0.0) {
            text +=
                &format!(", or {} of the rate at the burst", percent((1.0 - needed / self.rate).max(0.0)));
        }
        Some(text)
    }
}

impl LiveTraffic {
    /// Describes what a workload sent; `None` without traffic, or limits.
    pub(super) fn of(
        record: &LiveRecord,
        state: &ClusterState,
        workload: &WorkloadState,
        now: u64,
    ) -> Option<Self> {
        let limits = state.limits(workload)?;
        let mut windows = Vec::new();
        for (length, curve) in record.windows(now) {
            let curves = NormalisedCurves::new(curve, state, workload)?;
            windows.push(LiveWindow {
                window_s: Nanos(length).as_secs(),
                observed_s: curves.curve.observed.as_secs(),
                requests: curves.requests(),
                limits: limits.iter().map(|limit| LiveLimit::new(limit, &curves)).collect(),
            });
        }
        let summary = summary(&windows)?;
        Some(Self { summary, windows })
    }

    /// Returns limits that would have held in the last hour, in words; `None` if the promised ones would.
    pub(super) fn limits_needed(&self) -> Option<String> {
        self.windows.iter().find_map(needed_in_the_last_hour)
    }
}

fn needed_in_the_last_hour(window: &LiveWindow) -> Option<String> {
    let is_hour = window.window_s == Nanos(HOUR).as_secs();
    let outgrown = window.limits.iter().filter(|limit| is_hour && limit.is_outgrown());
    let needed: Vec<String> = outgrown.map(LiveLimit::needed).collect();
    (!needed.is_empty())
        .then(|| format!("limits that would have held in the last hour: {}", needed.join("; ")))
}

fn summary(windows: &[LiveWindow]) -> Option<String> {
    let longest = windows.last()?;
    if let Some(needed) = windows.iter().find_map(needed_in_the_last_hour) {
        return Some(needed);
    }
    let observed = duration(longest.observed_s);
    if longest.limits.iter().any(LiveLimit::is_outgrown) {
        return Some(format!("its limits would have held in the last hour, and not in all of {observed}"));
    }
    let unused: Vec<String> = longest.limits.iter().filter_map(LiveLimit::unused).collect();
    Some(format!("never used in {observed}: {}", unused.join("; ")))
}

/// Writes a duration in the largest unit of which there are two.
pub(crate) fn duration(seconds: f64) -> String {
    let units = [(86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds")];
    let (length, unit) = units.into_iter().find(|(length, _)| seconds >= 2.0 * length).unwrap_or(units[3]);
    format!("{:.0} {unit}", seconds / length)
}

pub(crate) fn percent(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_would_hold_are_named() {
        let limit = |burst, burst_needed, rate_needed| LiveLimit {
            stage: Stage::Storage,
            rate: 0.1,
            burst,
            mean_rate: 0.05,
            burst_needed,
            burst_share: Some(burst_needed / burst),
            rate_needed,
        };
        let window =
            |limit| [LiveWindow { window_s: 3600.0, observed_s: 60.0, requests: 9, limits: vec![limit] }];
        assert_eq!(
            summary(&window(limit(0.02, 0.05, Some(0.3)))).as_deref(),
            Some(
                "limits that would have held in the last hour: storage: a burst of 50ms at the rate of 10 % (2.50 times \
                 the promised burst), or a rate of 30 % at the burst of 20ms"
            )
        );
        assert!(summary(&window(limit(0.02, 0.05, None))).expect("a text").contains("no rate at its own"));
        assert_eq!(
            summary(&window(limit(0.02, 0.01, Some(0.08)))).as_deref(),
            Some(
                "never used in 60 seconds: storage: 50 % of the burst at the rate, or 20 % of the rate at the burst"
            )
        );
    }
}
