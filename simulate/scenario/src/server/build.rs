//! A storage server with its workloads as a simulation case.

use super::{ServerRules, SimulatedWorkload, StorageServer};
use crate::classes::CLASSES_MAX;
use crate::file::Scenario;
use crate::simulation_case::SimulationCase;
use crate::simulation_plan::simulation_plan;
use crate::unique_names::check_unique;
use ::model::{Condition, Policy, ServerConditions, Stage};
use sim::engine::{NetworkStation, QueueingNetwork, SimulationPlan};
use units::Nanos;

impl SimulationCase {
    /// Creates a server with workloads under rules. Without a window in the plan, the period of the
    /// longest trace is measured, after a tenth of it as warm-up.
    ///
    /// # Errors
    /// When there is no workload, two have one name, or the rules do not fit them.
    pub fn storage(
        name: String,
        server: StorageServer,
        workloads: Vec<SimulatedWorkload>,
        rules: &ServerRules,
        plan: SimulationPlan,
    ) -> Result<Self, String> {
        if workloads.is_empty() || workloads.len() > CLASSES_MAX as usize {
            return Err(format!("expected 1 to {CLASSES_MAX} workloads, found {}", workloads.len()));
        }
        check_unique(workloads.iter().map(|workload| workload.name.as_str()), "workloads")?;
        let network = stages(&server, &workloads, rules)?;
        network.check().map_err(|error| error.to_string())?;
        let classes = workloads.iter().map(|workload| workload.name.clone()).collect();
        let slos = vec![None; workloads.len()];
        let loads = Vec::new();
        let server = Some(server);
        let policy = rules.policy().cloned().map(Box::new);
        let mut case = Self { name, network, classes, slos, plan, workloads, server, policy, loads };
        if case.plan.window.span.is_none() {
            case.plan.window.span = case.span_of_longest_trace();
        }
        Ok(case)
    }

    /// The case of a scenario that has `[server]` or `[[workload]]`.
    pub(crate) fn from_server_scenario(name: String, scenario: &Scenario) -> Result<Self, String> {
        if !scenario.entries.is_empty() || !scenario.stations.is_empty() || !scenario.steps.is_empty() {
            return Err(
                "expected [server] and [[workload]], or [[station]], [[step]] and [[entry]], not both".into(),
            );
        }
        if scenario.slos.is_some() {
            return Err("slos is for [[class]] sections; each [[workload]] has its own slo".into());
        }
        let spec = scenario.server.as_ref().ok_or("[[workload]] needs a [server]")?;
        let server = spec.server()?;
        let workloads = scenario.workloads.iter().map(|workload| workload.read(&server));
        let workloads = workloads.collect::<Result<_, String>>()?;
        let mut case = Self::storage(name, server, workloads, &spec.rules()?, simulation_plan(scenario)?)?;
        if let Some(load) = scenario.run.load {
            case.scale(load)?;
            if scenario.run.duration.is_none() {
                // The periods of the traces have changed.
                case.plan.window.span = case.span_of_longest_trace();
            }
        }
        if scenario.run.requests.is_some() || scenario.run.warm_up.is_some() {
            case.plan.window.span = None;
        }
        Ok(case)
    }

    /// Returns a tenth of the period of the longest trace, as warm-up, and the end of a period after it;
    /// `None` if all workloads are clients that wait.
    fn span_of_longest_trace(&self) -> Option<(Nanos, Nanos)> {
        let longest = self.workloads.iter().filter_map(SimulatedWorkload::period).max()?.0;
        Some((Nanos(longest / 10), Nanos(longest / 10 + longest)))
    }

    /// Changes the rules of the stages of a storage server.
    ///
    /// # Errors
    /// When it is not a storage server, or the rules do not fit its workloads.
    pub fn enforce(&mut self, rules: &ServerRules) -> Result<(), String> {
        let server = self.server.as_ref().ok_or("only a storage server has rules")?;
        self.network = stages(server, &self.workloads, rules)?;
        self.policy = rules.policy().cloned().map(Box::new);
        Ok(())
    }

    /// The policy of a storage server, the name that the server has there, and the conditions under which it is simulated;
    /// none without a policy.
    pub fn policy_conditions(&self) -> Option<(&Policy, &str, ServerConditions)> {
        let policy = self.policy.as_deref()?;
        let server = self.server.as_ref()?;
        let mut placed = self.workloads.iter().filter(|workload| !workload.best_effort);
        let placed =
            placed.find_map(|workload| policy.workloads.iter().find(|at| at.name == workload.name))?;
        let name = placed.server.as_deref()?;
        let unplanned = self.workloads.iter().map(|workload| {
            let planned = policy.workloads.iter().find(|at| at.name == workload.name);
            let planned = planned.filter(|_| !workload.best_effort);
            workload.longest_best_effort(planned.map(|planned| planned.largest_request))
        });
        let longest = unplanned.flatten().max();
        let best_effort = longest.map(|longest| longest.0.saturating_sub(1) as f64 / 1e9);
        Some((
            policy,
            name,
            server.conditions(policy.enforcement_of(name)).with(Condition::BestEffortRequest, best_effort),
        ))
    }

    /// Changes the rules of a storage server to those of a policy.
    ///
    /// # Errors
    /// As [`Self::enforce`].
    pub fn enforce_policy(&mut self, policy: &Policy) -> Result<(), String> {
        self.enforce(&ServerRules::Policy(Box::new(policy.clone())))
    }
}

/// The stages of a server as stations, with one class for each workload.
fn stages(
    server: &StorageServer,
    workloads: &[SimulatedWorkload],
    rules: &ServerRules,
) -> Result<QueueingNetwork, String> {
    let [into, storage, out] = rules.disciplines(server, workloads)?;
    let mut network = QueueingNetwork::chain(vec![
        NetworkStation::new(Stage::NetworkIn.name(), 1, into),
        NetworkStation::new(Stage::Storage.name(), server.channels(), storage),
        NetworkStation::new(Stage::NetworkOut.name(), 1, out),
    ]);
    network.steps[2].delay = server.base_latency();
    network.classes = u32::try_from(workloads.len()).map_err(|_| "too many workloads")?;
    Ok(network)
}
