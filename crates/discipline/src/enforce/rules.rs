//! What is enforced, as plain data.

use crate::Limit;
use std::collections::BTreeMap;

/// What happens to a flow's work that its limits do not allow yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It is best effort until they do: served below all levels, without taking tokens (the thesis, §2.2.1).
    Demote,
    /// It waits until they do (the thesis, §2.2).
    Queue,
}

/// Rules of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRules {
    /// 0 is served first; below [`BEST_EFFORT`]. Any number of flows may share a level.
    pub level: u32,
    /// All of them hold at once; none: no limit. In the unit of an arrival's cost. Rates are at least 1.
    pub limits: Vec<Limit>,
    /// What happens to work beyond them.
    pub over: Over,
}

/// What an item does at the device: how many may be there at once differs by it (an SSD writes more slowly than it
/// reads, and takes other depths to be busy).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It takes from the device.
    Read,
    /// It changes the device.
    Write,
}

/// How much may be outstanding at the device at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How many items.
    pub items: u32,
    /// How many bytes; an item that is larger passes when it is alone.
    pub bytes: u64,
}

impl Bounds {
    /// No bounds.
    pub const NONE: Self = Self { items: u32::MAX, bytes: u64::MAX };
}

/// The level of what has no level of its own: unknown flows, and work that is over its limits and demoted.
pub const BEST_EFFORT: u32 = u32::MAX;

/// What is enforced at one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// By the caller's name for a flow; all others are best effort.
    pub flows: BTreeMap<u32, FlowRules>,
    /// On all that is outstanding; at least one item.
    pub bounds: Bounds,
    /// On the reads among it; at least one item.
    pub reads: Bounds,
    /// On the writes among it; at least one item.
    pub writes: Bounds,
    /// On what is outstanding of lower levels while an item of a higher level is; 0 items: nothing of a lower level
    /// is dispatched then.
    pub beside: Bounds,
    /// Of the items that may be outstanding, in all and of each operation, how many best effort leaves free, so that what
    /// has a level finds room at once when it comes; fewer than all. Of an operation it has one in any case.
    pub reserve: u32,
}

impl Rules {
    /// No flow is known and nothing is bounded: first come, first served.
    pub fn none() -> Self {
        let none = Bounds::NONE;
        Self { flows: BTreeMap::new(), bounds: none, reads: none, writes: none, beside: none, reserve: 0 }
    }

    /// Whether all values are within their ranges; what is wrong otherwise.
    pub fn check(&self) -> Result<(), String> {
        if [self.bounds, self.reads, self.writes].iter().any(|bounds| bounds.items == 0) {
            return Err("at least one item may be outstanding, and one of each operation".to_owned());
        }
        if self.reserve >= self.bounds.items {
            return Err("the reserve is smaller than what may be outstanding".to_owned());
        }
        for (flow, rules) in &self.flows {
            if rules.level == BEST_EFFORT {
                return Err(format!("flow {flow}: a level is at most {}", BEST_EFFORT - 1));
            }
            if rules.limits.iter().any(|limit| limit.rate == 0 || limit.burst == 0) {
                return Err(format!("flow {flow}: the rate and the burst of a limit are at least 1"));
            }
        }
        Ok(())
    }
}
