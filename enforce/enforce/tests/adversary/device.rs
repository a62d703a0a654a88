//! A device: channels that serve one request each, first come, first served, in exactly the time of the
//! request.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Service time of a request: a constant, and a time per byte.
#[derive(Debug, Clone, Copy)]
pub struct ServiceCost {
    pub base_ns: u64,
    pub byte_ns: u64,
}

impl ServiceCost {
    pub fn of(self, requests: u64, bytes: u64) -> u64 {
        self.base_ns * requests + self.byte_ns * bytes
    }

    /// Returns the equivalent device profile.
    pub fn profile(self) -> String {
        let row = |size: u64| {
            let rate = size as f64 / (self.of(1, size) as f64 / 1e9);
            format!(r#"{{ "requestSize": {size}, "readBandwidth": {rate}, "writeBandwidth": {rate} }}"#)
        };
        let rows: Vec<String> = (9..=25).map(|power| row(1 << power)).collect();
        format!(r#"{{ "bandwidthTable": [ {} ] }}"#, rows.join(","))
    }
}

/// A device that serves requests by their numbers. Times are in nanoseconds.
#[derive(Debug)]
pub struct ChanneledDevice {
    channels: usize,
    serving: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: VecDeque<(u64, u64)>,
}

impl ChanneledDevice {
    pub fn new(channels: usize) -> Self {
        Self { channels, serving: BinaryHeap::new(), waiting: VecDeque::new() }
    }

    pub fn arrive(&mut self, now: u64, number: u64, takes: u64) {
        if self.serving.len() < self.channels {
            self.serving.push(Reverse((now + takes, number)));
        } else {
            self.waiting.push_back((number, takes));
        }
    }

    /// Returns the next request whose service has ended, and the time of its end.
    pub fn finish(&mut self, now: u64) -> Option<(u64, u64)> {
        let Reverse((end, number)) = *self.serving.peek().filter(|first| first.0.0 <= now)?;
        self.serving.pop();
        // The next request began when the channel became free, however late this is noticed.
        if let Some((next, takes)) = self.waiting.pop_front() {
            self.serving.push(Reverse((end + takes, next)));
        }
        Some((number, end))
    }

    pub fn wake_at(&self) -> Option<u64> {
        self.serving.peek().map(|first| first.0.0)
    }
}
