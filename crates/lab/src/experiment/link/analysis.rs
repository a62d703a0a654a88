//! Bounds, priorities and limits where servers share the link on which answers leave.
//!
//! Bounds are of percentiles, as SLOs are, by the probabilistic model of chapter 4; worst cases are 1.4 to 2.4 times as
//! long in figure 3.7. What a disk of one's own does to requests is known exactly: a
//! request begins when the one before it is done. So what comes to the link is known, too, and limits and bounds are of that.
//! Where there is a disk, it and the link each may be late for half of the requests that may be late.
//!
//! Two ways to priorities: figure 3.7 searches for them (§3.2); figure 4.1 takes the order of SLOs and admits tenants one
//! after the other while everybody's bound is within its SLO (§4.2). Whoever is refused goes last, without a promise.
//!
//! HTB serves packets, not answers: a packet that has begun, what it lets pass at once, and the way there and back through
//! kernel and server are [`BASE`].

use super::super::analysis::{PROTECTED, SERVER};
use super::super::data::{Experiment, Tenant};
use super::super::demand::{Demand, nanos_up};
use super::{disk, on_link};
use calculus::ArrivalCurve;
use confidence::nearest_rank;
use enforce::deployment::LEVELS;
use model::{
    CircularTrace, Job, LatencyModel as _, POLICY_FORMAT, PerStage, Policy, PolicyServer, PolicyWorkload,
    RateLimit, Request, ServerMember, Slo, Stage, StageLimit,
};
use predict::{Probabilistic, ProbabilisticSketch, Reshaping, WorstCase};
use units::{Nanos, Percentile};

/// What limits admit beyond the traces.
const TOLERANCE: f64 = 0.05;
/// What a request takes beyond queues and its own answer, seconds: 0.5 ms that HTB sends at once, 0.12 ms for a packet of
/// another, and the machine.
const BASE: f64 = 0.001;

/// Tenants as the analysis sees them.
pub(super) struct Analysis {
    names: Vec<&'static str>,
    /// Latencies at the disk, seconds, ascending; none without a disk.
    at_disk: Vec<Vec<f64>>,
    model: Probabilistic,
    sketches: Vec<ProbabilisticSketch>,
    /// In seconds of the link.
    curves: Vec<ArrivalCurve>,
}

/// When the requests of a round are done at the disk, and how long that took, seconds; they go on at once without one.
fn through_disk(tenant: &Tenant, demand: &Demand) -> (Vec<Nanos>, Vec<f64>) {
    let Some(disk) = disk(tenant, demand) else {
        return (demand.requests.iter().map(|request| request.arrival).collect(), Vec::new());
    };
    // The second round finds what the first left.
    let two = demand.until(Nanos(2 * demand.period.0));
    let mut free = Nanos::ZERO;
    let mut done = |request: &Request| {
        free = free.max(request.arrival) + disk.service(request.op, request.size);
        (free, (free - request.arrival).as_secs())
    };
    let all: Vec<(Nanos, f64)> = two.iter().map(&mut done).collect();
    all[two.len() / 2..].iter().copied().unzip()
}

/// What comes to the link, as a circle.
fn traffic(demand: &Demand, done: &[Nanos]) -> CircularTrace<Job> {
    let job = |(request, done): (&Request, &Nanos)| {
        let work = |stage| match stage {
            Stage::NetworkOut => nanos_up(on_link(request) * 1e9),
            // Requests have some hundred bytes, on links that nobody shares.
            Stage::NetworkIn | Stage::Storage => Nanos::ZERO,
        };
        Job { arrival: Nanos(done.0 % demand.period.0), work: PerStage::from_fn(work) }
    };
    let mut jobs: Vec<Job> = demand.requests.iter().zip(done).map(job).collect();
    jobs.sort_by_key(|job| job.arrival);
    CircularTrace::from_first_arrival(jobs, demand.period).expect("a circle is traffic")
}

impl Analysis {
    pub(super) fn new(tenants: &[Tenant], sent: &[Demand]) -> Self {
        let model = Probabilistic::default();
        let names = tenants.iter().map(|tenant| tenant.name).collect();
        let mut found = Self { names, at_disk: Vec::new(), model, sketches: Vec::new(), curves: Vec::new() };
        for (tenant, demand) in tenants.iter().zip(sent) {
            let (done, mut latencies) = through_disk(tenant, demand);
            latencies.sort_by(f64::total_cmp);
            let traffic = traffic(demand, &done);
            let worst = WorstCase { reshaping: Reshaping::EveryStage }.sketch(&traffic);
            found.at_disk.push(latencies);
            found.sketches.push(found.model.sketch(&traffic));
            found.curves.push(worst.curve(Stage::NetworkOut).clone());
        }
        found
    }

    /// What the link adds for each of these at its percentile, the first being served first; none where there is no bound.
    fn link(&self, members: &[(usize, Percentile)]) -> Option<Vec<f64>> {
        let member = |(rank, &(at, percentile)): (u32, &(usize, Percentile))| ServerMember {
            sketch: &self.sketches[at],
            priority: PerStage::from_fn(|_| rank),
            group: at,
            percentile,
        };
        let ranked: Vec<_> = (0..).zip(members).map(member).collect();
        self.model.predict(&ranked).into_iter().map(|found| Some(found.ok()?.bound)).collect()
    }

    /// At disk and link, seconds, with these above it.
    fn delays(&self, at: usize, percentile: Percentile, above: &[usize]) -> (f64, f64) {
        let disk = &self.at_disk[at];
        let late = (100.0 - percentile.percent()) / if disk.is_empty() { 1.0 } else { 2.0 };
        let each = Percentile::new(100.0 - late).expect("above the percentile");
        let at_disk = if disk.is_empty() { 0.0 } else { disk[nearest_rank(each.percent(), disk.len()) - 1] };
        let members: Vec<_> = above.iter().chain([&at]).map(|&member| (member, each)).collect();
        let link = self.link(&members).and_then(|found| found.last().copied());
        (at_disk, link.unwrap_or(f64::INFINITY))
    }

    /// Latency that this percentile of a tenant's requests keeps with these above it on the link, seconds.
    pub(super) fn bound(&self, at: usize, percentile: Percentile, above: &[usize]) -> f64 {
        let (disk, link) = self.delays(at, percentile, above);
        BASE + disk + link
    }

    /// Priorities by search, and whether all SLOs are kept.
    pub(super) fn prioritised(&self, slos: &[Slo]) -> (Policy, bool) {
        let budgets: Vec<f64> = slos.iter().map(|slo| slo.latency.0 - BASE).collect();
        let mut oracle = |at: usize, above: &PerStage<Vec<usize>>| {
            let (disk, link) = self.delays(at, slos[at].percentile, &above[Stage::NetworkOut]);
            PerStage::from_fn(|stage| match stage {
                Stage::NetworkIn => 0.0,
                Stage::Storage => disk,
                Stage::NetworkOut => link,
            })
        };
        let found = plan::prioritise(&budgets, &mut oracle);
        let priority = |at: usize| found.priorities[at][Stage::NetworkOut];
        let promised = |at: usize| Some((priority(at), Some(found.latencies[at] + BASE)));
        (self.policy(PROTECTED, slos, promised, true), found.missed.is_none())
    }

    /// Priority by SLO among those who are admitted, in the order in which they come; and whether all are.
    pub(super) fn admitted(&self, slos: &[Slo]) -> (Policy, bool) {
        assert!(self.at_disk.iter().all(Vec::is_empty), "here all the time goes to the link");
        let bounds = |members: &[usize]| {
            let ranked: Vec<_> = members.iter().map(|&at| (at, slos[at].percentile)).collect();
            Some(self.link(&ranked)?.into_iter().map(|bound| bound + BASE).collect::<Vec<f64>>())
        };
        // Of the last that was found to fit.
        let (mut accepted, mut promised): (Vec<usize>, Vec<f64>) = (Vec::new(), Vec::new());
        for at in 0..slos.len() {
            let mut members = accepted.clone();
            members.insert(members.partition_point(|&other| slos[other].latency.0 <= slos[at].latency.0), at);
            let kept = |found: &Vec<f64>| {
                found.iter().zip(&members).all(|(bound, &member)| *bound <= slos[member].latency.0)
            };
            // HTB has a level for each and one for those who are refused.
            if let Some(found) = bounds(&members).filter(kept).filter(|_| members.len() <= LEVELS) {
                (accepted, promised) = (members, found);
            }
        }
        let place = |at: usize| {
            let rank = accepted.iter().position(|&other| other == at)?;
            Some((u32::try_from(rank).expect("few tenants"), Some(promised[rank])))
        };
        (self.policy(PROTECTED, slos, place, true), accepted.len() == slos.len())
    }

    /// Strict priority by SLO for all, without limits.
    pub(super) fn by_slo(&self, slos: &[Slo]) -> Policy {
        let tighter = |at: usize| slos.iter().filter(|slo| slo.latency.0 < slos[at].latency.0).count();
        let place = |at| Some((u32::try_from(tighter(at)).expect("few tenants"), None));
        self.policy("by-slo", slos, place, false)
    }

    /// By priority on the link and bound; nothing is promised to tenants without.
    fn policy(
        &self,
        name: &str,
        slos: &[Slo],
        place: impl Fn(usize) -> Option<(u32, Option<f64>)>,
        limited: bool,
    ) -> Policy {
        let workload = |at: usize| {
            let placed = place(at);
            let limits = if limited && placed.is_some() { self.limits(at) } else { Vec::new() };
            PolicyWorkload {
                name: self.names[at].to_owned(),
                admitted: placed.is_some(),
                server: placed.map(|_| SERVER.to_owned()),
                priority: placed.map(|(priority, _)| priority),
                priority_by_stage: None,
                slo: slos[at],
                slo_percentile: slos[at].percentile.percent(),
                slo_s: slos[at].latency.0,
                bound_s: placed.and_then(|(_, bound)| bound),
                limits,
                refusal: placed.is_none().then(|| "with it, an SLO would not be kept for sure".to_owned()),
            }
        };
        let server = PolicyServer {
            name: SERVER.into(),
            class: SERVER.into(),
            network_bytes_per_s: Experiment::LINK_BITS_PER_S / 8.0,
            storage_profile: "none".into(),
        };
        Policy {
            format: POLICY_FORMAT.into(),
            policy_name: name.into(),
            servers: vec![server],
            workloads: (0..slos.len()).map(workload).collect(),
        }
    }

    fn limits(&self, at: usize) -> Vec<StageLimit> {
        let stage = Stage::NetworkOut;
        let bytes = Experiment::LINK_BITS_PER_S / 8.0;
        let limit = |limit: RateLimit| StageLimit {
            stage,
            limit,
            rate_per_s: limit.rate * bytes,
            burst_work: limit.burst * bytes,
        };
        plan::limiters(&self.curves[at], TOLERANCE).into_iter().map(limit).collect()
    }
}
