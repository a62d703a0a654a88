//! Bounds with the buckets that a format really has.
//!
//! Traffic within the planned limit ⟨r, b⟩ waits at a bucket ⟨r′, b′⟩ for at most (b − b′)/r′. Then it waits at the
//! stage, where the buckets of all bound what may arrive: in the order of arrival the horizontal deviation of their
//! sum (Le Boudec and Thiran, §1.4.1), where its own traffic keeps to the plan as well (§1.5.2); with priorities Eq. 5.1 of the thesis. The difference to the same formula with
//! the planned limits and priorities is added to the bound of the plan. It holds for requests of the size and the
//! share of reads for which limits were converted.

use super::settings::{ExportSettings, PlannedLimit};
use crate::audit::{DeviceBucket, RequestCost, curve, tenant_buckets};
use crate::limit::{FoundLimit, LimitKind};
use calculus::{ArrivalCurve, PriorityQueue, StageLoad, round_up, shaping_delay, stage_delay};
use model::{Policy, PolicySlo, PolicyWorkload, Stage};
use schemars::JsonSchema;
use serde::Serialize;

/// Largest packet that another class may have begun to send, bytes.
const PACKET_BYTES: f64 = 1514.0;

/// Bound of a workload under the plan and under the export; that of the SLO with the least slack if it has several.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExportedBound {
    pub workload: String,
    /// Longest wait at the stage under the planned limits and priorities, seconds.
    pub planned_wait_s: Option<f64>,
    /// Longest wait at the exported limits, seconds; absent if there is no bound.
    pub limit_wait_s: Option<f64>,
    /// Longest wait at the stage behind the exported limits, seconds; absent if there is no bound.
    pub stage_wait_s: Option<f64>,
    /// Bound of the plan, seconds.
    pub planned_bound_s: Option<f64>,
    /// Bound under the export, seconds; absent if there is none.
    pub bound_s: Option<f64>,
    /// Latency of the SLO, seconds.
    pub slo_s: f64,
}

impl ExportedBound {
    /// Returns true if a promise of the plan is one under the export as well.
    pub fn is_kept(&self) -> bool {
        self.planned_bound_s.is_none() || self.bound_s.is_some_and(|bound| bound <= self.slo_s)
    }
}

/// Returns the bounds of all planned workloads.
pub(crate) fn bounds(
    policy: &Policy,
    planned: &[PlannedLimit],
    rows: &[FoundLimit],
    settings: &ExportSettings,
) -> Vec<ExportedBound> {
    let cost = RequestCost::new(&settings.profile, settings.request);
    let is_chosen = |name: &str| settings.server.as_ref().is_none_or(|chosen| chosen == name);
    let server = policy.servers.iter().find(|server| is_chosen(&server.name));
    let capacity = server.map_or(1.0, |server| server.network_bytes_per_s);
    let is_storage = settings.format.stage == Stage::Storage;
    let buckets: Vec<Vec<DeviceBucket>> = planned
        .iter()
        .map(|limit| {
            let is_own = |row: &&FoundLimit| row.tenant == limit.tenant && row.kind == LimitKind::Ceiling;
            let own: Vec<&FoundLimit> = rows.iter().filter(is_own).collect();
            if is_storage {
                return tenant_buckets(&own, &cost);
            }
            let bucket = |row: &&FoundLimit| DeviceBucket {
                rate: row.value / capacity,
                burst: row.burst.unwrap_or(0.0) / capacity,
            };
            own.iter().map(bucket).collect()
        })
        .collect();
    let curves: Vec<ArrivalCurve> = buckets.iter().map(|buckets| curve(buckets)).collect();
    let mut found = Vec::new();
    for (at, limit) in planned.iter().enumerate() {
        let planned_bucket = DeviceBucket { rate: limit.rate, burst: limit.burst };
        let own = curve(&[planned_bucket]);
        let waits =
            buckets[at].iter().map(|bucket| shaping_delay(&own, bucket.rate.max(limit.rate), bucket.burst));
        let limit_wait = waits.fold(0.0, f64::max);
        let load = |at_or_above: &dyn Fn(usize) -> f64, rate: &dyn Fn(usize) -> f64| StageLoad {
            burst_at_or_above: sum(planned, |other| other.priority <= limit.priority, at_or_above),
            rate_above: sum(planned, |other| other.priority < limit.priority, rate),
            blocking: if is_storage { 0.0 } else { PACKET_BYTES / capacity },
        };
        let planned_wait = stage_delay(load(&|other| planned[other].burst, &|other| planned[other].rate));
        let stage_wait = match is_storage {
            true => {
                // Its own traffic keeps to the plan as well; a bucket before the stage does not undo that.
                let mut all = curves.clone();
                let held: Vec<DeviceBucket> = buckets[at].iter().copied().chain([planned_bucket]).collect();
                all[at] = curve(&held);
                PriorityQueue::new().delay(&ArrivalCurve::sum(&all), 0.0)
            }
            false => stage_delay(load(&|other| buckets[other][0].burst, &|other| buckets[other][0].rate)),
        };
        let workload = policy.workloads.iter().find(|workload| workload.name == limit.name);
        // The wait is longer by the same time for all SLOs: the one with the least slack is exceeded first.
        let slack = |objective: &PolicySlo| {
            objective.bound_s.map_or(f64::INFINITY, |bound| objective.slo.slo.latency.0 - bound)
        };
        let objectives = workload.into_iter().flat_map(PolicyWorkload::objectives);
        let tightest = objectives.min_by(|a, b| slack(a).total_cmp(&slack(b)));
        let planned_bound = tightest.and_then(|objective| objective.bound_s);
        let bound =
            planned_bound.map(|bound| round_up(bound + (limit_wait + stage_wait - planned_wait).max(0.0)));
        let finite = |seconds: f64| seconds.is_finite().then_some(seconds);
        found.push(ExportedBound {
            workload: limit.name.clone(),
            planned_wait_s: finite(planned_wait),
            limit_wait_s: finite(limit_wait),
            stage_wait_s: finite(stage_wait),
            planned_bound_s: planned_bound,
            bound_s: bound.and_then(finite),
            slo_s: tightest.map_or(f64::INFINITY, |objective| objective.slo.slo.latency.0),
        });
    }
    found
}

fn sum(
    planned: &[PlannedLimit],
    counts: impl Fn(&PlannedLimit) -> bool,
    value: &dyn Fn(usize) -> f64,
) -> f64 {
    planned.iter().enumerate().filter(|(_, limit)| counts(limit)).map(|(at, _)| value(at)).sum()
}
