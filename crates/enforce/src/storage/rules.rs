//! Translates a policy and a hosts file into what a proxy enforces: flows with their levels and limits, bounds on what
//! is outstanding, and which client belongs to which flow.
//!
//! A request costs the device time of the server's device profile in nanoseconds; limits of the policy at the storage
//! stage are in the same unit.
//!
//! Metadata, handshakes and other control requests are charged as the smallest read. They have a queue of their own
//! for each workload at the workload's level, so that they do not wait behind its data, and share the limits of its
//! data: both together keep them, and a workload within its limits never waits behind best effort, whatever it asks.
//! Those of unknown clients and of workloads without a guarantee come after all guaranteed work and before other best
//! effort, up to a hundredth of the device.
//!
//! A request that takes more device time than the largest that has a level is best effort, whatever the limits allow.
//! Where the policy does not say which that is, it is one of [`LARGEST_WITH_LEVEL`] bytes.

use super::allowed_clients::AllowedClients;
use super::client_identity::ClientTable;
use super::cost::{control_request_ns, largest_cost_ns};
use super::flows::{CONTROL_FLOW, UNKNOWN_FLOW, WorkloadNames};
use crate::deployment::{Deployment, Front, OverLimitRule, ServerStorage};
use discipline::Limit;
use discipline::enforce::{BEST_EFFORT, EnforcementRules, FlowRules, OutstandingBounds, OverLimit};
use model::{OperationError, Policy, PolicyWorkload, Stage};
use std::collections::BTreeMap;
use units::Bytes;
use workload::device::{DeviceModel, QueueLimits, StorageProfile};

/// The largest request that has a level where the policy has no bound: what the clients of block devices and file systems
/// send at most.
const LARGEST_WITH_LEVEL: Bytes = Bytes(4 << 20);
/// The rate of best-effort control requests, in nanoseconds of device time per second: a hundredth of the device.
const CONTROL_RATE_NS: u64 = 10_000_000;
/// The burst of best-effort control requests, in requests: a client that mounts or opens sends a few together.
const CONTROL_BURST: u64 = 4;
/// The bound on outstanding requests where neither hosts file nor profile has one: what an SSD needs to be busy.
const DEFAULT_OUTSTANDING: u32 = 16;
/// Best effort leaves one place free where that is at most an eighth of all places.
const RESERVE_FROM: u32 = 8;
/// How many sequential writes are sent to a disk together: it then seeks once for all of them.
const DISK_BATCH: u32 = 8;

/// What a proxy enforces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyRules {
    pub(super) rules: EnforcementRules,
    pub(super) clients: ClientTable,
    pub(super) allowed: AllowedClients,
    /// The fronts of the hosts file; which others are refused, the engine says.
    fronts: Vec<Front>,
    /// The most sequential writes that are dispatched together; 1 for none.
    pub(super) batch: u32,
}

/// The storage of the server of this name.
///
/// # Errors
/// When the deployment has no such server, or it has no storage.
pub(super) fn server_storage<'a>(
    deployment: &'a Deployment,
    name: &str,
) -> Result<&'a ServerStorage, OperationError> {
    let hint = "a proxy stands before a [[server]] with [server.storage]; docs/proxy.md describes it";
    let Some(server) = deployment.servers.iter().find(|server| server.name == name) else {
        return Err(OperationError::input(format_args!("there is no server '{name}'")).hint(hint));
    };
    server
        .storage
        .as_ref()
        .ok_or_else(|| OperationError::input(format_args!("server '{name}' has no storage")).hint(hint))
}

impl ProxyRules {
    /// What a policy means for the server of this name. Without a policy everybody is best effort. New workloads are
    /// added to `names`.
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
        let flows = flow_rules(workloads, server, storage.over, profile, names);
        let mut clients = Vec::new();
        for client in &deployment.clients {
            let mut named = workloads.iter().filter(|workload| workload.name == client.workload);
            if named.any(|workload| may_use(workload, server)) {
                clients.push((client, names.flow(&client.workload)));
            }
        }
        let [bounds, reads, writes, beside] = outstanding_bounds(storage, profile);
        // A place is only kept free if some workload may take it.
        let has_guarantees = flows.keys().any(|flow| flow & CONTROL_FLOW == 0);
        let reserve = match storage.reserve {
            _ if !has_guarantees => 0,
            Some(reserve) => reserve,
            None => u32::from(bounds.requests >= RESERVE_FROM),
        };
        let rules = EnforcementRules { flows, bounds, reads, writes, lower_levels: beside, reserve };
        rules.check().map_err(|error| {
            OperationError::input(error)
                .hint("limits are the policy's, `outstanding` and `reserve` those of the hosts file")
        })?;
        let is_disk = matches!(profile.device(), DeviceModel::Disk(_));
        let batch = storage.batch.unwrap_or(if is_disk { DISK_BATCH } else { 1 });
        let allowed = AllowedClients::new(storage)
            .map_err(|message| OperationError::input(message).hint("docs/proxy.md describes fronts"))?;
        let fronts = storage.front.clone();
        Ok(Self { rules, clients: ClientTable::new(clients), allowed, fronts, batch })
    }
}

/// The rules of all flows that are not plain best effort: workloads with a level, and the control requests of all.
fn flow_rules(
    workloads: &[PolicyWorkload],
    server: &str,
    over: OverLimitRule,
    profile: &StorageProfile,
    names: &mut WorkloadNames,
) -> BTreeMap<u32, FlowRules> {
    let mut flows = BTreeMap::new();
    let control_cost = control_request_ns(profile);
    let largest = largest_cost_ns(profile, LARGEST_WITH_LEVEL);
    for workload in workloads.iter().filter(|workload| may_use(workload, server)) {
        let flow = names.flow(&workload.name);
        let Some(rules) = data_rules(workload, over, largest) else { continue };
        let control = FlowRules { limits: Vec::new(), shares_limits_of: Some(flow), ..rules.clone() };
        flows.insert(flow | CONTROL_FLOW, control);
        flows.insert(flow, rules);
    }
    for flow in (0..).take(names.len()).chain([UNKNOWN_FLOW]) {
        flows.entry(flow | CONTROL_FLOW).or_insert_with(|| best_effort_control_rules(control_cost));
    }
    flows
}

/// Whether a workload is placed on the server, or nowhere: then it is best effort on every server that it uses.
fn may_use(workload: &PolicyWorkload, server: &str) -> bool {
    workload.server.as_deref().is_none_or(|at| at == server)
}

/// The rules of a workload's reads and writes; `None` if the policy guarantees it nothing.
fn data_rules(workload: &PolicyWorkload, over: OverLimitRule, usual_largest: u64) -> Option<FlowRules> {
    if !workload.admitted || workload.server.is_none() {
        return None;
    }
    let by_stage = workload.priority_by_stage.map(|levels| levels[Stage::Storage as usize]);
    // The two lowest levels are those of best effort and of its control requests.
    let level = by_stage.or(workload.priority)?.min(BEST_EFFORT - 2);
    let mut limits = Vec::new();
    for limit in workload.limits.iter().filter(|limit| limit.stage == Stage::Storage) {
        limits.push(Limit { rate: seconds_to_ns(limit.rate_per_s), burst: seconds_to_ns(limit.burst_work) });
    }
    let over = match over {
        OverLimitRule::Demote => OverLimit::Demote,
        OverLimitRule::Queue => OverLimit::Queue,
    };
    let largest = Some(workload.largest_request.map_or(usual_largest, seconds_to_ns));
    Some(FlowRules { level, limits, over_limit: over, largest, shares_limits_of: None })
}

fn best_effort_control_rules(cost: u64) -> FlowRules {
    FlowRules {
        level: BEST_EFFORT - 1,
        limits: vec![Limit { rate: CONTROL_RATE_NS, burst: CONTROL_BURST * cost }],
        over_limit: OverLimit::Demote,
        largest: None,
        shares_limits_of: None,
    }
}

/// Seconds of device time in nanoseconds, rounded up, at least 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn seconds_to_ns(seconds: f64) -> u64 {
    ((seconds * 1e9).ceil() as u64).max(1)
}

/// The bounds on what is outstanding: of all requests, of reads, of writes, and of requests beside a higher priority.
/// Where the hosts file has no bound, that of the profile for reads or writes holds.
fn outstanding_bounds(storage: &ServerStorage, profile: &StorageProfile) -> [OutstandingBounds; 4] {
    let profile = ProfileBounds::new(profile.queue_limits());
    let outstanding_bytes = storage.outstanding_bytes.map(|bytes| bytes.0);
    let all = OutstandingBounds {
        requests: storage.outstanding.unwrap_or(profile.items_max()),
        bytes: outstanding_bytes.unwrap_or(profile.bytes_max()),
    };
    // A bound on all requests that somebody has written down replaces the profile's bounds on reads and writes.
    let [read_items, write_items] =
        profile.items.filter(|_| storage.outstanding.is_none()).unwrap_or([u32::MAX; 2]);
    let [read_bytes, write_bytes] =
        profile.bytes.filter(|_| outstanding_bytes.is_none()).unwrap_or([u64::MAX; 2]);
    [
        all,
        bounds_or(storage.reads, storage.reads_bytes, read_items, read_bytes),
        bounds_or(storage.writes, storage.writes_bytes, write_items, write_bytes),
        bounds_or(storage.beside, storage.beside_bytes, (all.requests / 2).max(1), u64::MAX),
    ]
}

/// The bounds of the hosts file, and these where it has none.
fn bounds_or(
    items: Option<u32>,
    bytes: Option<Bytes>,
    default_items: u32,
    default_bytes: u64,
) -> OutstandingBounds {
    OutstandingBounds {
        requests: items.unwrap_or(default_items),
        bytes: bytes.map_or(default_bytes, |bytes| bytes.0),
    }
}

/// The bounds of a device profile, for reads and for writes, where it has any.
struct ProfileBounds {
    items: Option<[u32; 2]>,
    bytes: Option<[u64; 2]>,
}

impl ProfileBounds {
    fn new(limits: Option<QueueLimits>) -> Self {
        let items = limits.map(|limits| {
            [limits.read_requests_max, limits.write_requests_max]
                .map(|items| u32::try_from(items).unwrap_or(u32::MAX).max(1))
        });
        Self { items, bytes: limits.map(|limits| [limits.read_bytes_max, limits.write_bytes_max]) }
    }

    fn items_max(&self) -> u32 {
        self.items.map_or(DEFAULT_OUTSTANDING, |[reads, writes]| reads.max(writes))
    }

    fn bytes_max(&self) -> u64 {
        self.bytes.map_or(u64::MAX, |[reads, writes]| reads.max(writes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::ByteRate;
    use workload::device::{BandwidthRow, SsdTable};

    fn profile() -> StorageProfile {
        let rate = ByteRate::from_bytes_per_sec(1e6).expect("a rate");
        let row = BandwidthRow { request: Bytes(4096), read: rate, write: rate };
        let table = SsdTable::new(vec![row]).expect("one row ascends");
        StorageProfile::new("ssd", DeviceModel::Ssd(table))
    }

    fn bounds(fields: &str, profile: &StorageProfile) -> [(u32, u64); 4] {
        let front = "{ protocol = \"nbd\", listen = \"::1\", forward = \"::1\" }";
        let text = format!("profile = \"-\"\nfront = [{front}]\n{fields}");
        let storage: ServerStorage = toml::from_str(&text).expect("fields of a hosts file");
        outstanding_bounds(&storage, profile).map(|bounds| (bounds.requests, bounds.bytes))
    }

    #[test]
    fn bounds_of_the_hosts_file_go_before_the_profile() {
        const ANY: (u32, u64) = (u32::MAX, u64::MAX);
        let plain = profile();
        assert_eq!(bounds("", &plain), [(16, u64::MAX), ANY, ANY, (8, u64::MAX)]);
        let limits = QueueLimits {
            read_requests_max: 32,
            write_requests_max: 8,
            read_bytes_max: 4000,
            write_bytes_max: 2000,
        };
        let limited = plain.with_queue_limits(limits);
        assert_eq!(bounds("", &limited), [(32, 4000), (32, 4000), (8, 2000), (16, u64::MAX)]);
        assert_eq!(
            bounds("outstanding = 64", &limited)[..3],
            [(64, 4000), (u32::MAX, 4000), (u32::MAX, 2000)]
        );
        assert_eq!(bounds("outstanding = 64\nwrites = 4", &limited)[2], (4, 2000));
        let bytes = "outstanding_bytes = \"1KiB\"\nreads_bytes = \"512B\"\nbeside = 1";
        assert_eq!(bounds(bytes, &limited), [(32, 1024), (32, 512), (8, u64::MAX), (1, u64::MAX)]);
    }
}
