//! What is at the device, by level.

use super::rules::{BEST_EFFORT, Bounds, Operation, Rules};
use crate::bits::BitSet;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Load {
    items: u32,
    bytes: u64,
}

impl Load {
    fn fits(self, bytes: u64, bounds: Bounds) -> bool {
        let within = self.bytes.checked_add(bytes).is_some_and(|sum| sum <= bounds.bytes);
        self.items < bounds.items && (within || self.items == 0)
    }
}

/// What may be there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    all: Bounds,
    /// Reads, writes.
    by_operation: [Bounds; 2],
    beside: Bounds,
    reserve: u32,
}

impl Room {
    pub(super) fn of(rules: &Rules) -> Self {
        let Rules { bounds, reads, writes, beside, reserve, .. } = *rules;
        Self { all: bounds, by_operation: [reads, writes], beside, reserve }
    }

    /// The same for any number of items.
    pub(super) fn for_any_number(self) -> Self {
        let any = |bounds: Bounds| Bounds { items: u32::MAX, ..bounds };
        Self {
            all: any(self.all),
            by_operation: self.by_operation.map(any),
            beside: any(self.beside),
            reserve: 0,
        }
    }

    /// Most items in all.
    pub(super) fn items(&self) -> u32 {
        self.all.items
    }

    /// In all, and of an operation, when an item of `level` joins.
    fn at(&self, level: u32, operation: Operation) -> [Bounds; 2] {
        let reserve = if level == BEST_EFFORT { self.reserve } else { 0 };
        let left = |bounds: Bounds| Bounds { items: bounds.items.saturating_sub(reserve).max(1), ..bounds };
        [self.all, self.by_operation[operation as usize]].map(left)
    }
}

/// Counts by level.
#[derive(Debug, Clone)]
pub(super) struct Outstanding {
    /// Sorted; the last is best effort.
    levels: Vec<u32>,
    by_level: Vec<Load>,
    /// Levels that have something outstanding, by position.
    busy: BitSet,
    /// Reads, writes.
    by_operation: [Load; 2],
    all: Load,
}

impl Outstanding {
    /// Nothing is outstanding.
    pub(super) fn new(levels: impl Iterator<Item = u32>) -> Self {
        let mut levels: Vec<u32> = levels.chain([BEST_EFFORT]).collect();
        levels.sort_unstable();
        levels.dedup();
        let by_level = vec![Load::default(); levels.len()];
        let busy = BitSet::new(levels.len());
        Self { busy, levels, by_level, by_operation: Default::default(), all: Load::default() }
    }

    /// The same with other levels; what is outstanding keeps the level at which it was dispatched.
    pub(super) fn change_levels(&mut self, levels: impl Iterator<Item = u32>) {
        let old = self.levels.iter().copied().zip(self.by_level.iter().copied());
        let busy: Vec<(u32, Load)> = old.filter(|(_, load)| load.items > 0).collect();
        let mut changed = Self::new(levels.chain(busy.iter().map(|(level, _)| *level)));
        for (level, load) in busy {
            let position = changed.position(level);
            changed.by_level[position] = load;
            changed.busy.insert(position);
        }
        (changed.all, changed.by_operation) = (self.all, self.by_operation);
        *self = changed;
    }

    pub(super) fn items(&self) -> u32 {
        self.all.items
    }

    /// Whether an item of `level` may join.
    #[inline]
    pub(super) fn admits(&self, level: u32, operation: Operation, bytes: u64, room: &Room) -> bool {
        let [all, alike] = room.at(level, operation);
        if !self.all.fits(bytes, all) || !self.by_operation[operation as usize].fits(bytes, alike) {
            return false;
        }
        let Some(top) = self.busy.first().filter(|top| self.levels[*top] < level) else { return true };
        let Load { items, bytes: top_bytes } = self.by_level[top];
        let below = Load { items: self.all.items - items, bytes: self.all.bytes - top_bytes };
        below.fits(bytes, room.beside)
    }

    #[inline]
    pub(super) fn add(&mut self, level: u32, operation: Operation, bytes: u64) {
        let position = self.position(level);
        let alike = &mut self.by_operation[operation as usize];
        for load in [&mut self.all, alike, &mut self.by_level[position]] {
            load.items += 1;
            load.bytes = load.bytes.checked_add(bytes).expect("fewer than 2⁶⁴ bytes are outstanding");
        }
        self.busy.insert(position);
    }

    #[inline]
    pub(super) fn remove(&mut self, level: u32, operation: Operation, bytes: u64) {
        let position = self.position(level);
        let alike = &mut self.by_operation[operation as usize];
        for load in [&mut self.all, alike, &mut self.by_level[position]] {
            load.items = load.items.checked_sub(1).expect("what is done was outstanding");
            load.bytes -= bytes;
        }
        if self.by_level[position].items == 0 {
            self.busy.remove(position);
        }
    }

    #[inline]
    fn position(&self, level: u32) -> usize {
        self.levels.partition_point(|other| *other < level)
    }
}
