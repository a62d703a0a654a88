//! Puts events in the order of their time.
//!
//! A program takes the time first and room in the ring second, and may be interrupted in between, so that events are
//! nearly in order. What is younger than the hold-back waits for those that may still come.

use crate::event::KernelEvent;
use std::collections::VecDeque;

/// How long events are held back, in nanoseconds: far longer than a program of the kernel runs.
const HOLD_BACK_NS: u64 = 1_000_000;

/// Events that wait for their turn, with the bytes behind them; always in the order of their time.
#[derive(Debug, Default)]
pub(crate) struct EventOrder(VecDeque<(KernelEvent, Box<[u8]>)>);

impl EventOrder {
    /// Adds an event, with the bytes behind it, to those that wait: behind those of the same time. Takes longer the more
    /// of them are later.
    pub(crate) fn push(&mut self, event: KernelEvent, copied: &[u8]) {
        let later = self.0.iter().rev().take_while(|(other, _)| other.time > event.time).count();
        self.0.insert(self.0.len() - later, (event, copied.into()));
    }

    /// Hands out all events that are older than the newest one by the hold-back, oldest first.
    pub(crate) fn release(&mut self, take: impl FnMut((KernelEvent, Box<[u8]>))) {
        let newest = self.0.back().map_or(0, |(event, _)| event.time);
        self.release_at(newest, take);
    }

    /// Hands out all events that are older than this instant by the hold-back, oldest first: for when nothing has come
    /// since, and the newest event would keep those before it for ever.
    pub(crate) fn release_at(&mut self, now: u64, mut take: impl FnMut((KernelEvent, Box<[u8]>))) {
        let until = now.saturating_sub(HOLD_BACK_NS);
        while self.0.front().is_some_and(|(event, _)| event.time <= until) {
            self.0.pop_front().into_iter().for_each(&mut take);
        }
    }

    /// Hands out all events, oldest first.
    pub(crate) fn finish(&mut self, take: impl FnMut((KernelEvent, Box<[u8]>))) {
        self.0.drain(..).for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EVENT_BYTES;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the order in which events come, they go as a stable sort has them; those of the hold-back stay.
        #[test]
        fn events_go_in_the_order_of_their_time(times in prop::collection::vec(0u64..5_000_000, 0..100)) {
            let mut bytes = [0; EVENT_BYTES];
            bytes[52] = 7;
            let blank = KernelEvent::decode(&bytes).expect("an event").0;
            let mut order = EventOrder::default();
            let mut expected = Vec::new();
            for (number, time) in (0u8..).zip(&times) {
                order.push(KernelEvent { time: *time, ..blank }, &[number]);
                expected.push((*time, number));
            }
            expected.sort_by_key(|(time, _)| *time);
            let newest = expected.last().map_or(0, |(time, _)| *time);
            let old = expected.iter().filter(|(time, _)| time + HOLD_BACK_NS <= newest).count();
            let mut gone = Vec::new();
            order.release(|(event, copied)| gone.push((event.time, copied[0])));
            prop_assert_eq!(&gone, &expected[..old]);
            order.finish(|(event, copied)| gone.push((event.time, copied[0])));
            prop_assert_eq!(gone, expected);
        }
    }
}
