//! New connections: from a client, and to the server behind the door that it came through.

use super::super::session::{Cut, Session};
use super::{Engine, SERVER};
use crate::deployment::FrontProtocol;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// An address that is listened on.
#[derive(Debug)]
pub(in super::super) struct Door {
    pub(in super::super) protocol: FrontProtocol,
    pub(in super::super) listener: TcpListener,
    pub(in super::super) forward: SocketAddr,
}

impl Engine {
    pub(super) fn accept(&mut self, door: usize) {
        loop {
            let Door { protocol, listener, forward } = &self.doors[door];
            let (client, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Of one client that has gone, or of the limit of open files: the others go on.
                    self.lines.write(self.shared.now, || format!("a client cannot be accepted: {error}"));
                    match self.turn_away(door) {
                        true => continue,
                        false => return,
                    }
                }
            };
            let (protocol, forward) = (*protocol, *forward);
            if self.shared.status.connections >= self.connections_max || self.draining.is_some() {
                self.lines.write(self.shared.now, || format!("{peer}: turned away, too many connections"));
                continue;
            }
            if let Err(error) = self.open(protocol, client, peer, forward) {
                self.lines.write(self.shared.now, || format!("{peer}: no connection to {forward}: {error}"));
            }
        }
    }

    /// Accepts and hangs up, with the descriptor that is kept for this: who is left before the door would ring
    /// without end. Whether somebody was there.
    fn turn_away(&mut self, door: usize) -> bool {
        drop(self.spare.take());
        let somebody = self.doors[door].listener.accept().is_ok();
        self.spare = spare(&self.poll);
        somebody
    }

    fn open(
        &mut self,
        front: FrontProtocol,
        client: TcpStream,
        peer: SocketAddr,
        to: SocketAddr,
    ) -> std::io::Result<()> {
        client.set_nonblocking(true)?;
        client.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&client, true)?;
        let server = connect(to)?;
        server.set_nodelay(true)?;
        let number = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            self.uses.push(0);
            self.sessions.len() - 1
        });
        let mut session = Box::new(Session::new(number, front, peer, [client, server]));
        session.belongs_to(self.shared.flow_of(peer, None));
        let name = self.token(number);
        let watch =
            |fd: &TcpStream, data, flags| epoll::add(&self.poll, fd, epoll::EventData::new_u64(data), flags);
        watch(&session.client, name, epoll::EventFlags::empty())?;
        watch(&session.server, name | SERVER, epoll::EventFlags::OUT)?;
        session.interest = [0, epoll::EventFlags::OUT.bits()];
        self.shared.status.connections += 1;
        self.sessions[number] = Some(session);
        self.touched.push(number);
        Ok(())
    }
}

/// A descriptor to be given up when there is no other.
pub(in super::super) fn spare(poll: &OwnedFd) -> Option<OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(poll, 0).ok()
}

/// A connection that is made while others go on.
fn connect(to: SocketAddr) -> std::io::Result<TcpStream> {
    let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Whether the connection to the server was made.
pub(super) fn connected(session: &mut Session, flags: epoll::EventFlags) -> Result<(), Cut> {
    let broken = |error: std::io::Error| Cut::Broken("server", error);
    if let Err(error) = sockopt::socket_error(&session.server).map_err(|error| broken(error.into()))? {
        return Err(broken(error.into()));
    }
    session.connected |= flags.contains(epoll::EventFlags::OUT);
    Ok(())
}
