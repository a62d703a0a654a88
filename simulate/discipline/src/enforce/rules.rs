//! The rules of an enforcer, as plain data.

use crate::Limit;
use std::collections::BTreeMap;

/// What happens to requests that the limits of their flow do not allow yet.
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
    /// The priority level, below [`BEST_EFFORT`]; level 0 is served first. Any number of flows may share a level.
    pub level: u32,
    /// Token buckets that all hold at once, in the unit of a request's cost. Rates and bursts are at least 1.
    pub limits: Vec<Limit>,
    /// What happens to requests beyond the limits.
    pub over_limit: OverLimit,
    /// The cost of the largest request that has the level. One that costs more is beyond the limits whatever they are: it
    /// takes no tokens, and is served as best effort when it is first in its line, also with [`OverLimit::Queue`].
    pub largest: Option<u64>,
    /// The flow whose limits hold for both flows together. This one then has none of its own.
    pub shares_limits_of: Option<u32>,
}

impl FlowRules {
    /// The rules of all unknown flows together.
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

/// What a request does at the device. Bounds differ by it: an SSD writes more slowly than it reads, and is busy at other
/// depths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceOperation {
    /// It reads data from the device.
    Read,
    /// It writes data to the device.
    Write,
}

/// How far behind the end of a write another one may begin and still continue it, in bytes: a disk passes it faster than
/// it seeks.
pub const SEQUENTIAL_GAP_MAX: u64 = 64 << 10;

/// What a request does at a storage device, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceAccess {
    /// Whether it reads or writes.
    pub operation: DeviceOperation,
    /// The number of bytes that it reads or writes.
    pub bytes: u64,
    /// The offset of the first of them, where it is known.
    pub offset: Option<u64>,
}

impl DeviceAccess {
    /// A read of so many bytes from somewhere.
    pub fn read(bytes: u64) -> Self {
        Self { operation: DeviceOperation::Read, bytes, offset: None }
    }

    /// Whether it is a write that begins where the write `previous` ends, or little behind.
    pub fn continues(&self, previous: &Self) -> bool {
        let (DeviceOperation::Write, DeviceOperation::Write) = (self.operation, previous.operation) else {
            return false;
        };
        let (Some(offset), Some(before)) = (self.offset, previous.offset) else { return false };
        let end = before.saturating_add(previous.bytes);
        (end..=end.saturating_add(SEQUENTIAL_GAP_MAX)).contains(&offset)
    }
}

/// How much may be outstanding at the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutstandingBounds {
    /// The number of requests.
    pub requests: u32,
    /// The number of bytes. A larger request is sent when it is alone.
    pub bytes: u64,
}

impl OutstandingBounds {
    /// Bounds that allow everything.
    pub const NONE: Self = Self { requests: u32::MAX, bytes: u64::MAX };
}

/// The level of requests without a level of their own: those of unknown flows, and those that are demoted.
pub const BEST_EFFORT: u32 = u32::MAX;

/// The level of best effort that goes before other best effort. It and the one below it leave the reserve free, and their
/// requests are dispatched alone where they cost more than others expect.
pub const EARLY_BEST_EFFORT: u32 = BEST_EFFORT - 1;

/// The rules for one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnforcementRules {
    /// The rules of the known flows, by the caller's name for a flow. All others are best effort.
    pub flows: BTreeMap<u32, FlowRules>,
    /// The bounds on all outstanding requests; at least one request.
    pub bounds: OutstandingBounds,
    /// The bounds on the reads among them; at least one request.
    pub reads: OutstandingBounds,
    /// The bounds on the writes among them; at least one request.
    pub writes: OutstandingBounds,
    /// The bounds on outstanding requests below the highest level of which one is outstanding. With 0 requests, nothing
    /// of a lower level is dispatched then.
    pub lower_levels: OutstandingBounds,
    /// How many of the requests that may be outstanding, in all and of each operation, best effort leaves free, so that a
    /// request with a level finds room at once. Fewer than all; of each operation, best effort may always have one.
    pub reserve: u32,
    /// The cost of the largest best-effort request that others expect. A larger one is dispatched when nothing is
    /// outstanding, so that there is never more than one. `None`: of any cost.
    pub largest_best_effort: Option<u64>,
}

impl EnforcementRules {
    /// Rules without flows and bounds: everything is first come, first served.
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
    /// What is wrong with them, in words.
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

    /// Checks whose limits a flow shares.
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
