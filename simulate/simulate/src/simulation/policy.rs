//! Simulation of every server of a policy under its priorities and limits.

use crate::simulation::replication_progress::{ReplicationProgress, SeriesPlace, nothing_complete};
use model::{
    Condition, Job, Op, OperationError, Policy, PolicyServer, PolicyWorkload, Request, ServerClass, Stage,
    Verdict,
};
use operation::{BrokenBounds, ServerRun, check_conditions};
use operation::{Notice, ProgressObserver};
use plan::cluster::{ClusterProblem, enforced_class};
use scenario::server::{
    RecordedRequests, ServerRules, SimulatedWorkload, StorageServer, WorkloadOutcome, WorkloadRequests,
    trace_on_server,
};
use scenario::{ScenarioRun, SimulationCase};
use sim::engine::{ReplicationVerdict, SimulationPlan};
use std::sync::Arc;
use units::{Bytes, Nanos, plural};
use verify::{BoundFinding, ConformanceMeter};
use workload::device::StorageProfile;
use workload::profile_file::profile_hash;

/// Random alignments of the traces in the simulation of each server.
const REPLICATIONS: usize = 8;

/// Minimum number of clients of a best-effort flood.
const FLOOD_CLIENTS_MIN: u32 = 32;

/// Options of [`simulate_policy`].
#[derive(Debug, Clone, Copy)]
pub struct PolicySimulationSettings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Simulates also servers to which the policy's bounds do not apply.
    pub without_bounds: bool,
    /// Floods every server whose bounds assume best-effort requests with requests as large as assumed.
    pub flood: bool,
    /// True if the classes of the cluster, with packets, best effort and proxy, come from the user; false for
    /// defaults.
    pub has_class: bool,
}

/// Result of the simulation of a policy.
#[derive(Debug)]
pub struct PolicySimulation {
    /// The servers to which the bounds of the policy do not apply; `None` when they all do.
    pub broken_bounds: Option<BrokenBounds>,
    /// Servers that are flooded with best-effort requests, each with the device time of a request, seconds.
    pub flooded: Vec<(String, f64)>,
    /// Random alignments of the traces that each server was simulated under.
    pub replications: usize,
    /// Servers of the policy, in its order; after an interruption, those that were complete.
    pub servers: Vec<SimulatedServer>,
    /// True if the simulation was interrupted.
    pub interrupted: bool,
}

/// Result of the simulation of one server.
#[derive(Debug)]
pub struct SimulatedServer {
    /// Name of the server in the policy.
    pub name: String,
    /// Results of its workloads.
    pub outcomes: Vec<WorkloadOutcome>,
    /// Bounds beside the results, in the same order; `None` for a workload without a bound.
    pub bounds: Vec<Option<SimulatedBound>>,
}

/// A bound beside the longest latency of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedBound {
    /// Bound of the policy, seconds.
    pub bound_s: f64,
    /// Longest latency of a request, seconds; `None` without requests.
    pub longest_s: Option<f64>,
    /// True if the requests kept all limits of the workload, also where the trace wraps around.
    pub has_kept_limits: bool,
    /// True if the server is used as the bound assumes.
    pub applies: bool,
    /// True if the bound covers every request, because it accounts for the use of the server.
    pub covers_every_request: bool,
}

impl SimulatedBound {
    /// Returns true if a request took longer than the bound.
    pub fn is_exceeded(&self) -> bool {
        self.longest_s.is_some_and(|longest| BoundFinding::is_beyond(self.bound_s, longest))
    }

    /// Returns true if a request took longer although all assumptions of the bound held.
    pub fn is_broken(&self) -> bool {
        self.is_exceeded() && self.applies && self.has_kept_limits && self.covers_every_request
    }
}

impl SimulatedServer {
    /// Returns true if a bound was broken.
    pub(crate) fn is_bound_broken(&self) -> bool {
        self.bounds.iter().flatten().any(SimulatedBound::is_broken)
    }
}

impl PolicySimulation {
    /// Returns true if no SLO is missed or undecided, and no bound is broken.
    pub fn is_met(&self) -> bool {
        self.servers.iter().all(|server| are_slos_met(&server.outcomes) && !server.is_bound_broken())
    }
}

/// Returns true if no SLO is missed or undecided.
pub(crate) fn are_slos_met(outcomes: &[WorkloadOutcome]) -> bool {
    outcomes.iter().all(|outcome| matches!(outcome.verdict, None | Some(Verdict::Met)))
}

/// Simulates every server of a policy with the traces and devices of a cluster. Once `interrupted` returns
/// true, it ends and returns the servers that were complete.
///
/// # Errors
///
/// When the cluster is not the one of the policy or bounds do not apply to its servers, a trace cannot be
/// simulated, or no server was complete at the interruption.
pub fn simulate_policy(
    policy: &Policy,
    problem: &ClusterProblem,
    settings: PolicySimulationSettings,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> Result<PolicySimulation, OperationError> {
    check_described(policy, problem, observer)?;
    if !policy.hosts.is_empty() {
        observer.notice(Notice::Note(
            "each server is simulated alone, without the links of client hosts: bounds count waits there that latencies here \
             do not have"
                .to_owned(),
        ));
    }
    let several = policy.workloads.iter().filter(|workload| !workload.further_slos.is_empty()).count();
    if several > 0 {
        observer.notice(Notice::Note(format!(
            "{} with several SLOs: latencies here are compared with the first; `tailwright verify` judges all on what -o \
             FILE writes",
            plural(several, "workload")
        )));
    }
    let broken_bounds = check_servers(policy, problem, settings, observer)?;
    let mut flooded = Vec::new();
    let count = policy.servers.len();
    let task = observer.begin("simulating", count as u64, "replications");
    let mut servers = Vec::new();
    for (index, server) in policy.servers.iter().enumerate() {
        let flood = flood_of(server, settings.flood && policy.promises_on(&server.name));
        let case = server_case(policy, server, problem, flood)?;
        flooded.extend(flood.map(|seconds| (server.name.clone(), seconds)));
        let watch =
            ReplicationProgress { task: task.as_ref(), interrupted, place: SeriesPlace { index, count } };
        let run =
            ScenarioRun::watched(case, Vec::new(), settings.seed, &watch).map_err(OperationError::input)?;
        if run.report.verdict == ReplicationVerdict::Interrupted {
            break;
        }
        let mut outcomes = run.workload_outcomes();
        outcomes.retain(|outcome| policy.workloads.iter().any(|member| member.name == outcome.name));
        let applies = !broken_bounds.as_ref().is_some_and(|broken| broken.concern(&server.name));
        let bounds = compare_bounds(policy, server, problem, &outcomes, applies)?;
        servers.push(SimulatedServer { name: server.name.clone(), outcomes, bounds });
    }
    if servers.is_empty() {
        return Err(nothing_complete());
    }
    let interrupted = servers.len() < count;
    Ok(PolicySimulation { broken_bounds, flooded, replications: REPLICATIONS, servers, interrupted })
}

/// Compares the servers of the cluster with the assumptions of the policy's bounds.
fn check_servers(
    policy: &Policy,
    problem: &ClusterProblem,
    settings: PolicySimulationSettings,
    observer: &dyn ProgressObserver,
) -> Result<Option<BrokenBounds>, OperationError> {
    let mut runs = Vec::new();
    for server in &policy.servers {
        let case = server_case(policy, server, problem, None)?;
        let Some((_, name, mut conditions)) = case.policy_conditions() else { continue };
        let (class, profile) = class_of(server, problem)?;
        conditions = conditions.with(Condition::ProfileContent, Some(profile_hash(profile).as_str()));
        if settings.has_class {
            let enforced = enforced_class(class, profile);
            conditions = conditions
                .with(Condition::BestEffortRequest, Some(enforced.best_effort_request))
                .with(Condition::Packet, Some(class.packet.0 as f64))
                .with(Condition::ProxyTime, Some(enforced.proxy));
        }
        runs.push(ServerRun { server: name.to_owned(), conditions });
    }
    check_conditions(policy, &runs, settings.without_bounds, observer)
}

/// Returns the device time of the best-effort requests that flood a server, seconds: the maximum that its
/// bounds assume.
fn flood_of(server: &PolicyServer, is_wanted: bool) -> Option<f64> {
    let seconds = server.enforcement?.best_effort_request_s;
    (is_wanted && seconds > 0.0).then_some(seconds)
}

/// Returns reads and writes that flood a server, of the largest size with at most this device time.
fn flood(
    policy: &Policy,
    server: &PolicyServer,
    storage: &StorageServer,
    seconds: f64,
) -> Vec<SimulatedWorkload> {
    let outstanding = server.enforcement.map_or(1, |enforcement| enforcement.outstanding);
    let clients = outstanding.saturating_mul(2).max(FLOOD_CLIENTS_MIN);
    let mut workloads = Vec::new();
    for (op, noun) in [(Op::Read, "reads"), (Op::Write, "writes")] {
        let Some(size) = largest_size(storage, op, seconds) else { continue };
        let mut name = format!("best-effort {noun}");
        while policy.workloads.iter().any(|workload| workload.name == name) {
            name.push('\'');
        }
        workloads.push(SimulatedWorkload {
            name,
            slo: None,
            best_effort: true,
            weight: 1,
            requests: WorkloadRequests::flood(storage, clients, size, op),
        });
    }
    workloads
}

/// Returns the largest size, up to 1 GiB, of a request with at most this device time; `None` if even one byte
/// takes longer.
fn largest_size(storage: &StorageServer, op: Op, seconds: f64) -> Option<Bytes> {
    let fits = |size: u64| {
        let request = Request { arrival: Nanos::ZERO, size: Bytes(size), op, offset: None, response: None };
        storage.path().work(&request)[Stage::Storage].0 as f64 <= seconds * 1e9 + 1.0
    };
    let mut low = 0;
    let mut high: u64 = 1 << 30;
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    (low > 0).then_some(Bytes(low))
}

/// Rejects a policy without servers, and warns about workloads of the cluster that the policy does not have.
fn check_described(
    policy: &Policy,
    problem: &ClusterProblem,
    observer: &dyn ProgressObserver,
) -> Result<(), OperationError> {
    if policy.servers.is_empty() {
        return Err(OperationError::input(
            "the policy has no servers: nothing is placed, and nothing to simulate",
        )
        .hint("`tailwright plan` says why workloads are not admitted"));
    }
    let has_server = |name: &str| policy.servers.iter().any(|server| server.name == name);
    let mut placed =
        policy.workloads.iter().filter_map(|workload| Some((workload, workload.server.as_deref()?)));
    if let Some((workload, server)) = placed.find(|(_, server)| !has_server(server)) {
        return Err(OperationError::input(format_args!(
            "the policy has workload '{}' on server '{server}', which it does not have",
            workload.name
        ))
        .hint("`tailwright plan -o policy.json` writes policies that fit together"));
    }
    let is_known = |name: &str| policy.workloads.iter().any(|workload| workload.name == name);
    let specs = problem.workloads.iter().map(|spec| spec.name.as_str());
    let unknown: Vec<&str> = specs.filter(|name| !is_known(name)).collect();
    if !unknown.is_empty() {
        let text = format!("the policy does not have these workloads of the cluster: {}", unknown.join(", "));
        observer.notice(Notice::Warning(text + "; they are left out"));
    }
    Ok(())
}

/// Returns the bounds of the workloads of a server beside their results.
fn compare_bounds(
    policy: &Policy,
    server: &PolicyServer,
    problem: &ClusterProblem,
    outcomes: &[WorkloadOutcome],
    applies: bool,
) -> Result<Vec<Option<SimulatedBound>>, OperationError> {
    let mut bounds = Vec::new();
    for outcome in outcomes {
        let member = policy.workloads.iter().find(|member| member.name == outcome.name);
        let Some((member, bound_s)) = member.and_then(|member| Some((member, member.bound_s?))) else {
            bounds.push(None);
            continue;
        };
        let longest_s = (outcome.response.count() > 0).then(|| outcome.response.max() as f64 / 1e9);
        let mut bound = SimulatedBound {
            bound_s,
            longest_s,
            has_kept_limits: true,
            applies,
            covers_every_request: policy.covers_every_request(&server.name),
        };
        // Conformance of the traffic matters only when a bound is exceeded, and checking it reads the trace.
        if bound.is_exceeded() {
            bound.has_kept_limits = keeps_limits(member, server, problem)?;
        }
        bounds.push(Some(bound));
    }
    Ok(bounds)
}

/// Returns true if the trace of a workload, repeated, keeps all of its limits.
fn keeps_limits(
    member: &PolicyWorkload,
    server: &PolicyServer,
    problem: &ClusterProblem,
) -> Result<bool, OperationError> {
    let storage = storage_server(server, problem)?;
    let RecordedRequests { trace, .. } = recorded(member, problem, &storage)?;
    let bandwidth = storage.network().bytes_per_sec();
    let is_denser = |job: &Job| {
        let answer = job.work[Stage::NetworkOut].0.saturating_sub(1) as f64 * bandwidth;
        let densest = |densest: f64| answer > densest * job.work[Stage::Storage].0 as f64;
        member.densest_answer.is_some_and(densest)
    };
    if trace.items().iter().any(is_denser) {
        return Ok(false);
    }
    for limit in &member.limits {
        let capacity = if limit.stage == Stage::Storage { 1.0 } else { bandwidth };
        let mut meter = ConformanceMeter::new(limit.rate_per_s, limit.burst_work);
        let is_over = trace.from_position(0).take(2 * trace.items().len()).any(|job| {
            // Times are rounded up to whole nanoseconds.
            let work = job.work[limit.stage].0.saturating_sub(1) as f64 / 1e9 * capacity;
            meter.add(job.arrival, work)
        });
        if is_over {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the simulation case of a server of a policy.
pub(super) fn server_case(
    policy: &Policy,
    server: &PolicyServer,
    problem: &ClusterProblem,
    flood_s: Option<f64>,
) -> Result<SimulationCase, OperationError> {
    let mut objectives = policy.workloads.iter().flat_map(PolicyWorkload::objectives);
    let is_by_operation = objectives.any(|objective| objective.slo.requests.is_some());
    let storage = storage_server(server, problem)?.with_idle_by_operation(is_by_operation);
    let members = policy.workloads.iter().filter(|at| at.server.as_deref() == Some(server.name.as_str()));
    let mut workloads =
        members.map(|member| workload(member, problem, &storage)).collect::<Result<Vec<_>, _>>()?;
    workloads.extend(flood_s.into_iter().flat_map(|seconds| flood(policy, server, &storage, seconds)));
    let mut plan = SimulationPlan::of_requests(1, 0);
    plan.replications = REPLICATIONS;
    let rules = ServerRules::Policy(Box::new(policy.clone()));
    SimulationCase::storage(server.name.clone(), storage, workloads, &rules, plan)
        .map_err(OperationError::input)
}

/// Returns the class of a server in the cluster, and the profile of its device.
fn class_of<'a>(
    server: &PolicyServer,
    problem: &'a ClusterProblem,
) -> Result<(&'a ServerClass, &'a StorageProfile), OperationError> {
    let classes = &problem.servers;
    let class = classes.iter().position(|class| class.class == server.class).ok_or_else(|| {
        OperationError::input(format_args!(
            "the policy has server '{}' of class '{}', which the cluster does not have",
            server.name, server.class
        ))
    })?;
    Ok((&classes[class], &problem.profiles[class]))
}

/// Returns the device and the links of a server of a policy, as the cluster describes them. The number of
/// channels falls back to the policy's when neither class nor profile states it.
fn storage_server(server: &PolicyServer, problem: &ClusterProblem) -> Result<StorageServer, OperationError> {
    let (class, profile) = class_of(server, problem)?;
    let assumed = server.enforcement.map_or(1, |enforcement| enforcement.channels);
    let channels = class.channels.or(profile.channels()).unwrap_or(assumed);
    StorageServer::new(profile.clone(), class.network, channels).map_err(OperationError::input)
}

fn workload(
    member: &PolicyWorkload,
    problem: &ClusterProblem,
    storage: &StorageServer,
) -> Result<SimulatedWorkload, OperationError> {
    let RecordedRequests { trace, accesses } = recorded(member, problem, storage)?;
    Ok(SimulatedWorkload {
        name: member.name.clone(),
        slo: Some(member.slo),
        best_effort: false,
        weight: 1,
        requests: WorkloadRequests::Recorded { trace: Arc::new(trace), accesses, begin: None },
    })
}

/// Reads the requests of a workload of the policy.
fn recorded(
    member: &PolicyWorkload,
    problem: &ClusterProblem,
    storage: &StorageServer,
) -> Result<RecordedRequests, OperationError> {
    let spec = problem.workloads.iter().find(|spec| spec.name == member.name);
    let spec = spec.ok_or_else(|| {
        OperationError::input(format_args!(
            "the policy has workload '{}', which {} does not describe",
            member.name,
            problem.origin.display()
        ))
        .hint("give the cluster or the SLOs that the policy was planned for")
    })?;
    trace_on_server(&spec.trace, storage).map_err(OperationError::input)
}
