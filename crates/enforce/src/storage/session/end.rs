//! How a session ends: by what was said, by what breaks, by those who stand still, and what becomes of its requests.

use super::super::request::State;
use super::super::rules::CONTROL;
use super::super::shared::Shared;
use super::Session;
use std::io::Read;
use std::net::Shutdown;
use wire::ProtocolError;

/// How long a client may stand in the way of its own requests before they stop counting as outstanding.
const STALL_NS: u64 = 100_000_000;
/// How long the server may take to answer a client that has gone, or anybody before what it was asked stops counting as
/// outstanding: a request that is lost must not hold up everybody for ever.
const LINGER_NS: u64 = 5_000_000_000;
/// How long a client that takes nothing or stops in the middle of a request is kept.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Why a session ends.
#[derive(Debug)]
pub(in super::super) enum Cut {
    /// All is said.
    Over,
    /// What a side says cannot be read.
    Malformed(&'static str, ProtocolError),
    /// A socket failed.
    Broken(&'static str, std::io::Error),
    /// A side closed in the middle.
    Closed(&'static str),
    /// The client was waited for in vain.
    Stalled,
    /// The server did not answer for a client that has gone.
    Lingered,
}

impl Cut {
    /// Whether the client alone has brought it about.
    pub(in super::super) fn is_of_client(&self) -> bool {
        match self {
            Self::Malformed(side, _) | Self::Broken(side, _) | Self::Closed(side) => *side == "client",
            Self::Stalled => true,
            Self::Over | Self::Lingered => false,
        }
    }
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Over => write!(f, "closed"),
            Self::Malformed(side, bad) => write!(f, "the {side} breaks the protocol: {bad}"),
            Self::Broken(side, error) => write!(f, "the connection to the {side} failed: {error}"),
            Self::Closed(side) => write!(f, "the {side} closed with requests unanswered"),
            Self::Stalled => write!(f, "the client took or sent nothing for a minute"),
            Self::Lingered => write!(f, "the client has gone and the server did not answer"),
        }
    }
}

impl Session {
    pub(super) fn end(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        let said = self.waiting == 0 && self.parting.is_none() && self.to_server.is_empty();
        if let Some(since) = self.gone {
            let answered = said && self.asked.is_empty();
            return match answered || self.server_end {
                true => Err(Cut::Over),
                false if shared.now > since + LINGER_NS => Err(Cut::Lingered),
                false => Ok(()),
            };
        }
        if self.server_end && self.down.is_written() {
            let clean = said && self.asked.is_empty();
            return Err(if clean { Cut::Over } else { Cut::Closed("server") });
        }
        let quiet = said && self.asked.is_empty() && self.current.is_none();
        // All that was asked is answered; a server that does not hang up is left.
        let left = self.shut.is_some_and(|since| shared.now > since + LINGER_NS);
        if (self.draining || left) && quiet && self.down.is_written() {
            return Err(Cut::Over);
        }
        let taken = self.inbox.is_empty() || !self.is_full(shared);
        if self.client_end && said && taken && self.connected && self.shut.is_none() && !self.server_end {
            if self.current.is_some() {
                return Err(Cut::Closed("client"));
            }
            self.shut = Some(shared.now);
            self.server.shutdown(Shutdown::Write).map_err(|error| Cut::Broken("server", error))?;
        }
        Ok(())
    }

    /// The client cannot be answered any more: what waits is taken back, what is at the server is waited for.
    pub(in super::super) fn client_gone(&mut self, shared: &mut Shared) {
        if self.gone.is_some() {
            return;
        }
        self.gone = Some(shared.now);
        let _ = self.client.shutdown(Shutdown::Both);
        self.withdraw(shared);
        let coming = self.current.as_ref().map(|current| current.request);
        if let Some(number) = coming.filter(|n| matches!(shared.requests.get(*n).state, State::New)) {
            self.parting = self.parting.filter(|parting| *parting != number);
            self.forget(number, shared);
        }
        self.down.discard();
        if self.open.is_some() {
            // The server waits for the rest of a request, which will never come.
            self.server_end = true;
        }
    }

    /// Whether the server still owes answers when the client is to be cut off: until then they count as outstanding,
    /// so that nobody gets more of the device by breaking the protocol.
    pub(in super::super) fn is_owed(&self) -> bool {
        self.gone.is_none() && !self.asked.is_empty() && self.open.is_none() && !self.server_end
    }

    /// Takes back what waits.
    pub(super) fn withdraw(&mut self, shared: &mut Shared) {
        for flow in [self.flow, self.flow | CONTROL] {
            for number in shared.withdraw(self.number, flow) {
                self.waiting -= 1;
                self.forget(number, shared);
            }
        }
    }

    /// Gives back all that it holds; the session is not used afterwards.
    pub(in super::super) fn close(&mut self, shared: &mut Shared) {
        self.withdraw(shared);
        self.hang_up();
        let rest: Vec<u32> = self.asked.drain(..).map(|(_, number)| number).collect();
        let behind = std::mem::take(&mut self.behind);
        let others = behind
            .into_iter()
            .chain(self.open)
            .chain(self.parting)
            .chain(self.current.as_ref().map(|c| c.request));
        let mut all: Vec<u32> = rest.into_iter().chain(others).collect();
        all.sort_unstable();
        all.dedup();
        for number in all {
            let request = shared.requests.get_mut(number);
            if let State::Sent(ticket) = std::mem::replace(&mut request.state, State::Over) {
                shared.queue.done(shared.now, ticket);
            }
            self.forget(number, shared);
        }
        shared.held -= std::mem::take(&mut self.held);
    }

    /// Ends both connections. What the client has sent in the meantime is read: unread bytes would make the kernel
    /// throw away what is on its way to the client.
    fn hang_up(&mut self) {
        let _ = (self.client.shutdown(Shutdown::Write), self.server.shutdown(Shutdown::Both));
        let mut piece = [0; 16 << 10];
        for _ in 0..64 {
            if !self.client.read(&mut piece).is_ok_and(|read| read > 0) {
                return;
            }
        }
    }

    /// Whether time alone may end it or change something.
    pub(in super::super) fn is_timed(&self) -> bool {
        self.stalled.is_some() || self.gone.is_some() || self.shut.is_some() || !self.asked.is_empty()
    }

    /// What the clock says about it.
    pub(in super::super) fn tick(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        if let Some(since) = self.stalled {
            if shared.now > self.moved + PATIENCE_NS {
                return Err(Cut::Stalled);
            }
            if shared.now > since + STALL_NS {
                self.release(None, shared);
            }
        }
        if self.is_overdue(shared) {
            self.release(shared.now.checked_sub(LINGER_NS), shared);
        }
        self.end(shared)
    }

    /// What has been sent on and is held up no longer counts as outstanding: all of it, or what was sent before
    /// an instant.
    pub(super) fn release(&mut self, before: Option<u64>, shared: &mut Shared) {
        let sent =
            self.asked.iter().map(|(_, number)| *number).chain(self.open).chain(self.behind.iter().copied());
        for number in sent {
            let request = shared.requests.get_mut(number);
            if before.is_some_and(|before| request.sent >= before) {
                continue;
            }
            if let State::Sent(ticket) = std::mem::replace(&mut request.state, State::Over) {
                shared.queue.done(shared.now, ticket);
                shared.status.released += 1;
            }
        }
    }

    /// Whether the server owes an answer for longer than a device takes.
    fn is_overdue(&self, shared: &Shared) -> bool {
        let oldest = self.asked.front().map(|(_, number)| shared.requests.get(*number).sent);
        oldest.is_some_and(|sent| sent + LINGER_NS < shared.now)
    }

    pub(super) fn watch_stall(&mut self, shared: &Shared) {
        let stands = self.down.is_full() || self.open.is_some();
        self.stalled = stands.then(|| self.stalled.unwrap_or(shared.now));
        if !stands {
            self.moved = shared.now;
        }
    }
}
