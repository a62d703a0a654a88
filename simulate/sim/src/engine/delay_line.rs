//! Items in transit through a network, by arrival.
//!
//! With a fixed delay no item overtakes another, and a delay line is a queue. The first item that would arrive before one that was
//! sent earlier turns it into a heap for good. Both give the same order: by arrival, then as they were sent.

use super::timers::NEVER;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Items in transit to one place, with their arrival instants.
#[derive(Debug, Clone)]
pub(crate) enum DelayLine {
    /// No item has overtaken another yet: instants and items.
    Ordered(VecDeque<(u64, u32)>),
    /// Items overtake each other: (instant, sequence number, item); and the number sent so far.
    Overtaking(BinaryHeap<Reverse<(u64, u64, u32)>>, u64),
}

impl Default for DelayLine {
    fn default() -> Self {
        Self::Ordered(VecDeque::new())
    }
}

impl DelayLine {
    /// Sends an item that arrives at `at`. Returns the next arrival if that changes.
    #[inline]
    pub(crate) fn send(&mut self, at: u64, item: u32) -> Option<u64> {
        let before = self.next_arrival();
        match self {
            Self::Ordered(queue) if queue.back().is_none_or(|(last, _)| *last <= at) => {
                queue.push_back((at, item));
            }
            Self::Ordered(_) => self.allow_overtaking(at, item),
            Self::Overtaking(heap, sent) => {
                heap.push(Reverse((at, *sent, item)));
                *sent += 1;
            }
        }
        (at < before).then_some(at)
    }

    /// Takes out the item that arrives now. Returns it and the next arrival: [`NEVER`] if there is none.
    #[inline]
    pub(crate) fn receive(&mut self) -> (Option<u32>, u64) {
        let item = match self {
            Self::Ordered(queue) => queue.pop_front().map(|(_, item)| item),
            Self::Overtaking(heap, _) => heap.pop().map(|Reverse((_, _, item))| item),
        };
        (item, self.next_arrival())
    }

    #[inline]
    fn next_arrival(&self) -> u64 {
        match self {
            Self::Ordered(queue) => queue.front().map_or(NEVER, |(at, _)| *at),
            Self::Overtaking(heap, _) => heap.peek().map_or(NEVER, |Reverse((at, _, _))| *at),
        }
    }

    /// Turns the queue into a heap and sends an item that overtakes others.
    #[cold]
    fn allow_overtaking(&mut self, at: u64, item: u32) {
        let Self::Ordered(queue) = std::mem::take(self) else { return };
        let all = queue.into_iter().chain([(at, item)]);
        let heap: BinaryHeap<_> =
            (0u64..).zip(all).map(|(sent, (at, item))| Reverse((at, sent, item))).collect();
        let sent = heap.len() as u64;
        *self = Self::Overtaking(heap, sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// The reference: a list, searched for its minimum.
        #[test]
        fn items_arrive_by_instant_and_then_as_they_were_sent(
            steps in proptest::collection::vec(proptest::option::weighted(0.6, 0u64..30), 1..200),
        ) {
            let mut line = DelayLine::default();
            let mut judge = Vec::new();
            for (item, step) in (0u32..).zip(steps) {
                match step {
                    Some(at) => {
                        let before = judge.iter().map(|(at, _)| *at).min().unwrap_or(NEVER);
                        judge.push((at, item));
                        proptest::prop_assert_eq!(line.send(at, item), (at < before).then_some(at));
                    }
                    None => {
                        let least = judge.iter().copied().min();
                        judge.retain(|entry| Some(*entry) != least);
                        let next = judge.iter().map(|(at, _)| *at).min().unwrap_or(NEVER);
                        proptest::prop_assert_eq!(line.receive(), (least.map(|(_, item)| item), next));
                    }
                }
            }
        }
    }
}
