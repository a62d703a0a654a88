//! Whom requests of a block device wait for: a pure function of when requests came, were issued and were done.
//!
//! The rule: each nanosecond in which n requests are at a device is divided equally among these n; what is left over by
//! the division of the time between two events is that of the request that has been there longest. A request in a queue is
//! charged with the nanosecond as it is divided; one at the device, too, where its own part is its own time. While no
//! request is at the device, those in its queue wait for nobody who is seen: `idle`. So each nanosecond of a request
//! is charged once, and the charges add up to the time between its events exactly.
//!
//! The rule says who had the device, not in which order the device served: one that serves requests at the same time, as
//! flash does, may not have kept them waiting. Time of which it is not known who was at the device is `unseen`: events
//! were lost, or came later than those that they stand before.

use super::event::{BlockDevice, BlockEvent, BlockPhase, BlockRequester};
use std::collections::BTreeMap;

/// The most requesters of a device that are told apart as those who are waited for; further ones count as one.
pub const WAITED_FOR_MAX: usize = 64;

/// The most requests of a device that are open at a time.
const OPEN_MAX: usize = 32 << 10;

/// What the time of a request went to, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockWaits {
    /// Its own part of the device.
    pub own: u64,
    /// In a queue while nothing was at the device.
    pub idle: u64,
    /// While it is not known what was at the device.
    pub unseen: u64,
    /// In a queue while the device was that of a requester, which has this place in [`BlockContention::requesters`].
    pub queued_behind: Vec<(usize, u64)>,
    /// At the device, and a requester's part of it.
    pub shared_with: Vec<(usize, u64)>,
}

impl BlockWaits {
    /// The whole time of the request.
    pub fn total(&self) -> u64 {
        let sum = |charges: &[(usize, u64)]| charges.iter().map(|(_, ns)| ns).sum::<u64>();
        self.own + self.idle + self.unseen + sum(&self.queued_behind) + sum(&self.shared_with)
    }

    fn unseen(ns: u64) -> Self {
        Self { unseen: ns, ..Self::default() }
    }
}

/// What has been divided until an instant.
#[derive(Debug, Clone, Default)]
struct Divided {
    time: u64,
    /// The parts of each requester.
    parts: Vec<u64>,
    idle: u64,
    /// The part of one request that has been there always, without what is left over.
    part_of_one: u64,
}

/// A request that is not done.
#[derive(Debug, Clone)]
struct OpenBlockRequest {
    requester: usize,
    begun: Divided,
    issued: Option<Divided>,
    /// Its place among those at the device.
    turn: u64,
    /// What was left over by divisions and was its own.
    left_over: u64,
}

/// The requests of a device.
#[derive(Debug, Clone, Default)]
struct DeviceRequests {
    requesters: Vec<BlockRequester>,
    places: BTreeMap<BlockRequester, usize>,
    open: BTreeMap<u64, OpenBlockRequest>,
    /// Numbers of the requests at the device, in the order in which they came there.
    at_device: BTreeMap<u64, u64>,
    /// How many of them each requester has.
    counts: Vec<u64>,
    turns: u64,
    divided: Divided,
}

/// The requests of all devices, from their events in the order of time.
#[derive(Debug, Clone, Default)]
pub struct BlockContention(BTreeMap<BlockDevice, DeviceRequests>);

impl BlockContention {
    /// Takes the next event. What the time of a request went to, when that is done.
    pub fn handle(&mut self, event: &BlockEvent) -> Option<BlockWaits> {
        let device = self.0.entry(event.device).or_default();
        device.divide_until(event.time);
        match event.phase {
            BlockPhase::Begin => device.begin(event),
            BlockPhase::Issue => device.issue(event),
            BlockPhase::Returned => device.take_back(event.number),
            BlockPhase::Merged => device.forget(event.number),
            BlockPhase::Done => return Some(device.end(event)),
        }
        None
    }

    /// Events were lost: which requests are at the devices is not known any more.
    pub fn discard(&mut self) {
        self.0.values_mut().for_each(DeviceRequests::discard);
    }

    /// Those who are waited for at a device, in the order in which they came.
    pub fn requesters(&self, device: BlockDevice) -> &[BlockRequester] {
        self.0.get(&device).map_or(&[], |device| &device.requesters)
    }

    /// The number of requests that are not done.
    pub fn open(&self) -> usize {
        self.0.values().map(|device| device.open.len()).sum()
    }
}

impl DeviceRequests {
    fn divide_until(&mut self, time: u64) {
        let length = time.saturating_sub(self.divided.time);
        self.divided.time = self.divided.time.max(time);
        let count = self.at_device.len() as u64;
        let Some(first) = self.at_device.values().next() else {
            self.divided.idle += length;
            return;
        };
        let part = length / count;
        let left_over = length % count;
        self.divided.part_of_one += part;
        for (parts, requests) in self.divided.parts.iter_mut().zip(&self.counts) {
            *parts += part * requests;
        }
        if let Some(oldest) = self.open.get_mut(first) {
            oldest.left_over += left_over;
            self.divided.parts[oldest.requester] += left_over;
        }
    }

    fn place_of(&mut self, requester: BlockRequester) -> usize {
        if let Some(place) = self.places.get(&requester) {
            return *place;
        }
        let mut requester = requester;
        if self.requesters.len() >= WAITED_FOR_MAX {
            let others = self.requesters.iter().position(BlockRequester::is_others);
            if let Some(place) = others {
                return place;
            }
            requester = BlockRequester::others(requester.device);
        }
        self.requesters.push(requester.clone());
        self.counts.push(0);
        self.divided.parts.push(0);
        self.places.insert(requester, self.requesters.len() - 1);
        self.requesters.len() - 1
    }

    fn discard(&mut self) {
        self.open.clear();
        self.at_device.clear();
        self.counts.fill(0);
    }

    fn begin(&mut self, event: &BlockEvent) {
        self.forget(event.number);
        // More than devices have: the ends of some were not seen.
        if self.open.len() >= OPEN_MAX {
            self.discard();
        }
        let requester = self.place_of(event.requester());
        let begun = self.divided.clone();
        self.open
            .insert(event.number, OpenBlockRequest { requester, begun, issued: None, turn: 0, left_over: 0 });
    }

    fn issue(&mut self, event: &BlockEvent) {
        self.leave(event.number);
        if !self.open.contains_key(&event.number) && event.begin == event.time {
            self.begin(event);
        }
        let Some(request) = self.open.get_mut(&event.number) else { return };
        self.turns += 1;
        (request.turn, request.left_over) = (self.turns, 0);
        request.issued = Some(self.divided.clone());
        self.at_device.insert(self.turns, event.number);
        self.counts[request.requester] += 1;
    }

    /// A request is not at the device any more, if it was.
    fn leave(&mut self, number: u64) {
        if let Some(request) = self.open.get(&number)
            && self.at_device.remove(&request.turn).is_some()
        {
            self.counts[request.requester] -= 1;
        }
    }

    /// The device did not take a request.
    fn take_back(&mut self, number: u64) {
        self.leave(number);
        if let Some(request) = self.open.get_mut(&number) {
            request.issued = None;
        }
    }

    fn forget(&mut self, number: u64) {
        self.leave(number);
        self.open.remove(&number);
    }

    fn end(&mut self, event: &BlockEvent) -> BlockWaits {
        let total = event.end.saturating_sub(event.begin);
        self.leave(event.number);
        let Some(request) = self.open.remove(&event.number) else { return BlockWaits::unseen(total) };
        let Some(issued) = request.issued else { return BlockWaits::unseen(total) };
        let own = self.divided.part_of_one - issued.part_of_one + request.left_over;
        let mut shared_with = between(&issued, &self.divided);
        if let Some((_, part)) = shared_with.iter_mut().find(|(place, _)| *place == request.requester) {
            *part -= own;
        }
        shared_with.retain(|(_, part)| *part > 0);
        let idle = issued.idle - request.begun.idle;
        let queued_behind = between(&request.begun, &issued);
        let waits = BlockWaits { own, idle, unseen: 0, queued_behind, shared_with };
        // Events that came too late had other times than those that were divided.
        let is_exact = waits.total() == total && issued.time == event.issue;
        if is_exact { waits } else { BlockWaits::unseen(total) }
    }
}

/// The parts of requesters between two instants, without those that have none.
fn between(from: &Divided, until: &Divided) -> Vec<(usize, u64)> {
    let before = from.parts.iter().chain(std::iter::repeat(&0));
    let parts = until.parts.iter().zip(before).map(|(after, before)| after - before);
    parts.enumerate().filter(|(_, part)| *part > 0).collect()
}
