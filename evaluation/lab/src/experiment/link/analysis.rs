//! Bounds, priorities and limits for servers that share the link of their answers.
//!
//! Bounds are of percentiles, as SLOs are, by the probabilistic model of chapter 4; worst cases are 1.4
//! to 2.4 times as long in figure 3.7. The effect of a tenant's own disk is known exactly, because a
//! request begins when the one before it is complete. The arrivals at the link are therefore known, too,
//! and limits and bounds apply to those. With a disk, it and the link may each be late for half of the
//! requests that may be late.
//!
//! Priorities come about in two ways. Figure 3.7 searches for them (§3.2). Figure 4.1 takes the order of
//! SLOs and admits tenants one after the other while all bounds are within their SLOs (§4.2); refused
//! tenants have the lowest priority and no guarantee.
//!
//! HTB schedules packets, not answers. A packet that has begun, the bytes that HTB sends at once, and the
//! path through kernel and server are covered by [`BASE`]: the measured time of a request that waits for no
//! other, not a worst case. The analysis of enforced servers (`predict::EnforcedModel`) omits the path
//! through kernel and server. For every percentile it assumes that each class sends a packet before its turn
//! or has a bucket in debt by one: 1.2 ms for six tenants. HTB lets that happen once in twelve seconds, too
//! rarely for any percentile of an experiment.

use super::super::definition::{ExperimentTenant, LabExperiment, PROTECTING_POLICY, SERVER};
use super::super::scaled_trace::{ScaledTrace, ceil_nanos};
use super::work::{link_time, tenant_disk};
use calculus::ArrivalCurve;
use confidence::nearest_rank;
use model::PRIORITY_LEVELS;
use model::{
    CircularTrace, Job, LatencyModel as _, PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload,
    ServerMember, Slo, Stage, StageLimit,
};
use predict::{Probabilistic, ProbabilisticSketch, Reshaping, WorstCase};
use units::{Nanos, Percentile};

/// Share by which limits may admit more than the traces.
const TOLERANCE: f64 = 0.05;
/// Time of a request besides queues and its own answer, seconds: 0.12 ms that HTB sends at once, 0.12 ms
/// for a packet of another tenant, and the machine.
const BASE: f64 = 0.001;
/// The bandwidth of the link in bytes per second.
const LINK_BYTES_PER_S: f64 = LabExperiment::LINK_BITS_PER_S / 8.0;

/// Tenants that share the link, as the analysis sees them.
pub(super) struct LinkAnalysis {
    names: Vec<&'static str>,
    /// Latencies at the tenant's disk in seconds, ascending; empty without a disk.
    disk_latencies: Vec<Vec<f64>>,
    model: Probabilistic,
    sketches: Vec<ProbabilisticSketch>,
    /// Arrival curves in seconds of link time.
    curves: Vec<ArrivalCurve>,
}

/// Returns the departure times of a period's requests from the tenant's disk, and their latencies there in
/// seconds. Without a disk these are the arrival times, and there are no latencies.
fn through_disk(tenant: &ExperimentTenant, sent: &ScaledTrace) -> (Vec<Nanos>, Vec<f64>) {
    let requests = sent.trace.items();
    let Some(disk) = tenant_disk(tenant, sent) else {
        return (requests.iter().map(|request| request.arrival).collect(), Vec::new());
    };
    // Only the second period counts: it finds the backlog that the first one left.
    let both_periods = sent.trace.until(Nanos(2 * sent.trace.period().0));
    let first_counted = both_periods.len() / 2;
    let mut departures = Vec::new();
    let mut latencies = Vec::new();
    let mut free_at = Nanos::ZERO;
    for (index, request) in both_periods.iter().enumerate() {
        free_at = free_at.max(request.arrival) + disk.service_time(request.op, request.size);
        if index >= first_counted {
            departures.push(free_at);
            latencies.push((free_at - request.arrival).as_secs());
        }
    }
    (departures, latencies)
}

/// The answers that a tenant sends over the link, by when they leave its server.
fn link_jobs(sent: &ScaledTrace, departures: &[Nanos]) -> CircularTrace<Job> {
    let mut jobs = Vec::with_capacity(departures.len());
    for (request, departure) in sent.trace.items().iter().zip(departures) {
        // Requests have a few hundred bytes on unshared links, so their cost is ignored.
        let mut work = PerStage::from_fn(|_| Nanos::ZERO);
        work[Stage::NetworkOut] = ceil_nanos(link_time(request) * 1e9);
        jobs.push(Job { arrival: Nanos(departure.0 % sent.trace.period().0), work });
    }
    jobs.sort_by_key(|job| job.arrival);
    CircularTrace::from_first_arrival(jobs, sent.trace.period()).expect("sorted arrivals within a period")
}

impl LinkAnalysis {
    /// An analysis of tenants that send these requests.
    pub(super) fn new(tenants: &[ExperimentTenant], sent: &[ScaledTrace]) -> Self {
        let mut analysis = Self {
            names: tenants.iter().map(|tenant| tenant.name).collect(),
            disk_latencies: Vec::new(),
            model: Probabilistic::default(),
            sketches: Vec::new(),
            curves: Vec::new(),
        };
        for (tenant, sent) in tenants.iter().zip(sent) {
            let (departures, mut latencies) = through_disk(tenant, sent);
            latencies.sort_by(f64::total_cmp);
            let jobs = link_jobs(sent, &departures);
            let worst_case = WorstCase { reshaping: Reshaping::EveryStage }.sketch(&jobs);
            analysis.disk_latencies.push(latencies);
            analysis.sketches.push(analysis.model.sketch(&jobs));
            analysis.curves.push(worst_case.curve(Stage::NetworkOut).clone());
        }
        analysis
    }

    /// Returns the latency that the link adds to each tenant at its percentile, seconds, for tenants in order
    /// of priority. `None` if a tenant has no bound.
    fn link_delays(&self, ranked: &[(usize, Percentile)]) -> Option<Vec<f64>> {
        let mut members = Vec::new();
        for (priority, &(tenant, percentile)) in (0..).zip(ranked) {
            members.push(ServerMember {
                sketch: &self.sketches[tenant],
                priority: PerStage::from_fn(|_| priority),
                group: tenant,
                percentile,
            });
        }
        self.model.predict(&members).into_iter().map(|prediction| Some(prediction.ok()?.bound)).collect()
    }

    /// The delays of a tenant at its disk and at the link below these others, seconds. Together they keep the percentile.
    fn delays(&self, tenant: usize, percentile: Percentile, above: &[usize]) -> (f64, f64) {
        let disk = &self.disk_latencies[tenant];
        let parts = if disk.is_empty() { 1.0 } else { 2.0 };
        let late = (100.0 - percentile.percent()) / parts;
        let part_percentile = Percentile::new(100.0 - late).expect("not below the percentile");
        let at_disk = match disk.len() {
            0 => 0.0,
            len => disk[nearest_rank(part_percentile.percent(), len) - 1],
        };
        let ranked: Vec<_> = above.iter().chain([&tenant]).map(|&member| (member, part_percentile)).collect();
        let at_link = self.link_delays(&ranked).and_then(|delays| delays.last().copied());
        (at_disk, at_link.unwrap_or(f64::INFINITY))
    }

    /// The latency that this percentile of a tenant's requests keeps when these others have higher priorities on the
    /// link, seconds.
    pub(super) fn bound(&self, tenant: usize, percentile: Percentile, above: &[usize]) -> f64 {
        let (disk, link) = self.delays(tenant, percentile, above);
        BASE + disk + link
    }

    /// Returns the protecting policy with priorities by search, and true if it keeps all SLOs.
    pub(super) fn policy_by_search(&self, slos: &[Slo]) -> (Policy, bool) {
        let budgets: Vec<f64> = slos.iter().map(|slo| slo.latency.0 - BASE).collect();
        let mut delays = |tenant: usize, above: &PerStage<Vec<usize>>| {
            let (disk, link) = self.delays(tenant, slos[tenant].percentile, &above[Stage::NetworkOut]);
            let mut delays = PerStage::from_fn(|_| 0.0);
            delays[Stage::Storage] = disk;
            delays[Stage::NetworkOut] = link;
            delays
        };
        let plan = placement::prioritise(&budgets, &mut delays);
        let mut placements = Vec::new();
        for (tenant, latency) in plan.latencies.iter().enumerate() {
            let priority = plan.priorities[tenant][Stage::NetworkOut];
            placements.push(Some(self.limited_placement(tenant, priority, latency + BASE)));
        }
        (self.policy(PROTECTING_POLICY, slos, placements), plan.missed.is_none())
    }

    /// Returns the protecting policy with priorities by SLO among the tenants that are admitted in their
    /// order, and true if all are admitted.
    pub(super) fn policy_by_admission(&self, slos: &[Slo]) -> (Policy, bool) {
        assert!(self.disk_latencies.iter().all(Vec::is_empty), "here all of the latency is the link's");
        let mut admitted: Vec<usize> = Vec::new();
        let mut bounds: Vec<f64> = Vec::new();
        for tenant in 0..slos.len() {
            let mut candidates = admitted.clone();
            let rank = candidates.partition_point(|&other| slos[other].latency.0 <= slos[tenant].latency.0);
            candidates.insert(rank, tenant);
            // HTB has a level for each, and one for the refused tenants.
            let Some(candidate_bounds) = self.kept_bounds(&candidates, slos) else { continue };
            if candidates.len() <= PRIORITY_LEVELS {
                (admitted, bounds) = (candidates, candidate_bounds);
            }
        }
        let mut placements: Vec<Option<PolicyPlacement>> = slos.iter().map(|_| None).collect();
        for ((priority, &tenant), &bound) in (0..).zip(&admitted).zip(&bounds) {
            placements[tenant] = Some(self.limited_placement(tenant, priority, bound));
        }
        (self.policy(PROTECTING_POLICY, slos, placements), admitted.len() == slos.len())
    }

    /// The bounds of tenants in order of priority, seconds, if all are within their SLOs.
    fn kept_bounds(&self, tenants: &[usize], slos: &[Slo]) -> Option<Vec<f64>> {
        let ranked: Vec<_> = tenants.iter().map(|&tenant| (tenant, slos[tenant].percentile)).collect();
        let bounds: Vec<f64> = self.link_delays(&ranked)?.into_iter().map(|delay| delay + BASE).collect();
        let are_kept = bounds.iter().zip(tenants).all(|(bound, &tenant)| *bound <= slos[tenant].latency.0);
        are_kept.then_some(bounds)
    }

    /// The policy of strict priority by SLO for all tenants, without limits.
    pub(super) fn by_slo(&self, slos: &[Slo]) -> Policy {
        let mut placements = Vec::new();
        for slo in slos {
            let tighter = slos.iter().filter(|other| other.latency.0 < slo.latency.0).count();
            let priority = u32::try_from(tighter).expect("few tenants");
            placements.push(Some(placement(priority, None)));
        }
        self.policy("by-slo", slos, placements)
    }

    /// A policy with these placements by tenant; a tenant without one is refused.
    fn policy(&self, name: &str, slos: &[Slo], placements: Vec<Option<PolicyPlacement>>) -> Policy {
        let mut workloads = Vec::new();
        for ((&tenant, &slo), placement) in self.names.iter().zip(slos).zip(placements) {
            workloads.push(match placement {
                Some(placement) => PolicyWorkload::admitted(tenant, slo, placement),
                None => PolicyWorkload::refused(tenant, slo, "with it, an SLO would not be kept for sure"),
            });
        }
        let server = PolicyServer {
            name: SERVER.into(),
            class: SERVER.into(),
            network_bytes_per_s: LINK_BYTES_PER_S,
            storage_profile: "none".into(),
            storage_profile_hash: None,
            enforcement: None,
        };
        Policy::new(name, vec![server], workloads)
            .unwrap_or_else(|error| panic!("limits that cannot be enforced: {error}"))
    }

    /// The placement of an admitted tenant with its limits.
    fn limited_placement(&self, tenant: usize, priority: u32, bound_s: f64) -> PolicyPlacement {
        let limits = placement::enforceable_limiters(&self.curves[tenant], TOLERANCE).into_iter();
        PolicyPlacement {
            limits: limits.map(|limit| StageLimit::new(Stage::NetworkOut, limit, LINK_BYTES_PER_S)).collect(),
            ..placement(priority, Some(bound_s))
        }
    }
}

/// A placement without limits.
fn placement(priority: u32, bound_s: Option<f64>) -> PolicyPlacement {
    let priority = PerStage::from_fn(|_| priority);
    PolicyPlacement { server: SERVER.into(), priority, bound_s, limits: Vec::new() }
}
