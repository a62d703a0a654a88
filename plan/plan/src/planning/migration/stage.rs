//! A step of a migration as a policy, and what is said of it.

use crate::planning::migration::copies::PacedCopies;
use crate::planning::migration::document::{MigrationStage, PolicyCopy, StageKind};
use crate::planning::policy::policy_of_servers;
use crate::planning::recipe::PlanningRecipe;
use crate::planning::solution::PlannedCluster;
use model::Policy;
use placement::migration::{Migration, MigrationStep, MovingWorkload, StepPurpose};
use placement::{LimitMethod, LowerBound, Placement, PlannedServer, PlanningProblem};
use std::collections::BTreeSet;
use std::time::Duration;

/// Everything that a step is described from.
pub(super) struct StageInputs<'a> {
    /// Names of the servers by position.
    pub(super) names: &'a [String],
    /// The policy that the steps lead to.
    pub(super) new: &'a Policy,
    pub(super) copies: &'a PacedCopies<'a>,
    pub(super) migration: &'a Migration,
    pub(super) step: &'a MigrationStep,
}

impl StageInputs<'_> {
    /// Describes the step, which follows a state.
    pub(super) fn stage(&self, number: usize, before: &[PlannedServer]) -> MigrationStage {
        let (kind, moves) = match &self.step.purpose {
            StepPurpose::MakeRoom => (StageKind::MakeRoom, &[][..]),
            StepPurpose::Copy(moves) => (StageKind::Copy, moves.as_slice()),
            StepPurpose::Switch(moves) => (StageKind::Switch, moves.as_slice()),
            StepPurpose::Settle => (StageKind::Settle, &[][..]),
        };
        let copies: Vec<PolicyCopy> = moves.iter().map(|it| self.copy(it)).collect();
        let changed = before.iter().zip(&self.step.servers).zip(self.names);
        let changed = changed.filter(|((old, new), _)| old != new).map(|(_, name)| name.clone());
        let is_timed = kind == StageKind::Copy;
        let times: Option<Vec<f64>> = copies.iter().map(|copy| copy.takes_s).collect();
        let takes_s = times.filter(|_| is_timed).map(|times| times.into_iter().fold(0.0, f64::max));
        let (policy, tightest) = self.policy();
        MigrationStage {
            number,
            kind,
            servers_changed: changed.collect(),
            copies,
            takes_s,
            slack: tightest.as_ref().map(|(slack, _)| *slack),
            tightest: tightest.map(|(_, name)| name),
            policy,
        }
    }

    fn copy(&self, moving: &MovingWorkload) -> PolicyCopy {
        let spec = &self.copies.problem.workloads[moving.workload];
        let bytes = spec.size.map(|size| size.0);
        let rate = self.copies.rate(moving.rate);
        let [reads_as, writes_as] = moving.copies.map(|copy| self.migration.workloads[copy].name.clone());
        PolicyCopy {
            workload: spec.name.clone(),
            from: self.names[moving.from].clone(),
            to: self.names[moving.to].clone(),
            bytes,
            rate_bytes_per_s: rate,
            request_bytes: self.copies.request.0,
            reads_as,
            writes_as,
            takes_s: bytes.map(|bytes| bytes as f64 / rate),
        }
    }

    /// The policy of the step, and the least slack of a workload with its name.
    fn policy(&self) -> (Policy, Option<(f64, String)>) {
        let PacedCopies { problem, instance, .. } = *self.copies;
        let everybody = instance.workloads.len();
        // Copies of other steps have no place in the policy.
        let members = self.step.servers.iter().flat_map(|server| &server.members);
        let copies: Vec<usize> = members.copied().filter(|&workload| workload >= everybody).collect();
        let renumbered = |workload: usize| match copies.iter().position(|&copy| copy == workload) {
            Some(position) => everybody + position,
            None => workload,
        };
        let mut workloads = instance.workloads.clone();
        workloads.extend(copies.iter().map(|&copy| self.migration.workloads[copy].clone()));
        let further = (0..workloads.len()).map(|workload| instance.further_slos(workload).to_vec()).collect();
        let whole =
            PlanningProblem::new(instance.classes.clone(), workloads, instance.max_rate, instance.slo_factor)
                .expect("names of copies are unique")
                .with_further_slos(further);
        let mut servers = Vec::new();
        let mut names = Vec::new();
        for (server, name) in self.step.servers.iter().zip(self.names) {
            if server.members.is_empty() {
                continue;
            }
            let members = server.members.iter().map(|&workload| renumbered(workload)).collect();
            servers.push(PlannedServer { members, ..server.clone() });
            names.push(name.clone());
        }
        let placed: BTreeSet<usize> = servers.iter().flat_map(|server| server.members.clone()).collect();
        let refused = (0..everybody).filter(|workload| !placed.contains(workload));
        let refused = refused.map(|workload| (workload, self.refusal(workload))).collect();
        let mut tightest: Option<(f64, String)> = None;
        for server in &servers {
            for guarantee in server.guarantees(&whole) {
                let name = &whole.workloads[guarantee.workload].name;
                let slack = 1.0 - whole.share_of_slos(guarantee.workload, server.class, guarantee.total);
                let is_known = guarantee.workload < everybody;
                if is_known && tightest.as_ref().is_none_or(|(least, _)| slack < *least) {
                    tightest = Some((slack, name.clone()));
                }
            }
        }
        let planned = PlannedCluster {
            recipe: PlanningRecipe::of(LimitMethod::Exact),
            instance: whole,
            placement: Placement { servers, refused: Vec::new(), numbers: Vec::new() },
            names,
            host_networks: Vec::new(),
            advice: Vec::new(),
            lower_bound: LowerBound { fractional: 1.0, servers: 1, price: 0.0 },
            fleet: None,
            changed: None,
            cpu: Duration::ZERO,
        };
        let named = planned.names.iter().map(String::as_str).zip(&planned.placement.servers).collect();
        (policy_of_servers(problem, &planned, named, refused), tightest)
    }

    /// Reason why a workload is promised nothing during the step.
    fn refusal(&self, workload: usize) -> String {
        let name = &self.copies.problem.workloads[workload].name;
        let stated = self.new.workloads.iter().find(|known| known.name == *name);
        match stated.and_then(|known| known.refusal.clone()) {
            Some(reason) => reason,
            None if stated.is_some() => "it is admitted by a later step of the migration".to_owned(),
            None => "the new policy does not have it".to_owned(),
        }
    }
}
