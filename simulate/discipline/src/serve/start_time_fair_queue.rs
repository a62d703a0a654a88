//! Service in proportion to weights, which may change.

use crate::tournament::Tournament;
use std::collections::VecDeque;

/// A waiting item and the inputs to its start.
#[derive(Debug, Clone, Copy)]
struct FairQueueEntry<T> {
    item: T,
    size: u64,
    /// Virtual time of its arrival, and its sequence number among arrivals.
    arrival: (u64, u64),
}

/// Start-time fair queueing (Goyal, Vin and Cheng). In virtual time an item starts when the previous one of its class
/// ends there, or when it arrives if that is later. The item with the least start is next, then the one that came first.
/// Virtual time is the start of the item that was taken last, in units of work × 2¹⁶ ÷ weight.
///
/// A new weight applies from the next item that becomes the head of its class, so that a change takes
/// effect after one item, however many wait.
#[derive(Debug, Clone)]
pub(crate) struct StartTimeFairQueue<T> {
    weights: Vec<u32>,
    queues: Vec<VecDeque<FairQueueEntry<T>>>,
    /// By class, the virtual time at which the last item that became its head ends.
    ends: Vec<u64>,
    /// By class, the start of the head and its sequence number among arrivals.
    heads: Tournament<(u64, u64)>,
    virtual_now: u64,
    arrivals: u64,
    len: usize,
}

impl<T: Copy> StartTimeFairQueue<T> {
    /// Creates an empty queue; `weights[class]` are at least 1.
    ///
    /// # Panics
    /// When a weight is 0.
    pub(crate) fn new(weights: Vec<u32>) -> Self {
        assert!(weights.iter().all(|weight| *weight > 0), "a weight is at least 1");
        let classes = weights.len();
        Self {
            weights,
            queues: vec![VecDeque::new(); classes],
            ends: vec![0; classes],
            heads: Tournament::new(classes),
            virtual_now: 0,
            arrivals: 0,
            len: 0,
        }
    }

    /// Changes the weight of a class to at least 1.
    pub(crate) fn set_weight(&mut self, class: usize, weight: u32) {
        assert!(weight > 0, "a weight is at least 1");
        self.weights[class] = weight;
    }

    pub(crate) fn push(&mut self, class: usize, size: u64, item: T) {
        let arrival = (self.virtual_now, self.arrivals);
        self.arrivals += 1;
        self.len += 1;
        self.queues[class].push_back(FairQueueEntry { item, size, arrival });
        if self.queues[class].len() == 1 {
            self.start_head(class);
        }
    }

    /// Removes and returns the next item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let ((start, _), class) = self.heads.first()?;
        self.virtual_now = start;
        let entry = self.queues[class].pop_front()?;
        self.len -= 1;
        self.start_head(class);
        Some(entry.item)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Computes the start and end of the new head of a class.
    fn start_head(&mut self, class: usize) {
        let start = self.queues[class].front().map(|head| {
            let start = head.arrival.0.max(self.ends[class]);
            // 16 fractional bits: otherwise small items of a class with a large weight would take no virtual time, and
            // that class would be served alone.
            let length = (u128::from(head.size) << 16) / u128::from(self.weights[class]);
            self.ends[class] = start.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
            (start, head.arrival.1)
        });
        self.heads.set(class, start);
    }
}
