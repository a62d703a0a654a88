//! An enforcer in front of workers that model the channels of a device.

use super::device_channels::DeviceChannels;
use super::{Assignment, Discipline, QueueItem};
use crate::enforce::{ArrivingRequest, DeviceAccess, EnforcementRules, Enforcer};

/// An [`Enforcer`] in front of a device that serves one item per worker at once. An item's class is its flow,
/// and its size its cost under limits.
#[derive(Debug, Clone)]
pub struct EnforcedDiscipline {
    enforcer: Enforcer,
    channels: DeviceChannels,
}

impl EnforcedDiscipline {
    /// Creates a station with `workers` idle workers, and buckets that are full at instant 0.
    ///
    /// # Panics
    /// When there are no workers or the rules are out of their ranges.
    pub fn new(workers: u32, rules: &EnforcementRules) -> Self {
        let enforcer = Enforcer::new(0, rules).unwrap_or_else(|error| panic!("rules were checked: {error}"));
        Self { enforcer, channels: DeviceChannels::new(workers) }
    }

    #[inline]
    fn dispatch(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        while let Some(worker) = self.channels.first_idle()
            && let Some(dispatch) = self.enforcer.dispatch_next(now)
        {
            assignments.push(self.channels.begin(worker, dispatch));
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
        if let Some(dispatch) = self.channels.end(worker) {
            // An item costs exactly its claim, so there is nothing to settle.
            self.enforcer.complete(dispatch);
        }
        self.dispatch(now, assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _runs: &mut Vec<Assignment>) {}

    fn take_worker(&mut self, _now: u64, worker: u32, _runs: &mut Vec<Assignment>) {
        self.channels.take(worker);
    }

    fn return_worker(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.channels.give(worker);
        self.dispatch(now, assignments);
    }

    fn waiting(&self) -> usize {
        self.enforcer.waiting()
    }

    fn wake_at(&self) -> Option<u64> {
        self.enforcer.wake_at().filter(|_| self.channels.first_idle().is_some())
    }

    fn wake(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        self.dispatch(now, assignments);
    }
}
