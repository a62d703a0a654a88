//! Divides the time of each request among causes, by what its worker and the CPU of its worker did.
//!
//! Waiting has the cause that the worker itself is held up by at that moment: when another process takes the CPU from a
//! worker, then every request that waits for this worker waits for that process. The causes of a request add up to its
//! latency exactly; what was not seen is a cause of its own. Where it is not known when in a time interrupts came, they are
//! spread evenly over it.
//!
//! A worker that is ready to run waits for the CPU in whose queue it is. That nobody has this CPU is known only where the
//! kernel says so: it was idle when the worker was put into the queue, and there was no other thread since. Time for which
//! no occupant is reported is otherwise a cause of its own. Memory is bounded: what is too old, or of too many threads, is
//! forgotten.

use super::cause::{CAUSES, Cause};
use super::occupancy::{CpuOccupancy, OccupyingThread, share};
use super::timeline::{ThreadDoing, ThreadTimeline};
use crate::event::{EventKind, KernelEvent};
use crate::request::{HeldUpTime, ObservedRequest, RequestPoint};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// The most segments of all threads together; then the older half is forgotten.
const SEGMENTS_MAX: usize = 1 << 19;

/// Events between two looks at how many there are.
const LOOK_INTERVAL: u32 = 1 << 16;

/// The bit of the kernel's `__state` of a thread that leaves its CPU for the last time.
const STATE_DEAD: u16 = 0x80;

/// The most threads that are kept when they have ended, for requests that are not complete.
const ENDED_MAX: usize = 256;

/// The time of a request by cause, in nanoseconds.
pub type CauseTimes = [u64; CAUSES];

/// A request whose time is divided among causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributedRequest {
    /// When its last byte was in the socket: T2.
    pub ready: u64,
    /// When its worker was done with what it did before, but for waking up: T2 at the earliest.
    pub start: u64,
    /// When its worker ran and was done with what it did before: T3, or e4 where that is after the read.
    pub begun: u64,
    /// When its worker was done with it: the last write of its answer that the network waited for, T5 or later.
    pub done: u64,
    /// The thread that answered it, which is its worker.
    pub worker: u32,
    /// The process of the worker.
    pub process: u32,
    /// The address of its client, which with the worker says which connection it came by.
    pub peer: SocketAddr,
    /// When its read had returned: T4.
    pub read: u64,
    /// Its time before T2, and after `start`.
    pub own: CauseTimes,
    /// The part of `own` between T4, or `start` where that is later, and `done`.
    pub own_after_read: CauseTimes,
    /// How long its worker was held up while it was busy with it.
    pub held_up: HeldUpTime,
    /// Its time between T2 and `start`: it waited for its worker, which was held up by these.
    pub queued: CauseTimes,
    /// Who had the CPU in the time of [`Cause::OtherProcess`].
    pub interferers: Vec<(OccupyingThread, u64)>,
}

impl AttributedRequest {
    /// T6 − T0: the sum over all causes.
    pub fn latency(&self) -> u64 {
        self.own.iter().chain(&self.queued).sum()
    }

    /// The cause with most of the time; of equal ones the first.
    pub(crate) fn dominant(&self) -> Cause {
        let longest = Cause::ALL.into_iter().rev().max_by_key(|cause| self.time(*cause));
        longest.expect("there are causes")
    }

    /// All the time that has a cause.
    pub fn time(&self, cause: Cause) -> u64 {
        self.own[cause as usize] + self.queued[cause as usize]
    }
}

/// What is known of threads and CPUs.
#[derive(Debug, Default)]
pub struct CauseAttribution {
    threads: BTreeMap<u32, ThreadTimeline>,
    workers: BTreeMap<u32, BTreeSet<u32>>,
    /// Threads that have ended, and when.
    ended: VecDeque<(u32, u64)>,
    cpus: CpuOccupancy,
    lost: Option<u16>,
    since_look: u32,
}

/// A time of a request in which one thread works for it, and what it does before it begins to.
#[derive(Clone, Copy)]
struct RequestPart {
    worker: u32,
    from: u64,
    until: u64,
    /// Before, a running worker works for others.
    begin: u64,
    /// What the time of a worker that works for others counts as; nothing: whether another one was idle decides.
    before: Option<Cause>,
}

impl CauseAttribution {
    /// An attribution that knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    pub fn handle(&mut self, event: &KernelEvent) {
        if self.lost.replace(event.lost).is_some_and(|before| before != event.lost) {
            self.forget();
        }
        match event.kind {
            EventKind::Receive | EventKind::Send | EventKind::Leave => {
                // A thread that only writes answers of others would take no request if it were idle.
                if event.kind == EventKind::Receive {
                    self.workers.entry(event.process).or_default().insert(event.thread);
                }
                self.threads.entry(event.thread).or_default().handle(event);
                if event.kind == EventKind::Leave && event.schedule.state & STATE_DEAD != 0 {
                    self.end_thread(event);
                }
            }
            EventKind::Transmit if event.udp => {
                self.threads.get_mut(&event.thread).into_iter().for_each(ThreadTimeline::answer);
            }
            EventKind::Occupant => self.cpus.handle(event),
            EventKind::Move => {
                if let Some(timeline) = self.threads.get_mut(&event.thread) {
                    timeline.take_move(event);
                }
            }
            EventKind::Throttled => {
                if let Some(timeline) = self.threads.get_mut(&event.thread) {
                    timeline.take_throttle(event);
                }
            }
            _ => {}
        }
        self.bound_memory();
    }

    /// Servers with a thread for each connection have many threads after each other: only the last ones are kept.
    fn end_thread(&mut self, event: &KernelEvent) {
        self.ended.push_back((event.thread, event.time));
        if self.ended.len() <= ENDED_MAX {
            return;
        }
        let Some((thread, time)) = self.ended.pop_front() else { return };
        // Another thread may have the number since then.
        let ended = self.threads.get(&thread).filter(|timeline| timeline.known_until() <= time);
        let Some(process) = ended.map(|timeline| timeline.process) else { return };
        self.threads.remove(&thread);
        if let Some(workers) = self.workers.get_mut(&process) {
            workers.remove(&thread);
        }
    }

    fn bound_memory(&mut self) {
        self.since_look += 1;
        if self.since_look >= LOOK_INTERVAL {
            self.since_look = 0;
            if self.threads.values().map(ThreadTimeline::kept).sum::<usize>() > SEGMENTS_MAX {
                self.threads.values_mut().for_each(ThreadTimeline::forget_older);
            }
        }
    }

    fn forget(&mut self) {
        self.threads.clear();
        self.workers.clear();
        self.ended.clear();
        self.cpus = CpuOccupancy::default();
    }

    /// Divides the time of a request that is complete.
    pub fn divide(&self, request: &ObservedRequest) -> AttributedRequest {
        let [ready, scheduled, read, started, written] = [
            RequestPoint::Ready,
            RequestPoint::Scheduled,
            RequestPoint::Read,
            RequestPoint::Started,
            RequestPoint::Written,
        ]
        .map(|point| request.at(point));
        let worker = self.threads.get(&request.writer);
        let mut divided = AttributedRequest {
            ready,
            start: self.start(request),
            begun: if started > read { started } else { scheduled },
            done: request.last_awaited_write,
            worker: request.writer,
            process: worker.map_or(0, |timeline| timeline.process),
            peer: request.peer,
            read,
            own: [0; CAUSES],
            own_after_read: [0; CAUSES],
            held_up: HeldUpTime::default(),
            queued: [0; CAUSES],
            interferers: Vec::new(),
        };
        divided.own[Cause::NetworkIn as usize] = ready - request.at(RequestPoint::Wire);
        divided.own[Cause::NetworkOut as usize] = request.at(RequestPoint::Transmitted) - divided.done;
        let start = divided.start;
        let waiting =
            RequestPart { worker: request.reader, from: ready, until: read, begin: scheduled, before: None };
        let processing = RequestPart {
            worker: request.writer,
            from: read,
            until: written,
            begin: started,
            before: Some(Cause::ReadTogether),
        };
        // Between writes a worker that runs counts as working for the request, whatever else it does.
        let answering = RequestPart { from: written, until: divided.done, begin: written, ..processing };
        for part in [waiting, processing, answering] {
            let middle = start.clamp(part.from, part.until);
            let queued = self.divide_part(&RequestPart { until: middle, ..part }, &mut divided.interferers);
            let own = self.divide_part(&RequestPart { from: middle, ..part }, &mut divided.interferers);
            for cause in 0..CAUSES {
                divided.queued[cause] += queued[cause];
                divided.own[cause] += own[cause];
                divided.own_after_read[cause] += if part.from >= read { own[cause] } else { 0 };
            }
        }
        // Not from the division above: that of a run with interrupts is rounded, and its parts must add up.
        let reading = RequestPart { from: scheduled, ..waiting };
        let reading = self.divide_part(&reading, &mut Vec::new());
        divided.held_up = HeldUpTime {
            unseen: reading[Cause::Unknown as usize] + divided.own_after_read[Cause::Unknown as usize],
            reading: held_up(&reading),
            processing: held_up(&divided.own_after_read) + Self::held_up_in_write(worker, request),
        };
        divided
    }

    /// For how long the worker was away while it handed the answer to the device. It acts next after that, so of its
    /// coming back nothing is known but that it has sent the packet.
    fn held_up_in_write(worker: Option<&ThreadTimeline>, request: &ObservedRequest) -> u64 {
        let left = worker.and_then(ThreadTimeline::held_up_since);
        let done = request.last_awaited_write;
        let sent = request.at(RequestPoint::Transmitted);
        left.filter(|left| *left >= done).map_or(0, |left| sent.saturating_sub(left))
    }

    /// Since when the worker could work for a request, if it was awake: it is done with those before.
    fn start(&self, request: &ObservedRequest) -> u64 {
        let [ready, read, started] =
            [RequestPoint::Ready, RequestPoint::Read, RequestPoint::Started].map(|point| request.at(point));
        if started > read {
            return started;
        }
        let before = self.threads.get(&request.reader).and_then(|reader| reader.active_before(read));
        before.map_or(ready, |before| before.max(ready))
    }

    fn divide_part(&self, part: &RequestPart, interferers: &mut Vec<(OccupyingThread, u64)>) -> CauseTimes {
        let mut times = [0; CAUSES];
        if part.from >= part.until {
            return times;
        }
        if let Some(timeline) = self.threads.get(&part.worker) {
            for segment in timeline.overlapping(part.from, part.until) {
                let from = segment.from.max(part.from);
                let until = segment.until.min(part.until);
                match segment.doing {
                    ThreadDoing::Running { interrupt_ns, softirq_ns } => {
                        let whole = segment.until - segment.from;
                        let interrupt = share(interrupt_ns.into(), until - from, whole);
                        let softirq =
                            share(softirq_ns.into(), until - from, whole).min(until - from - interrupt);
                        times[Cause::Interrupt as usize] += interrupt;
                        times[Cause::Softirq as usize] += softirq;
                        self.divide_running(part, (from, until), interrupt + softirq, &mut times);
                    }
                    ThreadDoing::Runnable { cpu, was_sent_away, is_woken, was_idle } => {
                        let first_known = self.cpus.first_known(cpu, segment.from, segment.until);
                        let waiting = OccupiedWait {
                            cpu,
                            from,
                            until,
                            first_known,
                            first: match (was_idle, is_woken) {
                                (true, _) if was_sent_away => Cause::HeldBack,
                                (true, _) => Cause::IdleCpu,
                                // Occupants are reported from when it is in the queue on.
                                (false, true) if first_known < segment.until => Cause::BeingWoken,
                                (false, _) => Cause::UnseenOccupant,
                            },
                            process: timeline.process,
                            idle: if was_sent_away { Cause::HeldBack } else { Cause::IdleCpu },
                        };
                        self.divide_runnable(&waiting, &mut times, interferers);
                    }
                    ThreadDoing::Asleep { has_request: false } if part.before.is_none() => {
                        times[Cause::NotWoken as usize] += until - from;
                    }
                    ThreadDoing::Asleep { .. } => times[Cause::Asleep as usize] += until - from,
                    ThreadDoing::Throttled => times[Cause::Throttled as usize] += until - from,
                    ThreadDoing::WaitingForIo => times[Cause::WaitingForIo as usize] += until - from,
                    ThreadDoing::Blocked => times[Cause::Blocked as usize] += until - from,
                    ThreadDoing::Stopped => times[Cause::Stopped as usize] += until - from,
                }
            }
        }
        let known: u64 = times.iter().sum();
        times[Cause::Unknown as usize] += part.until - part.from - known;
        times
    }

    /// The time in which a worker ran, without what was taken from it meanwhile.
    fn divide_running(
        &self,
        part: &RequestPart,
        (from, until): (u64, u64),
        taken: u64,
        times: &mut CauseTimes,
    ) {
        let begin = part.begin.clamp(from, until);
        let before = begin - from;
        let after = until - begin;
        let taken_before = share(taken, before, until - from);
        let taken_after = (taken - taken_before).min(after);
        // Rounding: what does not fit behind is taken before.
        let taken_before = taken - taken_after;
        times[Cause::Work as usize] += after - taken_after;
        let rest = before - taken_before;
        match part.before {
            Some(cause) => times[cause as usize] += rest,
            None if rest > 0 => {
                let idle = self.other_idle(part.worker, from, begin).min(before);
                let other_idle = share(idle, rest, before);
                times[Cause::OtherIdle as usize] += other_idle;
                times[Cause::AllBusy as usize] += rest - other_idle;
            }
            None => {}
        }
    }

    /// For how long of a time another worker of the same server had nothing to do.
    fn other_idle(&self, worker: u32, from: u64, until: u64) -> u64 {
        let process = self.threads.get(&worker).map(|timeline| timeline.process);
        let workers = process.and_then(|process| self.workers.get(&process)).into_iter().flatten();
        let others = workers.filter(|other| **other != worker).filter_map(|other| self.threads.get(other));
        let mut idle = Vec::new();
        for time in others.flat_map(|other| other.idle_times(from, until)) {
            if time == (from, until) {
                return until - from;
            }
            idle.push(time);
        }
        idle.sort_unstable();
        let mut sum = 0;
        let mut end = from;
        for (from, until) in idle {
            sum += until.saturating_sub(end.max(from));
            end = end.max(until);
        }
        sum
    }

    fn divide_runnable(
        &self,
        waiting: &OccupiedWait,
        times: &mut CauseTimes,
        interferers: &mut Vec<(OccupyingThread, u64)>,
    ) {
        let mut left = waiting.until - waiting.from;
        for occupied in self.cpus.in_time(waiting.cpu, waiting.from, waiting.until) {
            left -= occupied.total;
            times[Cause::Interrupt as usize] += occupied.interrupt;
            times[Cause::Softirq as usize] += occupied.softirq;
            times[Cause::Stolen as usize] += occupied.stolen;
            let rest = occupied.total - occupied.interrupt - occupied.softirq - occupied.stolen;
            let cause = match occupied.process {
                _ if occupied.is_unseen => Cause::UnseenOccupant,
                0 => waiting.idle,
                process if process == waiting.process => Cause::SameServer,
                _ if occupied.is_softirq_thread() => Cause::Softirq,
                _ => Cause::OtherProcess,
            };
            times[cause as usize] += rest;
            if cause == Cause::OtherProcess {
                interferers.push((occupied.interferer(), rest));
            }
        }
        let first = waiting.first_known.clamp(waiting.from, waiting.until) - waiting.from;
        times[waiting.first as usize] += first;
        times[Cause::UnseenOccupant as usize] += left - first;
    }
}

fn held_up(times: &CauseTimes) -> u64 {
    Cause::ALL.into_iter().filter(|cause| cause.holds_up()).map(|cause| times[cause as usize]).sum()
}

/// A time in which a thread waits in the queue of a CPU.
struct OccupiedWait {
    cpu: u16,
    from: u64,
    until: u64,
    /// The beginning of the first report of who had the CPU, and what the time before counts as.
    first_known: u64,
    first: Cause,
    process: u32,
    /// What it counts as when nobody is reported to have the CPU.
    idle: Cause,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EVENT_BYTES, ThreadSchedule};

    /// A thread that reads requests could take the next one when it is idle, and one that only writes could not.
    #[test]
    fn only_threads_that_read_requests_are_idle_workers() {
        for (kind, idle) in [(EventKind::Receive, 100), (EventKind::Send, 0)] {
            let mut attribution = CauseAttribution::new();
            let mut bytes = [0; EVENT_BYTES];
            bytes[52] = 7;
            let blank = KernelEvent::decode(&bytes).expect("an event").0;
            let mut at = |kind, thread, time, state| {
                let schedule = ThreadSchedule { state, ..blank.schedule };
                let event = KernelEvent { kind, thread, process: 9, time, earlier: 5, schedule, ..blank };
                attribution.handle(&event);
            };
            at(EventKind::Receive, 1, 10, 0);
            at(kind, 2, 10, 0);
            at(EventKind::Send, 2, 11, 0);
            // Asleep since then.
            at(EventKind::Leave, 2, 12, 1);
            assert_eq!(attribution.other_idle(1, 100, 200), idle, "{kind:?}");
        }
    }

    #[test]
    fn threads_that_have_ended_are_dropped_in_the_end() {
        let mut attribution = CauseAttribution::new();
        let blank = {
            let mut bytes = [0; EVENT_BYTES];
            bytes[52] = 7;
            KernelEvent::decode(&bytes).expect("an event").0
        };
        let mut at = |kind, thread, time, state| {
            let schedule = ThreadSchedule { state, ..blank.schedule };
            attribution.handle(&KernelEvent { kind, thread, process: 9, time, schedule, ..blank });
        };
        let threads = u32::try_from(ENDED_MAX).expect("there are few") * 10;
        for thread in 1..=threads {
            let time = u64::from(thread) * 10;
            at(EventKind::Receive, thread, time, 0);
            at(EventKind::Leave, thread, time + 5, STATE_DEAD);
            if thread == 1 {
                // Another thread with the number of the first one, which lives.
                at(EventKind::Receive, thread, time + 6, 0);
            }
        }
        assert_eq!(
            (attribution.threads.len(), attribution.workers[&9].len()),
            (ENDED_MAX + 1, ENDED_MAX + 1)
        );
        assert!(attribution.threads.contains_key(&1) && attribution.threads.contains_key(&threads));
        assert!(!attribution.threads.contains_key(&2));
    }
}
