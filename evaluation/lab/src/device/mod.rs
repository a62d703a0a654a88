//! An emulated SSD as arithmetic: when a request that is submitted now will be complete. It behaves exactly as its
//! parameters say and is not modelled on any product.
//!
//! `channels` channels serve one request each, for base + slope · size, with separate parameters for reads and
//! writes. Requests are assigned to channels in order of arrival, the earliest free channel first. All channels may
//! share a link: transfers pass it one after another in the order in which their service begins, at `bandwidth` at
//! most, while their channel works on them.
//!
//! This has the properties of an SSD that scheduling must deal with: internal parallelism, throughput that depends on
//! operation and size, and a queue that cannot be reordered from outside. The disk of a virtual machine would not do:
//! it varies by orders of magnitude from run to run, so that no measurement could be repeated.
//!
//! Not covered: the state of a real SSD (caches, garbage collection, wear), and reads that wait for writes to the same
//! die.

mod profile;
mod service_time;

pub use service_time::LinearServiceTime;

use model::Op;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{ByteRate, Bytes, Nanos};

/// The largest number of channels of a device.
pub const CHANNELS_MAX: u32 = 1024;

/// The parameters of an emulated SSD.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SsdModel {
    /// Requests served at once, 1 to [`CHANNELS_MAX`].
    pub channels: u32,
    /// Service time of a read on a channel.
    pub read: LinearServiceTime,
    /// Service time of a write on a channel.
    pub write: LinearServiceTime,
    /// The bandwidth of the link that all channels share; without it only channels limit the device.
    pub bandwidth: Option<ByteRate>,
}

impl SsdModel {
    /// The default device of a lab: four channels, 4 KiB reads in 0.41 ms and writes in 0.72 ms. These times are long
    /// compared with what two CPUs need to pass a request on, and short compared with SLOs of tens of milliseconds.
    pub const LAB: Self = Self {
        channels: 4,
        read: LinearServiceTime::new(Nanos(400_000), 2000),
        write: LinearServiceTime::new(Nanos(700_000), 5000),
        bandwidth: None,
    };

    /// Returns the service time of a request on a channel.
    pub fn service_time(&self, op: Op, size: Bytes) -> Nanos {
        match op {
            Op::Read => self.read,
            Op::Write => self.write,
        }
        .for_size(size)
    }

    /// Returns the time of a request on the shared link; zero without one.
    pub(crate) fn transfer_time(&self, size: Bytes) -> Nanos {
        let ns = self.bandwidth.map_or(0.0, |rate| size.0 as f64 * 1e9 / rate.bytes_per_sec());
        // It is not negative, and `as` saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Nanos(ns.ceil() as u64)
    }

    /// The latency of a request on the idle device.
    pub(crate) fn idle_latency(&self, op: Op, size: Bytes) -> Nanos {
        self.service_time(op, size).max(self.transfer_time(size))
    }

    /// Requests per second of one operation and size while `outstanding` of them are at the device all the time.
    pub fn throughput(&self, op: Op, size: Bytes, outstanding: u32) -> f64 {
        let busy_channels = f64::from(outstanding.min(self.channels));
        let channels = busy_channels / self.service_time(op, size).as_secs();
        let link = self.bandwidth.map_or(f64::INFINITY, |rate| rate.bytes_per_sec() / size.0 as f64);
        channels.min(link)
    }
}

/// An emulated SSD and the requests that it is busy with.
#[derive(Debug, Clone)]
pub(crate) struct EmulatedSsd {
    model: SsdModel,
    /// The instants at which channels become free, the earliest on top.
    channels_free_at: BinaryHeap<Reverse<Nanos>>,
    /// The instant at which the shared link becomes free.
    link_free_at: Nanos,
}

impl EmulatedSsd {
    /// An idle device.
    ///
    /// # Panics
    /// When the model has no channel or more than [`CHANNELS_MAX`].
    pub(crate) fn new(model: SsdModel) -> Self {
        assert!((1..=CHANNELS_MAX).contains(&model.channels), "a device has 1 to {CHANNELS_MAX} channels");
        let channels_free_at = (0..model.channels).map(|_| Reverse(Nanos::ZERO)).collect();
        Self { model, channels_free_at, link_free_at: Nanos::ZERO }
    }

    /// Submits a request at `now`, which must not be earlier than the previous submission. Returns the instant of its
    /// completion.
    pub(crate) fn submit(&mut self, now: Nanos, op: Op, size: Bytes) -> Nanos {
        let mut earliest = self.channels_free_at.peek_mut().expect("there is a channel");
        let start = earliest.0.max(now);
        let mut done = start + self.model.service_time(op, size);
        if self.model.bandwidth.is_some() {
            self.link_free_at = self.link_free_at.max(start) + self.model.transfer_time(size);
            done = done.max(self.link_free_at);
        }
        earliest.0 = done;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COST: LinearServiceTime = LinearServiceTime::new(Nanos(100), 1_000);

    fn model(channels: u32) -> SsdModel {
        SsdModel { channels, read: COST, write: LinearServiceTime::new(Nanos(300), 0), bandwidth: None }
    }

    #[test]
    fn channels_work_at_once_and_then_requests_wait() {
        let mut device = EmulatedSsd::new(model(2));
        let done: Vec<u64> = (0..5).map(|_| device.submit(Nanos(1000), Op::Read, Bytes(50)).0).collect();
        assert_eq!(done, [1150, 1150, 1300, 1300, 1450]);
        // An idle channel is not kept free for later: the fifth has one, the other is free since 1300.
        assert_eq!(device.submit(Nanos(1400), Op::Write, Bytes(1)), Nanos(1700));
    }

    #[test]
    fn a_shared_link_holds_all_channels_to_its_bandwidth() {
        let bandwidth = ByteRate::from_bytes_per_sec(1e9);
        let mut device = EmulatedSsd::new(SsdModel { bandwidth, ..model(4) });
        // 500 ns on the link each, 600 ns on a channel.
        let done: Vec<u64> = (0..4).map(|_| device.submit(Nanos(0), Op::Read, Bytes(500)).0).collect();
        assert_eq!(done, [600, 1000, 1500, 2000]);
        assert_eq!(device.model.idle_latency(Op::Read, Bytes(500)), Nanos(600));
    }

    /// Lindley's recursion for k servers, by its definition: the vector of remaining work is sorted, the first entry
    /// is the wait, and everything shrinks with time.
    fn lindley(channels: usize, requests: &[(u64, u64)]) -> Vec<u64> {
        let mut left = vec![0u64; channels];
        let mut last = 0;
        let mut done = Vec::new();
        for &(at, service) in requests {
            left.iter_mut().for_each(|work| *work = work.saturating_sub(at - last));
            left.sort_unstable();
            done.push(at + left[0] + service);
            left[0] += service;
            last = at;
        }
        done
    }

    prop_compose! {
        fn any_requests()(gaps in prop::collection::vec((0u64..400, 0u64..500, any::<bool>()), 1..80))
            -> Vec<(u64, Op, u64)> {
            let mut at = 0;
            gaps.into_iter().map(|(gap, size, read)| {
                at += gap;
                (at, if read { Op::Read } else { Op::Write }, size)
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn is_a_queue_with_k_servers(channels in 1u32..6, requests in any_requests()) {
            let model = model(channels);
            let mut device = EmulatedSsd::new(model);
            let done: Vec<u64> =
                requests.iter().map(|&(at, op, size)| device.submit(Nanos(at), op, Bytes(size)).0).collect();
            let services: Vec<(u64, u64)> = requests.iter()
                .map(|&(at, op, size)| (at, model.service_time(op, Bytes(size)).0)).collect();
            prop_assert_eq!(done, lindley(channels as usize, &services));
        }

        #[test]
        fn the_link_is_never_exceeded_and_never_idle_without_need(channels in 1u32..6, requests in any_requests()) {
            let bandwidth = ByteRate::from_bytes_per_sec(0.5e9);
            let model = SsdModel { bandwidth, ..model(channels) };
            let mut device = EmulatedSsd::new(model);
            let mut wide = EmulatedSsd::new(SsdModel { bandwidth: None, ..model });
            let mut link = 0;
            for &(at, op, size) in &requests {
                let next_free = device.channels_free_at.peek().expect("there is a channel").0;
                let start = next_free.0.max(at);
                link = link.max(start) + 2 * size;
                let done = device.submit(Nanos(at), op, Bytes(size));
                prop_assert_eq!(done.0, link.max(start + model.service_time(op, Bytes(size)).0));
                prop_assert!(done >= wide.submit(Nanos(at), op, Bytes(size)));
            }
        }
    }
}
