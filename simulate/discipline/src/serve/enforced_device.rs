//! A storage proxy before a device: an enforcer that lets more requests be at the device than it serves at a time, and the
//! device, which serves them first come, first served.

use super::device_channels::DeviceChannels;
use super::{Assignment, Discipline, QueueItem};
use crate::enforce::{ArrivingRequest, DeviceAccess, DispatchedRequest, EnforcementRules, Enforcer};
use std::collections::VecDeque;

/// Parameters of a proxy before a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnforcedDeviceParameters {
    /// Levels and limits in the unit of the device as a whole, and bounds on the work at the device.
    pub rules: EnforcementRules,
    /// Maximum number of sequential writes sent to the device together; 1 for none.
    pub batch: u32,
}

/// An [`Enforcer`] before a device with as many channels as there are workers. Each channel has an equal
/// part of the device's capacity, so an item takes as many times as long there as there are channels. The
/// size of an item is that time; its cost under limits is its size ÷ workers, rounded up.
#[derive(Debug, Clone)]
pub struct EnforcedDevice {
    enforcer: Enforcer,
    batch: u32,
    /// Requests sent to the device that wait for a channel.
    at_device: VecDeque<DispatchedRequest>,
    channels: DeviceChannels,
    /// Device accesses of the items, by id; kept only when there are batches.
    accesses: Vec<DeviceAccess>,
}

impl EnforcedDevice {
    /// Creates an idle device with a channel per worker, behind buckets that are full at instant 0.
    ///
    /// # Panics
    /// When there are no workers or the rules are out of their ranges.
    pub fn new(workers: u32, parameters: &EnforcedDeviceParameters) -> Self {
        let EnforcedDeviceParameters { rules, batch } = parameters;
        let enforcer = Enforcer::new(0, rules).unwrap_or_else(|error| panic!("rules were checked: {error}"));
        Self {
            enforcer,
            batch: *batch,
            at_device: VecDeque::new(),
            channels: DeviceChannels::new(workers),
            accesses: Vec::new(),
        }
    }

    /// Sends all requests that may be sent, and starts waiting ones on idle channels.
    #[inline]
    fn dispatch(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        while let Some(dispatch) = self.enforcer.dispatch_next(now) {
            self.at_device.push_back(dispatch);
            self.dispatch_batch(now);
        }
        while let Some(worker) = self.channels.first_idle()
            && let Some(dispatch) = self.at_device.pop_front()
        {
            assignments.push(self.channels.begin(worker, dispatch));
        }
    }

    /// Sends the writes that continue the last one sent.
    fn dispatch_batch(&mut self, now: u64) {
        for _ in 1..self.batch {
            let Some(last) = self.at_device.back() else { return };
            let accesses = &self.accesses;
            let previous = accesses[last.id as usize];
            let continues = |next: u32| accesses[next as usize].continues(&previous);
            let Some(next) = self.enforcer.dispatch_continuation(now, last, continues) else { return };
            self.at_device.push_back(next);
        }
    }
}

impl Discipline for EnforcedDevice {
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        let QueueItem { id, class, size, access, .. } = item;
        let access = access.unwrap_or(DeviceAccess::read(size));
        if self.batch > 1 {
            let place = id as usize;
            self.accesses.resize(self.accesses.len().max(place + 1), access);
            self.accesses[place] = access;
        }
        let DeviceAccess { operation, bytes, .. } = access;
        let cost = size.div_ceil(self.channels.len() as u64);
        self.enforcer
            .arrive(now, ArrivingRequest { id, flow: class, operation, cost, bytes, is_estimate: false });
        self.dispatch(now, assignments);
    }

    fn depart(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        if let Some(dispatch) = self.channels.end(worker) {
            // An item costs exactly its claim, so there is nothing to settle.
            self.enforcer.complete(dispatch);
        }
        self.dispatch(now, assignments);
    }

    fn expire(&mut self, _now: u64, _worker: u32, _assignments: &mut Vec<Assignment>) {}

    fn take_worker(&mut self, _now: u64, worker: u32, _assignments: &mut Vec<Assignment>) {
        self.channels.take(worker);
    }

    fn return_worker(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.channels.give(worker);
        self.dispatch(now, assignments);
    }

    fn waiting(&self) -> usize {
        self.enforcer.waiting() + self.at_device.len()
    }

    fn wake_at(&self) -> Option<u64> {
        self.enforcer.wake_at()
    }

    fn wake(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        self.dispatch(now, assignments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enforce::{FlowRules, OutstandingBounds, OverLimit};
    use crate::serve::test_driver::{Job, play};

    /// Class 0 has a level, others are best effort.
    fn device(channels: u32, outstanding: u32, reserve: u32) -> EnforcedDevice {
        let flow = FlowRules {
            level: 0,
            limits: Vec::new(),
            over_limit: OverLimit::Demote,
            largest: None,
            shares_limits_of: None,
        };
        let rules = EnforcementRules {
            flows: [(0, flow)].into(),
            bounds: OutstandingBounds { requests: outstanding, bytes: u64::MAX },
            reserve,
            ..EnforcementRules::none()
        };
        EnforcedDevice::new(channels, &EnforcedDeviceParameters { rules, batch: 1 })
    }

    /// When the item with the number is done.
    fn done(history: &[Vec<Option<u32>>], item: u32) -> usize {
        history.iter().rposition(|unit| unit.contains(&Some(item))).map_or(0, |last| last + 1)
    }

    #[test]
    fn what_is_at_the_device_goes_first_and_the_rest_waits_for_levels() {
        // Five best-effort items of 4, and one with a level at 1.
        let mut jobs = vec![Job { at: 0, class: 1, age: 0, size: 4 }; 5];
        jobs.push(Job { at: 1, class: 0, age: 1, size: 3 });
        // One at the device: it is next. Three: two more are served before it. Two of three are for best effort: one.
        for (outstanding, reserve, expected) in [(1, 0, 7), (3, 0, 15), (3, 1, 11)] {
            let history = play(1, &jobs, &mut device(1, outstanding, reserve));
            assert_eq!(done(&history, 5), expected, "{outstanding} with {reserve} in reserve");
        }
        // Two channels with four at the device: as many again are begun before it.
        assert_eq!(done(&play(2, &jobs, &mut device(2, 4, 0)), 5), 11);
    }
}
