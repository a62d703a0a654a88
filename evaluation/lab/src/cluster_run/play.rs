//! Playing the second halves of a cluster's traces under a policy, and judging what was observed.

use super::halves::ClusterHalves;
use super::testbed::{ClusterTestbed, copy_host, copy_name, workload_host};
use crate::experiment::device_simulation::SimulatedRun;
use crate::experiment::disciplines::enforced_rules;
use crate::experiment::{BackgroundCopy, RunSettings};
use discipline::serve::DisciplineSpec;
use load::{ClientHost, LoadProgress, LoadReport, LoadTarget, LoadWorkload, OfferedLoad};
use model::{CircularTrace, Observations, Op, OperationError, PerStage, Policy, Request, Stage};
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos};
use verify::{Findings, ServiceAgreement, Verdict, WorkFunction, examine, judge};
use workload::device::NetworkModel;

/// Reads that each copy keeps in flight: more than the places at a device, so that it always has another one
/// ready.
const COPY_IN_FLIGHT: u32 = 16;
/// The confidence of each verdict.
const CONFIDENCE: f64 = 0.95;
/// Outstanding requests per channel of a device that the policy does not limit.
const OUTSTANDING_PER_CHANNEL: u32 = 2;

/// Observations of a run, and the load of the machine.
pub struct PlayedCluster {
    /// Report of the load generator.
    pub report: LoadReport,
    /// The share of the time in which the machine's CPUs were not idle, 0 to 1; `None` where the kernel does not say.
    pub cpu_busy: Option<f64>,
}

/// Creates the hosts, enforces the policy, sends the second halves, and removes everything. A half shorter
/// than the run is repeated. Workloads that are not admitted send nothing.
///
/// # Errors
/// Without root, or if the machine lacks a feature.
pub fn play_cluster(
    policy: &Policy,
    halves: &ClusterHalves,
    settings: &RunSettings,
    progress: &mut dyn FnMut(LoadProgress),
    stop: &AtomicBool,
) -> Result<PlayedCluster, OperationError> {
    let options = settings.load_options()?;
    let mut testbed = ClusterTestbed::new(policy, halves, settings.realtime)?;
    let workloads = load_workloads(policy, halves, &testbed, settings.warm_up + settings.duration)?;
    let before = machine::cpu_time::of_machine();
    let report = load::run(workloads, &options, progress, stop)?;
    let cpu_busy = before.zip(machine::cpu_time::of_machine()).map(|(before, now)| now.busy_since(before));
    testbed.stop_proxies()?;
    Ok(PlayedCluster { report, cpu_busy })
}

/// The index of the server of an admitted workload.
fn server_of(policy: &Policy, workload: usize) -> Option<usize> {
    let workload = policy.workloads.get(workload).filter(|workload| workload.admitted)?;
    policy.servers.iter().position(|server| Some(&server.name) == workload.server.as_ref())
}

/// The requests of a workload until `end`.
fn requests_until(
    halves: &ClusterHalves,
    workload: usize,
    end: Nanos,
) -> Result<Vec<Request>, OperationError> {
    let second = halves.second[workload].clone();
    let period = second.last().map_or(Nanos::ZERO, |request| request.arrival);
    if period >= end {
        return Ok(second.into_iter().take_while(|request| request.arrival < end).collect());
    }
    let period = Nanos(halves.duration().0.max(period.0) + 1);
    let repeated = CircularTrace::from_first_arrival(second, period).map_err(OperationError::input)?;
    Ok(repeated.until(end))
}

/// Returns the copy on the server with this index; `None` if the cluster has no best effort.
fn copy_of(policy: &Policy, halves: &ClusterHalves, server: usize) -> Option<BackgroundCopy> {
    let class = halves.class(&policy.servers[server].class)?;
    let size = class.best_effort_request;
    (size > Bytes(0)).then_some(BackgroundCopy { in_flight: COPY_IN_FLIGHT, size })
}

fn load_workloads(
    policy: &Policy,
    halves: &ClusterHalves,
    testbed: &ClusterTestbed,
    end: Nanos,
) -> Result<Vec<LoadWorkload>, OperationError> {
    let mut workloads = Vec::new();
    let from = |host: &str, server: usize, name: String, offered: OfferedLoad| LoadWorkload {
        target: LoadTarget::Nbd { server: testbed.address(server), export: host.to_owned() },
        client: ClientHost { netns: Some(testbed.netns(host).to_owned()), bind: None },
        connections: 1,
        requests_per_connection: None,
        name,
        offered,
    };
    for (number, workload) in policy.workloads.iter().enumerate() {
        let Some(server) = server_of(policy, number) else { continue };
        let offered = OfferedLoad::Open(requests_until(halves, number, end)?);
        workloads.push(from(&workload_host(number), server, workload.name.clone(), offered));
    }
    for server in 0..policy.servers.len() {
        let Some(BackgroundCopy { in_flight, size }) = copy_of(policy, halves, server) else { continue };
        let offered = OfferedLoad::Closed { in_flight, op: Op::Read, size, sequential: true };
        workloads.push(from(&copy_host(server), server, copy_name(server), offered));
    }
    Ok(workloads)
}

/// Compares what was observed with SLOs, bounds and limits.
pub fn judge_cluster(policy: &Policy, halves: &ClusterHalves, observations: &Observations) -> Findings {
    let agreements = ServiceAgreement::from_policy(policy);
    let work = |agreement: &ServiceAgreement| -> WorkFunction<'static> {
        let network = NetworkModel::default();
        let number = policy.workloads.iter().position(|workload| workload.name == agreement.name);
        let server = number.and_then(|number| server_of(policy, number));
        let class = server.and_then(|server| halves.class(&policy.servers[server].class));
        let mut device = class.map(|class| class.profile.work_model());
        Box::new(move |request: &Request| {
            let storage = device.as_mut().map(|device| device.work(request).base_units() / 1e9);
            PerStage::from_fn(|stage| match stage {
                Stage::Storage => storage,
                link => Some(network.work(link, request).base_units()),
            })
        })
    };
    examine(observations, &agreements, CONFIDENCE, &work)
}

/// Returns the workloads whose verdicts a run of this length leaves open, by simulation of the devices alone and the first
/// SLO of each, and the length of a decisive run if it can be estimated.
///
/// # Errors
/// If a half cannot be repeated.
pub fn forecast_cluster(
    policy: &Policy,
    halves: &ClusterHalves,
    settings: &RunSettings,
) -> Result<Vec<(String, Option<Nanos>)>, OperationError> {
    let mut open = Vec::new();
    for (number, server) in policy.servers.iter().enumerate() {
        let class = halves.class(&server.class).expect("servers are of the cluster's classes");
        let mut arrivals = Vec::new();
        for (class, workload) in (0u32..).zip(0..policy.workloads.len()) {
            if server_of(policy, workload) == Some(number) {
                let requests = requests_until(halves, workload, settings.warm_up + settings.duration)?;
                arrivals.extend(requests.into_iter().map(|request| (class, request)));
            }
        }
        arrivals.sort_by_key(|(_, request)| request.arrival);
        let usual = OUTSTANDING_PER_CHANNEL * class.model.channels;
        let (outstanding, beside, reserve) = server
            .enforcement
            .map_or((usual, usual / 2, 0), |used| (used.outstanding, used.beside, used.reserve));
        let run = SimulatedRun {
            discipline: DisciplineSpec::Enforced(enforced_rules(policy, outstanding, beside, reserve)),
            outstanding,
            model: class.model,
            profile: &class.profile,
            tenants: policy.workloads.len(),
            arrivals,
            copy: copy_of(policy, halves, number),
            warm_up: settings.warm_up,
        };
        for (workload, latencies) in run.latencies().into_iter().enumerate() {
            if server_of(policy, workload) != Some(number) {
                continue;
            }
            let judged = judge(latencies, policy.workloads[workload].slo, CONFIDENCE);
            if judged.verdict == Verdict::TooFew {
                let share =
                    judged.needed_requests.map(|needed| needed as f64 / judged.requests.max(1) as f64);
                let takes = share.and_then(|share| Nanos::from_secs(settings.duration.as_secs() * share));
                open.push((policy.workloads[workload].name.clone(), takes));
            }
        }
    }
    Ok(open)
}
