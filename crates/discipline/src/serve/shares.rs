//! Shares in proportion to weights, which may change.

use crate::tournament::Tournament;
use std::collections::VecDeque;

/// An item that waits.
#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    item: T,
    size: u64,
    /// Virtual time and position among arrivals, when it arrived.
    came: (u64, u64),
}

/// Start-time fair queueing (Goyal, Vin and Cheng): an item of a class starts, in virtual time, when the class's
/// previous one ended there, or when it arrived; least start first, then first come. Virtual time is the start of
/// the item that was taken last, in units of work × 2¹⁶ ÷ weight.
///
/// A weight counts from the item on that becomes its class's head next, so that a change has its effect behind one
/// item, however many wait.
#[derive(Debug, Clone)]
pub(crate) struct Shares<T> {
    weights: Vec<u32>,
    queues: Vec<VecDeque<Entry<T>>>,
    /// Where the last item of each class that became a head ends.
    ends: Vec<u64>,
    /// Start of the head and its position among arrivals, by class.
    heads: Tournament<(u64, u64)>,
    virtual_now: u64,
    arrivals: u64,
    len: usize,
}

impl<T: Copy> Shares<T> {
    /// Nothing waits.
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

    /// Gives a class another weight, at least 1.
    pub(crate) fn set_weight(&mut self, class: usize, weight: u32) {
        assert!(weight > 0, "a weight is at least 1");
        self.weights[class] = weight;
    }

    pub(crate) fn push(&mut self, class: usize, size: u64, item: T) {
        let came = (self.virtual_now, self.arrivals);
        self.arrivals += 1;
        self.len += 1;
        self.queues[class].push_back(Entry { item, size, came });
        if self.queues[class].len() == 1 {
            self.lead(class);
        }
    }

    /// The next item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let ((start, _), class) = self.heads.first()?;
        self.virtual_now = start;
        let entry = self.queues[class].pop_front()?;
        self.len -= 1;
        self.lead(class);
        Some(entry.item)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A class has another head.
    fn lead(&mut self, class: usize) {
        let start = self.queues[class].front().map(|head| {
            let start = head.came.0.max(self.ends[class]);
            let length = (u128::from(head.size) << 16) / u128::from(self.weights[class]);
            self.ends[class] = start.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
            (start, head.came.1)
        });
        self.heads.set(class, start);
    }
}
