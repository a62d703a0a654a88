//! Several limits for each workload and stage, counted as the enforcers keep them: packets, best effort, turns of equal
//! priorities, tokens that a full bucket loses, at most as many buckets as a link has room for and seven priorities. So
//! `plan --model worst-case` and `admit` write and promise them.

use crate::cluster::{ClusterProblem, enforced_path};
use crate::footprints::Footprints;
use model::{ServerMember, Stage};
use placement::admission::{Applicant, SharedServer, by_slo, priority_meister};
use placement::{CompanyRule, CurvePriorities, PlanningProblem};
use predict::{EnforcedPath, EnforcedSketch};
use std::sync::Arc;

/// The rule of servers with enforcers.
pub(super) struct EnforcedCurves<'a> {
    priorities: CurvePriorities,
    slo_factor: f64,
    /// The enforcers of each class.
    paths: Vec<EnforcedPath>,
    /// The workloads with their limits, by class.
    workloads: Vec<Vec<Applicant<EnforcedSketch<()>>>>,
    problem: &'a PlanningProblem,
}

impl<'a> EnforcedCurves<'a> {
    /// The rule for these workloads; `without_enforcers` has their curves as traces give them.
    pub(super) fn new(
        cluster: &ClusterProblem,
        footprints: &Footprints,
        without_enforcers: &'a PlanningProblem,
        priorities: CurvePriorities,
    ) -> Self {
        let problem = without_enforcers;
        let mut paths = Vec::new();
        let mut workloads = Vec::new();
        for (class, (server, profile)) in cluster.servers.iter().zip(&cluster.profiles).enumerate() {
            paths.push(enforced_path(server, Some(profile)));
            let mut of_class = Vec::with_capacity(problem.workloads.len());
            for (number, workload) in problem.workloads.iter().enumerate() {
                let on_class = &workload.on_class[class];
                let mut slo = workload.slo;
                slo.latency.0 = problem.latency_asked(number, class);
                // Device time is in nanoseconds.
                let densest =
                    footprints.get(class, number).densest_answer() * 1e9 / server.network.bytes_per_sec();
                let sketch =
                    EnforcedSketch::of_curves((), on_class.curves.clone(), on_class.largest_request, densest);
                of_class.push(Applicant {
                    name: workload.name.clone(),
                    slo,
                    base_latency: on_class.base_latency,
                    group: None,
                    sketch: Arc::new(sketch),
                });
            }
            workloads.push(of_class);
        }
        Self { priorities, slo_factor: problem.slo_factor, paths, workloads, problem }
    }
}

impl CompanyRule for EnforcedCurves<'_> {
    fn keeps(&self, class: usize, members: &[usize]) -> bool {
        let path = &self.paths[class];
        // As for single limits (Eq. 5.4).
        let is_overloaded = |stage: Stage| {
            let rates = members
                .iter()
                .map(|&member| self.problem.workloads[member].on_class[class].curves[stage].sustained_rate());
            rates.sum::<f64>() > self.problem.max_rate
        };
        if Stage::ALL.into_iter().any(is_overloaded) {
            return false;
        }
        let company: Vec<&Applicant<_>> =
            members.iter().map(|&member| &self.workloads[class][member]).collect();
        let server = SharedServer {
            members: &company,
            slo_factor: self.slo_factor,
            levels_max: path.class.levels_max,
        };
        let priorities = match self.priorities {
            CurvePriorities::BySlo | CurvePriorities::EqualsFirst => by_slo(&server),
            CurvePriorities::Searched => {
                let begun = path.begun(company.iter().map(|member| &*member.sketch));
                priority_meister(&server, EnforcedSketch::admitted_curve, &begun)
            }
        };
        let mut enforced = Vec::with_capacity(company.len());
        for (group, (applicant, &priority)) in company.iter().zip(&priorities).enumerate() {
            let percentile = applicant.slo.percentile;
            enforced.push(ServerMember { sketch: &*applicant.sketch, priority, group, percentile });
        }
        let latencies = path.worst_case(&enforced);
        let mut members = latencies.iter().enumerate();
        members.all(|(member, latency)| server.keeps(member, latency.total + company[member].base_latency))
    }
}
