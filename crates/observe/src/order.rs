//! Puts events in the order of their time.
//!
//! A program takes the time first and room in the ring second, and may be interrupted in between, so that events are
//! nearly in order. What is younger than the hold-back waits for those that may still come.

use crate::event::KernelEvent;

/// How long events are held back, in nanoseconds: far longer than a program of the kernel runs.
const HOLD_BACK_NS: u64 = 1_000_000;

/// Events that wait for their turn, with the bytes behind them.
#[derive(Debug, Default)]
pub struct EventOrder(Vec<(KernelEvent, Box<[u8]>)>);

impl EventOrder {
    /// Adds an event, with the bytes behind it, to those that wait.
    pub fn push(&mut self, event: KernelEvent, copied: &[u8]) {
        self.0.push((event, copied.into()));
    }

    /// Hands out all events that are older than the newest one by the hold-back, oldest first.
    pub fn release(&mut self, take: impl FnMut((KernelEvent, Box<[u8]>))) {
        let newest = self.0.iter().map(|(event, _)| event.time).max().unwrap_or(0);
        self.release_at(newest, take);
    }

    /// Hands out all events that are older than this instant by the hold-back, oldest first: for when nothing has come
    /// since, and the newest event would keep those before it for ever.
    pub fn release_at(&mut self, now: u64, take: impl FnMut((KernelEvent, Box<[u8]>))) {
        self.0.sort_by_key(|(event, _)| event.time);
        let until = now.saturating_sub(HOLD_BACK_NS);
        let count = self.0.partition_point(|(event, _)| event.time <= until);
        self.0.drain(..count).for_each(take);
    }

    /// Hands out all events, oldest first.
    pub fn finish(&mut self, take: impl FnMut((KernelEvent, Box<[u8]>))) {
        self.0.sort_by_key(|(event, _)| event.time);
        self.0.drain(..).for_each(take);
    }
}
