//! What a thread did, nanosecond by nanosecond: segments from its events.

use super::recent_search::first_from;
use crate::event::{EventKind, KernelEvent};
use std::collections::VecDeque;

/// The most activities that are kept of a thread, and the most moves and throttled times of one wait.
const KEPT_MAX: usize = 1024;

/// With so many segments the older half is made coarser: times in which the thread ran are joined in pairs. A worker that
/// is overloaded runs all the time, so that the memory of hours is a few times this.
const COARSER_FROM: usize = 1024;

/// The most segments that are kept of a thread. A worker that waits in the middle of each request, for I/O or a lock, has
/// two for each request.
const SEGMENTS_MAX: usize = 16_384;

/// States of a thread that leaves its CPU, as bits of the kernel's `__state`.
const STATE_INTERRUPTIBLE: u16 = 1;
const STATE_STOPPED_OR_TRACED: u16 = 4 | 8;
const STATE_UNINTERRUPTIBLE_OR_LOCK: u16 = 2 | 0x1000;

/// What a thread does in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadDoing {
    Running {
        interrupt_ns: u32,
        softirq_ns: u32,
    },
    /// In the queue of a CPU. `was_sent_away`: it did not sleep before, but had to leave. `is_woken`: this begins with its
    /// wake-up, and the CPU is the one in whose queue it is put then. `was_idle`: the CPU was idle at that moment.
    Runnable {
        cpu: u16,
        was_sent_away: bool,
        is_woken: bool,
        was_idle: bool,
    },
    /// A CPU quota kept it from running.
    Throttled,
    /// `has_request`: it had read a request and not answered it.
    Asleep {
        has_request: bool,
    },
    Blocked,
    WaitingForIo,
    Stopped,
}

/// A time in which a thread did one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadSegment {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) doing: ThreadDoing,
}

impl ThreadSegment {
    /// Takes in the next segment if the thread ran in both, without a gap.
    fn join(&mut self, next: Self) -> bool {
        let ThreadDoing::Running { interrupt_ns, softirq_ns } = &mut self.doing else { return false };
        let ThreadDoing::Running { interrupt_ns: further_interrupt, softirq_ns: further_softirq } =
            next.doing
        else {
            return false;
        };
        let sums = interrupt_ns.checked_add(further_interrupt).zip(softirq_ns.checked_add(further_softirq));
        let Some(sums) = sums.filter(|_| self.until == next.from) else { return false };
        (*interrupt_ns, *softirq_ns) = sums;
        self.until = next.until;
        true
    }
}

/// A thread that waited was moved: until then it was in the queue of this CPU.
#[derive(Debug, Clone, Copy)]
struct QueueMove {
    time: u64,
    cpu: u16,
    was_idle: bool,
}

/// See [`ThreadDoing::Runnable`].
#[derive(Debug, Clone, Copy)]
struct QueueWait {
    cpu: u16,
    was_sent_away: bool,
    is_woken: bool,
    was_idle: bool,
}

impl QueueWait {
    fn doing(self) -> ThreadDoing {
        let Self { cpu, was_sent_away, is_woken, was_idle } = self;
        ThreadDoing::Runnable { cpu, was_sent_away, is_woken, was_idle }
    }
}

/// The segments of a thread, oldest first, without overlap; where nothing is known there is none.
#[derive(Debug, Default)]
pub(super) struct ThreadTimeline {
    pub(super) process: u32,
    segments: VecDeque<ThreadSegment>,
    /// Number of segments at which the older half is made coarser again.
    coarser_at: usize,
    /// When it read or wrote, and when its writes had returned.
    activities: VecDeque<u64>,
    /// The thread is known to be on a CPU until then, or off it since then.
    until: u64,
    /// What it does since then, when it has left its CPU.
    away: Option<ThreadDoing>,
    /// Whether it has left its CPU, whatever it does.
    is_away: bool,
    /// Since it was last seen on a CPU.
    moves: Vec<QueueMove>,
    /// Since then, too: times in which a CPU quota kept it from running.
    throttled: Vec<(u64, u64)>,
    /// Interrupts and softirqs until then, as the kernel counts them.
    counted: (u32, u32),
    has_request: bool,
}

impl ThreadTimeline {
    /// Takes an event of the thread: a read, a write, or that it leaves its CPU.
    pub(super) fn handle(&mut self, event: &KernelEvent) {
        self.process = event.process;
        self.run_until(event);
        self.moves.clear();
        if self.activities.back().is_some_and(|last| *last < event.freed) && event.freed < event.time {
            self.note_activity(event.freed, self.has_request);
        }
        self.throttled.clear();
        match event.kind {
            EventKind::Leave => self.away = self.doing_after(event),
            EventKind::Receive => self.note_activity(event.time, true),
            _ => self.note_activity(event.time, false),
        }
    }

    /// The thread waits, and is moved to the queue of another CPU. Moves that are too many make the wait an unseen one.
    pub(super) fn take_move(&mut self, event: &KernelEvent) {
        let cpu = event.schedule.cpu;
        let was_idle = event.schedule.was_idle;
        self.moves.push(QueueMove { time: event.time, cpu, was_idle });
        if self.moves.len() > KEPT_MAX {
            (self.away, self.moves) = (None, Vec::new());
        }
    }

    /// A CPU quota has kept the thread from running. Where there are too many such times, the last ones count as waiting.
    pub(super) fn take_throttle(&mut self, event: &KernelEvent) {
        if self.throttled.len() < KEPT_MAX {
            let until = event.earlier.saturating_add(event.schedule.throttled_ns).min(event.time);
            self.throttled.push((event.earlier, until));
        }
    }

    /// An answer over UDP, whose write is not reported.
    pub(super) fn answer(&mut self) {
        self.has_request = false;
    }

    /// Nothing for a state that says neither that it waits nor for what.
    fn doing_after(&self, event: &KernelEvent) -> Option<ThreadDoing> {
        Some(match event.schedule.state {
            0 => ThreadDoing::Runnable { cpu: 0, was_sent_away: true, is_woken: false, was_idle: false },
            state if state & STATE_STOPPED_OR_TRACED != 0 => ThreadDoing::Stopped,
            state if state & STATE_INTERRUPTIBLE != 0 => {
                ThreadDoing::Asleep { has_request: self.has_request }
            }
            // Threads that sleep in io_uring are noted as waiting for I/O, too, whatever they wait for.
            state if state & STATE_UNINTERRUPTIBLE_OR_LOCK != 0 && event.schedule.waits_for_io => {
                ThreadDoing::WaitingForIo
            }
            state if state & STATE_UNINTERRUPTIBLE_OR_LOCK != 0 => ThreadDoing::Blocked,
            _ => return None,
        })
    }

    fn note_activity(&mut self, time: u64, has_request: bool) {
        self.has_request = has_request;
        if self.activities.len() >= KEPT_MAX {
            self.activities.pop_front();
        }
        self.activities.push_back(time);
    }

    /// The thread was on a CPU since `event.earlier` and is until the event.
    fn run_until(&mut self, event: &KernelEvent) {
        let switched_in = event.earlier;
        let schedule = event.schedule;
        let counted = (schedule.interrupt_ns, schedule.softirq_ns);
        let came_unseen = self.is_away && switched_in < self.until;
        self.is_away = event.kind == EventKind::Leave;
        if switched_in == 0 || came_unseen {
            // The kernel has known the thread from now on.
            (self.until, self.away, self.counted) = (event.time, None, (0, 0));
            return;
        }
        if switched_in > self.until {
            self.wait(event);
            self.until = switched_in;
        }
        self.away = None;
        let doing = ThreadDoing::Running {
            interrupt_ns: counted.0.wrapping_sub(self.counted.0),
            softirq_ns: counted.1.wrapping_sub(self.counted.1),
        };
        self.counted = counted;
        self.push(self.until, event.time, doing);
        self.until = self.until.max(event.time);
    }

    /// From when the thread left until it came back; unknown if it was not seen to leave, or slept and was not seen to be
    /// woken.
    fn wait(&mut self, event: &KernelEvent) {
        let left = self.until;
        let came = event.earlier;
        let schedule = event.schedule;
        let Some(away) = self.away else { return };
        let was_sent_away = matches!(away, ThreadDoing::Runnable { .. });
        let mut from = left;
        if !was_sent_away {
            if schedule.woken == 0 {
                return;
            }
            from = schedule.woken.max(left).min(came);
            self.push(left, from, away);
        }
        let last = QueueMove { time: came, cpu: schedule.cpu, was_idle: schedule.was_idle };
        let mut is_woken = !was_sent_away;
        for QueueMove { time, cpu, was_idle } in std::mem::take(&mut self.moves).into_iter().chain([last]) {
            let until = time.clamp(from, came);
            let queue = QueueWait { cpu, was_sent_away, is_woken, was_idle };
            self.wait_in_queue(from, until, queue);
            (from, is_woken) = (until, false);
        }
    }

    /// The thread waits in a queue, but for the times in which a CPU quota keeps it from running.
    fn wait_in_queue(&mut self, mut from: u64, until: u64, mut queue: QueueWait) {
        for (begin, end) in self.throttled.clone() {
            let begin = begin.clamp(from, until);
            let end = end.clamp(begin, until);
            if begin < end {
                self.push(from, begin, queue.doing());
                self.push(begin, end, ThreadDoing::Throttled);
                // It is put into the queue again. The CPU may be idle then, and has to be woken.
                queue = QueueWait { was_sent_away: false, is_woken: false, ..queue };
                from = end;
            }
        }
        self.push(from, until, queue.doing());
    }

    /// Events that come in the wrong order do not overlap with what is known.
    fn push(&mut self, from: u64, until: u64, doing: ThreadDoing) {
        let from = self.segments.back().map_or(from, |last| from.max(last.until));
        if from >= until {
            return;
        }
        let is_undisturbed = |doing| doing == ThreadDoing::Running { interrupt_ns: 0, softirq_ns: 0 };
        if let Some(last) = self.segments.back_mut()
            && last.until == from
            && is_undisturbed(last.doing)
            && is_undisturbed(doing)
        {
            last.until = until;
            return;
        }
        if self.segments.len() >= self.coarser_at.max(COARSER_FROM) {
            self.make_coarser();
        }
        if self.segments.len() >= SEGMENTS_MAX {
            self.segments.pop_front();
        }
        self.segments.push_back(ThreadSegment { from, until, doing });
    }

    /// Joins neighbours among the older half of the segments in which the thread ran. Requests that wait for a thread wait
    /// for all of that time, and which part of it interrupts had matters to none of them.
    fn make_coarser(&mut self) {
        let recent = self.segments.split_off(self.segments.len() / 2);
        let mut joined: VecDeque<ThreadSegment> = VecDeque::with_capacity(self.segments.len());
        let mut is_joined = false;
        for segment in self.segments.drain(..) {
            let last = joined.back_mut().filter(|_| !is_joined);
            is_joined = last.is_some_and(|last| last.join(segment));
            if !is_joined {
                joined.push_back(segment);
            }
        }
        joined.extend(recent);
        self.segments = joined;
        // Where little could be joined, trying again soon would take more time than it saves.
        self.coarser_at = self.segments.len() + COARSER_FROM / 4;
    }

    /// Forgets the older half of what is kept.
    pub(super) fn forget_older(&mut self) {
        self.segments.drain(..self.segments.len() / 2);
        self.segments.shrink_to_fit();
        self.activities.drain(..self.activities.len() / 2);
    }

    /// The segments that overlap with a time, oldest first.
    pub(super) fn overlapping(&self, from: u64, until: u64) -> impl Iterator<Item = &ThreadSegment> {
        let first = first_from(&self.segments, |segment| segment.until <= from);
        self.segments.range(first..).take_while(move |segment| segment.from < until)
    }

    /// The last time before a moment that it read, wrote, or was done with a write.
    pub(super) fn active_before(&self, time: u64) -> Option<u64> {
        let after = first_from(&self.activities, |activity| *activity < time);
        after.checked_sub(1).map(|last| self.activities[last])
    }

    /// The times in which it slept without a request, as far as they overlap with one.
    pub(super) fn idle_times(&self, from: u64, until: u64) -> impl Iterator<Item = (u64, u64)> {
        let is_idle = |doing| doing == ThreadDoing::Asleep { has_request: false };
        let known = self.overlapping(from, until).filter(move |segment| is_idle(segment.doing));
        let now = self.away.filter(|doing| is_idle(*doing)).map(|_| (self.until, u64::MAX));
        let times = known.map(|segment| (segment.from, segment.until)).chain(now);
        times.map(move |(a, b)| (a.max(from), b.min(until))).filter(|(a, b)| a < b)
    }

    /// When it had to leave its CPU, if it was not seen to come back since.
    pub(super) fn held_up_since(&self) -> Option<u64> {
        let is_held_up = matches!(self.away, Some(ThreadDoing::Runnable { .. } | ThreadDoing::Stopped));
        is_held_up.then_some(self.until)
    }

    /// The time of its last event.
    pub(super) fn known_until(&self) -> u64 {
        self.until
    }

    /// The number of segments and activities that are kept.
    pub(super) fn kept(&self) -> usize {
        self.segments.len() + self.activities.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EVENT_BYTES, ThreadSchedule};

    const REQUEST_NS: u64 = 10_000;

    /// The time from the first of many requests on, and a thread that reads and answers them one after the other. Each has
    /// 100 ns of softirqs, and `blocks` for a quarter of its time.
    fn overloaded(requests: u64, blocks: bool) -> (u64, u64, ThreadTimeline) {
        let mut bytes = [0; EVENT_BYTES];
        bytes[52] = 7;
        let blank = KernelEvent::decode(&bytes).expect("an event").0;
        let mut timeline = ThreadTimeline::default();
        let begun = 1_000_000;
        let mut switched_in = begun;
        let mut woken = 0;
        let mut softirq_ns = 0;
        for number in 0..requests {
            let time = begun + number * REQUEST_NS;
            let mut at = |kind, offset, state, schedule: (u64, u64, u32)| {
                let (earlier, woken, softirq_ns) = schedule;
                let schedule = ThreadSchedule { state, woken, softirq_ns, ..blank.schedule };
                timeline.handle(&KernelEvent { kind, time: time + offset, earlier, schedule, ..blank });
            };
            at(EventKind::Receive, 0, 0, (switched_in, woken, softirq_ns));
            softirq_ns += 100;
            if blocks {
                at(EventKind::Leave, 5_000, STATE_UNINTERRUPTIBLE_OR_LOCK, (switched_in, woken, softirq_ns));
                woken = time + 7_500;
                switched_in = woken;
            }
            at(EventKind::Send, 9_000, 0, (switched_in, woken, softirq_ns));
        }
        (begun, begun + (requests - 1) * REQUEST_NS + 9_000, timeline)
    }

    /// Sums of all segments: running, softirqs meanwhile, blocked.
    fn sums(timeline: &ThreadTimeline, from: u64, until: u64) -> (u64, u64, u64) {
        timeline.overlapping(from, until).fold((0, 0, 0), |(running, softirq, blocked), segment| {
            let length = segment.until - segment.from;
            match segment.doing {
                ThreadDoing::Running { softirq_ns, .. } => {
                    (running + length, softirq + u64::from(softirq_ns), blocked)
                }
                ThreadDoing::Blocked => (running, softirq, blocked + length),
                other => panic!("{other:?}"),
            }
        })
    }

    #[test]
    fn an_overloaded_thread_is_known_for_as_long_as_requests_wait() {
        for requests in [500, 5_000, 200_000] {
            let (begun, done, timeline) = overloaded(requests, false);
            // The first event says that the thread runs, and not since when.
            assert_eq!(sums(&timeline, 0, u64::MAX), (done - begun, requests * 100, 0), "{requests}");
            assert!(timeline.kept() <= 4 * COARSER_FROM, "{requests}: {} are kept", timeline.kept());
            // The last ones are told apart.
            let (running, softirq, _) = sums(&timeline, done - 100 * REQUEST_NS, done);
            assert!(softirq * 99 <= running && running <= 102 * REQUEST_NS, "{running} {softirq}");
        }
    }

    #[test]
    fn a_thread_that_blocks_in_each_of_many_requests_is_known() {
        for requests in [500, 5_000] {
            let (begun, done, timeline) = overloaded(requests, true);
            let (running, softirq, blocked) = sums(&timeline, 0, u64::MAX);
            assert_eq!((running + blocked, blocked), (done - begun, requests * 2_500), "{requests}");
            assert_eq!(softirq, requests * 100);
        }
        let (.., timeline) = overloaded(100_000, true);
        assert!(timeline.kept() <= SEGMENTS_MAX + KEPT_MAX, "{} are kept", timeline.kept());
    }

    #[test]
    fn the_older_half_is_forgotten_where_threads_are_many() {
        let (_, done, mut timeline) = overloaded(5_000, true);
        let kept = timeline.kept();
        timeline.forget_older();
        assert!(timeline.kept() <= kept / 2 + 1);
        assert_eq!(sums(&timeline, done - 10 * REQUEST_NS, done).2, 10 * 2_500);
    }
}
