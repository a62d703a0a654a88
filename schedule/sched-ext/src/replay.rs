//! Checks the scheduler's choices by its log: repeats every choice by `choose`, and adds up the time in
//! which a thread ran that was not among the c oldest of its CPU.
//!
//! For one queue per CPU. With a shared queue, choices of several CPUs overlap, and
//! [`crate::shared_replay`] checks them.

use crate::choice::{RunnableThread, choose};
use std::collections::BTreeMap;

/// Kind of a logged event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedKind {
    /// A thread with a request waits.
    Queued,
    /// A thread waits no more, for a reason other than being chosen.
    Left,
    /// A thread was chosen by the rule.
    Chosen,
    /// The running thread was chosen.
    Kept,
    /// A thread was chosen out of turn.
    Rescued,
    /// A thread with a slot runs.
    Running,
    /// A thread with a slot runs no more.
    Stopped,
    /// A CPU begins to read the queue that it shares with others; the result is its next choice.
    Looks,
}

/// An event of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Time since boot, nanoseconds.
    pub time_ns: u64,
    pub kind: LoggedKind,
    /// The CPU where it happened.
    pub cpu: u16,
    /// Kernel's number of the thread (TID).
    pub thread: u32,
    /// Key of the thread's request; zero without one.
    pub key: u64,
    /// For a choice: the thread that could have continued, zero without one, and its key.
    pub other: (u32, u64),
    /// c at that time.
    pub oldest: u32,
}

/// Size of an event in the log, in words.
pub(crate) const EVENT_WORDS: usize = 5;

impl LoggedEvent {
    /// Parses an event; `None` if it is not completely written.
    pub(crate) fn from_words(words: [u64; EVENT_WORDS]) -> Option<Self> {
        let [time_ns, key, other_key, threads, place] = words;
        let kind = match place >> 16 & 0xffff {
            1 => LoggedKind::Queued,
            2 => LoggedKind::Left,
            3 => LoggedKind::Chosen,
            4 => LoggedKind::Kept,
            5 => LoggedKind::Rescued,
            6 => LoggedKind::Running,
            7 => LoggedKind::Stopped,
            8 => LoggedKind::Looks,
            _ => return None,
        };
        let cpu = u16::try_from(place & 0xffff).ok()?;
        let thread = low(threads);
        let other = high(threads);
        Some(Self { time_ns, kind, cpu, thread, key, other: (other, other_key), oldest: high(place) })
    }
}

/// Returns the lower half of a word.
pub(crate) fn low(word: u64) -> u32 {
    u32::try_from(word & 0xffff_ffff).expect("32 bits")
}

/// Returns the upper half of a word.
pub(crate) fn high(word: u64) -> u32 {
    u32::try_from(word >> 32).expect("32 bits")
}

/// Result of checking a log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplayVerdict {
    /// Number of repeated choices.
    pub choices: u64,
    /// Descriptions of the choices that differ from the rule.
    pub wrong: Vec<String>,
    /// Number of threads served out of turn.
    pub rescued: u64,
    /// CPU time of threads with requests, nanoseconds.
    pub tagged_ns: u64,
    /// Part of it in which the running thread was not among the c oldest of its CPU.
    pub not_among_oldest_ns: u64,
}

/// Checks a log from its beginning.
pub fn replay(events: &[LoggedEvent]) -> ReplayVerdict {
    let mut replay = LogReplay::default();
    events.iter().for_each(|event| replay.step(event));
    replay.verdict
}

#[derive(Debug, Default)]
struct LogReplay {
    /// By CPU, in the order of keys.
    queues: BTreeMap<u16, Vec<RunnableThread>>,
    /// By CPU: the running thread, and the time since which its CPU time was not added up.
    running: BTreeMap<u16, (RunnableThread, u64)>,
    served: BTreeMap<u32, u64>,
    verdict: ReplayVerdict,
}

impl LogReplay {
    fn step(&mut self, event: &LoggedEvent) {
        self.add_up(event);
        match event.kind {
            LoggedKind::Queued => self.queue(event),
            LoggedKind::Left => self.remove(event.thread),
            LoggedKind::Chosen | LoggedKind::Kept => self.judge(event),
            LoggedKind::Rescued => {
                self.verdict.rescued += 1;
                self.remove(event.thread);
            }
            LoggedKind::Running => {
                self.remove(event.thread);
                self.running.insert(event.cpu, (self.runnable(event.thread, event.key), event.time_ns));
            }
            LoggedKind::Stopped => {
                self.served.insert(event.thread, event.time_ns);
                self.running.remove(&event.cpu);
            }
            LoggedKind::Looks => {}
        }
    }

    /// Adds the time of the CPU from its last event to this one.
    fn add_up(&mut self, event: &LoggedEvent) {
        let Some((running, since)) = self.running.get_mut(&event.cpu) else { return };
        let ran = event.time_ns.saturating_sub(*since);
        *since = event.time_ns;
        if running.key == 0 {
            return;
        }
        let older = self
            .queues
            .get(&event.cpu)
            .map_or(0, |queue| queue.iter().take_while(|waiting| waiting.key < running.key).count());
        self.verdict.tagged_ns += ran;
        if u32::try_from(older).unwrap_or(u32::MAX) >= event.oldest {
            self.verdict.not_among_oldest_ns += ran;
        }
    }

    fn queue(&mut self, event: &LoggedEvent) {
        self.remove(event.thread);
        let thread = self.runnable(event.thread, event.key);
        let queue = self.queues.entry(event.cpu).or_default();
        let place = queue.partition_point(|waiting| waiting.key <= thread.key);
        queue.insert(place, thread);
    }

    fn judge(&mut self, event: &LoggedEvent) {
        let (other, other_key) = event.other;
        let running = (other > 0).then(|| self.runnable(other, other_key));
        let waiting = self.queues.entry(event.cpu).or_default();
        let right = choose(waiting, running, event.oldest).map(|chosen| chosen.thread);
        self.verdict.choices += 1;
        if right != Some(event.thread) {
            let text = format!("{event:?}: expected {right:?} of {waiting:?} and {running:?}");
            self.verdict.wrong.push(text);
        }
        if event.kind == LoggedKind::Chosen {
            self.remove(event.thread);
        }
    }

    fn runnable(&self, thread: u32, key: u64) -> RunnableThread {
        RunnableThread { thread, key, served_at_ns: self.served.get(&thread).copied().unwrap_or(0) }
    }

    fn remove(&mut self, thread: u32) {
        self.queues.values_mut().for_each(|queue| queue.retain(|waiting| waiting.thread != thread));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ns: u64, kind: LoggedKind, thread: u32, key: u64) -> LoggedEvent {
        LoggedEvent { time_ns, kind, cpu: 1, thread, key, other: (0, 0), oldest: 1 }
    }

    #[test]
    fn a_younger_one_that_runs_is_found() {
        use LoggedKind::{Chosen, Queued, Running, Stopped};
        let verdict = replay(&[
            event(0, Queued, 7, 50),
            event(1, Chosen, 7, 50),
            event(2, Running, 7, 50),
            event(12, Queued, 8, 40),
            event(15, Stopped, 7, 0),
            event(15, Queued, 7, 50),
            event(16, Chosen, 7, 50),
        ]);
        assert_eq!((verdict.choices, verdict.wrong.len()), (2, 1), "{verdict:?}");
        assert_eq!((verdict.tagged_ns, verdict.not_among_oldest_ns), (13, 3));
    }

    #[test]
    fn an_event_is_read_as_the_kernel_writes_it() {
        let words = [9, 8, 7, 6 | 5 << 32, 4 | 3 << 16 | 2 << 32];
        let read = LoggedEvent::from_words(words).expect("it is complete");
        let expected = LoggedEvent {
            time_ns: 9,
            kind: LoggedKind::Chosen,
            cpu: 4,
            thread: 6,
            key: 8,
            other: (5, 7),
            oldest: 2,
        };
        assert_eq!(read, expected);
        assert_eq!(LoggedEvent::from_words([0; EVENT_WORDS]), None);
    }
}
