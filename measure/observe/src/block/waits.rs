//! Sums of what the time of requests went to, of all and of the slowest ones, in bounded memory.

use super::contention::BlockWaits;
use std::collections::BTreeMap;

/// The share of the requests that are the slowest ones.
const SLOWEST_SHARE: f64 = 0.01;

/// The parts of a requester that is waited for, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeBehind {
    /// While requests were in queues.
    pub queued: u64,
    /// While requests were at the device.
    pub shared: u64,
}

impl TimeBehind {
    /// In queues and at the device.
    pub fn total(&self) -> u64 {
        self.queued + self.shared
    }
}

/// What the time of some requests went to, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitSums {
    /// The number of requests.
    pub requests: u64,
    /// Their own parts of the device.
    pub own: u64,
    /// In a queue while nothing was at the device.
    pub idle: u64,
    /// While it is not known what was at the device.
    pub unseen: u64,
    /// Behind requesters, by the place that these have among those of the device.
    pub behind: BTreeMap<usize, TimeBehind>,
}

impl WaitSums {
    fn add(&mut self, waits: &BlockWaits) {
        self.requests += 1;
        self.own += waits.own;
        self.idle += waits.idle;
        self.unseen += waits.unseen;
        for (place, ns) in &waits.queued_behind {
            self.behind.entry(*place).or_default().queued += ns;
        }
        for (place, ns) in &waits.shared_with {
            self.behind.entry(*place).or_default().shared += ns;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.own += other.own;
        self.idle += other.idle;
        self.unseen += other.unseen;
        for (place, behind) in &other.behind {
            let sum = self.behind.entry(*place).or_default();
            sum.queued += behind.queued;
            sum.shared += behind.shared;
        }
    }

    /// The whole time of the requests.
    pub fn total(&self) -> u64 {
        self.own + self.idle + self.unseen + self.behind.values().map(TimeBehind::total).sum::<u64>()
    }
}

/// The sums over all requests of a requester, and over those in each range of times.
#[derive(Debug, Clone, Default)]
pub struct BlockWaitSums {
    all: WaitSums,
    ranges: BTreeMap<u32, WaitSums>,
}

impl BlockWaitSums {
    pub(super) fn add(&mut self, waits: &BlockWaits) {
        self.all.add(waits);
        self.ranges.entry(range_of(waits.total())).or_default().add(waits);
    }

    /// The sums over all requests.
    pub fn all(&self) -> &WaitSums {
        &self.all
    }

    /// The sums over the slowest hundredth, and those whose time is in the same range as the fastest of these.
    pub fn slowest(&self) -> WaitSums {
        let mut slowest = WaitSums::default();
        for range in self.ranges.values().rev() {
            if slowest.requests as f64 >= self.all.requests as f64 * SLOWEST_SHARE {
                break;
            }
            slowest.merge(range);
        }
        slowest
    }
}

/// The range of a time: four to each power of two.
fn range_of(ns: u64) -> u32 {
    let power = ns.max(1).ilog2();
    let quarter = if power < 2 { 0 } else { (ns >> (power - 2)) & 3 };
    power * 4 + u32::try_from(quarter).expect("below four")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_in_the_order_of_times() {
        let ranges: Vec<u32> = (0..5000).map(range_of).collect();
        assert!(ranges.is_sorted());
        assert!((4u64..5000).all(|ns| range_of(ns + ns / 4 + 1) > range_of(ns)), "at most a quarter wide");
        assert_eq!(range_of(u64::MAX), 63 * 4 + 3);
    }

    #[test]
    fn the_slowest_are_at_least_a_hundredth() {
        let mut sums = BlockWaitSums::default();
        for number in 0..1000u64 {
            let queued_behind = if number % 100 == 7 { vec![(3, 1_000_000)] } else { Vec::new() };
            sums.add(&BlockWaits { own: 1000, queued_behind, ..BlockWaits::default() });
        }
        let slowest = sums.slowest();
        assert_eq!((slowest.requests, slowest.own), (10, 10_000));
        assert_eq!(slowest.behind[&3], TimeBehind { queued: 10_000_000, shared: 0 });
        assert_eq!((sums.all().requests, sums.all().total()), (1000, 11_000_000));
        assert_eq!(BlockWaitSums::default().slowest(), WaitSums::default());
    }
}
