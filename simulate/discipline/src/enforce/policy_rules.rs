//! Enforcement rules of a policy for one device and one link, as a storage proxy applies them and the
//! simulator models them.
//!
//! Three sources bound the use of a device: its owner, the policy, and its profile, in this order of
//! precedence. If the policy states the use of a server, its bounds assume that nothing else keeps requests
//! from the device; the profile's bounds and batches do not apply then.

use super::rules::{EARLY_BEST_EFFORT, EnforcementRules, FlowRules, OutstandingBounds, OverLimit};
use crate::Limit;
use model::{Condition, PolicyWorkload, ServerConditions, ServerEnforcement, Stage};
use std::collections::BTreeMap;

/// Size of the largest request with a level if the policy has no bound, bytes: the maximum that clients of
/// block devices and file systems send.
pub const LARGEST_WITH_LEVEL: u64 = 4 << 20;
/// Bound on outstanding requests if no source states one: the depth that keeps an SSD busy.
const DEFAULT_OUTSTANDING: u32 = 16;
/// Minimum number of places at which best effort leaves one free: at most an eighth of them.
const RESERVE_FROM: u32 = 8;
/// Sequential writes that are sent to a disk together, so that it seeks once for all of them.
const DISK_BATCH: u32 = 8;

/// Bounds set by the owner of a device; absent fields set none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnerBounds {
    /// Maximum number of outstanding requests.
    pub outstanding: Option<u32>,
    /// Maximum number of outstanding bytes.
    pub outstanding_bytes: Option<u64>,
    /// Maximum number of outstanding reads and writes.
    pub by_operation: [Option<u32>; 2],
    /// Maximum number of outstanding bytes of reads and writes.
    pub bytes_by_operation: [Option<u64>; 2],
    /// Maximum number of requests of lower priority beside one of higher priority.
    pub beside: Option<u32>,
    /// Maximum number of bytes of such requests.
    pub beside_bytes: Option<u64>,
    /// Number of places that best effort leaves free.
    pub reserve: Option<u32>,
    /// Maximum number of sequential writes that are sent together.
    pub batch: Option<u32>,
}

/// Bounds from the profile of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProfileBounds {
    /// Maximum number of outstanding reads and writes, at least 1 each.
    pub requests: Option<[u32; 2]>,
    /// Maximum number of outstanding bytes of reads and writes.
    pub bytes: Option<[u64; 2]>,
    /// True for a device that seeks, so that sequential writes are better sent together.
    pub is_disk: bool,
}

/// Use of a device: the settings of an enforcer beside levels and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceUsage {
    /// Bounds on all outstanding requests.
    pub all: OutstandingBounds,
    /// Bounds on reads, then those on writes.
    pub by_operation: [OutstandingBounds; 2],
    /// Bounds on requests of lower priority beside one of higher priority.
    pub beside: OutstandingBounds,
    /// Number of places that best effort leaves free if some flow has a level.
    pub reserve: u32,
    /// Device time of the largest best-effort request that bounds assume, nanoseconds; larger ones are
    /// dispatched alone.
    pub largest_best_effort: Option<u64>,
    /// Maximum number of sequential writes that are sent together; 1 for none.
    pub batch: u32,
}

impl DeviceUsage {
    /// Combines the bounds of the three sources.
    pub fn new(owner: &OwnerBounds, policy: Option<&ServerEnforcement>, profile: &ProfileBounds) -> Self {
        // The policy's use of the server replaces the profile's bounds, as the owner's settings do.
        let profile = if policy.is_some() { ProfileBounds::default() } else { *profile };
        let outstanding = owner.outstanding.or(policy.map(|policy| policy.outstanding));
        let most_items = profile.requests.map(|[reads, writes]| reads.max(writes));
        let most_bytes = profile.bytes.map(|[reads, writes]| reads.max(writes));
        let requests = outstanding.or(most_items).unwrap_or(DEFAULT_OUTSTANDING);
        let bytes = owner.outstanding_bytes.or(most_bytes).unwrap_or(u64::MAX);
        let items = profile.requests.filter(|_| outstanding.is_none()).unwrap_or([u32::MAX; 2]);
        let sizes = profile.bytes.filter(|_| owner.outstanding_bytes.is_none()).unwrap_or([u64::MAX; 2]);
        let by_operation = [0, 1].map(|operation| OutstandingBounds {
            requests: owner.by_operation[operation].unwrap_or(items[operation]),
            bytes: owner.bytes_by_operation[operation].unwrap_or(sizes[operation]),
        });
        // The policy's other values go with its own number of places.
        let own = policy.filter(|policy| policy.outstanding == requests);
        let beside = owner.beside.or(own.map(|policy| policy.beside)).unwrap_or((requests / 2).max(1));
        let reserve = owner.reserve.or(own.map(|policy| policy.reserve));
        Self {
            all: OutstandingBounds { requests, bytes },
            by_operation,
            beside: OutstandingBounds { requests: beside, bytes: owner.beside_bytes.unwrap_or(u64::MAX) },
            reserve: reserve.unwrap_or(u32::from(requests >= RESERVE_FROM)),
            largest_best_effort: policy.map(|policy| whole_up(policy.best_effort_request_s * 1e9)),
            batch: owner.batch.unwrap_or(if profile.is_disk { DISK_BATCH } else { 1 }),
        }
    }

    /// Returns the conditions that are compared with the assumptions of bounds.
    pub fn conditions(&self) -> ServerConditions {
        let [reads, writes] = self.by_operation;
        let bytes = self.all.bytes.min(reads.bytes).min(writes.bytes).min(self.beside.bytes);
        let bytes = if bytes == u64::MAX { f64::INFINITY } else { bytes as f64 };
        let reserve = self.reserve.min(self.all.requests);
        ServerConditions::default()
            .with(Condition::Outstanding, Some(self.all.requests))
            .with(Condition::BusyPlaces, Some(self.all.requests.min(reads.requests).min(writes.requests)))
            .with(Condition::BestEffortPlaces, Some(self.all.requests - reserve))
            .with(Condition::Beside, Some(self.beside.requests))
            .with(Condition::BytesAtDevice, Some(bytes))
            .with(Condition::Batch, Some(self.batch))
    }

    /// Returns the rules of an enforcer with these flows. Best effort leaves places free only if
    /// `has_guarantees`, because otherwise no workload could take them.
    pub fn rules(&self, flows: BTreeMap<u32, FlowRules>, has_guarantees: bool) -> EnforcementRules {
        let [reads, writes] = self.by_operation;
        let reserve = if has_guarantees { self.reserve } else { 0 };
        let largest_best_effort = self.largest_best_effort.filter(|_| has_guarantees);
        EnforcementRules {
            flows,
            bounds: self.all,
            reads,
            writes,
            lower_levels: self.beside,
            reserve,
            largest_best_effort,
        }
    }
}

impl FlowRules {
    /// Returns the rules that a policy gives a workload at a stage, in nanoseconds of its service; `None`
    /// without any guarantee. A unit of work takes `unit_ns` there: 10⁹ for a second of device time, 10⁹ ÷
    /// bandwidth for a byte. `usual_largest` is the cost of the largest request with a level if the policy
    /// states none.
    pub fn of_policy(
        workload: &PolicyWorkload,
        stage: Stage,
        unit_ns: f64,
        over_limit: OverLimit,
        usual_largest: Option<u64>,
    ) -> Option<Self> {
        if !workload.admitted || workload.server.is_none() {
            return None;
        }
        let by_stage = workload.priority_by_stage.map(|levels| levels[stage as usize]);
        // The two lowest levels are reserved for best effort and its control requests.
        let level = by_stage.or(workload.priority)?.min(EARLY_BEST_EFFORT - 1);
        let mut limits = Vec::new();
        for limit in workload.limits.iter().filter(|limit| limit.stage == stage) {
            let [rate, burst] =
                [limit.rate_per_s, limit.bucket_work()].map(|amount| whole_up(amount * unit_ns));
            limits.push(Limit { rate, burst });
        }
        let largest = match stage {
            Stage::Storage => workload.largest_request.map(|seconds| whole_up(seconds * unit_ns)),
            Stage::NetworkIn | Stage::NetworkOut => None,
        };
        Some(Self { level, limits, over_limit, largest: largest.or(usual_largest), shares_limits_of: None })
    }
}

/// Rounds up to a whole number, at least 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole_up(value: f64) -> u64 {
    (value.ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: (u32, u64) = (u32::MAX, u64::MAX);

    fn bounds(used: DeviceUsage) -> [(u32, u64); 4] {
        let DeviceUsage { all, by_operation: [reads, writes], beside, .. } = used;
        [all, reads, writes, beside].map(|bounds| (bounds.requests, bounds.bytes))
    }

    fn policy() -> ServerEnforcement {
        ServerEnforcement {
            channels: 2,
            outstanding: 6,
            beside: 5,
            reserve: 2,
            best_effort_request_s: 0.01,
            packet_bytes: 65536.0,
            link_burst_s: None,
            proxy_s: 0.0,
        }
    }

    #[test]
    fn the_owner_goes_before_the_profile() {
        let nothing = OwnerBounds::default();
        let plain = DeviceUsage::new(&nothing, None, &ProfileBounds::default());
        assert_eq!(bounds(plain), [(16, u64::MAX), ANY, ANY, (8, u64::MAX)]);
        assert_eq!((plain.reserve, plain.batch), (1, 1));
        let profile = ProfileBounds { requests: Some([32, 8]), bytes: Some([4000, 2000]), is_disk: true };
        let limited = DeviceUsage::new(&nothing, None, &profile);
        assert_eq!(bounds(limited), [(32, 4000), (32, 4000), (8, 2000), (16, u64::MAX)]);
        assert_eq!(limited.batch, 8);
        let owner = OwnerBounds { outstanding: Some(64), ..nothing };
        let by_owner = bounds(DeviceUsage::new(&owner, None, &profile));
        assert_eq!(by_owner[..3], [(64, 4000), (u32::MAX, 4000), (u32::MAX, 2000)]);
        let writes = OwnerBounds { by_operation: [None, Some(4)], ..owner };
        assert_eq!(bounds(DeviceUsage::new(&writes, None, &profile))[2], (4, 2000));
        let bytes = OwnerBounds {
            outstanding_bytes: Some(1024),
            bytes_by_operation: [Some(512), None],
            beside: Some(1),
            ..nothing
        };
        let by_bytes = bounds(DeviceUsage::new(&bytes, None, &profile));
        assert_eq!(by_bytes, [(32, 1024), (32, 512), (8, u64::MAX), (1, u64::MAX)]);
    }

    #[test]
    fn the_policy_goes_before_the_profile_and_behind_the_owner() {
        let profile = ProfileBounds { requests: Some([32, 1]), bytes: Some([4000, 1]), is_disk: true };
        let nothing = OwnerBounds::default();
        let used = DeviceUsage::new(&nothing, Some(&policy()), &profile);
        assert_eq!(bounds(used), [(6, u64::MAX), ANY, ANY, (5, u64::MAX)]);
        assert_eq!((used.reserve, used.batch), (2, 1));
        let owner = OwnerBounds { outstanding: Some(4), batch: Some(3), ..nothing };
        let used = DeviceUsage::new(&owner, Some(&policy()), &profile);
        assert_eq!((bounds(used)[0].0, bounds(used)[3].0, used.reserve, used.batch), (4, 2, 0, 3));
        assert_eq!(used.rules(BTreeMap::new(), false).check(), Ok(()));
    }
}
