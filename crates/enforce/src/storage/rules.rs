//! From a policy and a hosts file to what a proxy enforces: flows, their levels and limits, and what a request costs.
//!
//! A request costs the device time of the server's device profile, as the planner counts it, in nanoseconds; limits of the
//! policy at the storage stage are in the same unit. A flow is a workload of the policy; its number stays the same
//! as long as the proxy runs.
//!
//! Metadata, handshakes and other control requests cost as much as the smallest read. They have a queue of their own
//! for each workload at the workload's level, so that they do not wait behind its data, and a limit of one part in a
//! hundred of the device, beyond which they are best effort: so they neither starve nor pass unbounded. Those of
//! unknown clients and of workloads without a guarantee come after all guaranteed work and before other best effort.

use super::who::Table;
use crate::deployment::{Deployment, Over as OverName, Server, Storage};
use discipline::Limit;
use discipline::enforce::{BEST_EFFORT, Bounds, FlowRules, Over, Rules};
use model::{Op, OperationError, Policy, PolicyWorkload, Request, Stage};
use std::collections::BTreeMap;
use units::{Bytes, Nanos};
use workload::device::{DeviceModel, QueueLimits, StorageProfile, StorageWork};

/// The flow of clients that no entry names.
pub(super) const UNKNOWN: u32 = CONTROL - 1;
/// Added to a flow's number: its control requests.
pub(super) const CONTROL: u32 = 1 << 31;

/// Of the device, for the control requests of one workload: a hundredth.
const CONTROL_RATE_NS: u64 = 10_000_000;
/// At once.
const CONTROL_BURST: u64 = 4;
/// Outstanding requests where neither hosts file nor profile says.
const OUTSTANDING: u32 = 16;
/// Best effort leaves one of these free where that is at most an eighth of them.
const RESERVE_FROM: u32 = 8;
/// Sequential writes of a disk that go together.
const BATCH: u32 = 8;
/// What a control request counts as.
const SMALL: Bytes = Bytes(4096);

/// Numbers of workloads, for the life of a proxy.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u32 {
        let position = self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        u32::try_from(position).expect("fewer workloads than 2³¹")
    }

    /// The workload's name; `None` for unknown clients.
    pub(super) fn name(&self, flow: u32) -> Option<&str> {
        self.0.get((flow & !CONTROL) as usize).map(String::as_str)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// What a proxy enforces.
#[derive(Debug, Clone)]
pub(super) struct Enforced {
    pub(super) rules: Rules,
    pub(super) table: Table,
    /// Most sequential writes that go together; 1 for none.
    pub(super) batch: u32,
}

/// The server of this name with its storage.
pub(super) fn server<'a>(
    deployment: &'a Deployment,
    name: &str,
) -> Result<(&'a Server, &'a Storage), OperationError> {
    let hint = "a proxy stands before a [[server]] with [server.storage]; docs/proxy.md describes it";
    let found = deployment.servers.iter().find(|server| server.name == name);
    let server =
        found.ok_or_else(|| OperationError::input(format_args!("there is no server '{name}'")).hint(hint))?;
    let storage = server.storage.as_ref();
    storage
        .map(|storage| (server, storage))
        .ok_or_else(|| OperationError::input(format_args!("server '{name}' has no storage")).hint(hint))
}

/// What a policy means for the server of this name. Without a policy everybody is best effort.
pub(super) fn enforced(
    policy: Option<&Policy>,
    deployment: &Deployment,
    name: &str,
    profile: &StorageProfile,
    names: &mut Names,
) -> Result<Enforced, OperationError> {
    let (_, storage) = server(deployment, name)?;
    let workloads: &[PolicyWorkload] = policy.map_or(&[], |policy| &policy.workloads);
    let mut flows = BTreeMap::new();
    let small = control_cost(profile);
    for workload in workloads.iter().filter(|workload| is_here(workload, name)) {
        let flow = names.number(&workload.name);
        let Some(rules) = flow_rules(workload, storage.over) else { continue };
        flows.insert(flow | CONTROL, control_rules(rules.level, small));
        flows.insert(flow, rules);
    }
    for flow in (0..).take(names.len()).chain([UNKNOWN]) {
        flows.entry(flow | CONTROL).or_insert_with(|| control_rules(BEST_EFFORT - 1, small));
    }
    let clients = deployment.clients.iter().filter(|client| {
        workloads.iter().any(|workload| workload.name == client.workload && is_here(workload, name))
    });
    let clients: Vec<_> = clients.map(|client| (client, names.number(&client.workload))).collect();
    let [bounds, reads, writes, beside] = bounds(storage, profile);
    // Nothing is kept for nobody.
    let is_for_somebody = flows.keys().any(|flow| flow & CONTROL == 0);
    let reserve =
        if is_for_somebody { storage.reserve.unwrap_or(u32::from(bounds.items >= RESERVE_FROM)) } else { 0 };
    let rules = Rules { flows, bounds, reads, writes, beside, reserve };
    rules.check().map_err(|fault| {
        OperationError::input(fault)
            .hint("limits are the policy's, `outstanding` and `reserve` those of the hosts file")
    })?;
    let disk = matches!(profile.device(), DeviceModel::Disk(_));
    let batch = storage.batch.unwrap_or(if disk { BATCH } else { 1 });
    Ok(Enforced { rules, table: Table::new(clients.into_iter()), batch })
}

/// Whether it is placed here; one that is placed nowhere is best effort wherever it turns up.
fn is_here(workload: &PolicyWorkload, server: &str) -> bool {
    workload.server.as_deref().is_none_or(|at| at == server)
}

fn flow_rules(workload: &PolicyWorkload, over: OverName) -> Option<FlowRules> {
    if !workload.admitted || workload.server.is_none() {
        return None;
    }
    let by_stage = workload.priority_by_stage.map(|levels| levels[Stage::Storage as usize]);
    let level = by_stage.or(workload.priority)?.min(BEST_EFFORT - 2);
    let limits = workload.limits.iter().filter(|limit| limit.stage == Stage::Storage);
    let limits =
        limits.map(|limit| Limit { rate: up(limit.rate_per_s), burst: up(limit.burst_work) }).collect();
    let over = match over {
        OverName::Demote => Over::Demote,
        OverName::Queue => Over::Queue,
    };
    Some(FlowRules { level, limits, over })
}

fn control_rules(level: u32, cost: u64) -> FlowRules {
    let limits = vec![Limit { rate: CONTROL_RATE_NS, burst: CONTROL_BURST * cost }];
    FlowRules { level, limits, over: Over::Demote }
}

/// Seconds of device time as nanoseconds, rounded up; saturates.
fn up(seconds: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = (seconds * 1e9).ceil() as u64;
    ns.max(1)
}

/// What may be at the device: in all, reads, writes, and beside a higher priority. Where the hosts file says nothing the
/// profile does, by operation.
fn bounds(storage: &Storage, profile: &StorageProfile) -> [Bounds; 4] {
    let limits = profile.queue_limits();
    let of_profile = |what: fn(QueueLimits) -> [u64; 2]| limits.map(what);
    let items = of_profile(|limits| [limits.read_requests_max, limits.write_requests_max])
        .map(|items| items.map(|items| u32::try_from(items).unwrap_or(u32::MAX).max(1)));
    let bytes = of_profile(|limits| [limits.read_bytes_max, limits.write_bytes_max]);
    let said = storage.outstanding_bytes.map(|bytes| bytes.0);
    let all = Bounds {
        items: storage.outstanding.unwrap_or(items.map_or(OUTSTANDING, |[reads, writes]| reads.max(writes))),
        bytes: said.unwrap_or(bytes.map_or(u64::MAX, |[reads, writes]| reads.max(writes))),
    };
    let items = items.filter(|_| storage.outstanding.is_none()).unwrap_or([u32::MAX; 2]);
    let bytes = bytes.filter(|_| said.is_none()).unwrap_or([u64::MAX; 2]);
    let of = |items: Option<u32>, bytes: Option<Bytes>, or: (u32, u64)| Bounds {
        items: items.unwrap_or(or.0),
        bytes: bytes.map_or(or.1, |bytes| bytes.0),
    };
    [
        all,
        of(storage.reads, storage.reads_bytes, (items[0], bytes[0])),
        of(storage.writes, storage.writes_bytes, (items[1], bytes[1])),
        of(storage.beside, storage.beside_bytes, ((all.items / 2).max(1), u64::MAX)),
    ]
}

fn control_cost(profile: &StorageProfile) -> u64 {
    Cost::new(profile).of(Op::Read, SMALL, None)
}

/// What requests of one flow cost, in order.
#[derive(Debug)]
pub(super) struct Cost(StorageWork);

impl Cost {
    pub(super) fn new(profile: &StorageProfile) -> Self {
        Self(profile.work_model())
    }

    /// Nanoseconds of device time, rounded up.
    pub(super) fn of(&mut self, op: Op, size: Bytes, offset: Option<u64>) -> u64 {
        let size = if size.0 == 0 { SMALL } else { size };
        let request = Request { arrival: Nanos::ZERO, size, op, offset, response: None };
        // Saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let ns = self.0.work(&request).base_units().ceil() as u64;
        ns.max(1)
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

    fn of(fields: &str, profile: &StorageProfile) -> [(u32, u64); 4] {
        let front = "{ protocol = \"nbd\", listen = \"::1\", forward = \"::1\" }";
        let text = format!("profile = \"-\"\nfront = [{front}]\n{fields}");
        let storage: Storage = toml::from_str(&text).expect("fields of a hosts file");
        bounds(&storage, profile).map(|bounds| (bounds.items, bounds.bytes))
    }

    #[test]
    fn what_the_hosts_file_says_goes_before_the_profile() {
        const ANY: (u32, u64) = (u32::MAX, u64::MAX);
        let plain = profile();
        assert_eq!(of("", &plain), [(16, u64::MAX), ANY, ANY, (8, u64::MAX)]);
        let limits = QueueLimits {
            read_requests_max: 32,
            write_requests_max: 8,
            read_bytes_max: 4000,
            write_bytes_max: 2000,
        };
        let limited = plain.with_queue_limits(limits);
        assert_eq!(of("", &limited), [(32, 4000), (32, 4000), (8, 2000), (16, u64::MAX)]);
        assert_eq!(of("outstanding = 64", &limited)[..3], [(64, 4000), (u32::MAX, 4000), (u32::MAX, 2000)]);
        assert_eq!(of("outstanding = 64\nwrites = 4", &limited)[2], (4, 2000));
        let bytes = "outstanding_bytes = \"1KiB\"\nreads_bytes = \"512B\"\nbeside = 1";
        assert_eq!(of(bytes, &limited), [(32, 1024), (32, 512), (8, u64::MAX), (1, u64::MAX)]);
    }
}
