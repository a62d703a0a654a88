//! The b-model as a stream: the tree of halvings walked depth-first, so memory is its depth.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// An interval that holds some arrivals.
#[derive(Debug, Clone, Copy)]
struct Node {
    start: f64,
    length: f64,
    count: u64,
    levels_left: u32,
}

pub(super) struct BModelTimes {
    per_interval: f64,
    bias: f64,
    interval_s: f64,
    levels: u32,
    next_interval: u64,
    /// What is still to be given out, the earliest on top.
    stack: Vec<Node>,
    random: StdRng,
}

impl BModelTimes {
    pub(super) fn new(rate: f64, bias: f64, interval_s: f64, levels: u32, seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let per_interval = rate * interval_s;
        Self { per_interval, bias, interval_s, levels, next_interval: 0, stack: Vec::new(), random }
    }

    /// Rounds up or down at random so that the mean is exact.
    fn round(&mut self, value: f64) -> u64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let floor = value as u64;
        floor + u64::from(self.random.random::<f64>() < value - floor as f64)
    }

    fn begin_interval(&mut self) {
        let start = self.next_interval as f64 * self.interval_s;
        self.next_interval += 1;
        let count = self.round(self.per_interval);
        self.stack.push(Node { start, length: self.interval_s, count, levels_left: self.levels });
    }

    fn split(&mut self, node: Node) {
        let share = if self.random.random::<bool>() { self.bias } else { 1.0 - self.bias };
        let first = self.round(node.count as f64 * share).min(node.count);
        let half = Node { length: node.length / 2.0, levels_left: node.levels_left - 1, ..node };
        self.stack.push(Node { start: node.start + half.length, count: node.count - first, ..half });
        self.stack.push(Node { count: first, ..half });
    }
}

impl Iterator for BModelTimes {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        loop {
            let Some(node) = self.stack.pop() else {
                self.begin_interval();
                continue;
            };
            if node.count > 1 && node.levels_left > 0 {
                self.split(node);
            } else if node.count > 0 {
                // The first of `count` uniform points, and the rest uniform behind it: sorted without
                // being held. A single arrival is uniform, as both halves were equally likely.
                let u: f64 = self.random.random();
                let ahead = node.length * (1.0 - u.powf(1.0 / node.count as f64));
                let (start, length) = (node.start + ahead, node.length - ahead);
                self.stack.push(Node { start, length, count: node.count - 1, levels_left: 0 });
                return Some(start);
            }
        }
    }
}
