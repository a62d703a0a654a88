//! Requests of block devices by who sent them, in bounded memory.

use super::contention::BlockWaits;
use super::event::{BlockEvent, BlockRequester};
use super::waits::BlockWaitSums;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The most requesters that are told apart; further ones count as one without a name.
const REQUESTERS_MAX: usize = 1024;

/// Longer times count as this one in percentiles: an hour, in nanoseconds.
const TIME_MAX_NS: u64 = 3_600_000_000_000;

/// Sums over the requests of a requester.
#[derive(Debug, Clone)]
pub struct BlockTimes {
    /// How many requests were done.
    pub requests: u64,
    /// How many of them the device has failed to do.
    pub failed: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// The sum of the times in queues before the device, in nanoseconds.
    pub queue_ns: u64,
    /// The sum of the times at the device, in nanoseconds.
    pub device_ns: u64,
    /// What this time went to, and behind whom.
    pub waits: BlockWaitSums,
    queue: BlockHistogram,
    device: BlockHistogram,
}

/// Times within 1 %, and the largest of them.
#[derive(Debug, Clone)]
struct BlockHistogram {
    buckets: Histogram<u64>,
    max: u64,
}

impl BlockHistogram {
    fn new() -> Self {
        let buckets =
            Histogram::new_with_bounds(1, TIME_MAX_NS, 2).expect("the bounds and two digits are allowed");
        Self { buckets, max: 0 }
    }

    fn add(&mut self, time: u64) {
        self.buckets.saturating_record(time);
        self.max = self.max.max(time);
    }

    /// The upper end of a bucket, but for the last one, which ends with the largest time.
    fn at(&self, quantile: f64) -> u64 {
        if quantile < 1.0 { self.buckets.value_at_quantile(quantile).min(self.max) } else { self.max }
    }
}

/// The sums of each requester.
#[derive(Debug, Clone, Default)]
pub struct BlockStatistics(BTreeMap<BlockRequester, BlockTimes>);

impl BlockStatistics {
    /// Takes a request that is done, and what its time went to, into the sums of its requester.
    pub fn add(&mut self, event: &BlockEvent, waits: &BlockWaits) {
        let mut requester = event.requester();
        if self.0.len() >= REQUESTERS_MAX && !self.0.contains_key(&requester) {
            requester = BlockRequester { operation: event.operation, ..BlockRequester::others(event.device) };
        }
        let times = self.0.entry(requester).or_insert_with(BlockTimes::none);
        times.add(event);
        times.waits.add(waits);
    }

    /// All requesters, those first that had a device for the longest time.
    pub fn by_device_time(&self) -> Vec<(&BlockRequester, &BlockTimes)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by(|a, b| b.1.device_ns.cmp(&a.1.device_ns).then_with(|| a.0.cmp(b.0)));
        all
    }
}

impl BlockTimes {
    fn none() -> Self {
        Self {
            requests: 0,
            failed: 0,
            bytes: 0,
            queue_ns: 0,
            device_ns: 0,
            waits: BlockWaitSums::default(),
            queue: BlockHistogram::new(),
            device: BlockHistogram::new(),
        }
    }

    fn add(&mut self, event: &BlockEvent) {
        let queue = event.issue.saturating_sub(event.begin);
        let device = event.end.saturating_sub(event.issue);
        self.requests += 1;
        self.failed += u64::from(event.failed);
        self.bytes += u64::from(event.bytes);
        self.queue_ns += queue;
        self.device_ns += device;
        self.queue.add(queue);
        self.device.add(device);
    }

    /// A quantile, from 0 to 1, of the time in queues before the device, in nanoseconds, within 1 %; 1 is the largest, exactly.
    pub fn queue_at(&self, quantile: f64) -> u64 {
        self.queue.at(quantile)
    }

    /// A quantile, from 0 to 1, of the time at the device, in nanoseconds, within 1 %; 1 is the largest, exactly.
    pub fn device_at(&self, quantile: f64) -> u64 {
        self.device.at(quantile)
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{BlockDevice, BlockOperation, BlockPhase};
    use super::*;

    fn event(process: u32, begin: u64, issue: u64, end: u64) -> BlockEvent {
        BlockEvent {
            begin,
            issue,
            end,
            cgroup: 1,
            device: BlockDevice { major: 8, minor: 0 },
            operation: BlockOperation(0),
            bytes: 4096,
            process,
            name: format!("p{process}"),
            number: 0,
            time: end,
            phase: BlockPhase::Done,
            failed: process == 2,
        }
    }

    #[test]
    fn requesters_are_told_apart() {
        let mut statistics = BlockStatistics::default();
        statistics.add(&event(1, 0, 10, 30), &BlockWaits::default());
        statistics.add(&event(1, 0, 0, 50), &BlockWaits::default());
        statistics.add(&event(2, 0, 5, 1005), &BlockWaits::default());
        let all = statistics.by_device_time();
        assert_eq!((all[0].0.process, all[0].1.device_ns, all[0].1.failed), (2, 1000, 1));
        assert_eq!((all[1].1.requests, all[1].1.queue_ns, all[1].1.device_ns), (2, 10, 70));
        assert_eq!((all[1].1.queue_at(1.0), all[1].1.device_at(0.5), all[1].1.bytes), (10, 20, 8192));
    }

    #[test]
    fn the_largest_time_is_exact() {
        let largest = 100_001;
        let mut statistics = BlockStatistics::default();
        statistics.add(&event(1, 0, largest, 3 * largest), &BlockWaits::default());
        statistics.add(&event(1, 0, 10, 20), &BlockWaits::default());
        let all = statistics.by_device_time();
        let times = all[0].1;
        assert!(times.queue.buckets.max() > largest && times.device.buckets.max() > 2 * largest);
        assert_eq!([1.0, 0.99].map(|quantile| times.queue_at(quantile)), [largest; 2]);
        assert_eq!([1.0, 0.99].map(|quantile| times.device_at(quantile)), [2 * largest; 2]);
    }

    #[test]
    fn many_requesters_become_others() {
        let mut statistics = BlockStatistics::default();
        (0..5000).for_each(|process| statistics.add(&event(process, 0, 1, 2), &BlockWaits::default()));
        let all = statistics.by_device_time();
        assert_eq!(all.len(), REQUESTERS_MAX + 1);
        assert_eq!(all.iter().map(|(_, times)| times.requests).sum::<u64>(), 5000);
        assert!(all.iter().any(|(who, _)| who.name == "others"));
    }
}
