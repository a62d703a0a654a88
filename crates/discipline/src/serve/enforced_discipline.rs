//! An enforcer in front of workers that stand for the channels of a device.

use super::{Assignment, Discipline, QueueItem, UNTIL_DONE};
use crate::bit_set::BitSet;
use crate::enforce::{ArrivingRequest, DeviceAccess, DispatchedRequest, EnforcementRules, Enforcer};

/// An [`Enforcer`] in front of a device that serves as many items at once as there are workers. An item's class is its
/// flow, and its size its cost under limits.
#[derive(Debug, Clone)]
pub struct EnforcedDiscipline {
    enforcer: Enforcer,
    /// What each worker serves.
    in_service: Vec<Option<DispatchedRequest>>,
    idle: BitSet,
}

impl EnforcedDiscipline {
    /// A station with so many idle workers, and with buckets that are full at instant 0.
    ///
    /// # Panics
    /// When there are no workers or the rules are out of their ranges.
    pub fn new(workers: u32, rules: &EnforcementRules) -> Self {
        assert!(workers > 0, "at least one worker");
        let enforcer = Enforcer::new(0, rules).unwrap_or_else(|error| panic!("rules were checked: {error}"));
        let workers = workers as usize;
        Self { enforcer, in_service: vec![None; workers], idle: BitSet::full(workers) }
    }

    #[inline]
    fn dispatch(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        while let Some(worker) = self.idle.first()
            && let Some(dispatch) = self.enforcer.dispatch_next(now)
        {
            self.idle.remove(worker);
            #[expect(clippy::cast_possible_truncation, reason = "workers were counted by a u32")]
            assignments.push(Assignment { worker: worker as u32, item: dispatch.id, slice: UNTIL_DONE });
            self.in_service[worker] = Some(dispatch);
        }
    }
}

impl Discipline for EnforcedDiscipline {
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let QueueItem { id, class, size, access, .. } = item;
        let DeviceAccess { operation, bytes, .. } = access.unwrap_or(DeviceAccess::read(size));
        self.enforcer.arrive(
            now,
            ArrivingRequest { id, flow: class, operation, cost: size, bytes, is_estimate: false },
        );
        self.dispatch(now, assignments);
    }

    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        let worker = worker as usize;
        if let Some(dispatch) = self.in_service[worker].take() {
            // An item needs what it claims: nothing is to be settled.
            self.enforcer.complete(dispatch);
        }
        self.idle.insert(worker);
        self.dispatch(now, assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn take_worker(&mut self, _now: u64, worker: u32, _runs: &mut Vec<Assignment>) {
        self.idle.remove(worker as usize);
    }

    fn return_worker(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.idle.insert(worker as usize);
        self.dispatch(now, assignments);
    }

    fn waiting(&self) -> usize {
        self.enforcer.waiting()
    }

    fn wake_at(&self) -> Option<u64> {
        self.enforcer.wake_at().filter(|_| self.idle.first().is_some())
    }

    fn wake(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        self.dispatch(now, assignments);
    }
}
