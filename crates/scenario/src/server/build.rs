//! A storage server with its workloads as a case.

use super::{Demand, Result, Rules, StorageServer, Tenant};
use crate::case::{CLASSES_MAX, Case, plan, unique};
use crate::file::Scenario;
use ::model::{Policy, Stage};
use sim::engine::SimulationPlan;
use units::Nanos;

impl Case {
    /// A server with tenants under rules. Without a window of time in the plan, as long is measured as the longest trace
    /// lasts, after a tenth of that as warm-up.
    ///
    /// # Errors
    /// When there is no tenant, two have one name, or the rules do not fit them.
    pub fn storage(
        name: String,
        server: StorageServer,
        tenants: Vec<Tenant>,
        rules: &Rules,
        plan: SimulationPlan,
    ) -> Result<Self> {
        if tenants.is_empty() || tenants.len() > CLASSES_MAX as usize {
            return Err(format!("expected 1 to {CLASSES_MAX} workloads, found {}", tenants.len()));
        }
        unique(tenants.iter().map(|tenant| tenant.name.as_str()), "workloads")?;
        let network = server.stations(&tenants, rules)?;
        network.check().map_err(|invalid| invalid.to_string())?;
        let classes = tenants.iter().map(|tenant| tenant.name.clone()).collect();
        let mut case =
            Self { name, network, classes, plan, tenants, server: Some(server), sources: Vec::new() };
        if case.plan.window.span.is_none() {
            case.plan.window.span =
                case.longest().map(|period| (Nanos(period / 10), Nanos(period / 10 + period)));
        }
        Ok(case)
    }

    pub(crate) fn of_server(name: String, scenario: &Scenario) -> Result<Self> {
        if !scenario.entries.is_empty() || !scenario.stations.is_empty() || !scenario.steps.is_empty() {
            return Err(
                "expected [server] and [[workload]], or [[station]], [[step]] and [[entry]], not both".into(),
            );
        }
        let spec = scenario.server.as_ref().ok_or("[[workload]] needs a [server]")?;
        let server = spec.server()?;
        let tenants =
            scenario.workloads.iter().map(|workload| workload.tenant(&server)).collect::<Result<_>>()?;
        let counted = scenario.run.requests.is_some() || scenario.run.warm_up.is_some();
        let mut case = Self::storage(name, server, tenants, &spec.rules()?, plan(scenario)?)?;
        if let Some(load) = scenario.run.load {
            let by_default = scenario.run.duration.is_none();
            case.scale(load)?;
            if by_default {
                case.plan.window.span = case.longest().map(|p| (Nanos(p / 10), Nanos(p / 10 + p)));
            }
        }
        if counted {
            case.plan.window.span = None;
        }
        Ok(case)
    }

    fn longest(&self) -> Option<u64> {
        let period = |tenant: &Tenant| match &tenant.demand {
            Demand::Recorded { trace, .. } => Some(trace.period().0),
            Demand::Clients { .. } => None,
        };
        self.tenants.iter().filter_map(period).max()
    }

    /// The stages of a storage server do something else.
    ///
    /// # Errors
    /// When it is no storage server, or the rules do not fit its tenants.
    pub fn enforce(&mut self, rules: &Rules) -> Result<()> {
        let server = self.server.as_ref().ok_or("only a storage server has rules")?;
        self.network = server.stations(&self.tenants, rules)?;
        Ok(())
    }

    /// The same under a policy.
    ///
    /// # Errors
    /// As [`Self::enforce`].
    pub fn enforce_policy(&mut self, policy: &Policy) -> Result<()> {
        self.enforce(&Rules::Policy(Box::new(policy.clone())))
    }

    /// Mean use of a stage of a storage server by a tenant; none where clients wait.
    pub fn load_of(&self, tenant: usize, stage: Stage) -> Option<f64> {
        self.tenants[tenant].utilisation(stage)
    }
}
