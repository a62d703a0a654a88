//! An enforcer before workers that are the device's channels.

use super::{Discipline, Item, Run, UNTIL_DONE};
use crate::bits::BitSet;
use crate::enforce::{Arrival, Dispatch, Enforcer, Operation, Rules};

/// An [`Enforcer`] before a device that serves as many items at once as there are workers. An item's class is its
/// flow; its size is what it takes of limits and what it counts against bounds on bytes; bounds on writes do not matter.
#[derive(Debug, Clone)]
pub struct Enforced {
    enforcer: Enforcer,
    /// What each worker has.
    on: Vec<Option<Dispatch>>,
    idle: BitSet,
}

impl Enforced {
    /// All of `workers` are idle, all buckets are full at instant 0.
    ///
    /// # Panics
    /// When there are no workers or the rules are out of their ranges.
    pub fn new(workers: u32, rules: &Rules) -> Self {
        assert!(workers > 0, "at least one worker");
        let enforcer = Enforcer::new(0, rules).unwrap_or_else(|fault| panic!("rules were checked: {fault}"));
        let workers = workers as usize;
        Self { enforcer, on: vec![None; workers], idle: BitSet::full(workers) }
    }

    #[inline]
    fn dispatch(&mut self, now: u64, runs: &mut Vec<Run>) {
        while let Some(worker) = self.idle.first()
            && let Some(dispatch) = self.enforcer.next(now)
        {
            self.idle.remove(worker);
            // Workers were counted by a u32.
            #[allow(clippy::cast_possible_truncation)]
            runs.push(Run { worker: worker as u32, item: dispatch.id, slice: UNTIL_DONE });
            self.on[worker] = Some(dispatch);
        }
    }
}

impl Discipline for Enforced {
    fn arrive(&mut self, now: u64, item: Item, runs: &mut Vec<Run>) {
        let Item { id, class, size, .. } = item;
        let operation = Operation::Read;
        self.enforcer.arrive(now, Arrival { id, flow: class, operation, cost: size, bytes: size });
        self.dispatch(now, runs);
    }

    fn depart(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        let worker = worker as usize;
        self.on[worker].take().into_iter().for_each(|dispatch| self.enforcer.done(dispatch));
        self.idle.insert(worker);
        self.dispatch(now, runs);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Run>) {}

    fn leave(&mut self, _now: u64, worker: u32, _runs: &mut Vec<Run>) {
        self.idle.remove(worker as usize);
    }

    fn back(&mut self, now: u64, worker: u32, runs: &mut Vec<Run>) {
        self.idle.insert(worker as usize);
        self.dispatch(now, runs);
    }

    fn waiting(&self) -> usize {
        self.enforcer.waiting()
    }

    fn wake_at(&self) -> Option<u64> {
        self.enforcer.wake_at().filter(|_| self.idle.first().is_some())
    }

    fn wake(&mut self, now: u64, runs: &mut Vec<Run>) {
        self.dispatch(now, runs);
    }
}
