//! A worker whose every nanosecond is known: what it does, who has its CPU, and whether another worker is idle.
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

use crate::blank_event;
use observe::{Cause, EventKind, KernelEvent, ObservedRequest, POINTS, RequestQuality, ThreadSchedule};

const SERVER: u32 = 10;
const WORKER: u32 = 11;
const OTHER_WORKER: u32 = 12;
const HOG: u32 = 77;

/// What the worker did in a nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Run,
    /// Something that has one cause whatever the request.
    Cause(Cause),
    SleepWithout,
}

/// A script that was played, with its events and with requests.
pub(crate) struct WorkerScript {
    pub(crate) events: Vec<KernelEvent>,
    pub(crate) requests: Vec<ObservedRequest>,
    /// By nanosecond.
    did: Vec<Did>,
    other_idle: Vec<(u64, u64)>,
    random: u64,
    softirqs: bool,
    boundaries: Vec<u64>,
    counted: (u32, u32),
    switched_in: u64,
    woken: u64,
    /// The queue that the worker was in last, and whether its CPU was idle when it was put there.
    queue: (u16, bool),
    last_active: u64,
    read: Option<(u64, u64)>,
    /// Whether the last request may have more of its answer.
    is_answering: bool,
}

impl WorkerScript {
    pub(crate) fn play(seed: u64, steps: usize, softirqs: bool) -> Self {
        let mut script = Self {
            events: Vec::new(),
            requests: Vec::new(),
            did: Vec::new(),
            other_idle: Vec::new(),
            random: seed,
            softirqs,
            boundaries: Vec::new(),
            counted: (0, 0),
            switched_in: 0,
            woken: 0,
            queue: (0, false),
            last_active: 0,
            read: None,
            is_answering: false,
        };
        script.spend(Did::Run, 10);
        script.report(EventKind::Send, 0);
        script.switched_in = script.now();
        for _ in 0..steps {
            script.step();
        }
        script.play_other_worker();
        script.events.sort_by_key(|event| event.time);
        script
    }

    fn now(&self) -> u64 {
        self.did.len() as u64
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % limit
    }

    fn spend(&mut self, did: Did, time: u64) {
        self.boundaries.push(self.now());
        self.did.extend((0..time).map(|_| did));
    }

    fn event(&self, kind: EventKind, thread: u32) -> KernelEvent {
        KernelEvent { thread, process: SERVER, ..blank_event(self.now(), kind) }
    }

    fn report(&mut self, kind: EventKind, state: u16) {
        let mut event = self.event(kind, WORKER);
        event.earlier = self.switched_in;
        event.schedule = ThreadSchedule {
            woken: self.woken,
            interrupt_ns: self.counted.0,
            softirq_ns: self.counted.1,
            cpu: self.queue.0,
            was_idle: self.queue.1,
            state,
            ..ThreadSchedule::default()
        };
        self.events.push(event);
    }

    /// The worker runs, and then reads, answers or leaves its CPU.
    fn step(&mut self) {
        let time = 1 + self.below(40);
        self.spend(Did::Run, time);
        if self.softirqs {
            let interrupt = self.below(5);
            let softirq = self.below(9);
            self.spend(Did::Cause(Cause::Interrupt), interrupt);
            self.spend(Did::Cause(Cause::Softirq), softirq);
            self.counted.0 = self.counted.0.wrapping_add(interrupt as u32);
            self.counted.1 = self.counted.1.wrapping_add(softirq as u32);
        }
        match self.below(5) {
            0 | 1 if self.read.is_none() => {
                self.report(EventKind::Receive, 0);
                self.read = Some((self.now(), self.switched_in.max(self.last_active)));
                self.is_answering = false;
                self.last_active = self.now();
            }
            0..=2 => {
                self.report(EventKind::Send, 0);
                self.answer();
                self.last_active = self.now();
            }
            _ => self.leave(),
        }
    }

    fn answer(&mut self) {
        let Some((read, free)) = self.read.take() else {
            self.is_answering &= self.below(3) > 0;
            let now = self.now();
            if let Some(request) = self.requests.last_mut().filter(|_| self.is_answering) {
                (request.last_awaited_write, request.points[7]) = (now, now + 3);
            }
            return;
        };
        self.is_answering = true;
        // Times of interrupts in the middle of a run are not known: a request is ready at a boundary that is.
        let events: Vec<u64> =
            self.events.iter().map(|event| event.time).filter(|time| *time < read).collect();
        let ready = events[events.len() - 1 - self.below(events.len().min(9) as u64) as usize];
        let mut points = [ready.saturating_sub(5); POINTS];
        let after = [ready, ready.max(free).min(read), read, read, self.now(), self.now() + 3];
        points[2..].copy_from_slice(&after);
        self.requests.push(ObservedRequest {
            points,
            first_wire: points[0],
            last_awaited_write: points[6],
            peer: ([127, 0, 0, 1], 5).into(),
            port: 80,
            udp: false,
            request_bytes: 1,
            answer_bytes: 1,
            reader: WORKER,
            writer: WORKER,
            quality: RequestQuality::default(),
            held_up: observe::HeldUpTime::default(),
        });
    }

    fn leave(&mut self) {
        let has_request = self.read.is_some();
        let (state, did) = match self.below(5) {
            0 => (0, None),
            3 => (2, Some(Did::Cause(Cause::WaitingForIo))),
            1 => (2, Some(Did::Cause(Cause::Blocked))),
            2 => (4, Some(Did::Cause(Cause::Stopped))),
            _ if has_request => (1, Some(Did::Cause(Cause::Asleep))),
            _ => (0x2001, Some(Did::SleepWithout)),
        };
        self.report(EventKind::Leave, state);
        let left = self.events.last_mut().expect("one was just reported");
        left.schedule.waits_for_io = matches!(did, Some(Did::Cause(Cause::WaitingForIo)));
        self.woken = 0;
        if let Some(did) = did {
            let time = 1 + self.below(60);
            self.spend(did, time);
            self.woken = self.now();
        }
        for stay in 0..self.below(3) + 1 {
            if stay > 0 {
                self.move_to_another_queue();
            }
            let is_throttled = stay == 0 && did.is_none() && self.below(3) == 0;
            if is_throttled {
                self.be_throttled();
            } else {
                self.wait_in_queue(did.is_none(), stay == 0);
            }
        }
        self.switched_in = self.now();
    }

    /// A quota keeps the worker from running, whatever has the CPU meanwhile. Then another thread may have the CPU.
    fn be_throttled(&mut self) {
        let from = self.now();
        self.queue.1 = false;
        let time = 1 + self.below(90);
        self.spend(Did::Cause(Cause::Throttled), time);
        let until = self.now();
        let after = self.below(30);
        self.spend(Did::Cause(Cause::OtherProcess), after);
        let mut hog = self.event(EventKind::Occupant, HOG);
        (hog.earlier, hog.process, hog.schedule.cpu) = (from, HOG, self.queue.0);
        hog.schedule.name[..3].copy_from_slice(b"hog");
        self.events.push(hog);
        let mut event = self.event(EventKind::Throttled, WORKER);
        (event.earlier, event.schedule.throttled_ns) = (from, until - from);
        self.events.push(event);
    }

    fn move_to_another_queue(&mut self) {
        let mut event = self.event(EventKind::Move, WORKER);
        (event.schedule.cpu, event.schedule.was_idle) = self.queue;
        self.events.push(event);
        self.queue.0 = 1 - self.queue.0;
    }

    /// First the CPU is idle, or nothing is said of it, or the worker is put into the queue; then it has one thread after
    /// the other.
    fn wait_in_queue(&mut self, was_sent_away: bool, is_first: bool) {
        let idle = if was_sent_away { Cause::HeldBack } else { Cause::IdleCpu };
        let first = self.below(4);
        let time = 1 + self.below(50);
        self.queue.1 = first == 0;
        match first {
            0 => self.occupy((idle, 0), time, false),
            1 => self.spend(Did::Cause(Cause::UnseenOccupant), time),
            2 if is_first && !was_sent_away => {
                self.spend(Did::Cause(Cause::BeingWoken), time);
                self.occupy((Cause::OtherProcess, HOG), time, true);
            }
            _ => {}
        }
        if first == 1 {
            return;
        }
        for _ in 0..self.below(4) {
            let time = 1 + self.below(50);
            match self.below(5) {
                0 => self.occupy((Cause::OtherProcess, HOG), time, true),
                1 => self.occupy((Cause::SameServer, SERVER), time, true),
                2 => self.occupy((Cause::UnseenOccupant, HOG), time, true),
                3 => {
                    self.occupy((Cause::OtherProcess, HOG), time, true);
                    self.spend(Did::Cause(Cause::UnseenOccupant), time);
                }
                _ => self.occupy((idle, 0), time, true),
            }
        }
    }

    /// Somebody has the CPU, or nobody: reported, or without interrupts, steal and report.
    fn occupy(&mut self, (cause, process): (Cause, u32), time: u64, is_reported: bool) {
        let from = self.now();
        self.spend(Did::Cause(cause), time);
        if !is_reported {
            return;
        }
        let softirq = self.below(2) * self.below(9);
        let stolen = self.below(2) * self.below(30);
        self.spend(Did::Cause(Cause::Softirq), softirq);
        self.spend(Did::Cause(Cause::Stolen), stolen);
        let mut event = self.event(EventKind::Occupant, process);
        (event.earlier, event.process) = (from, process);
        event.schedule.cpu = self.queue.0;
        event.schedule.is_unseen = cause == Cause::UnseenOccupant;
        event.schedule.softirq_ns = softirq as u32;
        event.schedule.stolen_ns = stolen as u32;
        event.schedule.name[..3].copy_from_slice(b"hog");
        self.events.push(event);
    }

    /// Another worker sleeps now and then, and answers in between.
    fn play_other_worker(&mut self) {
        let mut now = 1;
        let mut switched_in = 0;
        let mut woken = 0;
        while now < self.now() {
            let times = [(EventKind::Receive, now), (EventKind::Send, now + 1), (EventKind::Leave, now + 2)];
            for (kind, time) in times {
                let mut event = self.event(kind, OTHER_WORKER);
                (event.time, event.earlier, event.schedule.woken) = (time, switched_in, woken);
                event.schedule.state = 1;
                switched_in = switched_in.max(1);
                self.events.push(event);
            }
            let sleeps = 1 + self.below(120);
            self.other_idle.push((now + 2, now + 2 + sleeps));
            woken = now + 2 + sleeps;
            switched_in = woken;
            now = woken + 1 + self.below(60);
        }
        // Nothing is heard of it any more.
        self.other_idle.last_mut().into_iter().for_each(|(_, until)| *until = u64::MAX);
    }

    /// What each nanosecond from T2 to the last write of a request went to.
    pub(crate) fn truth(&self, request: &ObservedRequest) -> Vec<Cause> {
        let [_, _, ready, scheduled, .., written, _] = request.points;
        let cause = |time: u64| match self.did[time as usize] {
            Did::Cause(cause) => cause,
            Did::SleepWithout if time >= written => Cause::Asleep,
            Did::SleepWithout => Cause::NotWoken,
            Did::Run if time >= scheduled => Cause::Work,
            Did::Run if self.other_idle.iter().any(|(from, until)| (*from..*until).contains(&time)) => {
                Cause::OtherIdle
            }
            Did::Run => Cause::AllBusy,
        };
        (ready..request.last_awaited_write).map(cause).collect()
    }
}
