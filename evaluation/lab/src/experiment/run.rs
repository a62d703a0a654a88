//! Running one case under one policy, with real requests.

use super::case_plan::CasePlan;
use super::definition::{Bottleneck, PolicyName};
use super::device_testbed::DeviceTestbed;
use super::disciplines::baseline;
use super::link::LinkTestbed;
use super::plan::ExperimentPlan;
use enforce::command::may_configure_networks;
use load::{ClientHost, LoadOptions, LoadProgress, LoadReport, LoadTarget, LoadWorkload, OfferedLoad};
use model::{Op, OperationError};
use std::sync::atomic::AtomicBool;
use units::Nanos;

/// The name of the copy's workload.
const COPY: &str = "L";
/// The real-time priority of the load generator.
const GENERATOR_PRIORITY: u32 = 10;

/// Settings of a run of a case or a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSettings {
    /// The time at the beginning that is not observed. The thesis observes the second half of each run only, so that
    /// feedback has converged.
    pub warm_up: Nanos,
    /// The time that is observed.
    pub duration: Nanos,
    /// The seed of the places on the device that requests read and write.
    pub seed: u64,
    /// True to run device, proxy and load generator under SCHED_FIFO.
    pub realtime: bool,
}

impl RunSettings {
    /// The options of the load generator.
    ///
    /// # Errors
    /// When this process may not make the hosts that the generator sends from.
    pub(crate) fn load_options(&self) -> Result<LoadOptions, OperationError> {
        if !may_configure_networks() {
            return Err(
                OperationError::machine("this process may not make network namespaces").hint("run as root")
            );
        }
        Ok(LoadOptions {
            warm_up: self.warm_up,
            duration: self.duration,
            seed: self.seed,
            realtime: self.realtime.then_some(GENERATOR_PRIORITY),
            ..LoadOptions::default()
        })
    }
}

/// Observations of the run of a case.
#[derive(Debug)]
pub struct CaseRun {
    /// The observations of all workloads: the tenants in their order, then the copy.
    pub report: LoadReport,
}

/// Sets up hosts, servers and the policy, sends the requests, and removes everything.
///
/// # Errors
/// Without root, or when the machine lacks something.
pub fn run_case(
    plan: &ExperimentPlan,
    case: &CasePlan,
    policy: PolicyName,
    settings: &RunSettings,
    progress: &mut dyn FnMut(LoadProgress),
    stop: &AtomicBool,
) -> Result<CaseRun, OperationError> {
    let options = settings.load_options()?;
    let end = settings.warm_up + settings.duration;
    if plan.experiment.bottleneck == Bottleneck::Link {
        let policy = match policy {
            PolicyName::BySlo => Some(&case.by_slo),
            PolicyName::Tailwright => Some(&case.policy),
            _ => None,
        };
        let testbed = LinkTestbed::new(case, policy, settings.realtime)?;
        let workloads = link_workloads(case, &testbed, end);
        return Ok(CaseRun { report: load::run(workloads, &options, progress, stop)? });
    }
    let names = workload_names(plan, case);
    let mut testbed = DeviceTestbed::new(&names, settings.realtime)?;
    let enforced = if policy == PolicyName::Tailwright { &case.policy } else { &case.by_slo };
    let baseline = baseline(&case.slos, policy, plan.outstanding);
    testbed.start_proxy(plan, enforced.clone(), baseline.as_ref(), settings.realtime)?;
    let workloads = device_workloads(plan, case, names, &testbed, end);
    let report = load::run(workloads, &options, progress, stop)?;
    testbed.stop_proxy()?;
    Ok(CaseRun { report })
}

/// The names of a case's workloads, the copy last.
fn workload_names(plan: &ExperimentPlan, case: &CasePlan) -> Vec<String> {
    let tenants = case.case.tenants.iter().map(|tenant| tenant.name.to_owned());
    tenants.chain(plan.experiment.copy.map(|_| COPY.to_owned())).collect()
}

/// Workloads of the shared device, with one connection each, until `end`.
fn device_workloads(
    plan: &ExperimentPlan,
    case: &CasePlan,
    names: Vec<String>,
    testbed: &DeviceTestbed,
    end: Nanos,
) -> Vec<LoadWorkload> {
    let tenants = case.sent.iter().map(|sent| OfferedLoad::Open(sent.trace.until(end)));
    let copy = plan.experiment.copy.map(|copy| OfferedLoad::Closed {
        in_flight: copy.in_flight,
        op: Op::Read,
        size: copy.size,
        sequential: true,
    });
    let mut workloads = Vec::new();
    for (name, offered) in names.into_iter().zip(tenants.chain(copy)) {
        workloads.push(LoadWorkload {
            target: LoadTarget::Nbd { server: testbed.address(), export: name.clone() },
            client: ClientHost { netns: Some(testbed.netns(&name).to_owned()), bind: None },
            connections: 1,
            requests_per_connection: None,
            name,
            offered,
        });
    }
    workloads
}

/// Workloads of servers behind one link, until `end`. Each has one connection, so that its answers come in one order and
/// tenants, not connections, share the link.
fn link_workloads(case: &CasePlan, testbed: &LinkTestbed, end: Nanos) -> Vec<LoadWorkload> {
    let mut workloads = Vec::new();
    for (index, (tenant, sent)) in case.case.tenants.iter().zip(&case.sent).enumerate() {
        workloads.push(LoadWorkload {
            target: testbed.target(case, index),
            client: ClientHost { netns: Some(testbed.netns(tenant.name).to_owned()), bind: None },
            connections: 1,
            requests_per_connection: None,
            name: tenant.name.to_owned(),
            offered: OfferedLoad::Open(sent.trace.until(end)),
        });
    }
    workloads
}
