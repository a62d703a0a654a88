//! The timing thread: sends what is due, takes what comes, sleeps and spins in between.

mod aim;
mod book;
mod flow;
mod link;
pub(crate) mod mechanic;
mod wait;

pub(crate) use book::Gauges;

use crate::setup::Opened;
use crate::{Compared, Counts, Options, Workload};
use book::{Book, Number};
use flow::Flow;
use link::{Link, Up};
use mechanic::Repaired;
use model::{Observation, Outcome};
use rustix::event::epoll::EventFlags;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use units::Nanos;
use wait::Waiter;

/// Requests that are sent before answers are looked for, so that a burst does not make answers look late.
const BATCH: usize = 16;

/// Time since the start of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: u64,
}

impl Clock {
    pub(crate) fn now(self) -> Nanos {
        Nanos(machine::clock::now() - self.origin)
    }
}

/// What sending needs.
pub(crate) struct Tools {
    pub(crate) clock: Clock,
    /// What the next write carries.
    pub(crate) scratch: Vec<u8>,
}

/// A workload with its connections.
pub(crate) struct Ready {
    pub(crate) workload: Workload,
    pub(crate) opened: Vec<Opened>,
    /// Lost connections are ordered again here.
    pub(crate) orders: Sender<usize>,
}

/// What came of it.
pub(crate) struct Outcomes {
    pub(crate) requests: Vec<Observation>,
    pub(crate) lags: Vec<Nanos>,
    pub(crate) counts: Vec<Counts>,
    pub(crate) compared: Compared,
    pub(crate) observed: Nanos,
    pub(crate) warnings: Vec<String>,
}

/// All workloads of a run.
pub(crate) struct Engine<'a> {
    stop: &'a AtomicBool,
    gauges: &'a Gauges,
    tools: Tools,
    waiter: Waiter,
    repaired: Receiver<Repaired>,
    orders: Vec<Sender<usize>>,
    flows: Vec<Flow>,
    links: Vec<Link>,
    book: Book,
    /// When the next request of each workload is due.
    agenda: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// Links to which requests were given.
    touched: Vec<usize>,
    warm_up: Nanos,
    /// Nothing is sent from here on.
    end: Nanos,
    drain: Nanos,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        ready: Vec<Ready>,
        options: &Options,
        (stop, gauges): (&'a AtomicBool, &'a Gauges),
        repaired: Receiver<Repaired>,
        bell: &Arc<OwnedFd>,
    ) -> rustix::io::Result<Self> {
        let waiter = Waiter::new(bell.clone())?;
        let (mut flows, mut links, mut orders) = (Vec::new(), Vec::new(), Vec::new());
        for (index, one) in ready.into_iter().enumerate() {
            let (start, space) = (links.len(), one.opened[0].space);
            for opened in one.opened {
                waiter.watch(&opened.stream, links.len())?;
                links.push(Link { flow: index, up: Some(Up::new(opened)), queue: Default::default() });
            }
            flows.push(Flow::new(index, one.workload, space, start..links.len(), options));
            orders.push(one.orders);
        }
        let due = flows.iter().enumerate().filter_map(|(index, flow)| Some(Reverse((flow.due()?, index))));
        let agenda = due.collect();
        let tools = Tools { clock: Clock { origin: 0 }, scratch: Vec::new() };
        let (book, touched) = (Book::default(), Vec::new());
        let (warm_up, drain) = (options.warm_up, options.drain);
        let end = warm_up + options.duration;
        Ok(Self {
            stop,
            gauges,
            tools,
            waiter,
            repaired,
            orders,
            flows,
            links,
            book,
            agenda,
            touched,
            warm_up,
            end,
            drain,
        })
    }

    /// Plays everything. The clock starts now.
    pub(crate) fn run(mut self) -> rustix::io::Result<Outcomes> {
        self.tools.clock = Clock { origin: machine::clock::now() };
        for flow in 0..self.flows.len() {
            self.begin_closed(flow, self.flows[flow].outstanding());
        }
        self.send_touched();
        loop {
            let now = self.tools.clock.now();
            self.tell(now);
            if self.is_over(now) {
                break;
            }
            self.release(now);
            self.send_touched();
            self.take()?;
        }
        Ok(self.close())
    }

    fn tell(&mut self, now: Nanos) {
        if self.stop.load(Ordering::Relaxed) && now < self.end {
            self.end = now;
        }
        self.gauges.elapsed.store(now.0, Ordering::Relaxed);
        self.gauges.requests.store(self.book.len() as u64, Ordering::Relaxed);
        self.gauges.draining.store(now >= self.end, Ordering::Relaxed);
    }

    fn is_over(&self, now: Nanos) -> bool {
        let nothing_more = now >= self.end || self.next_due().is_none();
        (nothing_more && self.book.open() == 0) || now >= self.end + self.drain
    }

    /// The next request that is still to be sent.
    fn next_due(&self) -> Option<Nanos> {
        self.agenda.peek().map(|Reverse((due, _))| *due).filter(|due| *due < self.end)
    }

    /// Gives what is due to connections.
    fn release(&mut self, now: Nanos) {
        for _ in 0..BATCH {
            if self.next_due().is_none_or(|due| due > now) {
                return;
            }
            let Some(Reverse((_, flow))) = self.agenda.pop() else { return };
            let record = self.flows[flow].next(self.tools.clock.now());
            if let Some(due) = self.flows[flow].due() {
                self.agenda.push(Reverse((due, flow)));
            }
            let number = self.book.enter(record);
            self.assign(flow, number);
        }
    }

    /// Begins `count` requests that wait for nothing but answers.
    fn begin_closed(&mut self, flow: usize, count: u32) {
        if self.flows[flow].outstanding() == 0 {
            return;
        }
        for _ in 0..count {
            let now = self.tools.clock.now();
            if now >= self.end {
                return;
            }
            let record = self.flows[flow].next(now);
            let number = self.book.enter(record);
            self.assign(flow, number);
        }
    }

    /// Gives a request to the next connection that works.
    fn assign(&mut self, index: usize, request: Number) {
        let flow = &mut self.flows[index];
        let count = flow.links.len();
        for step in 0..count {
            let turn = (flow.turn + step) % count;
            let link = flow.links.start + turn;
            if self.links[link].up.is_some() {
                flow.turn = turn + 1;
                self.links[link].queue.push_back(request);
                if !self.touched.contains(&link) {
                    self.touched.push(link);
                }
                return;
            }
        }
        flow.waiting.push_back(request);
    }

    fn send_touched(&mut self) {
        while let Some(link) = self.touched.pop() {
            self.send(link);
        }
    }

    fn send(&mut self, index: usize) {
        let Link { flow, up, queue } = &mut self.links[index];
        let Some(up) = up else { return };
        let waited = up.waits_for_room;
        let sent = up.send(queue, &mut self.flows[*flow], &mut self.book, &mut self.tools);
        let watched = match sent {
            Ok(()) if up.waits_for_room == waited => Ok(()),
            Ok(()) => {
                self.waiter.room(&up.stream, index, up.waits_for_room).map_err(|error| error.to_string())
            }
            Err(why) => Err(why),
        };
        if let Err(why) = watched {
            self.lose(index, &why);
        }
    }

    /// Waits for what comes next and takes it.
    fn take(&mut self) -> rustix::io::Result<()> {
        let now = self.tools.clock.now();
        let until = self.next_due().unwrap_or(if now < self.end { self.end } else { self.end + self.drain });
        let mut events = self.waiter.wait(self.tools.clock, until)?;
        for event in events.drain(..) {
            match event.data.u64() {
                Waiter::TIMER => {}
                Waiter::BELL => self.install()?,
                link => self.serve(usize::try_from(link).expect("an index"), event.flags),
            }
        }
        self.waiter.give_back(events);
        Ok(())
    }

    fn serve(&mut self, index: usize, flags: EventFlags) {
        if flags.contains(EventFlags::OUT) {
            self.send(index);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return;
        }
        let Link { flow, up: Some(up), .. } = &mut self.links[index] else { return };
        let flow = *flow;
        let received = up.receive(&mut self.flows[flow], &mut self.book, self.gauges, self.tools.clock);
        let is_closing = up.is_closing();
        match received {
            Err(why) => self.lose(index, &why),
            Ok(_) if is_closing => self.lose(index, "the server announced that it closes it"),
            Ok(answered) => {
                self.begin_closed(flow, answered);
                // There may be room for further requests on this connection.
                if answered > 0 && !self.links[index].queue.is_empty() && !self.touched.contains(&index) {
                    self.touched.push(index);
                }
            }
        }
    }

    /// A connection is gone: what was on it fails, what was not sent goes to others, and it is ordered again.
    fn lose(&mut self, index: usize, why: &str) {
        let Link { flow: owner, up, queue } = &mut self.links[index];
        let Some(up) = up.take() else { return };
        let (now, owner) = (self.tools.clock.now(), *owner);
        let flow = &mut self.flows[owner];
        let mut queue = std::mem::take(queue);
        flow.counts.disconnects += 1;
        flow.first_loss.get_or_insert_with(|| why.to_owned());
        let remains = up.end(flow, &self.book, now);
        for request in &remains.gone {
            flow.failed_because(|| format!("its connection was lost: {why}"));
            self.book.end(*request, Outcome::Failed(now), self.gauges);
        }
        for request in remains.unsent.into_iter().chain(queue.drain(..)) {
            self.assign(owner, request);
        }
        let gone = u32::try_from(remains.gone.len()).expect("fewer than the depth of a connection");
        self.begin_closed(owner, gone);
        // Unless the run is over.
        let _ = self.orders[owner].send(index);
    }

    /// Takes connections that were set up again.
    fn install(&mut self) -> rustix::io::Result<()> {
        self.waiter.silence()?;
        while let Ok(Repaired { link, opened }) = self.repaired.try_recv() {
            self.waiter.watch(&opened.stream, link)?;
            let owner = self.links[link].flow;
            self.links[link].up = Some(Up::new(opened));
            let flow = &mut self.flows[owner];
            flow.counts.reconnects += 1;
            for request in std::mem::take(&mut flow.waiting) {
                self.assign(owner, request);
            }
        }
        Ok(())
    }

    fn close(mut self) -> Outcomes {
        let now = self.tools.clock.now();
        let mut warnings = Vec::new();
        let mut compared = Compared::default();
        for flow in &mut self.flows {
            warn(flow, &mut warnings);
            let part = flow.compared();
            compared.bytes.0 += part.bytes.0;
            compared.unknown.0 += part.unknown.0;
            compared.mismatches += part.mismatches;
            compared.first = compared.first.or(part.first);
        }
        let counts = self.flows.iter().map(|flow| flow.counts).collect();
        let (requests, lags) = self.book.close(self.warm_up, now);
        let observed = self.end.saturating_sub(self.warm_up);
        Outcomes { requests, lags, counts, compared, observed, warnings }
    }
}

fn warn(flow: &Flow, warnings: &mut Vec<String>) {
    let name = &flow.name;
    if let (count, Some(why)) = (flow.counts.disconnects, &flow.first_loss) {
        let again = flow.counts.reconnects;
        warnings.push(format!(
            "workload {name}: connections were lost {count} times and set up again {again} times; the first because {why}"
        ));
    }
    if let (count, Some(why)) = &flow.failed {
        warnings.push(format!("workload {name}: {count} requests failed; the first: {why}"));
    }
    if flow.counts.misses > 0 {
        let misses = flow.counts.misses;
        warnings.push(format!(
            "workload {name}: {misses} keys were no longer there; give memcached more memory, or use fewer keys"
        ));
    }
}
