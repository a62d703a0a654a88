//! The event loop of the timing thread, which plays all workloads of a run.
//!
//! One iteration sends the requests that are due, then waits for events until the next one is due and handles them. A
//! connection that fails is closed here and set up again by the threads of [`super::reconnect`].

use super::clock::RunClock;
use super::connection::{ActiveConnection, ConnectionSlot, Received};
use super::context::RunContext;
use super::poller::Poller;
use super::reconnect::{EndedConnection, Reconnected};
use super::request_log::{RequestIndex, RequestLog, RequestRecord};
use super::workload_state::WorkloadState;
use crate::options::LoadOptions;
use crate::progress::ProgressGauges;
use crate::report::{DataComparison, WorkloadCounters};
use crate::setup::ReadyConnection;
use crate::workload::LoadWorkload;
use model::{Observation, RequestOutcome};
use rustix::event::epoll::EventFlags;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use units::Nanos;

/// Number of requests that are sent before replies are received again, so that a burst does not delay the
/// observation of replies.
const SEND_BATCH: usize = 16;

/// A workload whose connections are set up.
pub(crate) struct OpenedWorkload {
    pub(crate) workload: LoadWorkload,
    pub(crate) connections: Vec<ReadyConnection>,
    /// Takes the connections that have ended and have to be set up again.
    pub(crate) lost: Sender<EndedConnection>,
}

/// Observations of the timing thread.
pub(crate) struct EngineResults {
    pub(crate) observations: Vec<Observation>,
    pub(crate) counters: Vec<WorkloadCounters>,
    pub(crate) comparison: DataComparison,
    pub(crate) observed_duration: Nanos,
    pub(crate) warnings: Vec<String>,
}

/// All workloads of a run, with their connections.
pub(crate) struct LoadEngine<'a> {
    /// Set by others to end the run early.
    stop: &'a AtomicBool,
    context: RunContext<'a>,
    poller: Poller,
    reconnected: Receiver<Reconnected>,
    /// Channels to which the lost connections of each workload are reported.
    lost: Vec<Sender<EndedConnection>>,
    workloads: Vec<WorkloadState>,
    slots: Vec<ConnectionSlot>,
    /// Slots whose connections use datagrams.
    datagram_slots: Vec<usize>,
    /// When the next request of each open-loop workload is due, earliest first; ties go to the workload with the lower
    /// index.
    due_times: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Slots whose queues have got requests since their last send.
    to_send: Vec<usize>,
    warm_up: Nanos,
    /// Requests that are due from here on are not sent.
    end: Nanos,
    drain: Nanos,
}

impl<'a> LoadEngine<'a> {
    pub(crate) fn new(
        opened: Vec<OpenedWorkload>,
        options: &LoadOptions,
        (stop, gauges): (&'a AtomicBool, &'a ProgressGauges),
        reconnected: Receiver<Reconnected>,
        waker: Arc<OwnedFd>,
    ) -> rustix::io::Result<Self> {
        let context = RunContext {
            clock: RunClock::start_now(),
            log: RequestLog::default(),
            gauges,
            payload: Vec::new(),
            received: Vec::new(),
            plain: Vec::new(),
        };
        let mut engine = Self {
            stop,
            context,
            poller: Poller::new(waker)?,
            reconnected,
            lost: Vec::new(),
            workloads: Vec::new(),
            slots: Vec::new(),
            datagram_slots: Vec::new(),
            due_times: BinaryHeap::new(),
            to_send: Vec::new(),
            warm_up: options.warm_up,
            end: options.warm_up + options.duration,
            drain: options.drain,
        };
        for workload in opened {
            engine.add_workload(workload, options)?;
        }
        Ok(engine)
    }

    fn add_workload(&mut self, opened: OpenedWorkload, options: &LoadOptions) -> rustix::io::Result<()> {
        let index = self.workloads.len();
        let first_slot = self.slots.len();
        let space = opened.connections[0].space;
        let slots = first_slot..first_slot + opened.connections.len();
        let mut workload = WorkloadState::new(index, opened.workload, space, slots, options);
        for connection in opened.connections {
            self.poller.register(&connection.socket, self.slots.len())?;
            self.datagram_slots.extend(connection.socket.is_datagrams().then_some(self.slots.len()));
            let active = Some(ActiveConnection::new(connection, workload.draw_requests_per_connection()));
            self.slots.push(ConnectionSlot { workload: index, active, queue: Default::default() });
        }
        self.due_times.extend(workload.next_due().map(|due| Reverse((due, index))));
        self.workloads.push(workload);
        self.lost.push(opened.lost);
        Ok(())
    }

    /// Plays everything. The clock starts now.
    pub(crate) fn run(mut self) -> rustix::io::Result<EngineResults> {
        self.context.clock = RunClock::start_now();
        for workload in 0..self.workloads.len() {
            self.start_closed_requests(workload, self.workloads[workload].closed_in_flight());
        }
        self.send_queued();
        loop {
            let now = self.context.clock.now();
            if self.stop.load(Ordering::Relaxed) && now < self.end {
                self.end = now;
            }
            self.publish_progress(now);
            if self.is_finished(now) {
                break;
            }
            self.dispatch_due(now);
            self.give_up_lost(now);
            self.send_queued();
            self.handle_events()?;
        }
        Ok(self.into_results())
    }

    fn publish_progress(&self, now: Nanos) {
        let gauges = self.context.gauges;
        gauges.elapsed_ns.store(now.0, Ordering::Relaxed);
        gauges.requests.store(self.context.log.len() as u64, Ordering::Relaxed);
        gauges.is_draining.store(now >= self.end, Ordering::Relaxed);
    }

    /// True if every request was sent and answered, or if the time to wait for replies is over. Requests
    /// that are due before the end are sent, however late.
    fn is_finished(&self, now: Nanos) -> bool {
        let is_complete = self.next_due().is_none() && self.context.log.unfinished() == 0;
        is_complete || now >= self.end + self.drain
    }

    /// When the next request of an open loop is due that is still to be sent.
    fn next_due(&self) -> Option<Nanos> {
        self.due_times.peek().map(|Reverse((due, _))| *due).filter(|due| *due < self.end)
    }

    /// Takes the open-loop request that is due next, if one is still to be sent.
    fn pop_next_due(&mut self, now: Nanos) -> Option<(usize, RequestRecord)> {
        self.next_due()?;
        let Reverse((_, index)) = self.due_times.pop()?;
        let workload = &mut self.workloads[index];
        let record = workload.take_next(now);
        self.due_times.extend(workload.next_due().map(|due| Reverse((due, index))));
        Some((index, record))
    }

    /// Queues requests that are due at `now`, at most a batch of them.
    fn dispatch_due(&mut self, now: Nanos) {
        for _ in 0..SEND_BATCH {
            if self.next_due().is_none_or(|due| due > now) {
                return;
            }
            let handled_at = self.context.clock.now();
            let Some((workload, record)) = self.pop_next_due(handled_at) else { return };
            let request = self.context.log.push(record);
            self.assign(workload, request);
        }
    }

    /// Queues `count` further requests of a closed loop; none for an open loop, and none after the end.
    fn start_closed_requests(&mut self, workload: usize, count: u32) {
        if self.workloads[workload].closed_in_flight() == 0 {
            return;
        }
        for _ in 0..count {
            let now = self.context.clock.now();
            if now >= self.end {
                return;
            }
            let record = self.workloads[workload].take_next(now);
            let request = self.context.log.push(record);
            self.assign(workload, request);
        }
    }

    /// Queues a request on the next connection of its workload that is up, or keeps it until one is.
    fn assign(&mut self, index: usize, request: RequestIndex) {
        let workload = &mut self.workloads[index];
        let count = workload.connections.len();
        for step in 0..count {
            let turn = (workload.turn + step) % count;
            let slot = workload.connections.start + turn;
            if self.slots[slot].active.as_mut().is_some_and(ActiveConnection::takes_request) {
                workload.turn = turn + 1;
                self.slots[slot].queue.push_back(request);
                if !self.to_send.contains(&slot) {
                    self.to_send.push(slot);
                }
                return;
            }
        }
        workload.waiting.push_back(request);
    }

    fn send_queued(&mut self) {
        while let Some(slot) = self.to_send.pop() {
            self.send(slot);
        }
    }

    /// Sends the queued requests of a slot, as far as its socket takes them.
    fn send(&mut self, slot: usize) {
        let ConnectionSlot { workload, active, queue } = &mut self.slots[slot];
        let Some(connection) = active else { return };
        let watched_writable = connection.watches_writable;
        let mut sent = connection.send(queue, &mut self.workloads[*workload], &mut self.context);
        if sent.is_ok() && connection.watches_writable != watched_writable {
            let watch = self.poller.watch_writable(&connection.socket, slot, connection.watches_writable);
            sent = watch.map_err(|error| error.to_string());
        }
        if let Err(why) = sent {
            self.close_lost(slot, &why);
        }
    }

    /// Waits until something happens or the next request is due, and handles what happened.
    fn handle_events(&mut self) -> rustix::io::Result<()> {
        let now = self.context.clock.now();
        let end = if now < self.end { self.end } else { self.end + self.drain };
        let mut events = self.poller.wait(self.context.clock, self.next_due().unwrap_or(end))?;
        for event in events.drain(..) {
            match event.data.u64() {
                Poller::TIMER => {}
                Poller::WAKER => self.install_reconnected()?,
                slot => self.handle_connection(usize::try_from(slot).expect("an index"), event.flags),
            }
        }
        self.poller.recycle(events);
        Ok(())
    }

    fn handle_connection(&mut self, slot: usize, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.send(slot);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return;
        }
        let ConnectionSlot { workload, active: Some(connection), .. } = &mut self.slots[slot] else { return };
        let workload = *workload;
        let Received { answered, result } =
            connection.receive(&mut self.workloads[workload], &mut self.context);
        let is_closing = connection.is_closing();
        let has_output = connection.has_output();
        if is_closing {
            self.close_lost(slot, "the server announced that it closes it");
        } else if let Err(why) = result {
            self.close_lost(slot, &why);
        } else {
            self.renew_if_spent(slot);
            // Replies make room for further requests in flight on this connection.
            let has_room = answered > 0 && !self.slots[slot].queue.is_empty();
            if (has_room || has_output) && !self.to_send.contains(&slot) {
                self.to_send.push(slot);
            }
        }
        self.start_closed_requests(workload, answered);
    }

    /// Closes a connection: what was sent on it fails, what was not sent goes to other connections, and a new connection
    /// is ordered.
    fn close_lost(&mut self, slot: usize, why: &str) {
        let ConnectionSlot { workload: index, active, queue } = &mut self.slots[slot];
        let Some(connection) = active.take() else { return };
        let now = self.context.clock.now();
        let index = *index;
        let workload = &mut self.workloads[index];
        let queue = std::mem::take(queue);
        workload.counters.disconnects += 1;
        workload.first_loss.get_or_insert_with(|| why.to_owned());
        let orphaned = connection.close(workload, &self.context.log, now);
        for request in &orphaned.uncertain {
            workload.count_failure(|| format!("its connection was lost: {why}"));
            self.context.log.finish(*request, RequestOutcome::Failed(now), self.context.gauges);
        }
        for request in orphaned.unsent.into_iter().chain(queue) {
            self.assign(index, request);
        }
        // A failure is an answer to a closed loop: its next request begins.
        let failed = u32::try_from(orphaned.uncertain.len()).expect("in flight on one connection");
        self.start_closed_requests(index, failed);
        // The channel is closed once the threads of the run have ended.
        let _ = self.lost[index].send(EndedConnection { slot, is_spent: false });
    }

    /// Closes a connection that has answered as many requests as it was to take, and orders another in its place.
    fn renew_if_spent(&mut self, slot: usize) {
        let ConnectionSlot { workload, active, queue } = &mut self.slots[slot];
        if queue.is_empty() && active.as_ref().is_some_and(ActiveConnection::is_spent) {
            *active = None;
            self.workloads[*workload].counters.renewals += 1;
            let _ = self.lost[*workload].send(EndedConnection { slot, is_spent: true });
        }
    }

    /// Gives up requests if their datagrams or those of their answers are lost.
    fn give_up_lost(&mut self, now: Nanos) {
        for place in 0..self.datagram_slots.len() {
            let slot = self.datagram_slots[place];
            let ConnectionSlot { workload, active: Some(connection), .. } = &mut self.slots[slot] else {
                continue;
            };
            let workload = *workload;
            let lost = connection.give_up_lost(&mut self.workloads[workload], &mut self.context, now);
            self.start_closed_requests(workload, lost);
            self.renew_if_spent(slot);
        }
    }

    /// Takes connections that were set up again, and the requests that waited for one.
    fn install_reconnected(&mut self) -> rustix::io::Result<()> {
        self.poller.reset_waker()?;
        while let Ok(Reconnected { ended, connection }) = self.reconnected.try_recv() {
            let slot = ended.slot;
            self.poller.register(&connection.socket, slot)?;
            let index = self.slots[slot].workload;
            let workload = &mut self.workloads[index];
            let requests_left = workload.draw_requests_per_connection();
            self.slots[slot].active = Some(ActiveConnection::new(connection, requests_left));
            workload.counters.reconnects += u64::from(!ended.is_spent);
            for request in std::mem::take(&mut workload.waiting) {
                self.assign(index, request);
            }
        }
        Ok(())
    }

    fn into_results(mut self) -> EngineResults {
        // Requests that were due and that the generator never came to handle count as lost.
        let now = self.context.clock.now();
        while let Some((_, record)) = self.pop_next_due(now) {
            self.context.log.push(record);
        }
        let mut warnings = Vec::new();
        let mut comparison = DataComparison::default();
        for workload in &mut self.workloads {
            warnings.extend(workload.warnings());
            comparison.add(workload.take_comparison());
        }
        EngineResults {
            observations: self.context.log.into_observations(self.warm_up),
            counters: self.workloads.iter().map(|workload| workload.counters).collect(),
            comparison,
            observed_duration: self.end.saturating_sub(self.warm_up),
            warnings,
        }
    }
}
