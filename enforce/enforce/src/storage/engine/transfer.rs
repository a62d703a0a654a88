//! Bytes between connections and sessions: reads on events of the system, and writes the output of
//! sessions.

use super::super::round_work::{CLOSING_WORK, CONNECTING_WORK};
use super::super::session::{CloseReason, ProxySide, SessionOrder};
use super::super::system::{ProxyStream, System};
use super::super::watched_stream::{ReadOutcome, WatchedStream, read_once};
use super::{ConnectedSession, ProxyEngine, READ_SIZE};

/// Maximum number of bytes read from a client that is cut off, to empty its socket.
const LAST_READ_MAX: usize = 1 << 20;

impl<S: System> ProxyEngine<S> {
    /// Handles an event on a client's connection.
    pub(super) fn on_client_event(
        &mut self,
        slot: usize,
        readable: bool,
        hung_up: bool,
    ) -> Result<(), CloseReason> {
        let ConnectedSession { session, client, .. } = &mut *self.sessions[slot];
        let Some(stream) = &mut client.stream else { return Ok(()) };
        if (readable || hung_up) && session.wants_client_input(&self.shared) {
            match read_once(stream, &mut self.scratch) {
                Ok(ReadOutcome::Bytes(count)) => {
                    self.work += count;
                    return session.receive_from_client(&self.scratch[..count], &mut self.shared);
                }
                Ok(ReadOutcome::EndOfStream) => session.end_of_client(),
                Ok(ReadOutcome::Nothing) => {}
                Err(error) => return Err(session.fail_client(error)),
            }
        } else if hung_up {
            // Not read now, but broken: its requests cannot be answered.
            session.give_client_up(&mut self.shared);
            self.close_client_stream(slot);
        }
        Ok(())
    }

    /// Handles an event on the connection to the server.
    pub(super) fn on_server_event(
        &mut self,
        slot: usize,
        readable: bool,
        writable: bool,
        hung_up: bool,
    ) -> Result<(), CloseReason> {
        let ConnectedSession { session, server, .. } = &mut *self.sessions[slot];
        let Some(stream) = &mut server.stream else { return Ok(()) };
        if session.is_connecting() {
            if writable || hung_up {
                let made = stream.finish_connecting();
                made.map_err(|error| CloseReason::SocketFailed(ProxySide::Server, error))?;
                session.connect_server();
            }
            return Ok(());
        }
        if (readable || hung_up) && session.wants_server_input() {
            let outcome = read_once(stream, &mut self.scratch);
            match outcome.map_err(|error| CloseReason::SocketFailed(ProxySide::Server, error))? {
                ReadOutcome::Bytes(count) => {
                    self.work += count;
                    return session.receive_from_server(&self.scratch[..count], &mut self.shared);
                }
                ReadOutcome::EndOfStream => session.end_of_server(),
                ReadOutcome::Nothing => {}
            }
        } else if hung_up {
            // Its last replies are read once there is space for them.
            server.set_aside(&mut self.system);
        }
        Ok(())
    }

    /// Writes the output of a session to its connections, and removes a finished session.
    pub(super) fn write_session(&mut self, slot: usize) -> Result<(), CloseReason> {
        let Some(entry) = self.sessions.get_mut(slot) else { return Ok(()) };
        let ConnectedSession { session, client, server, .. } = &mut **entry;
        let was_full = session.is_output_full();
        let had_room = session.has_room_for_reply();
        if let Some(stream) = server.stream.as_mut().filter(|_| session.may_write_server()) {
            let written = session.server.output.write_to(stream);
            written.map_err(|error| CloseReason::SocketFailed(ProxySide::Server, error))?;
        }
        let mut is_client_gone = false;
        if let Some(stream) = client.stream.as_mut() {
            match session.server.replies_to_client().write_to(stream) {
                Ok(0) => {}
                Ok(_) => session.note_client_progress(&self.shared),
                Err(_) => is_client_gone = true,
            }
        }
        if is_client_gone {
            session.give_client_up(&mut self.shared);
            self.close_client_stream(slot);
        }
        let Some(entry) = self.sessions.get_mut(slot) else { return Ok(()) };
        let order = entry.session.settle(&mut self.shared)?;
        self.has_timed_session |= entry.session.is_timed();
        if was_full && !entry.session.is_output_full() {
            // Progress was waiting for this space, and no event will report it.
            self.ready.push(slot);
        }
        if !had_room {
            self.pool.note(entry.carrier);
        }
        self.carry_out(slot, order)
    }

    /// Carries out the session's order on its connections.
    ///
    /// # Errors
    /// If it needs a connection to the server, and there is none.
    pub(super) fn carry_out(&mut self, slot: usize, order: SessionOrder) -> Result<(), CloseReason> {
        let Some(entry) = self.sessions.get_mut(slot) else { return Ok(()) };
        match order {
            SessionOrder::None => {}
            SessionOrder::EndServerStream => {
                if let Some(stream) = &mut entry.server.stream {
                    // A failed connection is detected by the next read.
                    let _ = stream.shutdown_write();
                }
            }
            SessionOrder::ConnectServer => {
                let begun = self.system.connect(entry.front, Some(entry.session.peer));
                let stream = begun.map_err(|error| CloseReason::SocketFailed(ProxySide::Server, error))?;
                entry.server = WatchedStream::new(Some(stream));
                self.work += CONNECTING_WORK;
                self.ready.push(slot);
            }
        }
        Ok(())
    }

    /// Closes the connection to the client, after reading its pending bytes. Unread bytes would make the
    /// kernel reset the connection, and discard replies on their way to the client.
    pub(super) fn close_client_stream(&mut self, slot: usize) {
        let Some(entry) = self.sessions.get_mut(slot) else { return };
        let Some(mut stream) = entry.client.stream.take() else { return };
        self.work += CLOSING_WORK;
        let _ = stream.shutdown_write();
        for _ in 0..LAST_READ_MAX / READ_SIZE {
            match stream.read(&mut self.scratch) {
                Ok(count) if count > 0 => self.work += count,
                _ => break,
            }
        }
    }
}
