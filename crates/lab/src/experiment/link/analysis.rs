//! Bounds, priorities and limits where servers share the link on which answers leave.
//!
//! Two ways. Figure 3.7 as in chapter 3: worst cases of both stages, a disk of one's own and then the shared link, add
//! up (limiters hold everybody to its curve before the link), and priorities are searched for. Figure 4.1 as in
//! chapter 4: priority by SLO, and tenants are admitted one after the other while the probabilistic model says that
//! everybody's percentile is within its SLO; whoever is refused goes last, without a promise.
//!
//! HTB serves packets, not answers: a packet that has begun, what it lets pass at once, and the way there and back through
//! kernel and server are [`BASE`].

use super::super::analysis::SERVER;
use super::super::data::{Experiment, Tenant};
use super::super::demand::{Demand, nanos_up};
use super::{disk, on_link};
use calculus::{ArrivalCurve, PriorityQueue};
use enforce::deployment::LEVELS;
use model::{
    Job, POLICY_FORMAT, PerStage, Policy, PolicyServer, PolicyWorkload, RateLimit, Slo, Stage, StageLimit,
};
use predict::{Member, Model as _, Passage, Probabilistic, Traffic, WorstCase};

/// What limits admit beyond the traces.
const TOLERANCE: f64 = 0.05;
/// What a request takes beyond queues and its own answer, seconds: 0.5 ms that HTB sends at once, 0.12 ms for a packet of
/// another, and the machine.
const BASE: f64 = 0.001;

/// Tenants as the analysis sees them.
pub(super) struct Analysis {
    names: Vec<&'static str>,
    traffics: Vec<Traffic>,
    /// In seconds of the disk and of the link.
    curves: Vec<PerStage<ArrivalCurve>>,
}

fn traffic(tenant: &Tenant, demand: &Demand) -> Traffic {
    let disk = disk(tenant, demand);
    let job = |request: &model::Request| {
        let work = |stage| match stage {
            // Requests have some hundred bytes, on links that nobody shares.
            Stage::NetworkIn => units::Nanos::ZERO,
            Stage::Storage => disk.map_or(units::Nanos::ZERO, |disk| disk.service(request.op, request.size)),
            Stage::NetworkOut => nanos_up(on_link(request) * 1e9),
        };
        Job { arrival: request.arrival, work: PerStage::from_fn(work) }
    };
    Traffic::new(demand.requests.iter().map(job).collect(), demand.period).expect("a circle is traffic")
}

impl Analysis {
    pub(super) fn new(tenants: &[Tenant], sent: &[Demand]) -> Self {
        let traffics: Vec<Traffic> =
            tenants.iter().zip(sent).map(|(tenant, demand)| traffic(tenant, demand)).collect();
        let curves = |traffic| {
            let sketch = WorstCase { passage: Passage::Reshaped }.sketch(traffic);
            PerStage::from_fn(|stage| sketch.curve(stage).clone())
        };
        let curves = traffics.iter().map(curves).collect();
        Self { names: tenants.iter().map(|tenant| tenant.name).collect(), traffics, curves }
    }

    fn delay(&self, at: usize, stage: Stage, above: &[usize]) -> f64 {
        if self.traffics[at].utilisation()[stage] == 0.0 {
            return 0.0;
        }
        let mut queue = PriorityQueue::new();
        // Only the link is shared.
        let above = if stage == Stage::NetworkOut { above } else { &[] };
        above.iter().for_each(|&other| queue.add(&self.curves[other][stage].scaled(1.0 + TOLERANCE), 0.0));
        queue.delay(&self.curves[at][stage].scaled(1.0 + TOLERANCE), 0.0)
    }

    /// Latency that a tenant never exceeds with these above it on the link, seconds.
    pub(super) fn bound(&self, at: usize, above: &[usize]) -> f64 {
        BASE + Stage::ALL.iter().map(|&stage| self.delay(at, stage, above)).sum::<f64>()
    }

    /// Priorities by search, and whether all SLOs are kept.
    pub(super) fn prioritised(&self, slos: &[Slo]) -> (Policy, bool) {
        let budgets: Vec<f64> = slos.iter().map(|slo| slo.latency.0 - BASE).collect();
        let mut oracle = |at: usize, above: &PerStage<Vec<usize>>| {
            PerStage::from_fn(|stage| self.delay(at, stage, &above[stage]))
        };
        let found = plan::prioritise(&budgets, &mut oracle);
        let priority = |at: usize| found.priorities[at][Stage::NetworkOut];
        let promised = |at: usize| Some((priority(at), Some(found.latencies[at] + BASE)));
        (self.policy("tailwright", slos, promised, true), found.missed.is_none())
    }

    /// Priority by SLO among those who are admitted, in the order in which they come; and whether all are.
    pub(super) fn admitted(&self, slos: &[Slo]) -> (Policy, bool) {
        let model = Probabilistic::default();
        let sketches: Vec<_> = self.traffics.iter().map(|traffic| model.sketch(traffic)).collect();
        let bounds = |members: &[usize]| -> Option<Vec<f64>> {
            let member = |(rank, &at): (u32, &usize)| Member {
                sketch: &sketches[at],
                priority: PerStage::from_fn(|_| rank),
                group: at,
                percentile: slos[at].percentile,
            };
            let ranked: Vec<_> = (0..).zip(members).map(member).collect();
            model.predict(&ranked).into_iter().map(|found| Some(found.ok()?.bound + BASE)).collect()
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
        (self.policy("tailwright", slos, place, true), accepted.len() == slos.len())
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
        plan::limiters(&self.curves[at][stage], TOLERANCE).into_iter().map(limit).collect()
    }
}
