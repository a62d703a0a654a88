//! Translates a policy and a hosts file into a proxy's rules: flows with their levels and limits, bounds
//! on outstanding requests, and the flow of each client.
//!
//! The cost of a request is its device time by the server's device profile, in nanoseconds; limits of the
//! policy at the storage stage are in the same unit.
//!
//! Metadata, handshakes and other control requests are charged as the smallest read. They have a separate
//! queue for each workload at the workload's level, so that they do not wait behind its data, and share
//! the limits of its data. Both together keep the limits, and a workload within its limits never waits
//! behind best effort, for any mix of requests. Control requests of unknown clients and of workloads
//! without a guarantee come after all guaranteed work and before other best effort, up to a hundredth of
//! the device.
//!
//! A request with more device time than the largest with a level is best effort, even within the limits.
//! If the policy does not state that size, it is [`LARGEST_WITH_LEVEL`] bytes. Such requests have a queue for each
//! workload, too, so that no other request of it waits behind them, but one that is overdue keeps a place of its
//! workload. They take no tokens.

use super::allowed_clients::AllowedClients;
use super::client_identity::ClientTable;
use super::cost::{control_request_ns, largest_cost_ns};
use super::device_conditions::{device_use, unsafe_conditions};
use super::flows::{CONTROL_FLOW, OVERSIZED_FLOW, UNKNOWN_FLOW, WorkloadNames};
use crate::deployment::{Deployment, Front, OverLimitRule, ServerStorage};
use discipline::Limit;
use discipline::enforce::{EARLY_BEST_EFFORT, EnforcementRules, FlowRules, LARGEST_WITH_LEVEL, OverLimit};
use model::{OperationError, Policy, PolicyWorkload, Stage};
use std::collections::BTreeMap;
use units::{Bytes, Nanos};
use workload::device::StorageProfile;

/// Rate of best-effort control requests, in nanoseconds of device time per second: a hundredth of the
/// device.
const CONTROL_RATE_NS: u64 = 10_000_000;
/// Burst of best-effort control requests: a client that mounts or opens sends a few together.
const CONTROL_BURST: u64 = 4;
/// Device time of one second.
const NS_PER_S: f64 = 1e9;

/// Rules that a proxy enforces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyRules {
    pub(super) rules: EnforcementRules,
    pub(super) clients: ClientTable,
    pub(super) allowed: AllowedClients,
    /// Fronts of the hosts file; the engine refuses changes of them.
    fronts: Vec<Front>,
    /// Maximum number of sequential writes dispatched together; 1 for none.
    pub(super) batch: u32,
    /// Latencies of the SLOs of admitted workloads by flow, nanoseconds.
    pub(super) allowed_ns: BTreeMap<u32, u64>,
    /// Differences of the hosts file from the policy's assumptions.
    pub(super) warnings: Vec<String>,
}

/// Returns the storage of the server with this name.
///
/// # Errors
/// When the deployment has no such server, or it has no storage.
pub(super) fn server_storage<'a>(
    deployment: &'a Deployment,
    name: &str,
) -> Result<&'a ServerStorage, OperationError> {
    let hint =
        "a proxy stands before a [[server]] with [server.storage]; docs/reference/hosts-file.md describes it";
    let Some(server) = deployment.servers.iter().find(|server| server.name == name) else {
        return Err(OperationError::input(format_args!("there is no server '{name}'")).hint(hint));
    };
    server
        .storage
        .as_ref()
        .ok_or_else(|| OperationError::input(format_args!("server '{name}' has no storage")).hint(hint))
}

impl ProxyRules {
    /// Derives the rules of the server with this name from a policy. Without a policy all requests are
    /// best effort. New workloads are added to `names`.
    ///
    /// # Errors
    /// When the deployment does not describe the server, or a number is out of its range.
    pub(super) fn new(
        policy: Option<&Policy>,
        deployment: &Deployment,
        server: &str,
        profile: &StorageProfile,
        names: &mut WorkloadNames,
    ) -> Result<Self, OperationError> {
        let storage = server_storage(deployment, server)?;
        let workloads: &[PolicyWorkload] = policy.map_or(&[], |policy| &policy.workloads);
        let mut clients = Vec::new();
        for client in &deployment.clients {
            // A workload that the policy does not name is best effort, under its name in the hosts file.
            let named = workloads.iter().find(|workload| workload.name == client.workload);
            if named.is_none_or(|workload| may_use(workload, server)) {
                clients.push((client, names.flow(&client.workload)));
            }
        }
        let flows = flow_rules(workloads, server, storage.over, profile, names);
        let has_guarantees = flows.keys().any(|flow| flow & CONTROL_FLOW == 0);
        let counted = policy.and_then(|policy| policy.enforcement_of(server));
        let used = device_use(storage, counted, profile);
        let rules = used.rules(flows, has_guarantees);
        rules.check().map_err(|error| {
            OperationError::input(error)
                .hint("limits are the policy's, `outstanding` and `reserve` those of the hosts file")
        })?;
        let allowed = AllowedClients::new(storage).map_err(|message| {
            OperationError::input(message).hint("docs/reference/hosts-file.md describes fronts")
        })?;
        let fronts = storage.front.clone();
        let warnings =
            policy.map(|policy| unsafe_conditions(policy, server, storage, profile)).unwrap_or_default();
        let clients = ClientTable::new(clients);
        let batch = used.batch;
        let promised = workloads.iter().filter(|workload| workload.admitted && may_use(workload, server));
        let allowed_ns =
            promised.filter_map(|it| Some((names.flow(&it.name), Nanos::from_secs(it.slo.latency.0)?.0)));
        let allowed_ns = allowed_ns.collect();
        Ok(Self { rules, clients, allowed, fronts, batch, allowed_ns, warnings })
    }
}

/// Returns the rules of all flows that are not plain best effort: workloads with a level, their requests that are
/// too large for it, and the control requests of all.
fn flow_rules(
    workloads: &[PolicyWorkload],
    server: &str,
    over: OverLimitRule,
    profile: &StorageProfile,
    names: &mut WorkloadNames,
) -> BTreeMap<u32, FlowRules> {
    let mut flows = BTreeMap::new();
    let control_cost = control_request_ns(profile);
    let largest = largest_cost_ns(profile, Bytes(LARGEST_WITH_LEVEL));
    for workload in workloads.iter().filter(|workload| may_use(workload, server)) {
        let flow = names.flow(&workload.name);
        let Some(rules) = data_rules(workload, over, largest) else { continue };
        let control = FlowRules { limits: Vec::new(), shares_limits_of: Some(flow), ..rules.clone() };
        // Nothing conforms there, so everything is best effort.
        let oversized = FlowRules { largest: Some(0), ..control.clone() };
        flows.insert(flow | CONTROL_FLOW, control);
        flows.insert(flow | OVERSIZED_FLOW, oversized);
        flows.insert(flow, rules);
    }
    for flow in (0..).take(names.len()).chain([UNKNOWN_FLOW]) {
        flows.entry(flow | CONTROL_FLOW).or_insert_with(|| best_effort_control_rules(control_cost));
    }
    flows
}

/// Returns true if a workload is placed on this server, or nowhere: then it is best effort on every
/// server that it uses.
fn may_use(workload: &PolicyWorkload, server: &str) -> bool {
    workload.server.as_deref().is_none_or(|at| at == server)
}

/// Returns the rules of a workload's reads and writes; `None` if the policy guarantees it nothing.
fn data_rules(workload: &PolicyWorkload, over: OverLimitRule, usual_largest: u64) -> Option<FlowRules> {
    let over = match over {
        OverLimitRule::Demote => OverLimit::Demote,
        OverLimitRule::Queue => OverLimit::Queue,
    };
    FlowRules::of_policy(workload, Stage::Storage, NS_PER_S, over, Some(usual_largest))
}

fn best_effort_control_rules(cost: u64) -> FlowRules {
    FlowRules {
        level: EARLY_BEST_EFFORT,
        limits: vec![Limit { rate: CONTROL_RATE_NS, burst: CONTROL_BURST * cost }],
        over_limit: OverLimit::Demote,
        largest: None,
        shares_limits_of: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use discipline::enforce::{ArrivingRequest, DeviceOperation, Enforcer};

    const PROFILE: &str = r#"{ "bandwidthTable": [
        { "requestSize": 512, "readBandwidth": 4096000, "writeBandwidth": 4096000 },
        { "requestSize": 1048576, "readBandwidth": 4096000, "writeBandwidth": 4096000 } ] }"#;
    const POLICY: &str = r#"{ "format": "tailwright-policy-1", "policy_name": "tests",
        "servers": [{ "name": "ssd", "class": "ssd", "network_bytes_per_s": 1e9, "storage_profile": "p" }],
        "workloads": [{ "name": "gold", "admitted": true, "server": "ssd", "priority": 0, "slo": "99% < 1s",
        "slo_percentile": 99.0, "slo_s": 1.0, "bound_s": 0.5, "limits": [] }] }"#;

    fn arrival(id: u32, flow: u32, cost: u64) -> ArrivingRequest {
        ArrivingRequest { id, flow, operation: DeviceOperation::Read, cost, bytes: 1, is_estimate: false }
    }

    #[test]
    fn what_is_too_large_for_a_level_counts_for_its_workload() {
        let front = [("nbd", "127.0.0.1:0".parse().unwrap(), "127.0.0.1:1".parse().unwrap())];
        let hosts = testkit::one_server_hosts(&front, "outstanding = 1\nreserve = 0", "");
        let deployment = Deployment::parse(&hosts).expect("hosts of a test");
        let profile = StorageProfile::from_json(PROFILE).expect("a profile");
        let policy = Policy::from_json(POLICY).expect("a policy");
        let mut names = WorkloadNames::default();
        let rules = ProxyRules::new(Some(&policy), &deployment, "ssd", &profile, &mut names)
            .unwrap_or_else(|error| panic!("{error}"));
        let gold = names.flow("gold");
        let oversized = rules.rules.flows[&gold].largest.expect("a largest cost") + 1;
        let mut enforcer = Enforcer::new(0, &rules.rules).expect("sound rules");
        enforcer.arrive(0, arrival(1, gold, 1));
        let mut overdue = enforcer.dispatch_next(0).expect("the device is idle");
        enforcer.detach(&mut overdue);
        enforcer.arrive(1, arrival(2, gold | OVERSIZED_FLOW, oversized));
        enforcer.arrive(2, arrival(3, UNKNOWN_FLOW, 1));
        let next = enforcer.dispatch_next(2).expect("the place is free for others");
        assert_eq!(next.id, 3, "the place of the overdue request is not for its own workload");
        let _ = enforcer.complete(next);
        assert_eq!(enforcer.dispatch_next(3), None);
        let _ = enforcer.complete(overdue);
        let last = enforcer.dispatch_next(4).expect("nothing is at the device");
        assert_eq!((last.id, last.level), (2, discipline::enforce::BEST_EFFORT));
    }
}
