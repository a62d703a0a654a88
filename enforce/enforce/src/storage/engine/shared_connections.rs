//! Sessions and the connections to the server that they share.
//!
//! Requests of many clients leave in one system call, and their replies arrive in one: at a server that serves each
//! request in a microsecond, system calls are most of the work. Replies come in the order of the requests. Each
//! session's own parser reads the replies to its requests.

use super::super::buffer::{ReadBuffer, WriteQueue};
use super::super::flows::UNKNOWN_FLOW;
use super::super::round_work::{CONNECTING_WORK, EVENT_WORK};
use super::super::session::{CloseReason, ProxySide, SessionOrder};
use super::super::shared_pool::{AwaitedReply, SharedConnection, SharedPhase, Sharers};
use super::super::system::{ProxyStream, StreamInterest, StreamRole, StreamToken, System};
use super::super::watched_stream::{ReadOutcome, WatchedStream, read_once};
use super::ProxyEngine;
use std::collections::VecDeque;
use std::io;

/// Bytes read at once. More would be replies for more sessions than a round should write to.
const READ_MAX: usize = 16 << 10;
/// Time after which an unused connection is closed, nanoseconds.
const UNUSED_NS: u64 = 10_000_000_000;
/// Time for which the clients of a front connect for themselves after a shared connection has failed, nanoseconds.
const PAUSE_NS: u64 = 60_000_000_000;
/// Time for the server to accept a connection and to answer the greeting, nanoseconds.
const OPENING_NS: u64 = 1_000_000_000;
/// Connections for which there may be no session.
const SPARE_MAX: usize = 16;

impl<S: System> ProxyEngine<S> {
    /// Hands the latest request of a session to a shared connection.
    ///
    /// # Errors
    /// If no connection can begin.
    pub(super) fn send_shared(&mut self, slot: usize) -> Result<(), CloseReason> {
        let entry = &mut self.sessions[slot];
        let Some((id, bytes)) = entry.session.take_shared_request() else { return Ok(()) };
        let serial = entry.serial;
        let number = match entry.carrier {
            // Its replies have to come in order.
            Some(carrier) => carrier,
            None if self.pool.rules(entry.front, self.shared.now).is_none() => {
                return self.take_back(slot, bytes);
            }
            None => self.choose_carrier(slot)?,
        };
        self.sessions[slot].carrier = Some(number);
        let connection = &mut self.pool.connections[number];
        connection.used_at = self.shared.now;
        let mut awaited = AwaitedReply { slot, serial, id, sent: self.shared.now, unsent: Vec::new() };
        if connection.phase == SharedPhase::Open {
            connection.output.push(bytes);
        } else {
            awaited.unsent = bytes;
        }
        connection.awaited.push_back(awaited);
        self.pool.note(Some(number));
        Ok(())
    }

    /// Gives a request back to its session, which connects for itself.
    fn take_back(&mut self, slot: usize, bytes: Vec<u8>) -> Result<(), CloseReason> {
        let entry = &mut self.sessions[slot];
        entry.carrier = None;
        self.ready.push(slot);
        if entry.session.take_back(bytes, self.shared.now) {
            self.carry_out(slot, SessionOrder::ConnectServer)?;
        }
        Ok(())
    }

    /// Returns the sessions that share connections with this one.
    fn sharers(&self, slot: usize) -> Sharers {
        let entry = &self.sessions[slot];
        let flow = entry.session.flow;
        Sharers { front: entry.front, flow, address: (flow == UNKNOWN_FLOW).then_some(entry.session.address) }
    }

    /// Finds or begins a connection for the requests of a session that wait for one.
    pub(super) fn seek_shared_connection(&mut self, slot: usize) -> Result<(), CloseReason> {
        let Some(entry) = self.sessions.get_mut(slot).filter(|entry| entry.session.wants_shared_connection())
        else {
            return Ok(());
        };
        if self.pool.rules(entry.front, self.shared.now).is_none() {
            entry.session.leave_shared_connections();
            self.ready.push(slot);
            return Ok(());
        }
        let sharers = self.sharers(slot);
        let (open, wants_more) = self.pool.choose(sharers, self.rounds, self.shared.now);
        if open.is_some() {
            self.sessions[slot].session.set_shared_connection(true);
            self.ready.push(slot);
            return Ok(());
        }
        if wants_more {
            self.begin_shared(sharers)?;
        }
        if let Some(number) = self.pool.beginning(sharers) {
            self.pool.connections[number].waiting.push(slot);
        }
        Ok(())
    }

    /// Returns the connection for the next request of a session. If it was the last one for its like and has just
    /// closed, another begins.
    fn choose_carrier(&mut self, slot: usize) -> Result<usize, CloseReason> {
        let sharers = self.sharers(slot);
        let (open, wants_more) = self.pool.choose(sharers, self.rounds, self.shared.now);
        if wants_more {
            let begun = self.begin_shared(sharers);
            if open.is_none() {
                return begun;
            }
        }
        open.or_else(|| self.pool.beginning(sharers)).ok_or(CloseReason::ServerSilent)
    }

    /// Begins a connection for these sessions.
    fn begin_shared(&mut self, sharers: Sharers) -> Result<usize, CloseReason> {
        if self.pool.len() >= self.sessions.len() + SPARE_MAX {
            self.close_connections_unused_since(self.shared.now);
        }
        let begun = self.system.connect(sharers.front, None);
        let stream = begun.map_err(|error| CloseReason::SocketFailed(ProxySide::Server, error))?;
        self.work += CONNECTING_WORK;
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        let number = self.pool.add(SharedConnection {
            serial,
            sharers,
            stream: WatchedStream::new(Some(stream)),
            phase: SharedPhase::Connecting,
            output: WriteQueue::default(),
            input: ReadBuffer::default(),
            awaited: VecDeque::new(),
            waiting: Vec::new(),
            begun_at: self.shared.now,
            used_at: self.shared.now,
            round: self.rounds,
        });
        self.has_timed_session = true;
        self.pool.note(Some(number));
        Ok(number)
    }

    /// Handles an event of a shared connection.
    pub(super) fn on_shared_event(
        &mut self,
        token: StreamToken,
        readable: bool,
        writable: bool,
        hung_up: bool,
    ) {
        let number = token.slot as usize;
        let Some(connection) = self.pool.connections.get_mut(number) else { return };
        // The event is about an earlier connection in this slot.
        if connection.serial != token.serial {
            return;
        }
        connection.round = self.rounds;
        self.work += EVENT_WORK;
        let is_opening = connection.phase != SharedPhase::Open;
        match self.serve_shared(number, readable || hung_up, writable || hung_up) {
            Ok(()) => self.pool.note(Some(number)),
            // A server may know no such request.
            Err(_) if is_opening => self.stop_sharing(number, "it closes such a connection"),
            Err(reason) => self.close_shared(number, Some(&reason)),
        }
    }

    /// Gives up connections that the server does not open in time. Returns true if others have yet to open.
    pub(super) fn give_up_late_connections(&mut self) -> bool {
        let opening =
            self.pool.connections.iter().filter(|(_, connection)| connection.phase != SharedPhase::Open);
        let is_late = |begun_at: u64| begun_at + OPENING_NS < self.shared.now;
        let opening: Vec<_> =
            opening.map(|(number, connection)| (number, is_late(connection.begun_at))).collect();
        for (number, _) in opening.iter().filter(|(_, is_late)| *is_late) {
            self.stop_sharing(*number, "it does not answer on such a connection");
        }
        opening.iter().any(|(_, is_late)| !is_late)
    }

    fn serve_shared(&mut self, number: usize, readable: bool, writable: bool) -> Result<(), CloseReason> {
        let failed = |error| CloseReason::SocketFailed(ProxySide::Server, error);
        let connection = &mut self.pool.connections[number];
        let Some(stream) = &mut connection.stream.stream else { return Ok(()) };
        if connection.phase == SharedPhase::Connecting {
            if writable {
                stream.finish_connecting().map_err(failed)?;
                connection.phase = SharedPhase::Greeting;
                match self.pool.fronts[connection.sharers.front] {
                    Some(rules) => connection.output.push(rules.greeting.to_vec()),
                    None => unreachable!("clients of this front share connections"),
                }
            }
            return Ok(());
        }
        if !readable {
            return Ok(());
        }
        match read_once(stream, &mut self.scratch[..READ_MAX]).map_err(failed)? {
            ReadOutcome::Nothing => Ok(()),
            ReadOutcome::EndOfStream => Err(CloseReason::ClosedEarly(ProxySide::Server)),
            ReadOutcome::Bytes(count) => {
                self.work += count;
                let scratch = std::mem::take(&mut self.scratch);
                let passed = self.take_replies(number, &scratch[..count]);
                self.scratch = scratch;
                passed
            }
        }
    }

    /// Takes bytes that the server has sent over a shared connection.
    fn take_replies(&mut self, number: usize, bytes: &[u8]) -> Result<(), CloseReason> {
        let connection = &mut self.pool.connections[number];
        connection.used_at = self.shared.now;
        if connection.input.is_empty() {
            let used = self.pass_replies(number, bytes)?;
            if let Some(connection) = self.pool.connections.get_mut(number) {
                connection.input.extend(&bytes[used..]);
            }
            return Ok(());
        }
        connection.input.extend(bytes);
        let mut input = std::mem::take(&mut connection.input);
        let used = self.pass_replies(number, input.bytes())?;
        input.consume(used);
        if let Some(connection) = self.pool.connections.get_mut(number) {
            connection.input = input;
        }
        Ok(())
    }

    /// Passes replies on to the sessions that wait for them. Returns the number of bytes processed.
    fn pass_replies(&mut self, number: usize, bytes: &[u8]) -> Result<usize, CloseReason> {
        let mut used = 0;
        if self.pool.connections[number].phase == SharedPhase::Greeting {
            match self.read_welcome(number, bytes) {
                None => return Ok(0),
                Some((_, false)) => {
                    self.stop_sharing(number, "it does not serve clients that it does not know");
                    return Ok(bytes.len());
                }
                Some((len, true)) => used = len,
            }
        }
        while used < bytes.len() {
            let connection = &mut self.pool.connections[number];
            let Some(awaited) = connection.awaited.front() else {
                // Servers say a last word before they close, such as that they are too busy.
                return Err(CloseReason::ClosedEarly(ProxySide::Server));
            };
            let slot = awaited.slot;
            let id = awaited.id;
            let serial = awaited.serial;
            let entry = self.sessions.get_mut(slot);
            let Some(entry) = entry.filter(|entry| entry.serial == serial && entry.carrier == Some(number))
            else {
                // By the invariants this does not happen. No client may get the answer to another one.
                debug_assert!(false, "a reply is awaited by a session");
                return Err(CloseReason::ClosedEarly(ProxySide::Server));
            };
            let (count, is_complete) = entry.session.receive_shared(&bytes[used..], id, &mut self.shared)?;
            used += count;
            if self.ready.last() != Some(&slot) {
                self.ready.push(slot);
                self.work += EVENT_WORK;
            }
            if !is_complete {
                return Ok(used);
            }
            connection.awaited.pop_front();
            if !entry.session.awaits_shared_replies() {
                entry.carrier = None;
            }
        }
        Ok(used)
    }

    /// Reads the answer to the greeting. The first requests follow it.
    fn read_welcome(&mut self, number: usize, bytes: &[u8]) -> Option<(usize, bool)> {
        let connection = &mut self.pool.connections[number];
        let rules = self.pool.fronts[connection.sharers.front]?;
        let (len, is_welcome) = (rules.read_welcome)(bytes)?;
        if is_welcome {
            connection.phase = SharedPhase::Open;
            for awaited in &mut connection.awaited {
                connection.output.push(std::mem::take(&mut awaited.unsent));
            }
            // They find it, or another one.
            self.ready.append(&mut connection.waiting);
        }
        Some((len, is_welcome))
    }

    /// Lets the sessions of a front connect for themselves for a while: the server has not answered the greeting of
    /// a connection as it should, so that no request has been sent there.
    fn stop_sharing(&mut self, number: usize, why: &str) {
        let Some(connection) = self.pool.remove(number) else { return };
        self.pool.paused_until[connection.sharers.front] = self.shared.now + PAUSE_NS;
        let server = &self.server;
        self.log.write(self.shared.now, || format!("{server}: clients share no connections: {why}"));
        self.ready.extend(connection.waiting);
        self.forget_connections(connection.sharers);
        for awaited in connection.awaited {
            if let Err(reason) = self.take_back(awaited.slot, awaited.unsent) {
                self.end_session(awaited.slot, &reason);
            }
        }
    }

    /// Closes a shared connection. Sessions that wait for its replies end.
    fn close_shared(&mut self, number: usize, reason: Option<&CloseReason>) {
        let Some(connection) = self.pool.remove(number) else { return };
        if let Some(reason) = reason.filter(|_| !connection.awaited.is_empty()) {
            // Another time, the request that may be the cause breaks the connection of its own client only.
            self.pool.paused_until[connection.sharers.front] = self.shared.now + PAUSE_NS;
            let server = &self.server;
            self.log
                .write(self.shared.now, || format!("{server}: a connection that clients share: {reason}"));
        }
        self.ready.extend(connection.waiting);
        self.forget_connections(connection.sharers);
        for awaited in connection.awaited {
            let Some(entry) = self.sessions.get_mut(awaited.slot) else { continue };
            if entry.carrier == Some(number) {
                entry.carrier = None;
                entry.session.end_of_server();
                self.ready.push(awaited.slot);
            }
        }
    }

    /// Lets sessions wait for a connection if a removed one was the last.
    fn forget_connections(&mut self, sharers: Sharers) {
        if self.pool.has_any(sharers) {
            return;
        }
        for (slot, entry) in &mut self.sessions {
            if entry.front == sharers.front
                && entry.session.flow == sharers.flow
                && entry.session.is_sharing()
            {
                entry.session.set_shared_connection(false);
                self.ready.push(slot);
            }
        }
    }

    /// Closes the shared connection of a session that is about to be removed, if it still awaits replies there:
    /// nothing could tell where they end.
    pub(super) fn leave_carrier(&mut self, slot: usize) {
        let Some(entry) = self.sessions.get_mut(slot) else { return };
        if let Some(number) = entry.carrier.take() {
            self.close_shared(number, Some(&CloseReason::ServerSilent));
        }
    }

    /// Writes to shared connections, and updates their registration.
    pub(super) fn write_shared(&mut self) {
        while let Some(number) = self.pool.noted.pop() {
            if let Err(error) = self.write_to_shared(number) {
                self.close_shared(number, Some(&CloseReason::SocketFailed(ProxySide::Server, error)));
            }
        }
    }

    fn write_to_shared(&mut self, number: usize) -> io::Result<()> {
        let Some(connection) = self.pool.connections.get_mut(number) else { return Ok(()) };
        let SharedConnection { stream, output, phase, awaited, serial, .. } = &mut **connection;
        let is_connecting = *phase == SharedPhase::Connecting;
        if !is_connecting
            && !output.is_empty()
            && let Some(stream) = &mut stream.stream
        {
            output.write_to(stream)?;
        }
        if awaited.is_empty() {
            self.pool.sweep_at.get_or_insert(self.shared.now + UNUSED_NS);
        }
        // Its bytes wait in the kernel while the next session has no space for them.
        let next = awaited.front().and_then(|awaited| self.sessions.get(awaited.slot));
        let has_room = next.is_none_or(|entry| entry.session.has_room_for_reply());
        let interest = StreamInterest {
            readable: !is_connecting && has_room,
            writable: is_connecting || !output.is_empty(),
        };
        let slot = u32::try_from(number).expect("fewer connections than files");
        let token = StreamToken { role: StreamRole::Shared, slot, serial: *serial };
        stream.watch(&mut self.system, token, interest)
    }

    /// Closes connections that have not been used for long.
    pub(super) fn close_unused_connections(&mut self) {
        if self.pool.sweep_at.is_none_or(|at| at > self.shared.now) {
            return;
        }
        self.close_connections_unused_since(self.shared.now - UNUSED_NS);
        let unused = self.pool.connections.iter().filter(|(_, connection)| connection.awaited.is_empty());
        self.pool.sweep_at = unused.map(|(_, connection)| connection.used_at + UNUSED_NS).min();
    }

    fn close_connections_unused_since(&mut self, instant: u64) {
        let is_unused = |connection: &SharedConnection<S::Stream>| {
            connection.awaited.is_empty() && connection.used_at <= instant
        };
        let unused = self.pool.connections.iter().filter(|(_, connection)| is_unused(connection));
        let unused: Vec<usize> = unused.map(|(number, _)| number).collect();
        for number in unused {
            self.close_shared(number, None);
        }
    }

    /// Returns true if a session awaits replies of a shared connection.
    pub(super) fn is_carried(&self, slot: usize, serial: u32, number: usize) -> bool {
        self.sessions.get(slot).is_some_and(|entry| entry.serial == serial && entry.carrier == Some(number))
    }
}
