//! An emulated SSD: when a request that is handed to it now will be done. It emulates a device that keeps its
//! promises exactly, and stands for no real one.
//!
//! `channels` channels serve one request each, for base + slope · size, with parameters of their own for reads and
//! writes. Requests go into channels in the order in which they come, the earliest free channel first. All
//! channels may share a link: transfers pass it one after another in the order in which their service begins, at most
//! `bandwidth`, beside the service of their channel.
//!
//! This much makes an SSD what scheduling has to deal with: parallel inside, throughput that depends on operation
//! and size, a queue that nobody outside can reorder. A real disk of a virtual machine varies by orders of
//! magnitude from run to run, so that nothing measured with it can be repeated.
//!
//! Not covered: state of a real SSD (caches, garbage collection, wear), reads that wait for writes to the same die.

mod cost;
mod profile;

pub use cost::Cost;

use model::Op;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{ByteRate, Bytes, Nanos};

/// Most channels of a device.
pub const CHANNELS_MAX: u32 = 1024;

/// What an emulated SSD does, without state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Requests served at once; 1 to [`CHANNELS_MAX`].
    pub channels: u32,
    /// Time of a channel for a read.
    pub read: Cost,
    /// Time of a channel for a write.
    pub write: Cost,
    /// Of all channels together, if anything less than all of them at their fastest.
    pub bandwidth: Option<ByteRate>,
}

impl Model {
    /// That of a lab unless another is asked for: four channels, 4 KiB reads in 0.41 ms and writes in 0.72 ms. The times are
    /// long beside what two CPUs take to pass a request on, and short beside SLOs of tens of milliseconds.
    pub const LAB: Self = Self {
        channels: 4,
        read: Cost::new(Nanos(400_000), 2000),
        write: Cost::new(Nanos(700_000), 5000),
        bandwidth: None,
    };

    /// Time of a channel for a request.
    pub fn service(&self, op: Op, size: Bytes) -> Nanos {
        match op {
            Op::Read => self.read,
            Op::Write => self.write,
        }
        .of(size)
    }

    /// Time of the shared link for a request; zero without one.
    pub fn transfer(&self, size: Bytes) -> Nanos {
        let ns = self.bandwidth.map_or(0.0, |rate| size.0 as f64 * 1e9 / rate.bytes_per_sec());
        // `as` saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Nanos(ns.ceil() as u64)
    }

    /// Latency of a request on the idle device.
    pub fn alone(&self, op: Op, size: Bytes) -> Nanos {
        self.service(op, size).max(self.transfer(size))
    }

    /// Requests per second of one operation and size while so many are outstanding at the device at any time.
    pub fn throughput(&self, op: Op, size: Bytes, outstanding: u32) -> f64 {
        let busy = f64::from(outstanding.min(self.channels));
        let channels = busy / self.service(op, size).as_secs();
        let link = self.bandwidth.map_or(f64::INFINITY, |rate| rate.bytes_per_sec() / size.0 as f64);
        // With few outstanding a transfer longer than the service is the latency of each.
        channels.min(link)
    }
}

/// An emulated SSD and what it is busy with.
#[derive(Debug, Clone)]
pub struct Device {
    model: Model,
    /// When each channel is free.
    free: BinaryHeap<Reverse<Nanos>>,
    /// When the shared link is.
    link_free: Nanos,
}

impl Device {
    /// An idle one.
    ///
    /// # Panics
    /// With no channel or more than [`CHANNELS_MAX`].
    pub fn new(model: Model) -> Self {
        assert!((1..=CHANNELS_MAX).contains(&model.channels), "a device has 1 to {CHANNELS_MAX} channels");
        let free = (0..model.channels).map(|_| Reverse(Nanos::ZERO)).collect();
        Self { model, free, link_free: Nanos::ZERO }
    }

    /// What it does.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Hands it a request at `now`, which must not be earlier than that of the request before; when it is done.
    pub fn submit(&mut self, now: Nanos, op: Op, size: Bytes) -> Nanos {
        let mut earliest = self.free.peek_mut().expect("there is a channel");
        let start = earliest.0.max(now);
        let mut done = start + self.model.service(op, size);
        if self.model.bandwidth.is_some() {
            self.link_free = self.link_free.max(start) + self.model.transfer(size);
            done = done.max(self.link_free);
        }
        earliest.0 = done;
        done
    }

    /// When a channel will be free that is not: zero if one was never used.
    pub fn next_free(&self) -> Nanos {
        self.free.peek().expect("there is a channel").0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COST: Cost = Cost::new(Nanos(100), 1_000);

    fn model(channels: u32) -> Model {
        Model { channels, read: COST, write: Cost::new(Nanos(300), 0), bandwidth: None }
    }

    #[test]
    fn channels_work_at_once_and_then_requests_wait() {
        let mut device = Device::new(model(2));
        let done: Vec<u64> = (0..5).map(|_| device.submit(Nanos(1000), Op::Read, Bytes(50)).0).collect();
        assert_eq!(done, [1150, 1150, 1300, 1300, 1450]);
        // An idle channel is not kept free for later: the fifth has one, the other is free since 1300.
        assert_eq!(device.submit(Nanos(1400), Op::Write, Bytes(1)), Nanos(1700));
    }

    #[test]
    fn a_shared_link_holds_all_channels_to_its_bandwidth() {
        let bandwidth = ByteRate::from_bytes_per_sec(1e9);
        let mut device = Device::new(Model { bandwidth, ..model(4) });
        // 500 ns on the link each, 600 ns on a channel.
        let done: Vec<u64> = (0..4).map(|_| device.submit(Nanos(0), Op::Read, Bytes(500)).0).collect();
        assert_eq!(done, [600, 1000, 1500, 2000]);
        assert_eq!(device.model().alone(Op::Read, Bytes(500)), Nanos(600));
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
            let mut device = Device::new(model);
            let done: Vec<u64> =
                requests.iter().map(|&(at, op, size)| device.submit(Nanos(at), op, Bytes(size)).0).collect();
            let services: Vec<(u64, u64)> = requests.iter()
                .map(|&(at, op, size)| (at, model.service(op, Bytes(size)).0)).collect();
            prop_assert_eq!(done, lindley(channels as usize, &services));
        }

        #[test]
        fn the_link_is_never_exceeded_and_never_idle_without_need(channels in 1u32..6, requests in any_requests()) {
            let bandwidth = ByteRate::from_bytes_per_sec(0.5e9);
            let model = Model { bandwidth, ..model(channels) };
            let mut device = Device::new(model);
            let mut wide = Device::new(Model { bandwidth: None, ..model });
            let mut link = 0;
            for &(at, op, size) in &requests {
                let start = device.next_free().0.max(at);
                link = link.max(start) + 2 * size;
                let done = device.submit(Nanos(at), op, Bytes(size));
                prop_assert_eq!(done.0, link.max(start + model.service(op, Bytes(size)).0));
                prop_assert!(done >= wide.submit(Nanos(at), op, Bytes(size)));
            }
        }
    }
}
