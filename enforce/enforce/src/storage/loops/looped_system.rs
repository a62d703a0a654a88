//! The machine of an engine whose connections belong to loops.

use super::super::system::{ProxyStream, StreamInterest, StreamToken, System, SystemEvent};
use super::conduit::{ByteOrder, ByteReport, ConnectionId, EngineEnd};
use slab::Slab;
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The loops of an engine, and messages to and from them.
pub trait ByteLoops<S: System>: Debug {
    /// Returns the number of loops, at least 1.
    fn count(&self) -> usize;

    /// Sends orders to a loop, and wakes it.
    fn send(&mut self, loop_index: usize, orders: Vec<(ConnectionId, ByteOrder<S::Stream>)>);

    /// Receives reports: the index of the loop and, in order, what it says of connections.
    ///
    /// # Errors
    /// If a loop has ended.
    fn receive(&mut self, reports: &mut Vec<(usize, ConnectionId, ByteReport)>) -> io::Result<()>;

    /// Announces that the engine waits for events of `system`. Returns false if reports have arrived. From now
    /// on a report causes an event.
    fn prepare_to_wait(&mut self) -> bool;

    /// The engine waits no longer.
    fn end_wait(&mut self);

    /// Handles events that `system` reported of connections of loops, and takes them out of `events`; loops with
    /// systems of their own have none. Returns the time at which loops have something to do.
    fn run(&mut self, system: &mut S, events: &mut Vec<SystemEvent>) -> Option<u64>;
}

/// A system whose connections belong to loops. Another system accepts and connects them, and has the clock.
#[derive(Debug)]
pub struct LoopedSystem<S: System, L> {
    system: S,
    loops: L,
    /// Connections by loop and slot.
    connections: Vec<Slab<SharedEnd<S::Stream>>>,
    lists: SharedLists<S::Stream>,
    next_serial: u32,
    /// Buffer for reports.
    reports: Vec<(usize, ConnectionId, ByteReport)>,
    /// Buffer for events of the other system.
    new_events: Vec<SystemEvent>,
}

/// The engine's end of a connection, as its session and the system share it. Only the engine's thread uses it, so
/// the lock is free.
type SharedEnd<C> = Arc<Mutex<EngineEnd<C>>>;
type SharedLists<C> = Arc<Mutex<EndLists<C>>>;

/// Connections with orders for their loops, and connections that may be ready.
#[derive(Debug)]
struct EndLists<C> {
    ordering: Vec<SharedEnd<C>>,
    ready: Vec<SharedEnd<C>>,
}

/// A connection whose socket belongs to a loop.
#[derive(Debug)]
pub struct LoopedStream<C> {
    end: SharedEnd<C>,
    lists: SharedLists<C>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C> LoopedStream<C> {
    /// Changes the end, and notes it if there are orders for its loop.
    fn change<T>(&self, change: impl FnOnce(&mut EngineEnd<C>) -> T) -> T {
        let mut end = lock(&self.end);
        let outcome = change(&mut end);
        if end.is_ordering() && !std::mem::replace(&mut end.has_orders, true) {
            lock(&self.lists).ordering.push(self.end.clone());
        }
        outcome
    }
}

impl<C> Drop for LoopedStream<C> {
    fn drop(&mut self) {
        self.change(EngineEnd::close);
    }
}

impl<C: Debug> ProxyStream for LoopedStream<C> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.change(|end| end.read(buffer))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.change(|end| end.write(pieces))
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        self.change(EngineEnd::end_output)
    }

    fn finish_connecting(&mut self) -> io::Result<()> {
        lock(&self.end).finish_connecting()
    }
}

impl<S: System, L: ByteLoops<S>> LoopedSystem<S, L> {
    /// Creates a system whose connections belong to `loops`.
    pub fn new(system: S, loops: L) -> Self {
        let connections = std::iter::repeat_with(Slab::new).take(loops.count()).collect();
        let lists = Arc::new(Mutex::new(EndLists { ordering: Vec::new(), ready: Vec::new() }));
        Self {
            system,
            loops,
            connections,
            lists,
            next_serial: 0,
            reports: Vec::new(),
            new_events: Vec::new(),
        }
    }

    /// Returns the system that accepts and connects.
    pub fn accepting_system(&self) -> &S {
        &self.system
    }

    /// Takes over an established connection that `open` makes.
    pub fn adopt_with(&mut self, open: impl FnOnce(&mut S) -> S::Stream) -> LoopedStream<S::Stream> {
        let stream = open(&mut self.system);
        self.adopt(stream, false)
    }

    /// Gives a connection to the loop that has the fewest.
    fn adopt(&mut self, stream: S::Stream, is_connecting: bool) -> LoopedStream<S::Stream> {
        let loads = self.connections.iter().enumerate();
        let (loop_index, connections) =
            loads.min_by_key(|(_, connections)| connections.len()).expect("there is a loop");
        let slot = u32::try_from(connections.vacant_key()).expect("fewer connections than files");
        let id = ConnectionId { slot, serial: self.next_serial };
        self.next_serial = self.next_serial.wrapping_add(1);
        let end = Arc::new(Mutex::new(EngineEnd::new(id, loop_index, stream, is_connecting)));
        self.connections[loop_index].insert(end.clone());
        let stream = LoopedStream { end, lists: self.lists.clone() };
        stream.change(|_| ());
        stream
    }

    /// Sends all orders to their loops.
    fn post(&mut self) {
        let ordering = std::mem::take(&mut lock(&self.lists).ordering);
        if ordering.is_empty() {
            return;
        }
        let mut orders: Vec<Vec<_>> = self.connections.iter().map(|_| Vec::new()).collect();
        for end in &ordering {
            let mut end = lock(end);
            end.has_orders = false;
            let id = end.id;
            orders[end.loop_index].extend(end.take_orders().into_iter().map(|order| (id, order)));
        }
        for (loop_index, orders) in orders.into_iter().enumerate() {
            if !orders.is_empty() {
                self.loops.send(loop_index, orders);
            }
        }
    }

    /// Takes reports of the loops.
    fn take_reports(&mut self) -> io::Result<()> {
        self.loops.receive(&mut self.reports)?;
        for (loop_index, id, report) in self.reports.drain(..) {
            let slot = id.slot as usize;
            let Some(shared) = self.connections[loop_index].get(slot) else { continue };
            let mut end = lock(shared);
            if matches!(report, ByteReport::Closed) {
                drop(end);
                self.connections[loop_index].remove(slot);
                continue;
            }
            end.on_report(report);
            note_ready(&mut end, shared, &self.lists);
        }
        Ok(())
    }

    /// Appends events of connections that are ready for what the engine waits for.
    fn collect_events(&mut self, events: &mut Vec<SystemEvent>) {
        let mut lists = lock(&self.lists);
        lists.ready.retain(|end| {
            let mut end = lock(end);
            let Some((token, [readable, writable, hung_up])) = end.readiness() else {
                end.may_be_ready = false;
                return false;
            };
            events.push(SystemEvent::Stream { token, readable, writable, hung_up });
            true
        });
    }
}

/// Lists a connection whose readiness may have changed.
fn note_ready<C>(end: &mut EngineEnd<C>, shared: &SharedEnd<C>, lists: &SharedLists<C>) {
    if end.readiness().is_some() && !std::mem::replace(&mut end.may_be_ready, true) {
        lock(lists).ready.push(shared.clone());
    }
}

impl<S: System, L: ByteLoops<S>> System for LoopedSystem<S, L> {
    type Stream = LoopedStream<S::Stream>;

    fn now(&self) -> u64 {
        self.system.now()
    }

    fn accept(&mut self, front: usize) -> io::Result<(Self::Stream, SocketAddr)> {
        let (stream, peer) = self.system.accept(front)?;
        Ok((self.adopt(stream, false), peer))
    }

    fn restore_reserve(&mut self) -> bool {
        self.system.restore_reserve()
    }

    fn clients_max(&self) -> u64 {
        self.system.clients_max()
    }

    fn report_clients(&mut self, are_reported: bool) {
        self.system.report_clients(are_reported);
    }

    fn may_share(&self, front: usize) -> bool {
        self.system.may_share(front)
    }

    fn connect(&mut self, front: usize, client: Option<SocketAddr>) -> io::Result<Self::Stream> {
        let stream = self.system.connect(front, client)?;
        Ok(self.adopt(stream, true))
    }

    fn watch(
        &mut self,
        stream: &mut Self::Stream,
        token: StreamToken,
        interest: StreamInterest,
    ) -> io::Result<()> {
        let mut end = lock(&stream.end);
        end.watched = Some((token, interest));
        note_ready(&mut end, &stream.end, &self.lists);
        Ok(())
    }

    fn unwatch(&mut self, stream: &mut Self::Stream) {
        lock(&stream.end).watched = None;
    }

    /// Sends orders, takes reports, and waits if nothing is ready.
    fn wait(
        &mut self,
        until: Option<u64>,
        outstanding: u32,
        events: &mut Vec<SystemEvent>,
    ) -> io::Result<()> {
        self.post();
        self.take_reports()?;
        self.collect_events(events);
        let may_wait = events.is_empty() && self.loops.prepare_to_wait();
        let loops_at = self.loops.run(&mut self.system, &mut Vec::new());
        let until = if may_wait { until.into_iter().chain(loops_at).min() } else { Some(0) };
        let mut new_events = std::mem::take(&mut self.new_events);
        let waited = self.system.wait(until, outstanding, &mut new_events);
        self.loops.end_wait();
        self.loops.run(&mut self.system, &mut new_events);
        events.append(&mut new_events);
        self.new_events = new_events;
        waited?;
        if may_wait {
            self.take_reports()?;
            self.collect_events(events);
        }
        Ok(())
    }

    fn stop_listening(&mut self) {
        self.system.stop_listening();
    }
}
