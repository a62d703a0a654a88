//! A loop: the sockets of some connections, moved by orders of the engine and events of a system.

use super::super::system::{ProxyStream, StreamInterest, StreamRole, StreamToken, System, SystemEvent};
use super::super::watched_stream::{ReadOutcome, WatchedStream, read_once};
use super::conduit::{ByteOrder, ByteReport, ConnectionId, TAKEN_STEP, WINDOW};
use std::collections::VecDeque;
use std::io::{self, IoSlice};

/// Maximum number of bytes read with one system call. A connection gets one read a round.
const READ_SIZE: usize = 64 << 10;
/// Maximum number of pieces written with one system call.
const PIECES: usize = 16;
/// Maximum number of bytes read from a connection that closes. Unread bytes would make the kernel reset the
/// connection, and discard replies on their way to the peer.
const LAST_READ_MAX: usize = 1 << 20;

/// Time for the peer of a closed connection to take its last bytes.
const LAST_WRITE_NS: u64 = 1_000_000_000;

/// The sockets of some connections.
#[derive(Debug)]
pub struct ByteLoop<C> {
    connections: Vec<Option<Box<LoopConnection<C>>>>,
    /// Connections that close once their last bytes are written, and the time at which they do in any case.
    closing: VecDeque<(u64, ConnectionId)>,
    /// Slots of connections whose registration or output may have to change.
    touched: Vec<usize>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct LoopConnection<C> {
    id: ConnectionId,
    socket: WatchedStream<C>,
    is_connecting: bool,
    /// Number of bytes that may be read before the engine takes some.
    window: usize,
    /// Reading has ended.
    has_ended: bool,
    is_hang_up_reported: bool,
    /// Writing has failed; further bytes are discarded.
    has_failed: bool,
    output: VecDeque<Vec<u8>>,
    /// Bytes of the first piece of `output` that were written.
    first_written: usize,
    /// Written bytes that the engine does not know of.
    written: usize,
    ends_output: bool,
    closes: bool,
}

impl<C> Default for ByteLoop<C> {
    fn default() -> Self {
        Self {
            connections: Vec::new(),
            closing: VecDeque::new(),
            touched: Vec::new(),
            scratch: vec![0; READ_SIZE],
        }
    }
}

impl<C: ProxyStream> ByteLoop<C> {
    /// Returns the time at which [`Self::settle`] is due without an event or an order.
    pub fn wake_at(&self) -> Option<u64> {
        self.closing.front().map(|(at, _)| *at)
    }

    /// Carries out an order of the engine.
    pub fn on_order(&mut self, id: ConnectionId, order: ByteOrder<C>, now: u64) {
        let slot = id.slot as usize;
        if let ByteOrder::Adopt { stream, is_connecting } = order {
            let slots = self.connections.len().max(slot + 1);
            self.connections.resize_with(slots, || None);
            debug_assert!(self.connections[slot].is_none(), "the engine uses free slots");
            self.connections[slot] = Some(Box::new(LoopConnection::new(id, stream, is_connecting)));
            return self.touched.push(slot);
        }
        let Some(connection) = self.connection(id) else { return };
        match order {
            ByteOrder::Adopt { .. } => unreachable!("handled above"),
            ByteOrder::Write(bytes) if connection.has_failed => connection.written += bytes.len(),
            ByteOrder::Write(bytes) => connection.output.push_back(bytes),
            ByteOrder::Taken(count) => connection.window += count,
            ByteOrder::EndOutput => connection.ends_output = true,
            ByteOrder::Close => {
                connection.closes = true;
                self.closing.push_back((now + LAST_WRITE_NS, id));
            }
        }
        self.touched.push(slot);
    }

    /// Closes all connections, once their last bytes are written.
    pub fn close_all(&mut self, now: u64) {
        let open = self.connections.iter().flatten().filter(|connection| !connection.closes);
        let open: Vec<_> = open.map(|connection| connection.id).collect();
        for id in open {
            self.on_order(id, ByteOrder::Close, now);
        }
    }

    /// Returns true if there is no connection.
    pub fn is_empty(&self) -> bool {
        self.connections.iter().all(Option::is_none)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut Box<LoopConnection<C>>> {
        self.connections.get_mut(id.slot as usize)?.as_mut().filter(|connection| connection.id == id)
    }

    /// Handles an event of the system.
    pub fn on_event(&mut self, event: SystemEvent, reports: &mut Vec<(ConnectionId, ByteReport)>) {
        let SystemEvent::Stream { token, readable, writable, hung_up } = event else { return };
        let id = ConnectionId { slot: token.slot, serial: token.serial };
        let Self { connections, scratch, touched, .. } = self;
        let Some(Some(connection)) = connections.get_mut(id.slot as usize) else { return };
        if connection.id != id {
            return;
        }
        touched.push(id.slot as usize);
        let mut report = |report| reports.push((id, report));
        if connection.is_connecting {
            if writable || hung_up {
                connection.finish_connecting(&mut report);
            }
            return;
        }
        if (readable || hung_up) && connection.may_read() {
            connection.read(scratch, &mut report);
        }
        if hung_up && !std::mem::replace(&mut connection.is_hang_up_reported, true) {
            report(ByteReport::HungUp);
        }
    }

    /// Writes what was ordered, and updates registrations. Called after orders and events.
    pub fn settle(
        &mut self,
        system: &mut impl System<Stream = C>,
        reports: &mut Vec<(ConnectionId, ByteReport)>,
    ) {
        let now = system.now();
        self.give_up_last_bytes(now);
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for slot in touched.drain(..) {
            let Some(Some(connection)) = self.connections.get_mut(slot) else { continue };
            let id = connection.id;
            let mut report = |report| reports.push((id, report));
            connection.write(&mut report);
            if connection.is_over() {
                connection.read_last(&mut self.scratch);
                report(ByteReport::Closed);
                self.connections[slot] = None;
            } else {
                connection.update_interest(system, &mut report);
            }
        }
        self.touched = touched;
        while self.closing.front().copied().is_some_and(|(_, id)| self.connection(id).is_none()) {
            self.closing.pop_front();
        }
    }

    /// Discards the last bytes of closed connections whose peers have not taken them in time.
    fn give_up_last_bytes(&mut self, now: u64) {
        while let Some((at, id)) = self.closing.front().copied()
            && at <= now
        {
            self.closing.pop_front();
            if let Some(connection) = self.connection(id) {
                connection.has_failed = true;
                self.touched.push(id.slot as usize);
            }
        }
    }
}

impl<C: ProxyStream> LoopConnection<C> {
    fn new(id: ConnectionId, stream: C, is_connecting: bool) -> Self {
        Self {
            id,
            socket: WatchedStream::new(Some(stream)),
            is_connecting,
            window: WINDOW,
            has_ended: false,
            is_hang_up_reported: false,
            has_failed: false,
            output: VecDeque::new(),
            first_written: 0,
            written: 0,
            ends_output: false,
            closes: false,
        }
    }

    fn may_read(&self) -> bool {
        !self.has_ended && self.window > 0 && !self.closes
    }

    fn may_write(&self) -> bool {
        !self.is_connecting && !self.has_failed && !self.output.is_empty()
    }

    /// Returns true if the engine has closed the connection, and nothing is left to write.
    fn is_over(&self) -> bool {
        self.closes && (self.output.is_empty() || self.has_failed || self.is_connecting)
    }

    fn finish_connecting(&mut self, report: &mut impl FnMut(ByteReport)) {
        let Some(stream) = &mut self.socket.stream else { return };
        let outcome = stream.finish_connecting();
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return;
        }
        self.is_connecting = false;
        self.has_failed = outcome.is_err();
        self.has_ended = outcome.is_err();
        report(ByteReport::Connected(outcome));
    }

    fn read(&mut self, scratch: &mut [u8], report: &mut impl FnMut(ByteReport)) {
        let Some(stream) = &mut self.socket.stream else { return };
        let most = self.window.min(scratch.len());
        match read_once(stream, &mut scratch[..most]) {
            Ok(ReadOutcome::Bytes(count)) => {
                self.window -= count;
                report(ByteReport::Read(scratch[..count].to_vec()));
            }
            Ok(ReadOutcome::EndOfStream) => {
                self.has_ended = true;
                report(ByteReport::EndOfStream);
            }
            Ok(ReadOutcome::Nothing) => {}
            Err(error) => self.fail(error, report),
        }
    }

    fn fail(&mut self, error: io::Error, report: &mut impl FnMut(ByteReport)) {
        self.has_ended = true;
        self.has_failed = true;
        self.is_hang_up_reported = true;
        report(ByteReport::Failed(error));
    }

    fn write(&mut self, report: &mut impl FnMut(ByteReport)) {
        while self.may_write() {
            let Some(stream) = &mut self.socket.stream else { break };
            let first = IoSlice::new(&self.output[0][self.first_written..]);
            let rest = self.output.iter().skip(1).map(|piece| IoSlice::new(piece));
            let mut pieces = [IoSlice::new(&[]); PIECES];
            let mut count = 0;
            for (place, piece) in pieces.iter_mut().zip(std::iter::once(first).chain(rest)) {
                *place = piece;
                count += 1;
            }
            match stream.write_vectored(&pieces[..count]) {
                Ok(written) => self.note_written(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Replies that have arrived are still to be read, as on a socket of the engine's.
                Err(error) => {
                    self.has_failed = true;
                    let is_read = self.has_ended;
                    self.written +=
                        self.output.drain(..).map(|piece| piece.len()).sum::<usize>() - self.first_written;
                    self.first_written = 0;
                    if is_read {
                        self.fail(error, report);
                    }
                }
            }
        }
        if self.ends_output && self.output.is_empty() && !self.is_connecting {
            self.ends_output = false;
            if let Some(stream) = &mut self.socket.stream {
                // A failed connection is detected by the next read.
                let _ = stream.shutdown_write();
            }
        }
        if self.written >= TAKEN_STEP {
            report(ByteReport::Written(std::mem::take(&mut self.written)));
        }
    }

    fn note_written(&mut self, count: usize) {
        self.written += count;
        self.first_written += count;
        while self.output.front().is_some_and(|piece| piece.len() <= self.first_written) {
            let piece = self.output.pop_front().expect("it was there");
            self.first_written -= piece.len();
        }
    }

    /// Updates what the system reports of the socket.
    fn update_interest(&mut self, system: &mut impl System<Stream = C>, report: &mut impl FnMut(ByteReport)) {
        let interest = StreamInterest {
            readable: !self.is_connecting && self.may_read(),
            writable: self.is_connecting || self.may_write(),
        };
        if self.is_hang_up_reported && interest == StreamInterest::NONE {
            // Level-triggered polling would report the hang-up in every round.
            if self.socket.watched.is_some() {
                self.socket.set_aside(system);
            }
            return;
        }
        let ConnectionId { slot, serial } = self.id;
        let token = StreamToken { role: StreamRole::Client, slot, serial };
        if let Err(error) = self.socket.watch(system, token, interest) {
            self.fail(error, report);
        }
    }

    /// Shuts the connection down and reads its pending bytes, before it is closed.
    fn read_last(&mut self, scratch: &mut [u8]) {
        let Some(stream) = &mut self.socket.stream else { return };
        let _ = stream.shutdown_write();
        for _ in 0..LAST_READ_MAX / READ_SIZE {
            if !matches!(stream.read(scratch), Ok(count) if count > 0) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// A connection whose peer reads nothing more after some bytes.
    #[derive(Debug)]
    struct DeafStream {
        room: usize,
    }

    impl ProxyStream for DeafStream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }

        fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            let len: usize = pieces.iter().map(|piece| piece.len()).sum();
            let count = len.min(self.room);
            self.room -= count;
            if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
        }

        fn shutdown_write(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn finish_connecting(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A clock that tests set, without events.
    struct Clock(u64);

    impl System for Clock {
        type Stream = DeafStream;

        fn now(&self) -> u64 {
            self.0
        }

        fn accept(&mut self, _: usize) -> io::Result<(DeafStream, SocketAddr)> {
            Err(io::ErrorKind::WouldBlock.into())
        }

        fn restore_reserve(&mut self) -> bool {
            true
        }

        fn clients_max(&self) -> u64 {
            0
        }

        fn report_clients(&mut self, _: bool) {}

        fn may_share(&self, _: usize) -> bool {
            false
        }

        fn connect(&mut self, _: usize, _: Option<SocketAddr>) -> io::Result<DeafStream> {
            Err(io::ErrorKind::NotConnected.into())
        }

        fn watch(&mut self, _: &mut DeafStream, _: StreamToken, _: StreamInterest) -> io::Result<()> {
            Ok(())
        }

        fn unwatch(&mut self, _: &mut DeafStream) {}

        fn wait(&mut self, _: Option<u64>, _: u32, _: &mut Vec<SystemEvent>) -> io::Result<()> {
            Ok(())
        }

        fn stop_listening(&mut self) {}
    }

    /// Closes a connection with 100 bytes for a peer that takes `room`. Returns the time until it is closed.
    fn closed_after(room: usize) -> u64 {
        let id = ConnectionId { slot: 0, serial: 7 };
        let mut byte_loop = ByteLoop::default();
        let mut clock = Clock(5);
        let mut reports = Vec::new();
        let stream = DeafStream { room };
        byte_loop.on_order(id, ByteOrder::Adopt { stream, is_connecting: false }, clock.0);
        byte_loop.on_order(id, ByteOrder::Write(vec![0; 100]), clock.0);
        byte_loop.on_order(id, ByteOrder::Close, clock.0);
        byte_loop.settle(&mut clock, &mut reports);
        if !byte_loop.is_empty() {
            clock.0 = byte_loop.wake_at().expect("it is due");
            byte_loop.settle(&mut clock, &mut reports);
        }
        assert!(byte_loop.is_empty(), "it is closed");
        assert!(matches!(reports.as_slice(), [(closed, ByteReport::Closed)] if *closed == id), "{reports:?}");
        assert_eq!(byte_loop.wake_at(), None);
        clock.0 - 5
    }

    #[test]
    fn the_last_bytes_of_a_closed_connection_have_a_second() {
        assert_eq!(closed_after(100), 0);
        assert_eq!(closed_after(99), LAST_WRITE_NS);
    }
}
