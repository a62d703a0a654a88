//! One server of a running system at a time: limits for its workloads, and the check of limits that are in force.
//!
//! `planning` answers for a whole cluster from its files. A controller has standing servers instead: a newcomer
//! changes the limits of one of them, and between two policies hosts enforce some of either. A decision here takes
//! the time of one server, whatever the size of the cluster. Moving workloads between servers is not covered.

use crate::cluster::{ClusterProblem, enforced_class};
use crate::planning::{
    GuaranteeDerivation, PlannedCluster, PlanningRecipe, class_variants, derive, device_queue, policy_of,
};
use crate::refusal::{Refusal, describe_refusal};
use model::{PerStage, Policy, PolicyWorkload, RateLimit, ServerClass, ServerEnforcement, Slo, Stage};
pub use placement::{FitRefusal, PlanningWorkload};
use placement::{
    LimitMethod, LowerBound, Normalisation, Placement, PlacementRefusal, PlannedServer, PlanningClass,
    PlanningProblem, WorkloadOnClass,
};
use std::path::PathBuf;
use std::time::Duration;
use trace::OpenOptions;
use workload::Footprint;
use workload::device::StorageProfile;

/// A class of servers of a running system.
#[derive(Debug, Clone)]
pub struct ServerKind {
    /// The class alone, without workloads.
    problem: ClusterProblem,
    planning: PlanningClass,
    recipe: PlanningRecipe,
}

/// The plan of one server, all of whose promises are kept.
#[derive(Debug)]
pub struct ServerPlan {
    /// The server with its workloads, as it is enforced.
    pub policy: Policy,
    planned: PlannedCluster,
}

/// A workload on a server, with the buckets that enforcers have for it at present.
#[derive(Debug, Clone)]
pub struct EnforcedMember<'a> {
    pub workload: &'a PlanningWorkload,
    /// Buckets, allowances included; rate 0 and burst 0 where the stage serves the workload after all others.
    pub limits: PerStage<RateLimit>,
    /// True if the workload's SLO is to be kept; otherwise it is only load.
    pub is_promised: bool,
}

impl ServerKind {
    /// Describes a class whose traces are scaled by `safety_margin`, at least 1.
    pub fn new(class: ServerClass, profile: StorageProfile, safety_margin: f64) -> Self {
        let planning = PlanningClass {
            name: class.class.clone(),
            count: 1,
            enforced: Some(enforced_class(&class, &profile)),
        };
        let problem = ClusterProblem {
            hosts: Vec::new(),
            servers: vec![class],
            profiles: vec![profile],
            workloads: Vec::new(),
            safety_margin,
            failure_domain: None,
            options: OpenOptions::default(),
            cached: false,
            origin: PathBuf::new(),
        };
        Self { problem, planning, recipe: PlanningRecipe::of(LimitMethod::Exact) }
    }

    /// Returns the class.
    pub fn class(&self) -> &ServerClass {
        &self.problem.servers[0]
    }

    /// Returns the device profile of the class.
    pub fn profile(&self) -> &StorageProfile {
        &self.problem.profiles[0]
    }

    /// Describes a workload on servers of the class, by the footprint of its trace on the class's device.
    pub fn workload(&self, name: &str, slo: Slo, footprint: &Footprint) -> PlanningWorkload {
        let normalisation = Normalisation {
            network: self.class().network,
            safety_margin: self.problem.safety_margin,
            sustained: self.recipe.sustained,
            enforced: self.planning.enforced,
        };
        let on_class = normalisation.apply(footprint).with_base_latency(self.profile());
        PlanningWorkload { name: name.to_owned(), slo, on_class: vec![on_class] }
    }

    /// Returns true if the mean rates of these workloads fit on a server, without which no limits do.
    pub fn carries<'a>(&self, members: impl Iterator<Item = &'a PlanningWorkload>) -> bool {
        let mut rates = PerStage::from_fn(|_| 0.0);
        for WorkloadOnClass { mean_rate, .. } in members.map(|member| &member.on_class[0]) {
            rates = PerStage::from_fn(|stage| rates[stage] + mean_rate[stage]);
        }
        rates.iter().all(|(_, &rate)| rate <= PlanningProblem::MAX_RATE)
    }

    /// Chooses limits for the workloads of a server.
    ///
    /// # Errors
    /// If none keep all SLOs.
    pub fn fit(&self, server: &str, members: &[&PlanningWorkload]) -> Result<ServerPlan, FitRefusal> {
        let instance = self.instance(members);
        let fitted = LimitMethod::Exact.fit(&instance, 0, (0..members.len()).collect())?;
        let planned = PlannedCluster {
            recipe: self.recipe,
            instance,
            placement: Placement { servers: vec![fitted], refused: Vec::new(), numbers: Vec::new() },
            names: vec![server.to_owned()],
            host_networks: Vec::new(),
            advice: Vec::new(),
            lower_bound: LowerBound { fractional: 1.0, servers: 1, price: 0.0 },
            fleet: None,
            changed: None,
            cpu: Duration::ZERO,
        };
        Ok(ServerPlan { policy: policy_of(&self.problem, &planned), planned })
    }

    /// Checks from scratch that the buckets in force keep what is promised.
    ///
    /// # Errors
    /// The stage that is overloaded, or the SLO that is exceeded most.
    pub fn check(
        &self,
        enforcement: &ServerEnforcement,
        members: &[EnforcedMember<'_>],
    ) -> Result<(), FitRefusal> {
        let workloads: Vec<&PlanningWorkload> = members.iter().map(|member| member.workload).collect();
        let server = PlannedServer {
            class: 0,
            members: (0..members.len()).collect(),
            limits: members.iter().map(|member| member.limits).collect(),
            queue: device_queue(enforcement),
        };
        server.verify_promises(&self.instance(&workloads), |member| members[member].is_promised)
    }

    /// Says why none of `servers` servers takes a workload, and what would admit it. `emptiest` are the workloads of the
    /// server with the least load, by which remedies are computed.
    pub fn refusal(
        &self,
        servers: usize,
        (name, emptiest): (&str, &[&PlanningWorkload]),
        newcomer: &PlanningWorkload,
    ) -> String {
        let members: Vec<&PlanningWorkload> = emptiest.iter().copied().chain([newcomer]).collect();
        let instance = self.instance(&members);
        let last = emptiest.len();
        let alone = LimitMethod::Exact.fit(&instance, 0, vec![last]).err();
        let present = PlannedServer {
            class: 0,
            members: (0..last).collect(),
            limits: vec![PerStage::default(); last],
            queue: instance.shortest_queue(0),
        };
        let in_use = if last == 0 { Vec::new() } else { vec![present] };
        let placement = Placement { servers: in_use, refused: Vec::new(), numbers: Vec::new() };
        let refusal = PlacementRefusal { workload: last, alone };
        let changes = placement::advise(
            &instance,
            LimitMethod::Exact,
            &placement,
            &refusal,
            &class_variants(&self.problem),
        );
        let percentile = newcomer.slo.percentile;
        let refusal = Refusal::Limits { alone, percentile, changes: &changes, excluded: &[] };
        describe_refusal(&refusal, servers, &|_| name.to_owned())
    }

    fn instance(&self, members: &[&PlanningWorkload]) -> PlanningProblem {
        let workloads = members.iter().map(|&member| member.clone()).collect();
        let classes = vec![self.planning.clone()];
        PlanningProblem::new(classes, workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
            .expect("workloads of a server have names of their own")
    }
}

impl ServerPlan {
    /// Derives the bound of a workload on the server; `None` if it is not there.
    pub fn derivation(&self, workload: &str) -> Option<GuaranteeDerivation> {
        let mut workloads = self.planned.instance.workloads.iter();
        derive(&self.planned, workloads.position(|known| known.name == workload)?)
    }
}

/// Returns the bucket that enforcers have for a workload at a stage, allowance included; `None` without a limit there.
pub fn enforced_bucket(workload: &PolicyWorkload, stage: Stage) -> Option<RateLimit> {
    let limit = workload.limits.iter().find(|limit| limit.stage == stage)?;
    Some(RateLimit { rate: limit.limit.rate, burst: limit.limit.burst + limit.allowance })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Op, Request};
    use units::{Bytes, Nanos};
    use workload::FootprintBuilder;
    use workload::device::NetworkModel;

    const PROFILE: &str = r#"{ "format": "tailwright-device-1", "name": "ssd", "device": { "ssd": { "bandwidth": [
        { "request_bytes": 4096, "read_bytes_per_s": 60e6, "write_bytes_per_s": 35e6 } ] } } }"#;

    fn kind() -> ServerKind {
        let class = ServerClass::new("ssd", 1, "ssd.json".into(), "1Gbps".parse().expect("a rate"));
        ServerKind::new(class, StorageProfile::from_json(PROFILE).expect("a profile"), 1.1)
    }

    /// `burst` reads at once, every 100 ms, for 10 s.
    fn bursty(kind: &ServerKind, name: &str, burst: u64, slo: &str) -> PlanningWorkload {
        let mut builder = FootprintBuilder::new(NetworkModel::default(), kind.profile());
        for at in 0..100 {
            for _ in 0..burst {
                let arrival = Nanos(at * 100_000_000);
                let size = Bytes(4096);
                let request = Request { arrival, size, op: Op::Read, offset: None, response: None };
                builder.push(&request).expect("in order");
            }
        }
        kind.workload(name, slo.parse().expect("an SLO"), &builder.finish().expect("requests"))
    }

    fn limits_in(policy: &Policy, name: &str) -> PerStage<RateLimit> {
        let found = policy.workloads.iter().find(|workload| workload.name == name).expect("a member");
        PerStage::from_fn(|stage| enforced_bucket(found, stage).expect("a limit"))
    }

    #[test]
    fn a_plan_passes_the_check_that_larger_buckets_fail() {
        let kind = kind();
        let mail = bursty(&kind, "mail", 20, "99% < 60ms");
        let web = bursty(&kind, "web", 40, "99% < 90ms");
        let plan = kind.fit("ssd-1", &[&mail, &web]).expect("both fit");
        let enforcement = plan.policy.enforcement_of("ssd-1").copied().expect("a device");
        let member = |workload, name: &str, factor: f64, is_promised| {
            let limits = limits_in(&plan.policy, name)
                .map(|limit| RateLimit { burst: limit.burst * factor, ..*limit });
            EnforcedMember { workload, limits, is_promised }
        };
        let as_planned = [member(&mail, "mail", 1.0, true), member(&web, "web", 1.0, true)];
        assert_eq!(kind.check(&enforcement, &as_planned), Ok(()));
        // Mail goes first.
        let larger = [member(&mail, "mail", 100.0, false), member(&web, "web", 1.0, true)];
        assert!(matches!(kind.check(&enforcement, &larger), Err(FitRefusal::Latency { .. })));
        // Load alone is promised nothing.
        let load = [member(&mail, "mail", 100.0, false), member(&web, "web", 100.0, false)];
        assert_eq!(kind.check(&enforcement, &load), Ok(()));
        let derivation = plan.derivation("web").expect("it is there");
        let bound =
            plan.policy.workloads.iter().find(|workload| workload.name == "web").and_then(|it| it.bound_s);
        assert_eq!(Some(derivation.bound_s), bound);
    }

    #[test]
    fn a_refusal_names_remedies() {
        let kind = kind();
        let mail = bursty(&kind, "mail", 200, "99% < 80ms");
        let web = bursty(&kind, "web", 300, "99% < 80ms");
        assert!(kind.carries([&mail, &web].into_iter()));
        assert!(kind.fit("ssd-1", &[&mail, &web]).is_err());
        let reason = kind.refusal(1, ("ssd-1", &[&mail]), &web);
        assert!(reason.starts_with("it would fit on an empty server"), "{reason}");
        assert!(reason.contains("one more server of class 'ssd'"), "{reason}");
    }
}
