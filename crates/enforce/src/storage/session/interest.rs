//! What a session can use now: the events that epoll should report about its sockets.

use super::super::shared::SharedState;
use super::ProxySession;
use rustix::event::epoll::EventFlags;

impl ProxySession {
    /// The events that the client side and the server side should be watched for.
    pub(in super::super) fn epoll_interest(&self, shared: &SharedState) -> [EventFlags; 2] {
        let mut client = EventFlags::empty();
        client.set(EventFlags::IN, self.may_read_client(shared));
        client.set(EventFlags::OUT, self.client_closed_at.is_none() && !self.replies.is_written());
        let mut server = EventFlags::empty();
        server.set(EventFlags::IN, self.may_read_server());
        // A connection that is being made becomes writable when it is made.
        server.set(EventFlags::OUT, !self.is_connected || !self.server_output.is_empty());
        [client, server]
    }

    /// Whether the client should be read now.
    pub(in super::super) fn may_read_client(&self, shared: &SharedState) -> bool {
        self.client_closed_at.is_none() && !self.client_eof && self.wants_client_input(shared)
    }

    /// Whether the server should be read now.
    pub(in super::super) fn may_read_server(&self) -> bool {
        self.is_connected && !self.server_eof && !self.replies.is_full()
    }
}
