//! New connections: from a client, and to the server behind the front that it came through.

use super::super::session::ProxySession;
use super::super::system::System;
use super::{ConnectedSession, ProxyEngine, WatchedStream};
use std::io;
use std::net::SocketAddr;

/// Maximum number of clients accepted in a row before other events are handled.
const ACCEPTED_PER_ROUND: usize = 64;

impl<S: System> ProxyEngine<S> {
    /// Accepts pending connections at a front.
    pub(super) fn accept(&mut self, front: usize) {
        for _ in 0..ACCEPTED_PER_ROUND {
            // In the round in which the proxy stops listening, events about its fronts may still follow.
            if self.draining_since.is_some() {
                return;
            }
            let (client, peer) = match self.system.accept(front) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // The client has gone, or the process may open no more files. Other clients are still
                    // served.
                    self.log.write(self.shared.now, || format!("a client cannot be accepted: {error}"));
                    match self.system.reject(front) {
                        true => continue,
                        false => return,
                    }
                }
            };
            let is_allowed = self.shared.enforced.allowed.permits(front, peer.ip());
            let admission =
                if is_allowed { self.make_room(peer.ip()) } else { Err("its address is not allowed") };
            if let Err(why) = admission {
                self.shared.statistics.turned_away += 1;
                self.log.write(self.shared.now, || format!("{peer}: turned away, {why}"));
                continue;
            }
            if let Err(error) = self.open_session(front, client, peer) {
                self.log.write(self.shared.now, || format!("{peer}: no connection to the server: {error}"));
            }
        }
    }

    fn open_session(&mut self, front: usize, client: S::Stream, peer: SocketAddr) -> io::Result<()> {
        let server = self.system.connect(front, peer)?;
        let now = self.shared.now;
        let vacant = self.sessions.vacant_entry();
        let slot = vacant.key();
        let mut session = ProxySession::new(slot, self.fronts[front], peer, now);
        session.identify(&mut self.shared);
        let client = WatchedStream::new(client);
        let server = WatchedStream::new(server);
        vacant.insert(Box::new(ConnectedSession {
            session,
            serial: self.next_serial,
            front,
            client,
            server,
        }));
        self.next_serial = self.next_serial.wrapping_add(1);
        self.addresses.add(peer.ip());
        self.ready.push(slot);
        Ok(())
    }
}
