//! The rules of an enforcer, as plain data.

use crate::Limit;
use std::collections::BTreeMap;

/// Treatment of requests that do not conform to the limits of their flow yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverLimit {
    /// They are best effort, served below all levels without taking tokens (the thesis, §2.2.1).
    Demote,
    /// They wait (the thesis, §2.2).
    Queue,
}

/// The rules of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRules {
    /// Priority level, below [`BEST_EFFORT`]; level 0 is served first. Any number of flows may share a level.
    pub level: u32,
    /// Token buckets that all apply at once, in the unit of a request's cost. Rates and bursts are at least
    /// 1.
    pub limits: Vec<Limit>,
    /// Treatment of requests beyond the limits.
    pub over_limit: OverLimit,
    /// Cost of the largest request that has the level. A larger one never conforms: it takes no tokens, and
    /// is served as best effort when it is first in its queue, also with [`OverLimit::Queue`].
    pub largest: Option<u64>,
    /// Flow whose limits apply to both flows together. This flow then has none of its own.
    pub shares_limits_of: Option<u32>,
}

impl FlowRules {
    /// Returns the rules of all unknown flows together.
    pub(super) fn of_others() -> Self {
        Self {
            level: BEST_EFFORT,
            limits: Vec::new(),
            over_limit: OverLimit::Demote,
            largest: None,
            shares_limits_of: None,
        }
    }
}

/// Operation of a request at the device. Bounds differ by operation: an SSD writes more slowly than it reads,
/// and saturates at other depths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceOperation {
    /// It reads data from the device.
    Read,
    /// It writes data to the device.
    Write,
}

/// Maximum gap between the end of a write and the start of one that continues it, bytes: a disk passes over
/// it faster than it seeks.
pub const SEQUENTIAL_GAP_MAX: u64 = 64 << 10;

/// Operation of a request at a storage device, and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceAccess {
    pub operation: DeviceOperation,
    /// Size, bytes.
    pub bytes: u64,
    /// Offset of the first byte, if known.
    pub offset: Option<u64>,
}

impl DeviceAccess {
    /// Creates a read of `bytes` bytes at an unknown offset.
    pub fn read(bytes: u64) -> Self {
        Self { operation: DeviceOperation::Read, bytes, offset: None }
    }

    /// Returns true for a write that begins at or shortly after the end of the write `previous`.
    pub fn continues(&self, previous: &Self) -> bool {
        let (DeviceOperation::Write, DeviceOperation::Write) = (self.operation, previous.operation) else {
            return false;
        };
        let (Some(offset), Some(before)) = (self.offset, previous.offset) else { return false };
        let end = before.saturating_add(previous.bytes);
        (end..=end.saturating_add(SEQUENTIAL_GAP_MAX)).contains(&offset)
    }
}

/// Maximum outstanding requests and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutstandingBounds {
    /// Number of requests.
    pub requests: u32,
    /// Number of bytes. A larger request is sent alone.
    pub bytes: u64,
}

impl OutstandingBounds {
    /// Bounds that allow everything.
    pub const NONE: Self = Self { requests: u32::MAX, bytes: u64::MAX };
}

/// Level of requests without a level of their own: those of unknown flows, and demoted ones.
pub const BEST_EFFORT: u32 = u32::MAX;

/// Level of best effort that precedes other best effort. Requests of both best-effort levels leave the
/// reserve free, and are dispatched alone if they cost more than the rules assume.
pub const EARLY_BEST_EFFORT: u32 = BEST_EFFORT - 1;

/// Rules for one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnforcementRules {
    /// Rules of the known flows, by the caller's identifier. All other flows are best effort.
    pub flows: BTreeMap<u32, FlowRules>,
    /// Bounds on all outstanding requests; at least one request.
    pub bounds: OutstandingBounds,
    /// Bounds on outstanding reads; at least one request.
    pub reads: OutstandingBounds,
    /// Bounds on outstanding writes; at least one request.
    pub writes: OutstandingBounds,
    /// Bounds on outstanding requests below the highest level with an outstanding request. With 0 requests,
    /// nothing of a lower level is dispatched then.
    pub lower_levels: OutstandingBounds,
    /// Places that best effort leaves free, in total and of each operation, so that a request with a level is
    /// dispatched at once. Fewer than all places; best effort may always have one of each operation.
    pub reserve: u32,
    /// Cost of the largest best-effort request that the bounds assume. A larger one is dispatched only when
    /// nothing is outstanding, so that there is never more than one. `None`: any cost.
    pub largest_best_effort: Option<u64>,
}

impl EnforcementRules {
    /// Returns rules without flows and bounds: first come, first served.
    pub fn none() -> Self {
        let none = OutstandingBounds::NONE;
        Self {
            flows: BTreeMap::new(),
            bounds: none,
            reads: none,
            writes: none,
            lower_levels: none,
            reserve: 0,
            largest_best_effort: None,
        }
    }

    /// Checks that all values are within their ranges.
    ///
    /// # Errors
    /// Describes the first value that is not.
    pub fn check(&self) -> Result<(), String> {
        if [self.bounds, self.reads, self.writes].iter().any(|bounds| bounds.requests == 0) {
            return Err("at least one item may be outstanding, and one of each operation".to_owned());
        }
        if self.reserve >= self.bounds.requests {
            return Err("the reserve is smaller than what may be outstanding".to_owned());
        }
        for (flow, rules) in &self.flows {
            if rules.level == BEST_EFFORT {
                return Err(format!("flow {flow}: a level is at most {}", BEST_EFFORT - 1));
            }
            if rules.limits.iter().any(|limit| limit.rate == 0 || limit.burst == 0) {
                return Err(format!("flow {flow}: the rate and the burst of a limit are at least 1"));
            }
            self.check_shared(*flow, rules)?;
        }
        Ok(())
    }

    /// Checks that the flow whose limits are shared exists and has its own, and that this one has none.
    fn check_shared(&self, flow: u32, rules: &FlowRules) -> Result<(), String> {
        let Some(name) = rules.shares_limits_of else { return Ok(()) };
        if !rules.limits.is_empty() {
            return Err(format!(
                "flow {flow}: it shares the limits of flow {name}, and so has none of its own"
            ));
        }
        match self.flows.get(&name) {
            None => Err(format!("flow {flow}: it shares the limits of flow {name}, which is unknown")),
            Some(other) if other.shares_limits_of.is_some() => {
                Err(format!("flow {flow}: flow {name}, whose limits it shares, has no limits of its own"))
            }
            Some(_) => Ok(()),
        }
    }
}
