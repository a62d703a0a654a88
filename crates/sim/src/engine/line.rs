//! Items under way through a network: which arrives next.
//!
//! With a fixed delay nobody overtakes, and a line is a queue. The first item that would arrive before one that was
//! sent earlier turns it into a heap for good. Both give the same order: by arrival, then as they were sent.

use super::timers::NEVER;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Items on their way to one place, with the instants at which they arrive.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    /// Nobody has overtaken anybody yet.
    Ordered(VecDeque<(u64, u32)>),
    /// Instant, how many were sent before, item.
    Mixed(BinaryHeap<Reverse<(u64, u64, u32)>>, u64),
}

impl Default for Line {
    fn default() -> Self {
        Self::Ordered(VecDeque::new())
    }
}

impl Line {
    /// Sends an item that arrives at `at`; when the next one arrives if that changes.
    #[inline]
    pub(crate) fn send(&mut self, at: u64, item: u32) -> Option<u64> {
        let before = self.next();
        match self {
            Self::Ordered(queue) if queue.back().is_none_or(|(last, _)| *last <= at) => {
                queue.push_back((at, item));
            }
            Self::Ordered(_) => self.mix(at, item),
            Self::Mixed(heap, sent) => {
                heap.push(Reverse((at, *sent, item)));
                *sent += 1;
            }
        }
        (at < before).then_some(at)
    }

    /// The item that arrives now, and when the next one does; [`NEVER`] if there is none.
    #[inline]
    pub(crate) fn receive(&mut self) -> (Option<u32>, u64) {
        let item = match self {
            Self::Ordered(queue) => queue.pop_front().map(|(_, item)| item),
            Self::Mixed(heap, _) => heap.pop().map(|Reverse((_, _, item))| item),
        };
        (item, self.next())
    }

    #[inline]
    fn next(&self) -> u64 {
        match self {
            Self::Ordered(queue) => queue.front().map_or(NEVER, |(at, _)| *at),
            Self::Mixed(heap, _) => heap.peek().map_or(NEVER, |Reverse((at, _, _))| *at),
        }
    }

    #[cold]
    fn mix(&mut self, at: u64, item: u32) {
        let Self::Ordered(queue) = std::mem::take(self) else { return };
        let all = queue.into_iter().chain([(at, item)]);
        let heap: BinaryHeap<_> =
            (0u64..).zip(all).map(|(sent, (at, item))| Reverse((at, sent, item))).collect();
        let sent = heap.len() as u64;
        *self = Self::Mixed(heap, sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// The judge: a list in which the least is searched.
        #[test]
        fn items_arrive_by_instant_and_then_as_they_were_sent(
            steps in proptest::collection::vec(proptest::option::weighted(0.6, 0u64..30), 1..200),
        ) {
            let (mut line, mut judge) = (Line::default(), Vec::new());
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
