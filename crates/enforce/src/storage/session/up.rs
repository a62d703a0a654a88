//! From the client: requests taken apart.

use super::super::buffer::Moved;
use super::super::request::State;
use super::super::shared::Shared;
use super::{ASKED_MAX, Cut, HELD_LEAST, HELD_MAX, Session, WAITING_MAX};
use crate::deployment::FrontProtocol;
use wire::{Extent, ParseStep};

/// Read at once.
const ROOM: usize = 64 << 10;
/// Bytes that may wait for the server's socket.
const OUT_MAX: usize = 1 << 20;

/// The request that comes in.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) request: u32,
    /// Bytes of this piece that are missing.
    missing: u64,
    /// It ends with this piece.
    last: bool,
}

impl Session {
    pub(super) fn read_client(&mut self) -> Result<(), Cut> {
        match self.inbox.read(&mut self.client, ROOM) {
            Ok(Moved::Bytes(_) | Moved::Blocked) => Ok(()),
            Ok(Moved::End) => {
                self.client_end = true;
                Ok(())
            }
            // Some clients hang up in this way.
            Err(_) if self.is_idle() => Err(Cut::Over),
            Err(error) => Err(Cut::Broken("client", error)),
        }
    }

    /// Whether nothing of the client is here or at the server.
    fn is_idle(&self) -> bool {
        let none = self.current.is_none() && self.parting.is_none() && self.open.is_none();
        none && self.waiting == 0 && self.asked.is_empty()
    }

    /// Whether the client should be read.
    pub(super) fn wants_more(&self, shared: &Shared) -> bool {
        match &self.current {
            Some(current)
                if matches!(shared.requests.get(current.request).state, State::Sent(_) | State::Over) =>
            {
                self.to_server.len() < OUT_MAX
            }
            Some(_) => self.held < self.allowance(shared),
            None => !self.is_full(shared) && self.inbox.len() < ROOM,
        }
    }

    /// What it may hold.
    fn allowance(&self, shared: &Shared) -> usize {
        if shared.is_crowded() { HELD_LEAST } else { HELD_MAX }
    }

    /// Whether it takes no further requests.
    pub(super) fn is_full(&self, shared: &Shared) -> bool {
        self.waiting >= WAITING_MAX
            || self.held >= self.allowance(shared)
            || self.asked.len() + self.waiting as usize >= ASKED_MAX
            || self.to_server.len() >= OUT_MAX
            || self.down.is_full()
            || self.parting.is_some()
            || (self.is_shaking_hands() && self.waiting > 0)
            || self.draining
            || self.gone.is_some()
            || self.server_end
    }

    /// An NBD client may say what it wants to be done as soon as it has said where: the one must not pass the other.
    fn is_shaking_hands(&self) -> bool {
        self.front == FrontProtocol::Nbd && self.wire.export_name().is_none()
    }

    /// Requests out of the inbox, as many as may wait.
    pub(super) fn take_apart(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        loop {
            if self.current.is_some() {
                if !self.piece(shared)? {
                    return Ok(());
                }
            } else if self.inbox.is_empty() || self.is_full(shared) || !self.begin(shared)? {
                return Ok(());
            }
        }
    }

    /// The head of the next request; whether there is one.
    fn begin(&mut self, shared: &mut Shared) -> Result<bool, Cut> {
        let known = self.wire.export_name().map(<[u8]>::len);
        match self.wire.next_request(self.inbox.bytes()).map_err(|bad| Cut::Malformed("client", bad))? {
            ParseStep::NeedMore { .. } => Ok(false),
            ParseStep::Message { message, extent } => {
                let request = shared.requests.add(self.new_request(&message));
                if self.wire.export_name().map(<[u8]>::len) != known {
                    self.down.asks_for(message.id);
                }
                self.current = Some(Current { request, missing: extent.len.0, last: extent.last });
                Ok(true)
            }
            ParseStep::Continued { .. } => unreachable!("no request is incomplete"),
        }
    }

    /// Bytes of the current request; whether it is complete.
    fn piece(&mut self, shared: &mut Shared) -> Result<bool, Cut> {
        let Some(current) = &mut self.current else { return Ok(true) };
        let number = current.request;
        let most = usize::try_from(current.missing).unwrap_or(usize::MAX);
        let count = self.inbox.len().min(most);
        if count > 0 {
            self.moved = shared.now;
        }
        current.missing -= count as u64;
        let request = shared.requests.get_mut(number);
        let piece = &self.inbox.bytes()[..count];
        if matches!(request.state, State::Sent(_) | State::Over) {
            self.to_server.push(piece.to_vec());
        } else {
            request.bytes.extend_from_slice(piece);
            self.held += count;
            shared.held += count;
        }
        self.inbox.take(count);
        if self.current.as_ref().is_some_and(|current| current.missing > 0) {
            self.is_enough(number, shared);
            return Ok(false);
        }
        if self.current.as_ref().is_some_and(|current| !current.last) {
            return self.next_piece();
        }
        self.current = None;
        self.complete(number, shared);
        Ok(true)
    }

    /// The next fragment; whether there is one.
    fn next_piece(&mut self) -> Result<bool, Cut> {
        if self.inbox.is_empty() {
            return Ok(false);
        }
        match self.wire.next_request(self.inbox.bytes()).map_err(|bad| Cut::Malformed("client", bad))? {
            ParseStep::NeedMore { .. } => Ok(false),
            ParseStep::Continued { extent: Extent { len, last, .. } } => {
                if let Some(current) = &mut self.current {
                    (current.missing, current.last) = (len.0, last);
                }
                Ok(true)
            }
            ParseStep::Message { .. } => unreachable!("the last request is incomplete"),
        }
    }

    /// A request that is larger than what may be held enters the queue as it is.
    fn is_enough(&mut self, number: u32, shared: &mut Shared) {
        let is_new = matches!(shared.requests.get(number).state, State::New);
        if is_new && self.held >= self.allowance(shared) {
            self.arrive(number, shared);
        }
    }

    fn complete(&mut self, number: u32, shared: &mut Shared) {
        let request = shared.requests.get_mut(number);
        request.complete = true;
        match request.state {
            State::New => self.arrive(number, shared),
            State::Waiting => {}
            State::Sent(_) | State::Over => {
                self.open = None;
                self.emitted(number, shared);
                while self.open.is_none()
                    && let Some(next) = self.behind.pop_front()
                {
                    self.emit(next, shared);
                }
            }
        }
    }
}
