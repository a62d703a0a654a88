//! A stage of the path: one server that works through its queue in strict priority.
//!
//! A stage pulls its arrivals from the stage before it and hands on departures in order of time. A path
//! is therefore a chain of stages without a calendar of events: a stage looks one arrival ahead, no
//! further.

use super::transit::{JobInTransit, TransitSource};
use discipline::StrictPriority;
use model::{Job, Stage};
use std::mem::replace;

/// A job in the queue of a stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuedJob<'a> {
    /// Work that is left to do at this stage, nanoseconds.
    left: u64,
    entered: u64,
    job: &'a Job,
    stream: u32,
}

impl<'a> QueuedJob<'a> {
    fn new(packet: &JobInTransit<'a>, left: u64) -> Self {
        Self { left, entered: packet.entered, job: packet.job, stream: packet.stream }
    }

    /// The job as it leaves the stage.
    fn departing(self, at: u64) -> JobInTransit<'a> {
        JobInTransit { at, entered: self.entered, job: self.job, stream: self.stream }
    }
}

/// The jobs that wait at a stage.
pub(super) type WaitingJobs<'a> = StrictPriority<QueuedJob<'a>>;

/// A stage in which an arrival of a higher priority interrupts, and the interrupted job resumes later.
pub(super) struct PreemptiveServer<'r, 'a, I> {
    stage: Stage,
    levels: &'r [u32],
    queue: &'r mut WaitingJobs<'a>,
    input: I,
    /// The arrival after those that have been taken.
    pending: JobInTransit<'a>,
    /// The instant up to which the remaining work of the queue is counted, nanoseconds.
    clock: u64,
}

impl<'r, 'a, I: TransitSource<'a>> PreemptiveServer<'r, 'a, I> {
    /// An idle stage before the first job of `input`.
    pub(super) fn new(stage: Stage, levels: &'r [u32], queue: &'r mut WaitingJobs<'a>, mut input: I) -> Self {
        queue.clear();
        let pending = input.next();
        Self { stage, levels, queue, input, pending, clock: 0 }
    }
}

impl<'a, I: TransitSource<'a>> TransitSource<'a> for PreemptiveServer<'_, 'a, I> {
    #[inline]
    fn next(&mut self) -> JobInTransit<'a> {
        loop {
            if let Some(head) = self.queue.head_mut() {
                let done = self.clock + head.left;
                if done <= self.pending.at {
                    self.clock = done;
                    let (_, job) = self.queue.pop().expect("the head is there");
                    return job.departing(done);
                }
                head.left -= self.pending.at - self.clock;
            }
            let next = self.input.next();
            let arrived = replace(&mut self.pending, next);
            self.clock = arrived.at;
            let work = arrived.job.work[self.stage].0;
            // Without work, or alone until the next arrival: no need to queue.
            if work == 0 || (self.queue.is_empty() && arrived.at + work <= self.pending.at) {
                return JobInTransit { at: arrived.at + work, ..arrived };
            }
            self.queue.push(self.levels[arrived.stream as usize] as usize, QueuedJob::new(&arrived, work));
        }
    }
}

/// A stage that finishes each job that it has begun.
pub(super) struct NonPreemptiveServer<'r, 'a, I> {
    stage: Stage,
    levels: &'r [u32],
    queue: &'r mut WaitingJobs<'a>,
    input: I,
    /// The arrival after those that have been taken.
    pending: JobInTransit<'a>,
    /// The job in service as it will leave.
    serving: Option<JobInTransit<'a>>,
}

impl<'r, 'a, I: TransitSource<'a>> NonPreemptiveServer<'r, 'a, I> {
    /// An idle stage before the first job of `input`.
    pub(super) fn new(stage: Stage, levels: &'r [u32], queue: &'r mut WaitingJobs<'a>, mut input: I) -> Self {
        queue.clear();
        let pending = input.next();
        Self { stage, levels, queue, input, pending, serving: None }
    }
}

impl<'a, I: TransitSource<'a>> TransitSource<'a> for NonPreemptiveServer<'_, 'a, I> {
    #[inline]
    fn next(&mut self) -> JobInTransit<'a> {
        loop {
            if let Some(done) = self.serving.filter(|done| done.at <= self.pending.at) {
                self.serving = self.queue.pop().map(|(_, job)| job.departing(done.at + job.left));
                return done;
            }
            let next = self.input.next();
            let arrived = replace(&mut self.pending, next);
            let work = arrived.job.work[self.stage].0;
            if work == 0 {
                return arrived;
            }
            if self.serving.is_none() {
                self.serving = Some(JobInTransit { at: arrived.at + work, ..arrived });
            } else {
                self.queue
                    .push(self.levels[arrived.stream as usize] as usize, QueuedJob::new(&arrived, work));
            }
        }
    }
}
