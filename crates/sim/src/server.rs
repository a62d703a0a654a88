//! A stage: one server that works through its queue in strict priority.
//!
//! A stage pulls its arrivals from the stage before it and hands on departures in order of time, so that a path
//! is a chain of stages and no calendar of events is needed: a stage looks one arrival ahead, no further.

use crate::merge::{Packet, Source};
use discipline::StrictPriority;
use model::{Job, Stage};
use std::mem::replace;

/// A job in a stage's queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting<'a> {
    /// Work that is left.
    left: u64,
    entered: u64,
    job: &'a Job,
    stream: u32,
}

impl<'a> Waiting<'a> {
    fn new(packet: &Packet<'a>, left: u64) -> Self {
        Self { left, entered: packet.entered, job: packet.job, stream: packet.stream }
    }

    fn leaves(self, at: u64) -> Packet<'a> {
        Packet { at, entered: self.entered, job: self.job, stream: self.stream }
    }
}

/// The jobs that wait at a stage.
pub(crate) type Queue<'a> = StrictPriority<Waiting<'a>>;

/// A stage in which an arrival of a higher priority interrupts, and the interrupted job resumes later.
pub(crate) struct Preemptive<'r, 'a, I> {
    stage: Stage,
    levels: &'r [u32],
    queue: &'r mut Queue<'a>,
    input: I,
    /// The next arrival.
    pending: Packet<'a>,
    /// Until when the work of the queue is counted.
    clock: u64,
}

impl<'r, 'a, I: Source<'a>> Preemptive<'r, 'a, I> {
    /// Begins idle.
    pub(crate) fn new(stage: Stage, levels: &'r [u32], queue: &'r mut Queue<'a>, mut input: I) -> Self {
        queue.clear();
        let pending = input.next();
        Self { stage, levels, queue, input, pending, clock: 0 }
    }
}

impl<'a, I: Source<'a>> Source<'a> for Preemptive<'_, 'a, I> {
    #[inline]
    fn next(&mut self) -> Packet<'a> {
        loop {
            if let Some(head) = self.queue.head_mut() {
                let done = self.clock + head.left;
                if done <= self.pending.at {
                    self.clock = done;
                    let (_, job) = self.queue.pop().expect("the head is there");
                    return job.leaves(done);
                }
                head.left -= self.pending.at - self.clock;
            }
            let next = self.input.next();
            let arrived = replace(&mut self.pending, next);
            self.clock = arrived.at;
            let work = arrived.job.work[self.stage].0;
            // Without work, or alone until the next arrival: no need to queue.
            if work == 0 || (self.queue.is_empty() && arrived.at + work <= self.pending.at) {
                return Packet { at: arrived.at + work, ..arrived };
            }
            self.queue.push(self.levels[arrived.stream as usize] as usize, Waiting::new(&arrived, work));
        }
    }
}

/// A stage that finishes each job that it has begun.
pub(crate) struct NonPreemptive<'r, 'a, I> {
    stage: Stage,
    levels: &'r [u32],
    queue: &'r mut Queue<'a>,
    input: I,
    /// The next arrival.
    pending: Packet<'a>,
    /// The job in service as it will leave.
    serving: Option<Packet<'a>>,
}

impl<'r, 'a, I: Source<'a>> NonPreemptive<'r, 'a, I> {
    /// Begins idle.
    pub(crate) fn new(stage: Stage, levels: &'r [u32], queue: &'r mut Queue<'a>, mut input: I) -> Self {
        queue.clear();
        let pending = input.next();
        Self { stage, levels, queue, input, pending, serving: None }
    }
}

impl<'a, I: Source<'a>> Source<'a> for NonPreemptive<'_, 'a, I> {
    #[inline]
    fn next(&mut self) -> Packet<'a> {
        loop {
            if let Some(done) = self.serving.filter(|done| done.at <= self.pending.at) {
                self.serving = self.queue.pop().map(|(_, job)| job.leaves(done.at + job.left));
                return done;
            }
            let next = self.input.next();
            let arrived = replace(&mut self.pending, next);
            let work = arrived.job.work[self.stage].0;
            if work == 0 {
                return arrived;
            }
            if self.serving.is_none() {
                self.serving = Some(Packet { at: arrived.at + work, ..arrived });
            } else {
                self.queue.push(self.levels[arrived.stream as usize] as usize, Waiting::new(&arrived, work));
            }
        }
    }
}
