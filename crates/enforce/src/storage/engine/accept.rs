//! New connections: from a client, and to the server behind the front that it came through.

use super::super::event_token::session_tokens;
use super::super::listener::begin_connection;
use super::super::session::ProxySession;
use super::ProxyEngine;
use crate::deployment::FrontProtocol;
use rustix::event::epoll;
use rustix::net::sockopt;
use std::net::{SocketAddr, TcpStream};

impl ProxyEngine {
    /// Accepts all connections that wait at a listener.
    pub(super) fn accept(&mut self, number: usize) {
        loop {
            // In the round in which the proxy stops listening, events about its listeners may still follow.
            let Some(front) = self.listeners.get(number) else { return };
            let (protocol, forward) = (front.protocol, front.forward);
            let (client, peer) = match front.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // One client has gone, or the process may open no more files: the other clients are still served.
                    self.log.write(self.shared.now, || format!("a client cannot be accepted: {error}"));
                    let listener = &self.listeners[number].listener;
                    match self.spare.reject_connection(listener, &self.epoll) {
                        true => continue,
                        false => return,
                    }
                }
            };
            if self.shared.statistics.connections >= self.connections_max || self.draining_since.is_some() {
                self.log.write(self.shared.now, || format!("{peer}: turned away, too many connections"));
                continue;
            }
            if let Err(error) = self.open_session(protocol, client, peer, forward) {
                self.log.write(self.shared.now, || format!("{peer}: no connection to {forward}: {error}"));
            }
        }
    }

    fn open_session(
        &mut self,
        protocol: FrontProtocol,
        client: TcpStream,
        peer: SocketAddr,
        forward: SocketAddr,
    ) -> std::io::Result<()> {
        client.set_nonblocking(true)?;
        client.set_nodelay(true)?;
        // A client whose machine is gone is noticed in the end, and its session given back.
        sockopt::set_socket_keepalive(&client, true)?;
        let server = begin_connection(forward)?;
        server.set_nodelay(true)?;
        let vacant = self.sessions.vacant_entry();
        let (slot, serial) = (vacant.key(), self.next_serial);
        let mut session = Box::new(ProxySession::new(slot, serial, protocol, peer, [client, server]));
        session.move_to_flow(self.shared.flow_for(peer, None));
        // The client is read when the session has made its first progress.
        let [client_token, server_token] = session_tokens(slot, serial).map(epoll::EventData::new_u64);
        epoll::add(&self.epoll, &session.client, client_token, epoll::EventFlags::empty())?;
        epoll::add(&self.epoll, &session.server, server_token, epoll::EventFlags::OUT)?;
        session.registered_flags = [0, epoll::EventFlags::OUT.bits()];
        vacant.insert(session);
        self.next_serial = self.next_serial.wrapping_add(1);
        self.shared.statistics.connections += 1;
        self.ready.push(slot);
        Ok(())
    }
}
