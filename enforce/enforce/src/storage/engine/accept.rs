//! New connections: from a client, and to the server behind the front that it came through.

use super::super::round_work::CONNECTING_WORK;
use super::super::session::ProxySession;
use super::super::system::System;
use super::super::watched_stream::WatchedStream;
use super::{ConnectedSession, ProxyEngine};
use std::io;
use std::net::SocketAddr;

/// Maximum number of clients accepted in a row before other events are handled.
const ACCEPTED_PER_ROUND: usize = 2;

impl<S: System> ProxyEngine<S> {
    /// Accepts pending connections at a front.
    pub(super) fn accept(&mut self, front: usize) {
        for _ in 0..ACCEPTED_PER_ROUND {
            // In the round in which the proxy stops listening, events about its fronts may still follow.
            if self.draining_since.is_some() || self.holding_until.is_some() {
                return;
            }
            let (client, peer) = match self.system.accept(front) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    // Others are served meanwhile. The listener stays ready, and would wake the engine
                    // without end.
                    self.log.write(self.shared.now, || format!("a client cannot be accepted: {error}"));
                    self.is_accepting_paused = true;
                    return self.system.report_clients(false);
                }
            };
            self.work += CONNECTING_WORK;
            self.note_descriptors();
            let is_allowed = self.shared.enforced.allowed.permits(front, peer.ip());
            let owner = self.places.owner(&self.shared.enforced.clients.claims(peer));
            let admission =
                if is_allowed { self.make_room(peer.ip(), owner) } else { Err("its address is not allowed") };
            if let Err(why) = admission {
                self.shared.statistics.turned_away += 1;
                self.log.write(self.shared.now, || format!("{peer}: turned away, {why}"));
                continue;
            }
            if let Err(error) = self.open_session(front, client, peer, owner) {
                self.log.write(self.shared.now, || format!("{peer}: no connection to the server: {error}"));
            }
        }
    }

    /// Limits the places to the present number of connections if descriptors have run out.
    fn note_descriptors(&mut self) {
        if !self.system.restore_reserve() {
            let count = self.sessions.len() as u64;
            self.places.note_shortage(count, self.shared.now);
            self.log.write(self.shared.now, || {
                let connections = units::plural(count, "connection");
                format!("no more files can be opened, with {connections}; raise the limit of open files")
            });
        }
    }

    fn open_session(
        &mut self,
        front: usize,
        client: S::Stream,
        peer: SocketAddr,
        owner: Option<u32>,
    ) -> io::Result<()> {
        let is_sharing = self.pool.rules(front, self.shared.now).is_some();
        let server = if is_sharing { None } else { Some(self.system.connect(front, Some(peer))?) };
        let now = self.shared.now;
        let vacant = self.sessions.vacant_entry();
        let slot = vacant.key();
        let address = self.shared.addresses.add(peer.ip());
        let mut session = ProxySession::new(slot, self.fronts[front], is_sharing, peer, address, now);
        session.identify(&mut self.shared);
        let client = WatchedStream::new(Some(client));
        let server = WatchedStream::new(server);
        vacant.insert(Box::new(ConnectedSession {
            session,
            serial: self.next_serial,
            front,
            owner,
            carrier: None,
            client,
            server,
        }));
        self.next_serial = self.next_serial.wrapping_add(1);
        self.places.add(owner);
        self.ready.push(slot);
        Ok(())
    }
}
