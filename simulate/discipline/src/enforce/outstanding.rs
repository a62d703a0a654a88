//! Outstanding requests at the device, by level and by operation.

use super::rules::{BEST_EFFORT, DeviceOperation, EARLY_BEST_EFFORT, EnforcementRules, OutstandingBounds};
use crate::bit_set::BitSet;

/// A number of outstanding requests and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OutstandingLoad {
    requests: u32,
    bytes: u64,
}

impl OutstandingLoad {
    /// Returns true if a request of this size may be added. A single request may exceed the bound on bytes.
    fn has_room(self, bytes: u64, bounds: OutstandingBounds) -> bool {
        let within = self.bytes.checked_add(bytes).is_some_and(|sum| sum <= bounds.bytes);
        self.requests < bounds.requests && (within || self.requests == 0)
    }
}

/// Requests of a flow at the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FlowHold {
    /// All that are dispatched and not complete.
    pub(super) requests: u32,
    /// Those of them that count for this flow only.
    pub(super) detached: u32,
    /// Nothing more of the flow is dispatched for now.
    pub(super) is_barred: bool,
}

/// Bounds of the rules.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceBounds {
    all: OutstandingBounds,
    /// Bounds on reads, then those on writes.
    by_operation: [OutstandingBounds; 2],
    lower_levels: OutstandingBounds,
    reserve: u32,
    largest_best_effort: u64,
}

impl DeviceBounds {
    pub(super) fn new(rules: &EnforcementRules) -> Self {
        let EnforcementRules { bounds, reads, writes, lower_levels, reserve, largest_best_effort, .. } =
            *rules;
        let largest_best_effort = largest_best_effort.unwrap_or(u64::MAX);
        Self { all: bounds, by_operation: [reads, writes], lower_levels, reserve, largest_best_effort }
    }

    /// Returns the same bounds on bytes without bounds on the number of requests.
    pub(super) fn without_counts(self) -> Self {
        Self {
            all: without_count(self.all),
            by_operation: self.by_operation.map(without_count),
            lower_levels: without_count(self.lower_levels),
            reserve: 0,
            ..self
        }
    }

    /// Returns true if a request of this level and cost is best effort and larger than the rules assume.
    pub(super) fn is_unexpected(&self, level: u32, cost: u64) -> bool {
        level >= EARLY_BEST_EFFORT && cost > self.largest_best_effort
    }

    /// Returns the maximum number of outstanding requests.
    pub(super) fn requests(&self) -> u32 {
        self.all.requests
    }

    /// Returns the total bounds and those on the operation that apply to a request of this level.
    fn for_request(&self, level: u32, operation: DeviceOperation) -> [OutstandingBounds; 2] {
        let reserve = if level >= EARLY_BEST_EFFORT { self.reserve } else { 0 };
        [self.all, self.by_operation[operation as usize]].map(|bounds| {
            let requests = bounds.requests.saturating_sub(reserve).max(1);
            OutstandingBounds { requests, ..bounds }
        })
    }
}

fn without_count(bounds: OutstandingBounds) -> OutstandingBounds {
    OutstandingBounds { requests: u32::MAX, ..bounds }
}

/// Counts of the outstanding requests.
#[derive(Debug, Clone)]
pub(super) struct OutstandingRequests {
    /// Levels of the rules and of outstanding requests, sorted; the last is best effort.
    levels: Vec<u32>,
    by_level: Vec<OutstandingLoad>,
    /// Indices of the levels with outstanding requests.
    busy: BitSet,
    /// Reads, then writes.
    by_operation: [OutstandingLoad; 2],
    all: OutstandingLoad,
}

impl OutstandingRequests {
    /// Creates empty counts for these levels and best effort.
    pub(super) fn new(levels: impl Iterator<Item = u32>) -> Self {
        let mut levels: Vec<u32> = levels.chain([BEST_EFFORT]).collect();
        levels.sort_unstable();
        levels.dedup();
        let by_level = vec![OutstandingLoad::default(); levels.len()];
        let busy = BitSet::new(levels.len());
        Self { busy, levels, by_level, by_operation: Default::default(), all: OutstandingLoad::default() }
    }

    /// Changes the levels. Outstanding requests keep the level at which they were dispatched.
    pub(super) fn change_levels(&mut self, levels: impl Iterator<Item = u32>) {
        let old = self.levels.iter().copied().zip(self.by_level.iter().copied());
        let busy: Vec<(u32, OutstandingLoad)> = old.filter(|(_, load)| load.requests > 0).collect();
        let mut changed = Self::new(levels.chain(busy.iter().map(|(level, _)| *level)));
        for (level, load) in busy {
            let position = changed.position(level);
            changed.by_level[position] = load;
            changed.busy.insert(position);
        }
        (changed.all, changed.by_operation) = (self.all, self.by_operation);
        *self = changed;
    }

    pub(super) fn requests(&self) -> u32 {
        self.all.requests
    }

    /// Checks that the counts by level and by operation add up to the total.
    ///
    /// # Panics
    /// When they do not.
    pub(super) fn check(&self) {
        for parts in [&self.by_level[..], &self.by_operation[..]] {
            let requests: u32 = parts.iter().map(|load| load.requests).sum();
            let bytes: u64 = parts.iter().map(|load| load.bytes).sum();
            assert_eq!(OutstandingLoad { requests, bytes }, self.all, "the parts of what is outstanding");
        }
        let busiest = self.by_level.iter().position(|load| load.requests > 0);
        assert_eq!(busiest, self.busy.first(), "the highest level of which a request is outstanding");
    }

    /// Returns true if a request of this level may be dispatched.
    #[inline]
    pub(super) fn admits(
        &self,
        level: u32,
        operation: DeviceOperation,
        bytes: u64,
        bounds: &DeviceBounds,
    ) -> bool {
        let [all, same_operation] = bounds.for_request(level, operation);
        if !self.all.has_room(bytes, all)
            || !self.by_operation[operation as usize].has_room(bytes, same_operation)
        {
            return false;
        }
        let Some(top) = self.busy.first().filter(|top| self.levels[*top] < level) else { return true };
        let OutstandingLoad { requests, bytes: top_bytes } = self.by_level[top];
        let below =
            OutstandingLoad { requests: self.all.requests - requests, bytes: self.all.bytes - top_bytes };
        below.has_room(bytes, bounds.lower_levels)
    }

    #[inline]
    pub(super) fn add(&mut self, level: u32, operation: DeviceOperation, bytes: u64) {
        let position = self.position(level);
        let same_operation = &mut self.by_operation[operation as usize];
        for load in [&mut self.all, same_operation, &mut self.by_level[position]] {
            load.requests += 1;
            load.bytes = load.bytes.checked_add(bytes).expect("fewer than 2⁶⁴ bytes are outstanding");
        }
        self.busy.insert(position);
    }

    #[inline]
    pub(super) fn remove(&mut self, level: u32, operation: DeviceOperation, bytes: u64) {
        let position = self.position(level);
        let same_operation = &mut self.by_operation[operation as usize];
        for load in [&mut self.all, same_operation, &mut self.by_level[position]] {
            load.requests = load.requests.checked_sub(1).expect("what is done was outstanding");
            load.bytes -= bytes;
        }
        if self.by_level[position].requests == 0 {
            self.busy.remove(position);
        }
    }

    #[inline]
    fn position(&self, level: u32) -> usize {
        self.levels.partition_point(|other| *other < level)
    }
}
